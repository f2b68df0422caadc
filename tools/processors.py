"""Numeric tests under other kernels of linear algebra, numbers of threads and instruction sets.

    python -m tools.processors [--only NAME ...]

A figure may differ in its last bits between processors. Tests compare only what a method determines,
so they pass under every setting that this processor can run. A setting is skipped where the machine
prescribes its variable already: whoever set it knows why.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

NUMERIC = (
    "tests/benchmarks",
    "tests/leaderboard/ranking",
    "tests/leaderboard/models",
    "tests/evaluator/ab",
    "tests/evaluator/prompts",
    "tests/evaluator/scorers",
    "tests/evaluator/training",
    "tests/tools",
)
"""Folders whose tests compute: statistics, protocols, training and scorers."""
KERNEL_FLAGS: Mapping[str, frozenset[str]] = {
    "Nehalem": frozenset({"sse4_2"}),
    "Sandybridge": frozenset({"avx"}),
    "Haswell": frozenset({"avx2", "fma"}),
    "Zen": frozenset({"avx2", "fma"}),
}
"""Kernels of OpenBLAS on x86-64, and the processor's flags that each needs."""
KERNEL = "OPENBLAS_CORETYPE"
DISPATCH = "NPY_DISABLE_CPU_FEATURES"
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Setting:
    """Environment variables that change how the same figures are computed."""

    name: str
    variables: Mapping[str, str]

    def prescribed(self, environment: Mapping[str, str]) -> str:
        """Variable of a kernel or instruction set that the machine sets itself, or ""."""
        return next((n for n in self.variables if n in {KERNEL, DISPATCH} & {*environment}), "")


@dataclass(frozen=True)
class Outcome:
    """How the numeric tests ended under a setting."""

    setting: Setting
    passed: bool | None  # None: not run
    note: str


def settings(flags: frozenset[str], dispatched: tuple[str, ...]) -> Iterator[Setting]:
    """Settings that a processor can run.

    Args:
        flags: of the processor, as Linux lists them.
        dispatched: instruction sets that NumPy uses here beyond its baseline.
    """
    for kernel, needed in KERNEL_FLAGS.items():
        if needed <= flags:
            yield Setting(kernel.lower(), {KERNEL: kernel})
    threads = dict.fromkeys(THREADS, "2")
    yield Setting("threads", threads)
    if dispatched:
        yield Setting("dispatch", {DISPATCH: " ".join(dispatched)})
        # Both at once, for a run that has time for one setting.
        yield Setting("threads-and-dispatch", {**threads, DISPATCH: " ".join(dispatched)})


def processor_flags() -> frozenset[str]:
    """Flags of this processor; empty where it is no x86-64 or the system does not list them."""
    listing = Path("/proc/cpuinfo")
    if platform.machine() not in {"x86_64", "AMD64"} or not listing.is_file():
        return frozenset()
    lines = listing.read_text().splitlines()
    flags = next((line for line in lines if line.startswith("flags")), "")
    return frozenset(flags.partition(":")[2].split())


def dispatched_features() -> tuple[str, ...]:
    """Instruction sets that NumPy uses on this processor beyond its baseline."""
    config: dict[str, Any] = np.show_config(mode="dicts")  # type: ignore[assignment]
    return tuple(config.get("SIMD Extensions", {}).get("found", ()))


def run_setting(setting: Setting, words: list[str]) -> Outcome:
    """Run the numeric tests under a setting; their output goes to the terminal."""
    if variable := setting.prescribed(os.environ):
        return Outcome(setting, None, f"left alone: {variable} is set on this machine")
    command = [sys.executable, "-m", "pytest", *(words or NUMERIC)]
    begun = time.monotonic()
    code = subprocess.run(command, env={**os.environ, **setting.variables}, check=False).returncode
    return Outcome(setting, code == 0, f"{time.monotonic() - begun:.0f} s")


def main(
    words: Annotated[
        list[str] | None, typer.Argument(help="Words for pytest; the numeric tests by default.")
    ] = None,
    *,
    only: Annotated[
        list[str] | None, typer.Option(help="Settings to run; all but the last by default.")
    ] = None,
) -> None:
    """Run the numeric tests under each setting; exits with 1 where one fails."""
    known = {each.name: each for each in settings(processor_flags(), dispatched_features())}
    if unknown := sorted({*(only or ())} - {*known}):
        raise typer.BadParameter(f"{', '.join(unknown)}: this processor has {', '.join(known)}.")
    chosen = only or [name for name in known if name != "threads-and-dispatch"]
    outcomes = [run_setting(known[name], words or []) for name in chosen]
    table = Table("setting", "variables", "outcome", "")
    for outcome in outcomes:
        variables = " ".join(f"{name}={value}" for name, value in outcome.setting.variables.items())
        ended = {True: "passed", False: "FAILED", None: "not run"}[outcome.passed]
        table.add_row(outcome.setting.name, variables, ended, outcome.note)
    Console().print(table)
    raise typer.Exit(int(any(outcome.passed is False for outcome in outcomes)))


if __name__ == "__main__":
    typer.run(main)
