"""The public ledger: everything is in it, and whatever is tampered with is found."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from leaderboard.ledger import audit_log
from leaderboard.ledger.audit_log import last_hash, read_lines, segments, verify
from leaderboard.ledger.policy import Policy, bans_file
from leaderboard.store.interface import Repository
from tests.kit.governed import ADA, BOB, OLGA, House
from tests.kit.store import counted, memory_store, put


@pytest.fixture
def short_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_log, "SEGMENT_LINES", 10)


@pytest.fixture(scope="module")
def filled() -> House:
    """A store with several small segments and every kind of line."""
    house = House()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(audit_log, "SEGMENT_LINES", 10)
        old = house.done()
        house.done()
        house.done(private=True, name="blue")
        house.acts.ban(BOB.key, OLGA, "Spam.")
        house.acts.set_policy(Policy(period_days=3), OLGA, "Fewer days.")
        house.acts.hide(old, OLGA, "Old.")
    return house


@pytest.fixture
def full(short_segments: None, filled: House) -> House:
    return filled.copy()


def lines_of(public: Repository, path: str) -> list[bytes]:
    return public.read(path).splitlines(keepends=True)


def test_every_event_and_act_has_its_line_in_order(full: House) -> None:
    lines, ledger = read_lines(full.store.public), full.ledger
    assert [line.n for line in lines] == list(range(1, len(lines) + 1))
    assert lines[0].action == "began"
    events = [len(ledger.events(s.submission.submission_id)) for s in ledger.statuses()]
    assert len(lines) == 1 + sum(events) + 2
    assert {"ban", "policy", "hidden", "superseded", "held", "queued"} <= {x.action for x in lines}
    assert len(segments(full.store.public)) == -(-len(lines) // 10)
    assert verify(full.store.public) == ()


def test_a_line_is_in_the_commit_it_tells_of_and_changes_the_hash(house: House) -> None:
    public, seen = house.store.public, {last_hash(house.store.public)}
    for _ in range(3):
        before = int(public.head())
        name = house.send()
        assert int(public.head()) == before + 1
        assert [line.action for line in read_lines(public, name)] == ["received", "queued"]
        seen.add(last_hash(public))
    assert len(seen) == 4


def test_an_append_reads_the_last_segment_only(full: House) -> None:
    store, public, _ = counted(full.store)
    last = segments(full.store.public)[-1]
    House(store=store, clock=full.clock).send(name="red")
    assert public.below("chronicle/") == [last]


@pytest.mark.usefixtures("short_segments")
@pytest.mark.parametrize("count", [8, 9, 10, 11, 19, 20, 21])
def test_segments_are_full_before_the_next_one_begins(house: House, count: int) -> None:
    for number in range(count):
        house.acts.set_policy(Policy(period_days=1 + number), OLGA, "Again.")
    sizes = [len(lines_of(house.store.public, p)) for p in segments(house.store.public)]
    assert sum(sizes) == count + 1
    assert all(size == 10 for size in sizes[:-1])
    assert verify(house.store.public) == ()


# Tampering


@pytest.mark.parametrize(
    "tamper",
    [
        lambda x: [x[0], x[1].replace(b'"by":"', b'"by":"x'), *x[2:]],
        lambda x: [*x[:3], b"{}\n", *x[4:]],
        lambda x: [*x[:4], *x[5:]],
        lambda x: x[1:],
        lambda x: [*x[:4], x[5], x[4], *x[6:]],
        lambda x: [*x[:5], x[4], *x[5:]],
        lambda x: x[:-1],
        lambda _: [],
    ],
    ids=["changed", "broken", "missing", "first", "reordered", "inserted", "last", "emptied"],
)
@pytest.mark.parametrize("segment", [0, -1])
def test_a_line_that_was_tampered_with_is_found(
    full: House, tamper: Callable[[list[bytes]], list[bytes]], segment: int
) -> None:
    public = full.store.public
    while len(before := lines_of(public, path := segments(public)[segment])) < 8:
        full.send(name="fill")
    put(public, {path: b"".join(tamper(before))})
    assert verify(public) != ()


def test_a_segment_gone_or_put_in_and_a_chronicle_gone_are_found(full: House) -> None:
    public = full.store.public
    last = segments(public)[-1]
    content = public.read(last)
    put(public, {last: None})
    assert verify(public) != ()
    put(public, {last: content})
    assert verify(public) == ()
    put(public, {"chronicle/000009.jsonl": content})
    assert "segments" in verify(public)[0]
    for path in segments(public):
        put(public, {path: None})
    assert len(verify(public)) == 1


def test_a_store_in_which_nothing_was_done_has_nothing_wrong() -> None:
    assert verify(memory_store().public) == ()
    assert last_hash(memory_store().public) == "0" * 64


@pytest.mark.parametrize(
    ("tamper", "said"),
    [
        (lambda raw: raw.replace(b'"log":""', b'"log":"x"', 1), "event 1 of"),
        (lambda raw: raw[: raw.rindex(b"{")], "lines tell"),
        (lambda raw: raw + raw.splitlines(keepends=True)[-1], "of event"),
        (lambda _: None, "no events"),
    ],
    ids=["changed", "missing", "added", "gone"],
)
def test_events_that_differ_from_their_lines_are_found(
    house: House, tamper: Callable[[bytes], bytes | None], said: str
) -> None:
    path = f"submissions/{house.done()}/events.jsonl"
    put(house.store.public, {path: tamper(house.store.public.read(path))})
    assert any(said in problem for problem in verify(house.store.public))


def test_bans_and_policies_that_differ_from_their_lines_are_found(house: House) -> None:
    public = house.store.public
    ban = house.acts.ban(BOB.key, OLGA, "Spam.")
    other = bans_file({BOB.key: ban.model_copy(update={"reason": "No."})})["bans.json"]
    for content, word in ((other, BOB.key), (b"[1]", "read"), (None, "bans.json")):
        put(public, {"bans.json": content})
        (problem,) = verify(public)
        assert word in problem
    put(public, {"bans.json": bans_file({BOB.key: ban})["bans.json"]})
    assert verify(public) == ()
    put(public, {"policy.json": Policy(period_days=1).model_dump_json().encode()})
    (problem,) = verify(public)
    assert problem.startswith("policy.json")


# Stores that are older than the chronicle


def without_chronicle(house: House) -> House:
    for path in segments(house.store.public):
        put(house.store.public, {path: None})
    return House(store=house.store)


def test_an_older_store_begins_its_chronicle_at_the_next_event(house: House) -> None:
    first, second = house.done(), house.done(BOB, "blue")
    older = without_chronicle(house)
    public = older.store.public
    older.acts.withdraw(first, ADA)
    lines = read_lines(public)
    assert [line.action for line in lines] == ["began", "withdrawn"]
    assert lines[0].reason.startswith("14 events of 2 submissions")
    assert verify(public) == ()
    path = f"submissions/{second}/events.jsonl"
    put(public, {path: public.read(path).replace(b'"by":"w1"', b'"by":"w2"', 1)})
    assert len(verify(public)) == 1


def test_events_are_kept_byte_by_byte_whatever_form_they_had(house: House) -> None:
    name, public = house.send(), house.store.public
    path = f"submissions/{name}/events.jsonl"
    events = [json.loads(line) for line in public.read(path).splitlines()]
    short = [{k: v for k, v in event.items() if v not in ("", None)} for event in events]
    old = b"".join(json.dumps(event).encode() + b"\n" for event in short)
    put(public, {path: old})
    older = without_chronicle(house)
    older.claim(name)
    assert public.read(path).startswith(old)
    assert verify(public) == ()
