"""The store that loads are measured on: as large as it says, and its boards are right."""

from __future__ import annotations

from benchmarks_perf.made_up_store import NOW, Size, cards_of_size, fill
from benchmarks_perf.store import publish
from leaderboard.ledger.ledger import Ledger
from leaderboard.publication.publisher import Publisher
from leaderboard.publication.rebuilding import differences, queue_differences, rebuilt
from leaderboard.publication.snapshot_file import read_snapshot
from leaderboard.store.memory import memory_store

SIZE = Size(submissions=10, boards=2, slices=6)


def test_a_store_has_five_events_for_each_submission_and_two_runs_for_each_published_one() -> None:
    store, cards = memory_store(), cards_of_size(SIZE)
    assert fill(store, SIZE) == 5 * SIZE.submissions
    assert len(Ledger(store).statuses()) == SIZE.submissions
    publisher = Publisher(store, cards)
    publisher.publish_cards(NOW)
    shown = read_snapshot(store.public)
    assert shown is not None
    assert [len(board.cells) for board in shown.boards.values()] == [6 * 6] * 2

    publish(store, publisher, SIZE, 20)
    shown = read_snapshot(store.public)
    assert shown is not None
    assert [len(board.cells) for board in shown.boards.values()] == [7 * 6] * 2
    assert differences(shown, rebuilt(store, cards, NOW)) == ()
    assert queue_differences(store) == ()
