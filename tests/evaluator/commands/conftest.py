"""Fixtures of the tests of commands."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from evaluator.__main__ import main
from tests.benchmarks.toy import Toy
from tests.evaluator.commands.rated import PAIRS, SCORES, Compare, Ended, Rated
from tests.evaluator.commands.submitting import Ended as Over
from tests.evaluator.commands.submitting import Run


@pytest.fixture
def compare(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Compare:
    def called(*words: object, width: int = 160) -> Ended:
        monkeypatch.setattr("evaluator.commands.compare.load_registry", lambda: {"rated": Rated()})
        monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setattr("sys.argv", ["x", "compare", *map(str, words)])
        try:
            code = main()
        except SystemExit as end:
            code = int(end.code or 0)
        return Ended(code, *capfd.readouterr())

    return called


@pytest.fixture
def score_files(tmp_path: Path) -> Path:
    """`<metric>.csv` each, all three in `all.csv`, and unnamed columns in `one.csv` and `two.csv`."""
    frame = pd.DataFrame(SCORES, index=pd.Index(PAIRS, name="pair_id"))
    for name in SCORES:
        frame[[name]].to_csv(tmp_path / f"{name}.csv")
    frame.to_csv(tmp_path / "all.csv")
    for name, column in (("one", "good"), ("two", "poor")):
        frame[[column]].set_axis(["score"], axis=1).to_csv(tmp_path / f"{name}.csv")
    return tmp_path


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """A command on a store of its own, by the person `ada` unless another is named."""
    for module in ("submit", "report", "mine"):
        monkeypatch.setattr(f"evaluator.commands.{module}.load_registry", lambda: {"toy": Toy()})
    monkeypatch.setenv("ASSAY_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("COLUMNS", "200")

    def called(*words: object, user: str = "ada") -> Over:
        monkeypatch.setenv("ASSAY_USER", user)
        monkeypatch.setattr("sys.argv", ["x", *map(str, words)])
        try:
            code = main()
        except SystemExit as end:
            code = int(end.code or 0)
        return Over(code, *capfd.readouterr())

    return called
