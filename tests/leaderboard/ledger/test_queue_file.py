"""The queue as a file that anyone can load, and that older stores have in another form."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.errors import TransientError
from leaderboard.ledger import audit_log
from leaderboard.ledger.audit_log import verify
from leaderboard.ledger.ledger import Ledger
from leaderboard.ledger.policy import Policy
from leaderboard.ledger.queue_file import (
    OLD_QUEUE,
    QUEUE,
    Queue,
    from_bytes,
    in_order,
    queue_bytes,
    read_queue,
)  # fmt: skip
from leaderboard.records import Status
from leaderboard.states import State
from leaderboard.store.interface import Repository, Store
from tests.kit.governed import ADA, BOB, OLGA, House
from tests.kit.refusals import refused
from tests.kit.store import counted, memory_store, put


@pytest.fixture
def house() -> House:
    house = House()
    house.done(name="grey")
    house.done(BOB, name="blue", private=True)
    house.send(BOB, name="red")
    return house


def test_what_is_written_is_read_back_and_equal_content_gives_equal_bytes(house: House) -> None:
    queue = Queue(house.ledger.statuses(), segments=7)
    for one in (queue, Queue()):
        assert from_bytes(queue_bytes(one)) == one
    again = [Status.model_validate(status.model_dump()) for status in reversed(queue.statuses)]
    assert queue_bytes(Queue(in_order(again), 7)) == queue_bytes(queue)
    assert queue_bytes(replace(queue, segments=2)) != queue_bytes(queue)


def test_those_of_one_moment_are_in_the_order_of_their_ids(house: House) -> None:
    status = house.ledger.statuses()[0]
    own = [
        status.submission.model_copy(update={"submission_id": name})
        for name in ("grey-bbbb", "grey-aaaa")
    ]
    found = in_order([status.model_copy(update={"submission": one}) for one in own])
    assert [status.submission.submission_id for status in found] == ["grey-aaaa", "grey-bbbb"]


def test_anyone_can_load_it_and_sees_what_a_person_asks_for(house: House) -> None:
    content = house.store.public.read(QUEUE)
    frame = pd.read_parquet(BytesIO(content))
    columns = {
        "state": ["published", "held", "queued"], "name": ["grey", "private submission", "red"],
        "account": [ADA.key, "", BOB.key], "on_boards": [True, False, False],
    }  # fmt: skip
    assert {name: list(frame[name]) for name in columns} == columns
    assert list(frame["benchmarks"][0]) == ["open", "closed"]
    assert frame["scored_at"].isna().tolist() == [False, False, True]
    schema = pq.read_schema(BytesIO(content))
    assert schema.field("received_at").type == pa.timestamp("us", tz="UTC")
    held = house.ledger.whole(frame["submission_id"][1])
    published, private, _ = map(str, pq.read_table(BytesIO(content)).to_pylist())
    secrets = (held.name, held.content_sha256, held.archive, held.version)
    assert not [secret for secret in secrets if secret in published or secret in private]


def test_a_queue_that_cannot_be_read_is_never_taken_for_an_empty_one(house: House) -> None:
    public = house.store.public
    whole = public.read(QUEUE)
    newer, sink = pq.read_table(BytesIO(whole)), pa.BufferOutputStream()
    pq.write_table(newer.replace_schema_metadata({"assay.schema_version": "2"}), sink)
    contents = dict.fromkeys((b"", whole[:-9], b"[]"), "queue_damaged")
    for content, code in {**contents, sink.getvalue().to_pybytes(): "queue_too_new"}.items():
        put(public, {QUEUE: content})
        with refused(code):
            Ledger(house.store).statuses()


# Older stores


def as_in_older_stores(house: House) -> Store:
    """The same store with its queue in the older form."""
    records = [status.model_dump(mode="json") for status in house.ledger.statuses()]
    put(house.store.public, {OLD_QUEUE: json.dumps(records, indent=1).encode(), QUEUE: None})
    return house.store


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
    states = [status.state for status in Ledger(store).statuses()]
    assert states == [State.PUBLISHED, State.HELD, State.SCORING]
    assert verify(store.public) == ()


class Meddled:
    """A repository in which something is done after the queue was looked for in vain."""

    def __init__(self, under: Repository, act: Callable[[], object], times: int = 1) -> None:
        self._under, self._act, self._times = under, act, times

    def __getattr__(self, name: str) -> Any:
        return getattr(self._under, name)

    def read(self, path: str) -> bytes:
        try:
            return self._under.read(path)
        finally:
            if path == QUEUE and self._times:
                self._times -= 1
                self._act()


def test_a_queue_that_is_moved_over_while_it_is_looked_for_is_found(house: House) -> None:
    n, store = len(house.ledger.statuses()), as_in_older_stores(house)
    moving = Meddled(store.public, lambda: House(store=store).send(name="green"))
    found = read_queue(moving, moving.head())
    assert (len(found.statuses), found.old) == (n + 1, False)


def test_a_store_that_never_stands_still_is_not_taken_for_an_empty_one() -> None:
    store = memory_store()
    moving = Meddled(store.public, lambda: put(store.public, {"x": b"1"}), times=100)
    with pytest.raises(TransientError):
        read_queue(moving, moving.head())


# What an act costs


def asked_for_an_act(n: int) -> list[tuple[list[str], Counter[str]]]:
    """What one act asks of the public repository with so many submissions: moving, receiving."""
    plain = House()
    names = [plain.send() for _ in range(n)]
    store, public, _ = counted(plain.store)
    house = House(store=store, clock=plain.clock)
    found = []
    for act in (lambda: house.claim(names[0]), lambda: house.send(name="new")):
        public.forget()
        act()
        read = [path.replace(names[0], "ID") for path in public.paths]
        found.append((read, Counter(public.asked)))
    return found


def test_an_act_reads_as_many_files_of_a_large_store_as_of_a_small_one() -> None:
    found = asked_for_an_act(3)
    segment = "chronicle/000001.jsonl"
    reads = [read for read, _ in found]
    assert reads == [[QUEUE, "submissions/ID/events.jsonl", segment], [QUEUE, segment]]
    assert all(set(asked) == {"head", "read", "commit"} for _, asked in found)
    assert asked_for_an_act(40) == found


@pytest.mark.parametrize("acts", [0, 1, 5, 6, 7, 17, 25])
@pytest.mark.parametrize("told", [None, 0, 9], ids=["right", "too few", "too many"])
def test_the_last_segment_is_found_though_acts_went_on_and_whatever_the_queue_says(
    monkeypatch: pytest.MonkeyPatch, acts: int, told: int | None
) -> None:
    monkeypatch.setattr(audit_log, "SEGMENT_LINES", 10)
    house = House()
    house.send()
    for number in range(acts):
        house.acts.set_policy(Policy(period_days=1 + number), OLGA, "Again.")
    if told is not None:
        put(house.store.public, {QUEUE: queue_bytes(Queue(house.ledger.statuses(), told))})
    house.send()
    assert verify(house.store.public) == ()
