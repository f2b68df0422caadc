"""What a rebuild from events finds: everything that was tampered with, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from benchmarks_perf.made_up_store import NOW, Size, cards_of_size, fill
from benchmarks_perf.store import publish
from leaderboard.ledger.ledger import Ledger
from leaderboard.ledger.queue_file import QUEUE, Queue, queue_bytes, read_queue
from leaderboard.publication import rebuilding
from leaderboard.publication.publisher import Publisher
from leaderboard.publication.rebuilding import (
    differences,
    folded,
    queue_differences,
    rebuilt,
    repaired,
)
from leaderboard.publication.snapshot import PATH, Board, Snapshot, read_snapshot, snapshot_bytes
from leaderboard.records import Status
from leaderboard.states import State
from leaderboard.store.interface import transact
from tests.kit.governed import ADA, BOB, CARDS, OPEN, House, NoisyHouse
from tests.kit.store import counted, memory_store


@pytest.fixture
def house() -> House:
    house = NoisyHouse()
    house.done(name="one")
    house.done(BOB, "two")
    return house


def with_cells(snapshot: Snapshot, change: Callable[[list[Any]], list[Any]]) -> Snapshot:
    board = snapshot.boards["open"]
    changed = Board(board.card, change(list(board.cells)))
    return replace(snapshot, boards={**snapshot.boards, "open": changed})


def first_with(**change: object) -> Callable[[list[Any]], list[Any]]:
    return lambda cells: [cells[0].model_copy(update=change), *cells[1:]]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda cells: cells[1:], "open: lacks"),
        (lambda cells: [*cells, cells[0]], "open: has"),
        (first_with(value=0.99), "value 0.99"),
        (first_with(rank=7), "rank 7"),
        (first_with(value=None), "value None"),
    ],
    ids=["missing", "extra", "value", "rank", "no value"],
)
def test_a_board_that_was_tampered_with_is_found(
    house: House, change: Callable[[list[Any]], list[Any]], said: str
) -> None:
    assert house.problems() == []
    tampered = snapshot_bytes(with_cells(house.snapshot(), change))
    transact(house.store.public, lambda: {PATH: tampered}, "tampered")
    (found,) = house.problems()
    assert said in found


def test_an_entry_that_was_tampered_with_is_found(house: House) -> None:
    shown = house.snapshot()
    first, second = shown.entries.values()
    other = {first.entry_id: first.model_copy(update={"submitter": "mallory", "version": "9"})}
    tampered = snapshot_bytes(replace(shown, entries=other))
    transact(house.store.public, lambda: {PATH: tampered}, "tampered")
    missing, changed = house.problems()
    assert missing.startswith(f"{second.entry_id}: missing")
    assert changed.startswith(f"{first.entry_id}: ") and changed.endswith("version, submitter")


def test_a_stale_snapshot_is_found_and_no_snapshot_as_well(house: House) -> None:
    stale = house.store.public.read(PATH)
    third = house.done(name="three", benchmarks=("closed",))
    transact(house.store.public, lambda: {PATH: stale}, "an older one")
    found = " ".join(house.problems())
    assert f"{third}/three: missing" in found and f"closed: lacks {third}/three by mean" in found
    transact(house.store.public, lambda: {PATH: None}, "none")
    (found,) = house.problems()
    assert found.startswith("snapshot:")


def test_cards_and_boards_that_are_not_known_here_are_named(house: House) -> None:
    shown, right = house.snapshot(), rebuilt(house.store, CARDS, house.clock())
    other = {"closed": CARDS["closed"].model_copy(update={"summary": "Another."})}
    changed = differences(shown, rebuilt(house.store, other, house.clock()))
    words = {"closed": "another card", "open": "not known here"}
    told = " ".join(str(one) for one in changed)
    assert all(word in told for word in words.values())
    lacking = [str(one).partition(":")[0] for one in differences(replace(shown, boards={}), right)]
    assert lacking == ["open", "closed"]


def test_rounding_is_none_and_many_are_counted(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = house.snapshot()
    moved = with_cells(
        shown, lambda cells: [c.model_copy(update={"value": c.value * (1 + 1e-13)}) for c in cells]
    )
    assert differences(moved, shown) == ()
    monkeypatch.setattr(rebuilding, "_SHOWN_AT_MOST", 1)
    _, more = differences(replace(shown, entries={}), shown)
    assert str(more).startswith("and more: 1 ")


def put_queue(house: House, change: Callable[[tuple[Status, ...]], tuple[Status, ...]]) -> None:
    queue = read_queue(house.store.public, house.store.public.head())
    content = queue_bytes(Queue(change(queue.statuses), queue.segments))
    transact(house.store.public, lambda: {QUEUE: content}, "tampered")


def test_a_queue_that_was_tampered_with_is_found(house: House) -> None:
    waits = house.send(name="waits")
    own = house.ledger.statuses()[0]
    hidden = own.model_copy(update={"state": State.HIDDEN, "on_boards": False})
    put_queue(house, lambda every: (hidden, *every[1:-1]))
    missing, changed = (str(found) for found in queue_differences(house.store))
    assert missing.startswith(f"{waits}: missing")
    assert changed.startswith(f"{own.submission.submission_id}: ")
    assert changed.endswith("state, on_boards")
    nobodys = own.submission.model_copy(update={"submission_id": "made-up-00000000"})
    put_queue(house, lambda every: (*every, own.model_copy(update={"submission": nobodys})))
    assert any("made-up-00000000: " in str(one) for one in queue_differences(house.store))


def test_a_rebuild_reads_neither_queue_nor_snapshot(house: House) -> None:
    house.done(name="held", private=True)
    store, public, _ = counted(house.store)
    rebuilt(store, CARDS, house.clock())
    assert not {QUEUE, PATH}.intersection(public.paths)
    assert [s.state for s in folded(store.public)] == [s.state for s in house.ledger.statuses()]


def test_a_repair_makes_both_right_and_says_nothing_of_the_rest(house: House) -> None:
    house.send(name="waits")
    queue, entries = house.ledger.statuses(), house.snapshot().entries
    broken = {QUEUE: queue_bytes(Queue(())), PATH: None}
    transact(house.store.public, lambda: broken, "lost")
    assert len(queue_differences(house.store)) == 3
    transact(house.store.public, lambda: repaired(house.store, CARDS, house.clock()), "repair")
    assert house.problems() == []
    assert (house.ledger.statuses(), house.snapshot().entries) == (queue, entries)
    house.done(ADA, "four")
    assert house.problems() == []


def test_whoever_knows_fewer_benchmarks_leaves_the_other_boards_alone(house: House) -> None:
    house.publisher = Publisher(house.store, {"open": OPEN})
    head, before = house.store.public.head(), house.snapshot()
    house.publisher.publish_cards(house.clock())
    assert house.store.public.head() == head
    third = house.done(name="three", benchmarks=("open",))
    after = house.snapshot()
    closed = after.boards["closed"]
    assert (closed.card, closed.cells) == (
        before.boards["closed"].card,
        before.boards["closed"].cells,
    )
    assert len(closed.cells) == 2
    assert {n: e for n, e in after.entries.items() if e.submission_id != third} == before.entries
    assert after.entries != before.entries
    house.acts.withdraw(house.done(name="four", benchmarks=("open",)), ADA)
    assert house.problems() == []


def test_the_store_that_loads_are_measured_on_is_as_large_as_it_says_and_right() -> None:
    size = Size(submissions=10, boards=2, slices=6)
    store, cards = memory_store(), cards_of_size(size)
    assert fill(store, size) == 5 * size.submissions
    assert len(Ledger(store).statuses()) == size.submissions
    publisher = Publisher(store, cards)
    publisher.publish_cards(NOW)
    for entries in (6, 7):
        shown = read_snapshot(store.public)
        assert shown is not None
        assert [len(board.cells) for board in shown.boards.values()] == [entries * 6] * 2
        assert (differences(shown, rebuilt(store, cards, NOW)), queue_differences(store)) == (
            (),
            (),
        )
        if entries == 6:
            publish(store, publisher, size, 20)
