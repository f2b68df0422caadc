"""What a rebuild from events finds: everything that was tampered with, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from leaderboard.ledger.queue_file import QUEUE, Queue, queue_bytes, read_queue
from leaderboard.publication import rebuilding
from leaderboard.publication.boards import Board, Snapshot
from leaderboard.publication.rebuilding import (
    differences,
    folded,
    queue_differences,
    rebuilt,
    repaired,
)
from leaderboard.publication.snapshot_file import PATH, read_snapshot, snapshot_bytes
from leaderboard.records import Status
from leaderboard.states import State
from leaderboard.store.interface import transact
from tests.leaderboard.house import ADA, BOB, CARDS, House
from tests.leaderboard.publication.counting import counted, noisy_house


@pytest.fixture
def house() -> Iterator[House]:
    with noisy_house() as one:
        one.done(name="one")
        one.done(BOB, "two")
        yield one


def shown_of(house: House) -> Snapshot:
    found = read_snapshot(house.store.public)
    assert found is not None
    return found


def found_in(house: House) -> list[str]:
    right = rebuilt(house.store, CARDS, house.clock())
    return [str(one) for one in differences(read_snapshot(house.store.public), right)]


def with_cells(snapshot: Snapshot, change: Callable[[list[Any]], list[Any]]) -> Snapshot:
    open_board = snapshot.boards["open"]
    changed = Board(open_board.card, change(list(open_board.cells)))
    return replace(snapshot, boards={**snapshot.boards, "open": changed})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda cells: cells[1:], "open: lacks"),
        (lambda cells: [*cells, cells[0]], "open: has"),
        (
            lambda cells: [cells[0].model_copy(update={"value": 0.99}), *cells[1:]],
            "value 0.99 should be",
        ),
        (
            lambda cells: [cells[0].model_copy(update={"rank": 7}), *cells[1:]],
            "rank 7 should be",
        ),
        (
            lambda cells: [cells[0].model_copy(update={"value": None}), *cells[1:]],
            "value None should be",
        ),
    ],
    ids=["missing", "extra", "value", "rank", "no value"],
)
def test_a_board_that_was_tampered_with_is_found(
    house: House, change: Callable[[list[Any]], list[Any]], said: str
) -> None:
    assert found_in(house) == []
    tampered = snapshot_bytes(with_cells(shown_of(house), change))
    transact(house.store.public, lambda: {PATH: tampered}, "tampered")
    (found,) = found_in(house)
    assert said in found


def test_an_entry_that_was_tampered_with_is_found(house: House) -> None:
    shown = shown_of(house)
    first, second = shown.entries.values()
    other = {first.entry_id: first.model_copy(update={"submitter": "mallory", "version": "9"})}
    tampered = snapshot_bytes(replace(shown, entries=other))
    transact(house.store.public, lambda: {PATH: tampered}, "tampered")
    assert found_in(house) == [
        f"{second.entry_id}: missing from the boards",
        f"{first.entry_id}: in the boards with another version, submitter",
    ]


def test_a_stale_snapshot_is_found_and_no_snapshot_as_well(house: House) -> None:
    stale = house.store.public.read(PATH)
    third = house.done(name="three", benchmarks=("closed",))
    transact(house.store.public, lambda: {PATH: stale}, "an older one")
    found = found_in(house)
    assert f"{third}/three: missing from the boards" in found
    assert any(one.startswith(f"closed: lacks {third}/three by mean") for one in found)
    transact(house.store.public, lambda: {PATH: None}, "none")
    assert found_in(house) == ["snapshot: there is none"]


def test_cards_and_boards_that_are_not_known_here_are_named(house: House) -> None:
    other = {"closed": CARDS["closed"].model_copy(update={"summary": "Another."})}
    found = differences(shown_of(house), rebuilt(house.store, other, house.clock()))
    assert {str(one) for one in found} >= {
        "closed: shown with another card",
        "open: a board of a benchmark that is not known here",
    }
    lacking = replace(shown_of(house), boards={})
    right = rebuilt(house.store, CARDS, house.clock())
    assert [str(one) for one in differences(lacking, right)] == [
        "open: there is no such board",
        "closed: there is no such board",
    ]


def test_rounding_is_no_difference(house: House) -> None:
    shown = shown_of(house)
    moved = with_cells(
        shown, lambda cells: [c.model_copy(update={"value": c.value * (1 + 1e-13)}) for c in cells]
    )
    assert differences(moved, shown) == ()


def test_many_differences_are_counted_rather_than_listed(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rebuilding, "_SHOWN_AT_MOST", 1)
    shown = shown_of(house)
    found = differences(replace(shown, entries={}), shown)
    assert [str(one) for one in found][1:] == ["and more: 1 further differences"]


def put_queue(house: House, change: Callable[[tuple[Status, ...]], tuple[Status, ...]]) -> None:
    public = house.store.public
    queue = read_queue(public, public.head())
    content = queue_bytes(Queue(change(queue.statuses), queue.segments))
    transact(public, lambda: {QUEUE: content}, "tampered")


def test_a_queue_that_was_tampered_with_is_found(house: House) -> None:
    waits = house.send(name="waits")
    assert queue_differences(house.store) == ()
    one = house.ledger.statuses()[0].submission.submission_id
    put_queue(
        house,
        lambda all_: (
            all_[0].model_copy(update={"state": State.HIDDEN, "on_boards": False}),
            *all_[1:-1],
        ),
    )
    assert [str(found) for found in queue_differences(house.store)] == [
        f"{waits}: missing from the queue",
        f"{one}: in the queue with another state, on_boards",
    ]
    name = "made-up-00000000"
    own = house.ledger.statuses()[0]
    invented = own.model_copy(
        update={"submission": own.submission.model_copy(update={"submission_id": name})}
    )
    put_queue(house, lambda all_: (*all_, invented))
    found = [str(one) for one in queue_differences(house.store)]
    assert f"{name}: in the queue, though no event put it there" in found


def test_a_rebuild_reads_neither_queue_nor_snapshot(house: House) -> None:
    house.done(name="held", private=True)
    store, public, _ = counted(house.store)
    rebuilt(store, CARDS, house.clock())
    assert not {QUEUE, PATH}.intersection(public.paths)
    assert [s.state for s in folded(store.public)] == [s.state for s in house.ledger.statuses()]


def test_a_repair_makes_both_right_and_says_nothing_of_the_rest(house: House) -> None:
    house.send(name="waits")
    right_queue, entries = house.ledger.statuses(), shown_of(house).entries
    broken = {QUEUE: queue_bytes(Queue(())), PATH: None}
    transact(house.store.public, lambda: broken, "lost")
    assert len(queue_differences(house.store)) == 3
    head = house.store.public.head()
    transact(house.store.public, lambda: repaired(house.store, CARDS, house.clock()), "repair")
    assert house.store.public.head() != head
    assert found_in(house) == []
    assert queue_differences(house.store) == ()
    assert read_queue(house.store.public, "").statuses == right_queue
    assert shown_of(house).entries == entries
    house.done(ADA, "four")
    assert found_in(house) == []
