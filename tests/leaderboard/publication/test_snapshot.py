"""The snapshot: who may have a rank, and what a board never mixes."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest

from benchmarks.rows import Row
from benchmarks.schema import Card, Selector
from leaderboard.publication.snapshot import Published, build_snapshot
from leaderboard.ranking.cells import Cell
from leaderboard.ranking.draws import Draws
from leaderboard.records import Kind, RunResult
from leaderboard.trust import Check, TrustReport
from tests.benchmarks.toy import Toy
from tests.leaderboard.made_records import a_submission

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CARD: Card = Toy.card


def run(
    name: str, value: float, revision: str = "1", *,
    n_clusters: int = 50, n_missing: int = 0, trust: TrustReport | None = None,
) -> Published:  # fmt: skip
    counts = {"n_items": 100, "n_clusters": n_clusters, "n_missing": n_missing}
    told = {"benchmark": "toy", "revision": revision}
    row = Row(**told, **counts, metric=name, measure="mean", value=value)  # type: ignore[arg-type]
    submission = a_submission(name, kind=Kind.SCORES, submission_id=f"{name}-00000000")
    result = RunResult(
        submission_id=submission.submission_id, benchmark="toy", revision=revision,
        rows=(row.to_json(),), resampling_seed=1, n_resamples=10, isolation=(), versions={},
        trust=trust, judged_at=NOW,
    )  # fmt: skip
    draws = Draws(np.full((1, 10), value), np.full((1, 5), value / 5))
    return Published(submission, result, draws)


def ranks(*runs: Published) -> dict[str, int | None]:
    board = build_snapshot(runs, {"toy": CARD}, NOW).boards["toy"]
    cells: tuple[Cell, ...] = board.slice(Selector(measure="mean"), None)
    return {cell.entry_id.rpartition("/")[2]: cell.rank for cell in cells}


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (run("b", 0.9), {"b": 1, "a": 2}),
        # Without a rank it takes nobody's place.
        (run("b", 0.9, n_clusters=7), {"a": 1, "b": None}),
        (run("b", 0.9, n_missing=3), {"a": 1, "b": None}),
        (run("b", 0.9, n_missing=2), {"b": 1, "a": 2}),
        # Of another revision.
        (run("b", 0.9, revision="2"), {"a": 1}),
    ],
    ids=["best", "few clusters", "many missing", "few missing", "revision"],
)
def test_who_is_on_a_board_and_ranked(other: Published, expected: dict[str, int | None]) -> None:
    assert ranks(run("a", 0.1), other) == expected


def test_a_metric_that_failed_a_trust_check_keeps_its_value_and_gets_no_rank() -> None:
    check = Check(name="order", n_pairs=20, mean=0.1, largest=0.4, passed=False)
    failed = TrustReport(
        benchmark="toy", n_pairs=20, n_images=10, spread=0.2, limit=0.01, checks=(check,)
    )
    runs = [run("good", 0.5), run("worse", 0.4), run("tricky", 0.9, trust=failed)]
    snapshot = build_snapshot(runs, {"toy": CARD}, NOW)
    cells = {cell.entry_id.partition("-")[0]: cell for cell in snapshot.boards["toy"].cells}
    tricky = cells["tricky"]
    assert (tricky.value, tricky.rank) == (0.9, None)
    assert "order" in tricky.why_unranked
    assert [cells[name].rank for name in ("good", "worse")] == [1, 2]
    assert snapshot.entries["tricky-00000000/tricky"].trust == {"toy": failed}
