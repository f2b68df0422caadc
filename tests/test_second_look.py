"""What failed is looked at once more; what fails again has failed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.second_look import MOST, failed_tests, second_look

_ONCE = """
from pathlib import Path

def test_fails_the_first_time():
    mark = Path(__file__).with_name("mark")
    seen = mark.exists()
    mark.touch()
    assert seen

def test_fails_always():
    assert False
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "test_two.py").write_text(_ONCE)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return tmp_path


def test_a_test_that_passes_alone_is_named_and_passes(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    name = "test_two.py::test_fails_the_first_time"
    (project / "mark").touch()
    assert second_look([name], project) == 0
    assert f"to be mended: {name}" in capfd.readouterr().out


def test_a_test_that_fails_again_has_failed(project: Path) -> None:
    assert second_look(["test_two.py::test_fails_always"], project) == 1


@pytest.mark.parametrize("number", [0, MOST + 1])
def test_none_or_many_get_no_second_look(project: Path, number: int) -> None:
    assert second_look(["test_two.py::test_fails_the_first_time"] * number, project) == 1
    assert not (project / "mark").exists()


def test_what_failed_is_read_as_pytest_keeps_it(tmp_path: Path) -> None:
    record = tmp_path / "lastfailed"
    record.write_text(json.dumps({"b.py::test_b": True, "a.py::test_a": True}))
    assert failed_tests(record) == ("a.py::test_a", "b.py::test_b")
