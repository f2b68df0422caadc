"""Both parts run, each failure is said, few get a second look, and coverage is judged at the end."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests import whole_run as module
from tests.conftest import REPOSITORY
from tests.second_look import LAST_FAILED, MOST
from tests.whole_run import MEASURED, PARTS, WITH_COVERAGE, Outcome, Part, whole_run

_CONFIGURATION = """
[tool.pytest.ini_options]
testpaths = ["tests"]
pythonpath = ["."]
addopts = "-q -n 2"

[tool.coverage.run]
source = ["sums"]
data_file = ".pytest_cache/coverage"

[tool.coverage.report]
fail_under = 100
show_missing = true
"""
_SUMS = "def double(x):\n    return 2 * x\n\n\ndef triple(x):\n    return 3 * x\n"
_DOUBLE = "from sums.sums import double\n\ndef test_double():\n    assert double(2) == 4\n"
_TRIPLE = "from sums.sums import triple\n\ndef test_triple():\n    assert triple(2) == 6\n"
_FAILS = "def test_fails():\n    assert False\n"
_FAILS_ONCE = """
from pathlib import Path

def test_fails_the_first_time():
    mark = Path(__file__).with_suffix(".mark")
    seen = mark.exists()
    mark.touch()
    assert seen
"""
_TRIPLE_ONCE = "from sums.sums import triple\n" + _FAILS_ONCE + "    assert triple(2) == 6\n"
TWO = (
    Part("sums", ("tests/sums",), WITH_COVERAGE),
    Part("others", ("--ignore=tests/sums",)),
)


class Project:
    """A package with two lines to test, and tests in two folders."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.write("pyproject.toml", _CONFIGURATION)
        self.write("sums/__init__.py", "")
        self.write("sums/sums.py", _SUMS)
        self.write("tests/sums/test_double.py", _DOUBLE)
        self.write("tests/others/test_others.py", "def test_others():\n    pass\n")

    def write(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    for name in [one for one in os.environ if one.startswith(("COV_", "COVERAGE", "PYTEST"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("ASSAY_DATA", str(tmp_path))
    return Project(tmp_path)


def said(capfd: pytest.CaptureFixture[str]) -> list[str]:
    """The verdict: the last lines."""
    return capfd.readouterr().out.splitlines()[-3:]


def test_what_only_the_second_look_reaches_counts(
    project: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    project.write("tests/sums/test_triple.py", _TRIPLE_ONCE)
    project.write("tests/others/test_once.py", _FAILS_ONCE)
    project.write(str(LAST_FAILED), '{"tests/gone.py::test_of_an_earlier_run": true}')
    assert whole_run(project.root, TWO) == 0
    assert said(capfd) == [
        "sums: passed; failed at first, to be mended: "
        "tests/sums/test_triple.py::test_fails_the_first_time",
        "others: passed; failed at first, to be mended: "
        "tests/others/test_once.py::test_fails_the_first_time",
        "every line tested: yes",
    ]


def test_a_line_that_no_measured_test_reaches_is_named_beside_what_failed(
    project: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    project.write("tests/others/test_triple.py", _TRIPLE + _FAILS)
    assert whole_run(project.root, TWO) == 1
    out = capfd.readouterr().out.splitlines()
    assert out[-3:] == [
        "sums: passed",
        "others: FAILED (exit code 1): tests/others/test_triple.py::test_fails",
        "every line tested: NO",
    ]
    assert any(line.split()[-1:] == ["6"] and "sums.py" in line for line in out)


class Played:
    """Stands in for the processes: a part fails as it is told to, and all is written down."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
        self.codes = {"sums": 0, "others": 0, "report": 0}
        self.failed: dict[str, list[str]] = {"sums": [], "others": []}
        self.alone = 0
        self.ran: list[str] = []
        self._record = root / LAST_FAILED
        monkeypatch.setenv("ASSAY_DATA", str(root))
        monkeypatch.setattr(module, "_python", self._python)
        monkeypatch.setattr(module, "second_look", self._second_look)

    def _python(self, root: Path, *arguments: str) -> int:
        name = "report" if arguments == module.REPORT else "sums"
        name = "others" if "--ignore=tests/sums" in arguments else name
        self.ran.append(name)
        if failed := self.failed.get(name):
            before = json.loads(self._record.read_text()) if self._record.exists() else {}
            self._record.parent.mkdir(parents=True, exist_ok=True)
            self._record.write_text(json.dumps(before | dict.fromkeys(failed, True)))
        return self.codes[name]

    def _second_look(self, names: tuple[str, ...], root: Path, options: tuple[str, ...]) -> int:
        self.ran.append(f"again {' '.join(names)} {' '.join(options)}".strip())
        return self.alone


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Played:
    return Played(monkeypatch, tmp_path)


def test_where_all_passes_and_every_line_is_tested_all_is_well(
    played: Played, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert whole_run(tmp_path, TWO) == 0
    assert said(capfd) == ["sums: passed", "others: passed", "every line tested: yes"]
    assert played.ran == ["sums", "others", "report"]


def test_a_failure_in_one_part_does_not_hide_the_other(
    played: Played, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    played.codes |= {"sums": 1, "others": 1}
    played.failed = {"sums": ["s::one"], "others": ["o::two", "o::three"]}
    played.alone = 1
    assert whole_run(tmp_path, TWO) == 1
    assert said(capfd) == [
        "sums: FAILED (exit code 1): s::one",
        "others: FAILED (exit code 1): o::three, o::two",
        "every line tested: yes",
    ]
    measured = f"again s::one {' '.join(WITH_COVERAGE)} --cov-append"
    assert played.ran == ["sums", "others", measured, "again o::three o::two", "report"]


def test_a_second_look_that_passes_does_not_lose_the_verdict_on_coverage(
    played: Played, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    played.codes |= {"others": 1, "report": 2}
    played.failed["others"] = ["o::two"]
    assert whole_run(tmp_path, TWO) == 1
    assert said(capfd)[1:] == [
        "others: passed; failed at first, to be mended: o::two",
        "every line tested: NO",
    ]


def test_without_the_data_what_is_reached_is_not_judged_but_the_tests_are(
    played: Played,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("ASSAY_DATA", str(tmp_path / "nowhere"))
    played.codes["report"] = 2
    assert whole_run(tmp_path, TWO) == 0
    assert said(capfd)[2] == "every line tested: not judged without the benchmarks' data"
    played.codes["others"] = 2
    assert whole_run(tmp_path, TWO) == 1


def test_failures_are_counted_over_both_parts(played: Played, tmp_path: Path) -> None:
    played.codes |= {"sums": 1, "others": 1}
    played.failed = {"sums": ["s::1", "s::2"], "others": ["o::1", "o::2"]}
    assert MOST == 3
    assert whole_run(tmp_path, TWO) == 1
    assert played.ran == ["sums", "others", "report"]


@pytest.mark.parametrize("code", [2, 3, 4, 5, -9])
def test_what_did_not_run_to_its_end_gets_no_second_look(
    played: Played, tmp_path: Path, code: int
) -> None:
    played.codes["sums"] = code
    played.failed["sums"] = ["s::1"]
    assert whole_run(tmp_path, TWO) == 1
    assert played.ran == ["sums", "others", "report"]


def test_a_failure_of_no_test_gets_no_second_look(played: Played, tmp_path: Path) -> None:
    played.codes["others"] = 1
    assert whole_run(tmp_path, TWO) == 1
    assert played.ran == ["sums", "others", "report"]


@pytest.mark.parametrize(
    ("code", "alone", "passed"),
    [(0, None, True), (1, 0, True), (1, 1, False), (1, None, False), (2, 0, False), (4, 0, False)],
)
def test_only_failures_of_tests_are_mended_by_a_second_look(
    code: int, alone: int | None, passed: bool
) -> None:
    assert Outcome(TWO[0], code, ("a",), alone).passed is passed


def test_each_test_of_this_project_is_in_one_part_and_what_is_measured_is_there() -> None:
    measured, others = PARTS
    assert measured.selection == MEASURED
    assert others.selection == tuple(f"--ignore={folder}" for folder in measured.selection)
    assert all(list((REPOSITORY / folder).rglob("test_*.py")) for folder in MEASURED)
