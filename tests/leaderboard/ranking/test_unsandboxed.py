"""Runs of an operator's own code, without isolation: shown, and never ranked."""

from __future__ import annotations

from dataclasses import replace

from leaderboard.publication.snapshot import Published, build_snapshot
from leaderboard.ranking.cells import UNSANDBOXED
from tests.leaderboard.publication.test_snapshot import CARD, NOW, run


def unsandboxed(published: Published) -> Published:
    result = published.result.model_copy(update={"isolation": (UNSANDBOXED,)})
    return replace(published, result=result)


def test_a_run_without_isolation_keeps_its_value_and_takes_nobodys_rank() -> None:
    runs = [run("good", 0.5), run("worse", 0.4), unsandboxed(run("own", 0.9))]
    snapshot = build_snapshot(runs, {"toy": CARD}, NOW)
    cells = {cell.entry_id.partition("-")[0]: cell for cell in snapshot.boards["toy"].cells}
    assert cells["own"].value == 0.9
    assert cells["own"].rank is None
    assert cells["own"].why_unranked == "ran without isolation"
    assert [cells[name].rank for name in ("good", "worse")] == [1, 2]
    assert snapshot.entries["own-00000000/own"].isolation == {"toy": (UNSANDBOXED,)}
