"""Every figure that a trial's store and its page show, held against what `reckoning` gives."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from benchmarks.registry import load_registry
from benchmarks.schema import ScoreTable
from evaluator.commands.report import compared
from leaderboard.publication.snapshot import read_snapshot
from leaderboard.records import RunResult
from leaderboard.store.interface import Store
from tests.end_to_end.trial.course import Trial
from tests.end_to_end.trial.ground import STORE
from tests.end_to_end.trial.reckoning import headline_of, means_of, ranks_of, scorer_of, scores_of
from tests.end_to_end.trial.submissions import MODEL, NAMES, ON, OPEN_TO_CODE, wave

_CLOSE = 1e-9
_LOAD = """
import json, sys
from datasets import load_dataset
for pair in sys.argv[1:]:
    name, config = pair.split(":")
    rows = load_dataset(name, config, split="train").to_pandas()
    print(json.dumps(json.loads(rows.to_json(orient="records", double_precision=15))))
"""


@dataclass
class Expected:
    """What was sent, run again in this process.

    Attributes:
        sent: folder of it.
    """

    sent: Path
    _scores: dict[tuple[str, str], ScoreTable] = field(default_factory=dict)

    @cached_property
    def scorers(self) -> dict[str, Any]:
        """Account to the scorer it sent."""
        return {account: scorer_of(self.sent / account) for account in ON if account in _MODULES}

    def scores(self, account: str, benchmark: str) -> ScoreTable:
        """Of one metric on one benchmark."""
        key = account, benchmark
        if key not in self._scores:
            self._scores[key] = self._made(account, benchmark)
        return self._scores[key]

    def _made(self, account: str, benchmark: str) -> ScoreTable:
        if account == "cyd":
            return ScoreTable(wave().set_index("pair_id"))
        if account == "mal":
            return scores_of(Brightness(), NAMES[account], benchmark)
        return scores_of(self.scorers[account], NAMES[account], benchmark)


class Brightness:
    """What the burglar's code gives once it has tried everything, without the trying."""

    def score(self, images: list[Any], prompts: list[str]) -> list[float]:
        """The red of the first pixel."""
        del prompts
        return [float(image.getpixel((0, 0))[0]) for image in images]


_MODULES = ("ada", "bob", "dee", "fay")


def check_rows(course: Trial, store: Store, expected: Expected, benchmark: str) -> None:
    """Every published row is what the protocol makes of the scores of this process."""
    known = load_registry()[benchmark]
    answers = known.answers(None)
    for account in _on(benchmark):
        path = f"results/{course.ids[account]}/{benchmark}.json"
        result = RunResult.model_validate_json(store.public.read(path))
        again = known.evaluate(expected.scores(account, benchmark), answers).rows
        found = compared(result, again)
        assert found.same, f"{account}: {found.sentence}"
        assert found.rows > 3


def check_board(course: Trial, store: Store, expected: Expected, benchmark: str) -> None:
    """Who is on the board, with which values and ranks; and the API says the same."""
    values = {
        NAMES[account]: headline_of(benchmark, expected.scores(account, benchmark))
        for account in _on(benchmark)
    }
    rows = course.api(f"boards/{benchmark}")["rows"]
    assert {row["metric"] for row in rows} == set(values)
    assert {row["metric"]: row["value"] for row in rows} == pytest.approx(values, abs=_CLOSE)
    ranked = {row["metric"]: row["rank"] for row in rows if row["rank"] is not None}
    assert ranked == ranks_of({name: values[name] for name in ranked})
    assert len(ranked) >= len(values) - 1, "the burglar's alone may have no rank"
    shown = read_snapshot(store.public)
    assert shown is not None
    board = shown.boards[benchmark]
    cells = {
        shown.entries[cell.entry_id].metric: (cell.value, cell.rank, cell.rank_low, cell.rank_high)
        for cell in board.slice(board.card.headline, None)
    }
    told = {r["metric"]: (r["value"], r["rank"], r["rank_low"], r["rank_high"]) for r in rows}
    assert told == cells


def check_means(course: Trial, expected: Expected) -> None:
    """Of the model, by every metric that is code."""
    folder = expected.sent / "eve"
    lines = [json.loads(line) for line in (folder / "images.jsonl").read_text().splitlines()]
    scorers = {NAMES[account]: scorer for account, scorer in expected.scorers.items()}
    scorers[NAMES["mal"]] = Brightness()
    board = course.api("models/demo_prompts")["rows"]
    found = {
        row["metric"].rpartition("/")[2]: row["value"]
        for row in board
        if row["model"] == MODEL and row["skill"] is None and row["metric"]
    }
    assert set(found) == set(scorers)
    for name, scorer in scorers.items():
        assert found[name] == pytest.approx(means_of(scorer, folder, lines), abs=1e-6), name


def check_datasets(course: Trial) -> None:
    """`load_dataset` of a visitor without an account."""
    asked = (
        f"{STORE}-results:boards",
        f"{STORE}-requests:submissions",
        f"{STORE}-results:demo_ts2",
    )
    done = course.ground.run("-c", _LOAD, *asked, HF_TOKEN="", HF_HUB_DISABLE_PROGRESS_BARS="1")
    assert done.returncode == 0, done.stderr[-3000:]
    boards, submissions, scores = (
        pd.DataFrame(json.loads(line)) for line in done.stdout.splitlines()[-3:]
    )
    assert set(submissions["submission_id"]) == set(course.ids.values())
    assert set(boards["benchmark"]) == set(OPEN_TO_CODE)
    pairs = len(load_registry()["demo_ts2"].questions(None).pairs)
    assert len(scores) == pairs * len(_on("demo_ts2"))
    for benchmark in OPEN_TO_CODE:
        rows = course.api(f"boards/{benchmark}")["rows"]
        there = boards[(boards["benchmark"] == benchmark) & boards["rank"].notna()]
        for row in rows:
            mine = there[(there["metric"] == row["metric"]) & there["skill"].isna()]
            assert any(abs(mine["value"] - row["value"]) < _CLOSE) or row["rank"] is None


def _on(benchmark: str) -> list[str]:
    return [account for account, names in ON.items() if benchmark in names]
