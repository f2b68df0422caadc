"""`train`: from data to a ranked metric in one command, and on from where it was stopped."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from benchmarks.registry import load_registry
from benchmarks.schema import Benchmark
from evaluator.training.checkpoints import TrainingFolder
from leaderboard.publication.entries import is_trained_on
from leaderboard.publication.snapshot import read_snapshot
from leaderboard.store.folder import folder_store
from tests.evaluator.commands.submitting import Run


@pytest.fixture
def demo(registry: dict[str, Benchmark], monkeypatch: pytest.MonkeyPatch) -> Benchmark:
    """The one benchmark there is beside the toy, which needs no files: `demo_croc`."""
    del registry["toy"]
    registry["demo_croc"] = found = load_registry()["demo_croc"]
    monkeypatch.setattr("evaluator.commands.train.load_registry", lambda: registry)
    return found


def test_the_list_names_every_recipe(run: Run) -> None:
    ended = run("train", "--list")
    assert ended.code == 0 and "dual-encoder" in ended.out


GOOD = ("--on", "demo_croc", "--out", "x")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (GOOD, "RECIPE"),
        (("dual-encoder", "--out", "x"), "--on"),
        (("nothing", *GOOD), "dual-encoder"),
        (("dual-encoder", *GOOD, "--set", "rate=-1", "--set", "foo=1"), "foo"),
        (("dual-encoder", *GOOD, "--overlap", "nope"), "nope"),
        (("dual-encoder", *GOOD, "--name", "my metric!"), "my metric!"),
    ],
)
@pytest.mark.usefixtures("demo")
def test_what_is_wrong_is_told_before_anything_is_written(
    words: tuple[str, ...], told: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = run("train", *words)
    assert ended.code in {1, 2} and told in ended.out + ended.err
    assert not (tmp_path / "x").exists()


@pytest.mark.slow
@pytest.mark.isolation
def test_data_become_a_metric_on_a_board_that_says_what_it_was_trained_on(
    demo: Benchmark, run: Run, tmp_path: Path
) -> None:
    words = ("train", "dual-encoder", "--on", "demo_croc", "--out", tmp_path / "run", "--seed", 3,
             "--set", "batch=8", "--steps", 6, "--evaluate-every", 3, "--checkpoint-every", 2)  # fmt: skip
    first = run(*words)
    assert first.code == 0, first.err
    folder = tmp_path / "run" / "submission"
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    assert before.keys() == {
        "scorer.py", "weights.safetensors", "assay.toml", "README.md", "training.json", "curve.svg",
    }  # fmt: skip
    again = run(*words, "--submit", "--isolation", "bubblewrap")
    assert again.code == 0, again.err
    # What was finished is not done again, and what is sent has the same bytes.
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
    told = json.loads(before["training.json"])
    assert [line["step"] for line in told["log"] if "losses" in line] == [1, 2, 3, 4, 5, 6]
    assert [line["step"] for line in told["log"] if "held_out" in line] == [3, 6]
    assert told["run"]["seed"] == 3 and len(told["data"]["held_out"]) == 14
    assert told["dropped"] and told["comparisons"][0]["dropped"] == sum(told["dropped"].values())
    manifest = tomllib.loads(before["assay.toml"].decode())
    assert manifest["trained_on"] == ["demo_croc"]
    shown = read_snapshot(folder_store(tmp_path / "store").public)
    assert shown is not None
    (entry,) = shown.entries.values()
    assert (entry.metric, entry.version) == (manifest["name"], manifest["version"])
    assert is_trained_on(entry, demo.card)
    (cell,) = shown.boards["demo_croc"].slice(demo.card.headline, None)
    assert cell.rank == 1


@pytest.mark.usefixtures("demo")
def test_other_settings_in_the_folder_of_a_run_are_refused(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with TrainingFolder(out).opened({"recipe": "other"}):
        pass
    ended = run("train", "dual-encoder", "--on", "demo_croc", "--out", out)
    assert ended.code == 1 and 'recipe was "other"' in " ".join(ended.err.split())
