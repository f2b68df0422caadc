"""`settings`: what is set, and where it came from; and the settings file under real commands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from benchmarks.settings.model import KEYS
from benchmarks.settings.sources import SettingsFile
from evaluator.commands.demo import with_absolute_paths
from tests.evaluator.commands.submitting import Run

REPOSITORY = Path(__file__).resolve().parents[3]


def by_variable(record: Any) -> dict[str, Any]:
    return {one["variable"]: one for one in record["settings"]}


def process(folder: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("ASSAY_", "HF_"))}
    environment = {**clean, "PYTHONPATH": str(REPOSITORY), **more}
    return subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip


def test_each_setting_is_shown_with_its_origin(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ASSAY_LIVE_SECRET", "a-secret-of-the-house")
    shown = run("settings", "--data", tmp_path, "--json")
    assert shown.code == 0, shown.err
    found = by_variable(shown.json)
    assert (found["ASSAY_DATA"]["value"], found["ASSAY_DATA"]["origin"]) == (
        str(tmp_path), "option",
    )  # fmt: skip
    assert found["ASSAY_STORE"]["origin"] == "environment"
    assert found["PORT"] | {"value": "7860", "origin": "default"} == found["PORT"]
    assert found["ASSAY_LIVE_SECRET"]["value"] == "set"
    people = run("settings")
    assert "limits.log_days" in people.out
    assert "a-secret-of-the-house" not in shown.out + people.out


def test_a_value_that_is_none_is_shown_and_ends_with_1(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_LOGS_KEPT", "many")
    ended = run("settings", "--json")
    assert ended.code == 1
    assert "ASSAY_LOGS_KEPT" in by_variable(ended.json)["ASSAY_LOGS_KEPT"]["problem"]
    assert "bad_setting" in ended.err


def test_the_example_explains_every_key_and_can_be_used(run: Run, tmp_path: Path) -> None:
    ended = run("settings", "--example")
    assert ended.code == 0
    assert set(tomllib.loads(ended.out)) >= {"hub", "live", "limits"}
    file = tmp_path / "settings.toml"
    for text in (ended.out, re.sub(r"(?m)^# (?=[a-z_]+ = )", "", ended.out)):
        file.write_text(text)
        found = SettingsFile(file, named=True).texts()
        in_force = {s.file_variable or s.variable for s in KEYS.values()}
        assert set(found) == (set() if text == ended.out else in_force)


@pytest.mark.slow
def test_a_command_finds_the_file_and_says_what_is_mistyped(tmp_path: Path) -> None:
    (tmp_path / ".assay").mkdir()
    (tmp_path / ".assay" / "settings.toml").write_text('store = "elsewhere"\n')
    status = process(tmp_path, "-m", "evaluator", "health", ASSAY_OPERATOR="hub:ada")
    assert "elsewhere" in status.stderr
    assert "Did you mean ASSAY_OPERATORS?" in status.stderr
    (tmp_path / ".assay" / "settings.toml").write_text('[hub]\ntoken_fil = "x"\n')
    wrong = process(tmp_path, "-m", "benchmarks", "list")
    assert wrong.returncode == 1
    assert "settings.toml:2" in wrong.stderr
    assert "Did you mean hub.token_file?" in wrong.stderr
    how = process(tmp_path, "-m", "evaluator", "settings", "--example")
    assert (how.returncode, "token_file" in how.stdout) == (0, True)


def test_what_libraries_read_when_they_are_imported_counts_all_the_same(tmp_path: Path) -> None:
    """The process begins anew, once, with the same command line."""
    (tmp_path / "mine.toml").write_text('[hub]\nendpoint = "http://mirror.example"\n')
    program = (
        "from huggingface_hub import constants\n"
        "from benchmarks.settings.sources import load_process\n"
        "import sys\n"
        "print('begun', flush=True)\n"
        "load_process()\n"
        "print(constants.ENDPOINT, sys.argv[1:])\n"
    )
    ended = process(tmp_path, "-c", program, "a b", ASSAY_SETTINGS="mine.toml")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines() == ["begun", "begun", "http://mirror.example ['a b']"]


def test_an_environment_for_another_folder_means_the_same_there() -> None:
    environment = {"ASSAY_MODELS": "models", "ASSAY_STORE": "s", "HF_HOME": "h", "PORT": "1"}
    absolute = str(Path("models").absolute())
    assert with_absolute_paths(environment) == {**environment, "ASSAY_MODELS": absolute}
