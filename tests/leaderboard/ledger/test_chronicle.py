"""The public ledger: everything is in it, and whatever is tampered with is found."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from leaderboard.governance.bans import bans_file
from leaderboard.governance.policy import Policy
from leaderboard.ledger import chronicle, chronicle_writing
from leaderboard.ledger.chronicle import last_hash, read_lines, segments, verify
from leaderboard.store.interface import Repository
from leaderboard.store.memory import memory_store
from tests.leaderboard.house import ADA, BOB, OLGA, House

FIRST = "chronicle/000001.jsonl"


@pytest.fixture
def house() -> House:
    return House()


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> House:
    """A store with several small segments and every kind of line."""
    for module in (chronicle, chronicle_writing):
        monkeypatch.setattr(module, "SEGMENT_LINES", 10)
    house = House()
    old = house.done()
    house.done()
    house.done(private=True, name="blue")
    house.acts.ban(BOB.key, OLGA, "Spam.")
    house.acts.set_policy(Policy(period_days=3), OLGA, "Fewer days.")
    house.acts.hide(old, OLGA, "Old.")
    return house


def put(public: Repository, path: str, content: bytes | None) -> None:
    public.commit({path: content}, parent=public.head(), message="tamper")


def lines_of(public: Repository, path: str = FIRST) -> list[bytes]:
    return public.read(path).splitlines(keepends=True)


def test_every_event_and_act_has_its_line_in_order(full: House) -> None:
    lines = read_lines(full.store.public)
    assert [line.n for line in lines] == list(range(1, len(lines) + 1))
    assert lines[0].action == "began"
    events = [
        e for s in full.ledger.statuses() for e in full.ledger.events(s.submission.submission_id)
    ]
    assert len(lines) == 1 + len(events) + 2
    assert {"ban", "policy", "hidden", "superseded", "held", "queued"} <= {x.action for x in lines}
    assert len(segments(full.store.public)) == -(-len(lines) // 10)
    assert verify(full.store.public) == ()


def test_a_line_is_in_the_commit_of_what_it_tells_of(house: House) -> None:
    before = int(house.store.public.head())
    name = house.send()
    assert int(house.store.public.head()) == before + 1
    assert [line.action for line in read_lines(house.store.public, name)] == ["received", "queued"]


def test_an_append_reads_the_last_segment_only(full: House) -> None:
    read: list[str] = []

    class Watched:
        def __getattr__(self, name: str) -> object:
            return getattr(full.store.public, name)

        def read(self, path: str) -> bytes:
            read.append(path)
            return full.store.public.read(path)

    watched = House(store=type(full.store)(Watched(), full.store.private, full.store.live))  # type: ignore[arg-type]
    read.clear()
    watched.send(name="red")
    assert [p for p in read if p.startswith("chronicle/")] == [segments(full.store.public)[-1]]


@pytest.mark.parametrize("count", [8, 9, 10, 11, 19, 20, 21])
def test_segments_are_full_before_the_next_one_begins(
    house: House, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    for module in (chronicle, chronicle_writing):
        monkeypatch.setattr(module, "SEGMENT_LINES", 10)
    for number in range(count):
        house.acts.set_policy(Policy(period_days=1 + number), OLGA, "Again.")
    sizes = [len(lines_of(house.store.public, p)) for p in segments(house.store.public)]
    assert sum(sizes) == count + 1
    assert all(size == 10 for size in sizes[:-1])
    assert verify(house.store.public) == ()


# Tampering.


def changed(lines: list[bytes]) -> list[bytes]:
    return [lines[0], lines[1].replace(b'"by":"ada"', b'"by":"eve"'), *lines[2:]]


def with_broken_json(lines: list[bytes]) -> list[bytes]:
    return [*lines[:3], b"{}\n", *lines[4:]]


@pytest.mark.parametrize(
    "tamper",
    [
        changed,
        with_broken_json,
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
    path = segments(public)[segment]
    before = lines_of(public, path)
    while len(before) < 8:
        full.send(name="fill")
        path = segments(public)[segment]
        before = lines_of(public, path)
    after = tamper(before)
    if after == before:
        after = [before[0], before[1].replace(b'"by":"', b'"by":"x'), *before[2:]]
    put(public, path, b"".join(after))
    assert verify(public) != ()


def test_a_segment_that_is_gone_or_put_in_is_found(full: House) -> None:
    public = full.store.public
    last = segments(public)[-1]
    content = public.read(last)
    put(public, last, None)
    assert verify(public) != ()
    put(public, last, content)
    assert verify(public) == ()
    put(public, "chronicle/000009.jsonl", content)
    assert "segments" in verify(public)[0]


def test_a_chronicle_that_is_gone_is_found(house: House) -> None:
    house.send()
    put(house.store.public, FIRST, None)
    (problem,) = verify(house.store.public)
    assert problem.startswith("There is no chronicle, though something was done here.")


def test_a_store_in_which_nothing_was_done_has_nothing_wrong() -> None:
    assert verify(memory_store().public) == ()
    assert last_hash(memory_store().public) == "0" * 64


@pytest.mark.parametrize(
    ("tamper", "said"),
    [
        (lambda raw: raw.replace(b'"log":""', b'"log":"x"', 1), "is not of event 1 of"),
        (lambda raw: raw[: raw.rindex(b"{")], "lines tell of it"),
        (lambda raw: raw + raw.splitlines(keepends=True)[-1], "is not of event"),
        (lambda _: None, "which has no events"),
    ],
    ids=["changed", "missing", "added", "gone"],
)
def test_events_that_differ_from_their_lines_are_found(
    house: House, tamper: Callable[[bytes], bytes | None], said: str
) -> None:
    path = f"submissions/{house.done()}/events.jsonl"
    put(house.store.public, path, tamper(house.store.public.read(path)))
    assert any(said in problem for problem in verify(house.store.public))


def test_bans_and_policies_that_differ_from_their_lines_are_found(house: House) -> None:
    public = house.store.public
    ban = house.acts.ban(BOB.key, OLGA, "Spam.")
    put(
        public,
        "bans.json",
        bans_file({BOB.key: ban.model_copy(update={"reason": "No."})})["bans.json"],
    )
    assert verify(public) == ("bans.json says another thing of hub:bob than the lines do.",)
    put(public, "bans.json", b"[1]")
    assert verify(public) == ("bans.json cannot be read.",)
    put(public, "bans.json", None)
    assert len(verify(public)) == 1
    put(public, "bans.json", bans_file({BOB.key: ban})["bans.json"])
    assert verify(public) == ()
    put(public, "policy.json", Policy(period_days=1).model_dump_json().encode())
    assert verify(public) == ("policy.json is not the policy that was set last.",)


def test_the_last_hash_changes_with_every_line_and_tells_a_chain_made_anew(house: House) -> None:
    seen = {last_hash(house.store.public)}
    for _ in range(3):
        house.send()
        seen.add(last_hash(house.store.public))
    assert len(seen) == 4


# Stores that are older than the chronicle.


def without_chronicle(house: House) -> House:
    for path in segments(house.store.public):
        put(house.store.public, path, None)
    return House(store=house.store)


def test_an_older_store_begins_its_chronicle_at_the_next_event(house: House) -> None:
    first, second = house.done(), house.done(BOB, "blue")
    older = without_chronicle(house)
    older.acts.withdraw(first, ADA)
    lines = read_lines(older.store.public)
    assert [line.action for line in lines] == ["began", "withdrawn"]
    assert lines[0].reason == "14 events of 2 submissions came before."
    assert verify(older.store.public) == ()
    path = f"submissions/{second}/events.jsonl"
    raw = older.store.public.read(path)
    put(older.store.public, path, raw.replace(b'"by":"w1"', b'"by":"w2"', 1))
    assert verify(older.store.public) == (
        "Events without a line are not those from before the chronicle began.",
    )


def test_events_are_kept_byte_by_byte_whatever_form_they_had(house: House) -> None:
    name = house.send()
    path = f"submissions/{name}/events.jsonl"
    raw = house.store.public.read(path)
    old = b"".join(
        json.dumps({k: v for k, v in json.loads(line).items() if v not in ("", None)}).encode()
        + b"\n"
        for line in raw.splitlines()
    )
    put(house.store.public, path, old)
    older = without_chronicle(house)
    older.claim(name)
    assert older.store.public.read(path).startswith(old)
    assert verify(older.store.public) == ()
