"""Fixtures of the tests of commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from benchmarks.schema import Benchmark
from evaluator.__main__ import main
from tests.evaluator.commands.rated import PAIRS, SCORES, Rated
from tests.evaluator.commands.submitting import Ended, Run
from tests.kit.hub.server import HubServer
from tests.kit.hub_store import as_the_hub
from tests.kit.toy import Toy


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> dict[str, Benchmark]:
    """The benchmarks that there are for `run`: to be changed."""
    known: dict[str, Benchmark] = {"toy": Toy()}
    for name in (
        "compare",
        "doctor",
        "meta",
        "operate",
        "reevaluate",
        "report",
        "submit",
        "worker",
    ):
        monkeypatch.setattr(f"evaluator.commands.{name}.load_registry", lambda: known)
    return known


@pytest.fixture
def run(
    registry: dict[str, Benchmark],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> Run:
    """A command on a store of its own, by the person `ada` unless another is named."""
    monkeypatch.setenv("ASSAY_STORE", str(tmp_path / "store"))

    def called(*words: object, user: str = "ada", width: int = 240) -> Ended:
        monkeypatch.setenv("ASSAY_USER", user)
        monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setattr("sys.argv", ["x", *map(str, words)])
        try:
            code = main()
        except SystemExit as end:
            code = int(end.code or 0)
        return Ended(code, *capfd.readouterr())

    return called


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights that nobody has fetched."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HOME", str(tmp_path))


@pytest.fixture
def hub(hub: HubServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> HubServer:
    """Named by the environment; nobody rests between two tries."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("leaderboard.store.hub.client.random.uniform", lambda *_: 0.0)
    as_the_hub(hub, monkeypatch)
    return hub


@pytest.fixture
def compare(run: Run, registry: dict[str, Any], tmp_path: Path) -> Run:
    """Compare files of scores: `<metric>.csv` each, or all three in `all.csv`."""
    registry["rated"] = Rated()
    frame = pd.DataFrame(SCORES, index=pd.Index(PAIRS, name="pair_id"))
    for name in SCORES:
        frame[[name]].to_csv(tmp_path / f"{name}.csv")
    frame.to_csv(tmp_path / "all.csv")

    def called(*words: str, width: int = 160) -> Ended:
        given = [tmp_path / word if word.endswith((".csv", ".parquet")) else word for word in words]
        return run("compare", "rated", "--scores", *given, width=width)

    return called
