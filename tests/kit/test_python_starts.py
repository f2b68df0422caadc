"""What counts against the budget of cases that start a Python."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit import python_starts
from tests.kit.python_starts import PythonStarts

CASES = """
import subprocess, sys, pytest

@pytest.fixture
def served():
    subprocess.run([sys.executable, "-c", "pass"], check=True)

def test_by_a_fixture(served): pass
def test_another_program(): subprocess.run(["true"], check=True)
def test_one(): subprocess.run([sys.executable, "-c", "pass"], check=True)
@pytest.mark.slow
def test_two(): subprocess.run([sys.executable, "-c", "pass"], check=True)
"""


@pytest.mark.first_quick
@pytest.mark.parametrize(
    ("budgets", "code"),
    [({"quick": 0, "slow": 1}, 1), ({"quick": 1, "slow": 0}, 1), ({"quick": 1, "slow": 1}, 0)],
)
def test_a_run_fails_whose_cases_start_more_than_their_tier_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, budgets: dict[str, int], code: int
) -> None:
    monkeypatch.setattr(python_starts, "BUDGETS", budgets)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = slow\n")
    (tmp_path / "test_cases.py").write_text(CASES)
    plain = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--import-mode=importlib"]
    words = [*plain, "-c", str(tmp_path / "pytest.ini")]
    assert pytest.main([*words, str(tmp_path)], plugins=[PythonStarts()]) == code
