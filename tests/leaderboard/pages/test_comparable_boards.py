"""Which boards may be compared: those of real data with each other, simulated ones apart."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from leaderboard.pages.reading import View, view_of
from leaderboard.publication.snapshot import build_snapshot
from leaderboard.ranking.orders import Orders
from leaderboard.store.memory import memory_store
from tests.leaderboard.pages.index.index_fixture import NOW, cards, index_view_of, runs_of

REAL_RUN, SIMULATED_RUN = {"a": ("graphs",)}, {"b": ("demo",)}


def view(metrics: Mapping[str, tuple[str, ...]]) -> View:
    return index_view_of(dict(metrics))


@pytest.mark.parametrize(
    ("metrics", "simulated", "found"),
    [
        ({**REAL_RUN, **SIMULATED_RUN}, False, "real"),
        ({**REAL_RUN, **SIMULATED_RUN}, True, "simulated"),
        (REAL_RUN, False, "real"),
        (SIMULATED_RUN, False, "simulated"),
        (SIMULATED_RUN, True, "simulated"),
    ],
)
def test_a_group_is_of_one_kind_and_the_real_one_where_both_have_results(
    metrics: dict[str, tuple[str, ...]], simulated: bool, found: str
) -> None:
    group = view(metrics).group(simulated=simulated)
    assert {board.card.simulated for board in group.boards.values()} == {found == "simulated"}
    assert {entry.metric for entry in group.entries.values()} == {
        metric
        for metric, (board,) in metrics.items()
        if (board == "demo") is (found == "simulated")
    }


def test_where_nothing_is_published_the_real_boards_are_shown_empty() -> None:
    empty = view_of(None, cards(), Orders(memory_store())).group()
    assert empty.boards and not any(one.card.simulated for one in empty.boards.values())


def test_a_group_is_the_same_object_for_the_same_view_so_that_what_is_made_of_it_is_kept() -> None:
    snapshot = build_snapshot(runs_of({**REAL_RUN, **SIMULATED_RUN}), cards(), NOW)
    whole = view_of(snapshot, cards(), Orders(memory_store()))
    assert whole.group() is whole.group() is whole.group().group()
    assert whole.group(simulated=True) is whole.group(simulated=True)
    assert whole.has_both and not view(REAL_RUN).has_both and not view(SIMULATED_RUN).has_both
