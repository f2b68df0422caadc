"""Lines of `report`: what a rank is of."""

from __future__ import annotations

from evaluator.commands.report import standing_lines
from leaderboard.publication.snapshot import read_snapshot
from tests.kit.store import memory_store
from tests.leaderboard.web import index_fixture


def test_a_rank_is_of_those_that_are_ranked() -> None:
    runs = index_fixture.runs_of()
    store = index_fixture.fill(memory_store())
    snapshot = read_snapshot(store.public)
    assert snapshot is not None
    _, benchmark = index_fixture.UNDEFINED
    cells = snapshot.boards[benchmark].cells
    n_ranked = sum(cell.rank is not None for cell in cells)
    assert 0 < n_ranked < len(cells)
    sent = {run.submission.submission_id: run.submission for run in runs}.values()
    lines = [line for one in sent for line in standing_lines(snapshot, one, benchmark)]
    ranked = [line for line in lines if "no rank" not in line]
    assert len(ranked) == n_ranked
    assert all(f" of {n_ranked}, rank range" in line for line in ranked)
