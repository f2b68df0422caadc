"""Settings under which the numeric tests run, and what is left alone."""

from __future__ import annotations

import subprocess
from types import SimpleNamespace
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from tools import processors
from tools.processors import DISPATCH, KERNEL, settings

OLD = frozenset({"sse4_2"})
NEW = OLD | {"avx", "avx2", "fma"}


@pytest.mark.parametrize(
    ("flags", "dispatched", "names"),
    [
        (frozenset(), (), ["threads"]),
        (OLD, (), ["nehalem", "threads"]),
        (NEW, (), ["nehalem", "sandybridge", "haswell", "zen", "threads"]),
        (OLD, ("X86_V3",), ["nehalem", "threads", "dispatch", "threads-and-dispatch"]),
    ],
)
def test_a_processor_runs_the_settings_that_it_can(
    flags: frozenset[str], dispatched: tuple[str, ...], names: list[str]
) -> None:
    assert [each.name for each in settings(flags, dispatched)] == names


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """Environments of the runs; one under Haswell's kernel fails."""
    environments: list[dict[str, str]] = []

    def run(command: list[str], *, env: dict[str, str], **_: Any) -> SimpleNamespace:
        environments.append(env)
        return SimpleNamespace(returncode=int(env.get(KERNEL) == "Haswell"))

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(processors, "processor_flags", lambda: NEW)
    monkeypatch.setattr(processors, "dispatched_features", lambda: ("X86_V3",))
    for name in (KERNEL, DISPATCH):
        monkeypatch.delenv(name, raising=False)
    return environments


def exit_code(*words: str) -> int:
    app = typer.Typer()
    app.command()(processors.main)
    return CliRunner().invoke(app, words).exit_code


def test_all_settings_run_whatever_fails_and_a_failure_is_the_exit_code(
    started: list[dict[str, str]],
) -> None:
    assert exit_code() == 1
    kernels = [env.get(KERNEL) for env in started]
    assert kernels == ["Nehalem", "Sandybridge", "Haswell", "Zen", None, None]


def test_a_machine_that_prescribes_a_kernel_is_left_alone(
    started: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KERNEL, "Prescott")
    assert exit_code() == 0
    assert [env[KERNEL] for env in started] == ["Prescott", "Prescott"]  # threads, dispatch


@pytest.mark.parametrize(("name", "code"), [("threads", 0), ("haswell", 1), ("m68k", 2)])
def test_one_setting_can_be_chosen(started: list[dict[str, str]], name: str, code: int) -> None:
    assert exit_code("--only", name) == code
