"""Run every test once, in two parts, and say how each ended: `python -m tests.whole_run`.

The first part are the tests of the statistics and protocols. It is measured: a line of these that
no test reaches fails the run (what is measured stands in `pyproject.toml`, `[tool.coverage]`).
Measuring costs time, so the other tests run after it without.

No part hides another: both run whatever happens. Where few tests failed in both parts together they
get a second look (`tests.second_look`); what a measured test reaches only then counts too. The
coverage is judged last, whatever became of the tests; not on a machine without the public data,
where the tests that need them are skipped.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import data_folder
from tests.second_look import LAST_FAILED, MOST, failed_tests, second_look

MEASURED = ("tests/benchmarks", "tests/leaderboard/ranking")
"""Where the tests of the statistics and protocols are."""
WITH_COVERAGE = ("--cov", "--cov-report=", "--cov-fail-under=0")
"""What was reached is written down; the verdict is given at the end, by `coverage report`."""
REPORT = ("-m", "coverage", "report")
_SOME_FAILED = 1
"""Pytest's exit code where all tests ran. After any other (a crash, a skipped test in CI, a module
that cannot be read) a second look would be at something else."""


@dataclass(frozen=True)
class Part:
    """Some of the tests.

    Attributes:
        name: what it is called.
        selection: pytest's arguments that choose them.
        options: how they run.
    """

    name: str
    selection: tuple[str, ...]
    options: tuple[str, ...] = ()


PARTS = (
    Part("statistics and protocols", MEASURED, WITH_COVERAGE),
    Part("everything else", tuple(f"--ignore={folder}" for folder in MEASURED)),
)


@dataclass(frozen=True)
class Outcome:
    """How a part ended.

    Attributes:
        part: which.
        code: pytest's exit code.
        failed: names of the tests that failed.
        alone: exit code of the second look at them; None where there was none.
    """

    part: Part
    code: int
    failed: tuple[str, ...] = ()
    alone: int | None = None

    @property
    def passed(self) -> bool:
        """Whether all its tests passed, at the second look at the latest."""
        return self.code == 0 or (self.code == _SOME_FAILED and self.alone == 0)

    @property
    def may_be_looked_at(self) -> bool:
        """Whether all of it ran and tests are known that failed."""
        return self.code == _SOME_FAILED and bool(self.failed)

    def __str__(self) -> str:
        """One line for whoever reads the end of a long log."""
        if self.code == 0:
            return f"{self.part.name}: passed"
        if self.passed:
            return f"{self.part.name}: passed; failed at first, to be mended: {_list(self.failed)}"
        named = f": {_list(self.failed)}" if self.failed else ""
        return f"{self.part.name}: FAILED (exit code {self.code}){named}"


def whole_run(root: Path, parts: Sequence[Part] = PARTS) -> int:
    """Run all parts, look again at what failed, judge the coverage; 0 where all is well.

    Args:
        root: the folder of the project.
        parts: in their order; what they reach is kept from the first that measures on.
    """
    record = root / LAST_FAILED
    record.unlink(missing_ok=True)  # names of an earlier run
    outcomes: list[Outcome] = []
    for part in parts:
        before = _recorded(record)
        code = _python(root, "-m", "pytest", *part.options, *part.selection)
        # The record keeps what failed in the parts before.
        failed = tuple(name for name in _recorded(record) if name not in before)
        outcomes.append(Outcome(part, code, failed))
    outcomes = _looked_at_again(outcomes, root)
    covered = _python(root, *REPORT) == 0
    judged = data_folder().is_dir()
    verdict = "yes" if covered else "NO" if judged else "not judged without the benchmarks' data"
    print(*outcomes, f"every line tested: {verdict}", sep="\n", flush=True)
    return 0 if (covered or not judged) and all(one.passed for one in outcomes) else 1


def _looked_at_again(outcomes: Sequence[Outcome], root: Path) -> list[Outcome]:
    """The outcomes with second looks, where there are few failed tests in all parts together."""
    if sum(len(one.failed) for one in outcomes) > MOST:
        return list(outcomes)
    return [_second(one, root) if one.may_be_looked_at else one for one in outcomes]


def _second(one: Outcome, root: Path) -> Outcome:
    options = (*one.part.options, "--cov-append") if one.part.options else ()
    return Outcome(one.part, one.code, one.failed, second_look(one.failed, root, options))


def _recorded(record: Path) -> tuple[str, ...]:
    """What has failed so far; pytest keeps no record where nothing has."""
    return failed_tests(record) if record.exists() else ()


def _python(root: Path, *arguments: str) -> int:
    return subprocess.run([sys.executable, *arguments], cwd=root, check=False).returncode


def _list(names: Iterable[str]) -> str:
    return ", ".join(names)


if __name__ == "__main__":
    sys.exit(whole_run(Path.cwd()))
