"""The snapshot: who may have a rank, and what a board never mixes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from benchmarks.rows import Row
from benchmarks.schema import Card, Selector
from leaderboard.publication.snapshot import Published, build_snapshot
from leaderboard.ranking.cells import Cell
from leaderboard.ranking.draws import Draws
from leaderboard.records import Kind, RunResult, Submission
from leaderboard.trust import Check, TrustReport
from tests.benchmarks.toy import Toy

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CARD: Card = Toy.card


def run(
    name: str,
    value: float,
    revision: str = "1",
    *,
    n_clusters: int = 50,
    n_missing: int = 0,
    trust: TrustReport | None = None,
) -> Published:
    row = Row(
        benchmark="toy",
        revision=revision,
        metric=name,
        measure="mean",
        value=value,
        n_items=100,
        n_clusters=n_clusters,
        n_missing=n_missing,
    )
    submission = Submission(
        submission_id=f"{name}-00000000",
        kind=Kind.SCORES,
        name=name,
        metrics=(name,),
        benchmarks=("toy",),
        submitter="ada",
        content_sha256="0" * 64,
        archive="uploads/0",
        received_at=NOW,
    )
    result = RunResult(
        submission_id=submission.submission_id,
        benchmark="toy",
        revision=revision,
        rows=(row.to_json(),),
        resampling_seed=1,
        n_resamples=10,
        isolation=(),
        versions={},
        trust=trust,
        judged_at=NOW,
    )
    draws = Draws(np.full((1, 10), value), np.full((1, 5), value / 5))
    return Published(submission, result, draws)


def ranks(*runs: Published) -> dict[str, int | None]:
    board = build_snapshot(runs, {"toy": CARD}, NOW).boards["toy"]
    cells: tuple[Cell, ...] = board.slice(Selector(measure="mean"), None)
    return {cell.entry_id.rpartition("/")[2]: cell.rank for cell in cells}


def test_the_best_value_has_the_first_rank() -> None:
    assert ranks(run("a", 0.1), run("b", 0.9)) == {"b": 1, "a": 2}


@pytest.mark.parametrize("flaw", [{"n_clusters": 7}, {"n_missing": 3}])
def test_an_entry_without_a_rank_takes_nobodys_place(flaw: Any) -> None:
    assert ranks(run("a", 0.1), run("b", 0.9, **flaw)) == {"a": 1, "b": None}


def test_a_few_missing_scores_cost_no_rank() -> None:
    assert ranks(run("a", 0.1, n_missing=2)) == {"a": 1}


def test_results_of_another_revision_stay_off_the_board() -> None:
    assert ranks(run("a", 0.1), run("b", 0.9, revision="2")) == {"a": 1}


def test_a_metric_that_failed_a_trust_check_keeps_its_value_and_gets_no_rank() -> None:
    check = Check(name="order", n_pairs=20, mean=0.1, largest=0.4, passed=False)
    failed = TrustReport(
        benchmark="toy", n_pairs=20, n_images=10, spread=0.2, limit=0.01, checks=(check,)
    )
    runs = [run("good", 0.5), run("worse", 0.4), run("tricky", 0.9, trust=failed)]
    snapshot = build_snapshot(runs, {"toy": CARD}, NOW)
    cells = {cell.entry_id.partition("-")[0]: cell for cell in snapshot.boards["toy"].cells}
    assert cells["tricky"].value == 0.9
    assert cells["tricky"].rank is None
    assert cells["tricky"].why_unranked == "score depends on the order"
    assert [cells[name].rank for name in ("good", "worse")] == [1, 2]
    assert snapshot.entries["tricky-00000000/tricky"].trust == {"toy": failed}
