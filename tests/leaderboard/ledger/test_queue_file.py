"""The queue as a file that anyone can load, and that older stores have in another form."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from io import BytesIO
from typing import Any, cast

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.errors import PlatformError, TransientError
from leaderboard.governance.policy import Policy
from leaderboard.ledger import chronicle, chronicle_writing
from leaderboard.ledger.chronicle import verify
from leaderboard.ledger.ledger import Ledger
from leaderboard.ledger.queue_file import (
    OLD_QUEUE,
    QUEUE,
    Queue,
    from_bytes,
    in_order,
    queue_bytes,
    read_queue,
)
from leaderboard.records import Status
from leaderboard.states import State
from leaderboard.store.interface import Repository, Store
from leaderboard.store.memory import memory_store
from tests.leaderboard.house import ADA, BOB, OLGA, House


@pytest.fixture
def house() -> House:
    house = House()
    house.done(name="grey")
    house.done(BOB, name="blue", private=True)
    house.send(BOB, name="red")
    return house


def as_in_older_stores(house: House) -> Store:
    """The same store with its queue in the older form."""
    records = [status.model_dump(mode="json") for status in house.ledger.statuses()]
    put(house.store.public, {OLD_QUEUE: json.dumps(records, indent=1).encode(), QUEUE: None})
    return house.store


def put(public: Repository, changes: dict[str, bytes | None]) -> None:
    public.commit(changes, parent=public.head(), message="m")


def test_what_is_written_is_read_back(house: House) -> None:
    queue = Queue(house.ledger.statuses(), segments=7)
    assert from_bytes(queue_bytes(queue)) == queue
    assert from_bytes(queue_bytes(Queue())) == Queue()


def test_equal_content_gives_equal_bytes_whatever_led_to_it(house: House) -> None:
    statuses = house.ledger.statuses()
    again = [Status.model_validate(status.model_dump()) for status in reversed(statuses)]
    assert queue_bytes(Queue(in_order(again))) == queue_bytes(Queue(statuses))
    other = dataclasses.replace(Queue(statuses), segments=2)
    assert queue_bytes(other) != queue_bytes(Queue(statuses))


def test_those_of_one_moment_are_in_the_order_of_their_ids(house: House) -> None:
    (status, *_) = house.ledger.statuses()
    same_moment = [
        status.model_copy(
            update={"submission": status.submission.model_copy(update={"submission_id": name})}
        )
        for name in ("grey-bbbbbbbb", "grey-aaaaaaaa")
    ]
    names = [status.submission.submission_id for status in in_order(same_moment)]
    assert names == ["grey-aaaaaaaa", "grey-bbbbbbbb"]


def test_anyone_can_load_it_and_sees_what_a_person_asks_for(house: House) -> None:
    frame = pd.read_parquet(BytesIO(house.store.public.read(QUEUE)))
    assert list(frame["state"]) == ["published", "held", "queued"]
    assert list(frame["name"]) == ["grey", "private submission", "red"]
    assert list(frame["account"]) == [ADA.key, "", BOB.key]
    assert list(frame["on_boards"]) == [True, False, False]
    assert list(frame["benchmarks"][0]) == ["open", "closed"]
    assert frame["received_at"].dt.tz is not None
    assert frame["scored_at"].isna().tolist() == [False, False, True]
    schema = pq.read_schema(BytesIO(house.store.public.read(QUEUE)))
    assert schema.field("received_at").type == pa.timestamp("us", tz="UTC")


def test_a_private_submission_is_a_name_without_anything(house: House) -> None:
    held = house.ledger.whole(house.ledger.statuses()[1].submission.submission_id)
    content = pq.read_table(BytesIO(house.store.public.read(QUEUE))).to_pylist()
    for secret in (held.name, held.content_sha256, held.archive, held.version):
        assert secret not in str(content[1])
        assert secret not in str(content[0])


def test_a_queue_that_cannot_be_read_is_never_taken_for_an_empty_one(house: House) -> None:
    public = house.store.public
    whole = public.read(QUEUE)
    newer = pq.read_table(BytesIO(whole)).replace_schema_metadata({"assay.schema_version": "2"})
    sink = pa.BufferOutputStream()
    pq.write_table(newer, sink)
    damaged = {b"": "queue_damaged", whole[:-9]: "queue_damaged", b"[]": "queue_damaged"}
    for content, code in {**damaged, sink.getvalue().to_pybytes(): "queue_too_new"}.items():
        put(public, {QUEUE: content})
        with pytest.raises(PlatformError) as caught:
            Ledger(house.store).statuses()
        assert caught.value.code == code


# Older stores.


def test_an_older_queue_is_read_and_moved_over_by_the_next_write(house: House) -> None:
    before = house.ledger.statuses()
    store = as_in_older_stores(house)
    later = House(store=store, clock=house.clock)
    assert later.ledger.statuses() == before
    assert store.public.list("queue") == (OLD_QUEUE,)
    head = int(store.public.head())
    later.claim(before[2].submission.submission_id)
    assert int(store.public.head()) == head + 1
    assert store.public.list("queue") == (QUEUE,)
    assert [s.state for s in later.ledger.statuses()] == [
        State.PUBLISHED,
        State.HELD,
        State.SCORING,
    ]
    assert Ledger(store).statuses() == later.ledger.statuses()
    assert verify(store.public) == ()


def test_a_queue_that_is_moved_over_while_it_is_looked_for_is_found(house: House) -> None:
    before = house.ledger.statuses()
    store = as_in_older_stores(house)
    moving = Meddled(store.public, lambda: House(store=store).send(name="green"))
    found = read_queue(moving, moving.head())
    assert len(found.statuses) == len(before) + 1
    assert not found.old


def test_a_store_that_never_stands_still_is_not_taken_for_an_empty_one() -> None:
    store = memory_store()
    moving = Meddled(store.public, lambda: put(store.public, {"x": b"1"}), times=100)
    with pytest.raises(TransientError, match="each time"):
        read_queue(moving, moving.head())


class Meddled:
    """A repository in which something is done after the queue was looked for in vain."""

    def __init__(self, under: Repository, act: Callable[[], object], times: int = 1) -> None:
        self._under = under
        self._act = act
        self._times = times

    def __getattr__(self, name: str) -> Any:
        return getattr(self._under, name)

    def read(self, path: str) -> bytes:
        try:
            return self._under.read(path)
        finally:
            if path == QUEUE and self._times:
                self._times -= 1
                self._act()


# What an act costs.


class Counting:
    """A repository that notes what is asked of it."""

    def __init__(self, under: Repository) -> None:
        self._under = under
        self.asked: list[tuple[str, str]] = []

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._under, name)

        def noted(*args: object, **more: object) -> object:
            path = args[0] if args and isinstance(args[0], str) else ""
            self.asked.append((name, path))
            return method(*args, **more)

        return noted


def asked_for_an_act(n: int) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """What one act asks of the public repository with so many submissions: moving, receiving."""
    plain = House()
    names = [plain.send() for _ in range(n)]
    counting = Counting(plain.store.public)
    house = House(
        store=dataclasses.replace(plain.store, public=cast("Repository", counting)),
        clock=plain.clock,
    )
    house.claim(names[0])
    moved = [(what, path.replace(names[0], "ID")) for what, path in counting.asked]
    counting.asked.clear()
    House(store=house.store, clock=plain.clock).send(name="new")
    return moved, list(counting.asked)


def test_an_act_reads_as_many_files_of_a_large_store_as_of_a_small_one() -> None:
    moved, received = asked_for_an_act(3)
    reads = [path for what, path in moved if what == "read"]
    assert reads == [QUEUE, "submissions/ID/events.jsonl", "chronicle/000001.jsonl"]
    assert [path for what, path in received if what == "read"] == [QUEUE, "chronicle/000001.jsonl"]
    assert {what for what, _ in (*moved, *received)} == {"head", "read", "commit"}
    assert asked_for_an_act(150) == (moved, received)


@pytest.mark.parametrize("acts", [0, 1, 5, 6, 7, 17, 25])
def test_the_last_segment_is_found_though_acts_beside_the_queue_went_on(
    monkeypatch: pytest.MonkeyPatch, acts: int
) -> None:
    for module in (chronicle, chronicle_writing):
        monkeypatch.setattr(module, "SEGMENT_LINES", 10)
    house = House()
    house.send()
    for number in range(acts):
        house.acts.set_policy(Policy(period_days=1 + number), OLGA, "Again.")
    house.send()
    assert verify(house.store.public) == ()


@pytest.mark.parametrize("segments", [0, 9])
def test_a_wrong_number_of_segments_only_costs_a_look(
    monkeypatch: pytest.MonkeyPatch, segments: int
) -> None:
    for module in (chronicle, chronicle_writing):
        monkeypatch.setattr(module, "SEGMENT_LINES", 10)
    house = House()
    for _ in range(8):
        house.send()
    put(house.store.public, {QUEUE: queue_bytes(Queue(house.ledger.statuses(), segments))})
    house.send()
    assert verify(house.store.public) == ()
