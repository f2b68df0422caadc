"""Transactions that come together are one commit, and each goes as if it had come alone."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from benchmarks.errors import AssayError, PlatformError, SubmitterError, TransientError
from leaderboard.store.grouping import Grouping
from leaderboard.store.interface import (
    Changes,
    ConflictError,
    NotFoundError,
    Repository,
    transact,
    transact_alone,
)
from tests.kit.hub.server import HubServer
from tests.kit.hub_store import created, parts_of, put
from tests.kit.refusals import refused
from tests.kit.store import MemoryRepository

Change = Callable[[], Changes]


class Stopped(BaseException):
    pass


def stop() -> Any:
    raise Stopped


def refuse() -> Changes:
    raise SubmitterError("not_yours", "Not this one.")


class Gate:
    """A repository in memory whose commits wait until they are let through."""

    def __init__(self) -> None:
        self.under = MemoryRepository()
        self.opened = threading.Event()
        self.opened.set()
        self.arrived = threading.Event()
        self.messages: list[str] = []
        self.before: list[Callable[[], object]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.under, name)

    def commit(self, changes: Changes, *, parent: str, message: str) -> str:
        self.arrived.set()
        assert self.opened.wait(60)
        if self.before:
            self.before.pop(0)()
        version = self.under.commit(changes, parent=parent, message=message)
        self.messages.append(message)
        return version


class Room:
    """Threads that run transactions on one grouping."""

    def __init__(self, **limits: int) -> None:
        self.gate = Gate()
        self.store = Grouping(self.gate, **limits)  # type: ignore[arg-type]
        self.pool = ThreadPoolExecutor(40)

    def start(self, change: Change, message: str = "m", attempts: int = 100) -> Future[str]:
        waiting = len(self.store._queue.waiting())
        future = self.pool.submit(
            transact, self.store, change, message, attempts=attempts, sleep=lambda _: None
        )
        until(lambda: future.done() or len(self.store._queue.waiting()) > waiting)
        return future

    def first(self) -> Future[str]:
        """A commit that is under way until the gate is opened."""
        self.gate.arrived.clear()
        self.gate.opened.clear()
        first = self.start(lambda: {"first": b"1"}, "first")
        assert self.gate.arrived.wait(60)
        return first

    def together(
        self, *changes: Change, before: Callable[[], object] = lambda: None
    ) -> list[Future[str]]:
        """Run them while another commit is under way, so that they come to the next one together.

        `before` is done just before that one.
        """
        first = self.first()
        futures = [self.start(change, f"m{n}") for n, change in enumerate(changes)]
        self.gate.before = [lambda: None, before]
        self.gate.opened.set()
        first.result(60)
        return futures

    def overtake(self) -> None:
        put(self.gate.under, {"x": b""})

    def log(self, text: bytes) -> Change:
        return append_to(self.store, "log", text)


@pytest.fixture
def room() -> Room:
    return Room()


def until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + 120
    while not done():
        assert time.monotonic() < end
        time.sleep(0.0005)


def append_to(store: Repository, path: str, text: bytes) -> Change:
    return lambda: {path: (store.read(path) if store.has(path) else b"") + text}


def results(*futures: Future[str]) -> list[str]:
    return [future.result(60) for future in futures]


# One commit


def test_transactions_that_come_while_a_commit_runs_are_the_next_one(room: Room) -> None:
    futures = room.together(*(room.log(b"%d." % n) for n in range(10)))
    assert set(results(*futures)) == {"2"}
    assert room.store.read("log") == b"0.1.2.3.4.5.6.7.8.9."
    assert len(room.gate.messages) == 2
    assert room.gate.messages[1].splitlines()[2:] == [f"m{n}" for n in range(10)]


def test_a_change_alone_sees_what_those_before_it_write(room: Room, tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(b"of this machine")
    seen: list[object] = []

    def look() -> Changes:
        outside = room.pool.submit(room.store.list).result(60)
        room.store.fetch("big", tmp_path / "copy")
        with pytest.raises(NotFoundError):
            room.store.read("first")
        copy = (tmp_path / "copy").read_bytes()
        seen.extend((outside, room.store.list(), room.store.read("big"), copy))
        return {"looked": b"1"}

    writes: list[Changes] = [{"a/b": b"1"}, {"big": tmp_path / "big"}, {"first": None}]
    futures = room.together(*((lambda w=w: w) for w in writes), look)
    assert results(*futures) == ["2"] * 4
    assert seen == [("first",), ("a/b", "big"), b"of this machine", b"of this machine"]
    assert room.store.list() == ("a/b", "big", "looked")


def test_every_step_has_a_head_that_is_no_version(room: Room) -> None:
    heads: list[str] = []

    def step() -> Changes:
        heads.append(room.store.head())
        return {f"f{len(heads)}": b"1"}

    results(*room.together(step, step, step, before=room.overtake))
    assert len(heads) == len(set(heads)) == 6  # asked again after the lost race
    assert not {head for head in heads if head.isdigit()}


def test_what_is_written_and_taken_away_again_is_two_commits(room: Room) -> None:
    """In one it would be as if it had never been, and nobody could tell whether it could."""
    futures = room.together(lambda: {"a": b"1"}, lambda: {"a": None, "b": room.store.read("a")})
    assert results(*futures) == ["2", "3"]
    assert room.store.list() == ("b", "first")


@pytest.mark.parametrize(
    ("limits", "commits"),
    [({"files": 3}, 4), ({"n_bytes": 350}, 4), ({}, 1)],
    ids=["files", "bytes", "neither"],
)
def test_a_commit_that_would_be_too_large_is_several(limits: dict[str, int], commits: int) -> None:
    room = Room(**limits)
    results(*room.together(*((lambda n=n: {f"f{n}": bytes(100)}) for n in range(10))))
    assert (len(room.gate.messages), len(room.store.list())) == (1 + commits, 11)


def test_a_transaction_inside_a_change_is_made_by_itself(room: Room) -> None:
    """Also while all groups are at work: nobody waits for one who waits for them."""
    other = Grouping(MemoryRepository())

    def change() -> Changes:
        transact(other, append_to(other, "details", b"."), "details")
        return room.log(other.read("details")[-1:])()

    def look() -> Changes:
        return {"looked": str(room.store.list()).encode()}

    futures = room.together(*[change] * 5)
    results(*futures, *(room.pool.submit(transact, other, look, "look") for _ in range(3)))
    assert room.store.read("log") == b"....."
    assert other.read("details").count(b".") >= 5


# One who fails holds nobody up


@pytest.mark.parametrize(
    ("change", "error", "code"),
    [
        (refuse, SubmitterError, "not_yours"),
        (lambda: {"first/inside": b"1"}, PlatformError, "path_clash"),  # the medium alone knows
        (lambda: {"b": Path("/nowhere/missing")}, FileNotFoundError, ""),
        (lambda: {"../b": b"1"}, PlatformError, "bad_path"),
        (stop, Stopped, ""),
    ],
    ids=["refused", "clash", "no file", "bad path", "interrupted"],
)
def test_who_fails_is_told_so_leaves_no_trace_and_holds_nobody_up(
    room: Room, change: Change, error: type[BaseException], code: str
) -> None:
    one, failing, other = room.together(room.log(b"a"), change, room.log(b"b"))
    with pytest.raises(error) as caught:
        failing.result(60)
    assert getattr(caught.value, "code", "") == code
    results(one, other)
    assert (room.store.read("log"), room.store.list()) == (b"ab", ("first", "log"))
    assert not any("m1" in message.splitlines() for message in room.gate.messages)
    assert room.store._queue.waiting() == ()


def test_what_could_not_be_committed_is_not_mended_by_who_comes_after_it(room: Room) -> None:
    clash, gone = room.together(lambda: {"first/inside": b"1"}, lambda: {"first": None})
    with refused("path_clash"):
        clash.result(60)
    gone.result(60)
    assert room.store.list() == ()


def test_a_refusal_over_what_was_never_committed_does_not_count(room: Room) -> None:
    """The second refuses because of the first, whose commit fails: then it is asked again."""

    def only_one() -> Changes:
        return refuse() if room.store.has("taken") else {"taken": b"second"}

    def fail() -> None:
        raise TransientError("store_silent", "The medium failed.")

    one, other = room.together(lambda: {"taken": b"first"}, only_one, before=fail)
    with refused("store_silent"):
        one.result(60)
    other.result(60)
    assert room.store.read("taken") == b"second"


def test_a_change_that_commits_by_itself_loses_its_race(room: Room) -> None:
    """As it does without groups: what it had read is of an older version then."""
    tries: list[int] = []

    def once() -> Changes:
        tries.append(1)
        if len(tries) == 1:
            put(room.store, {"x": b"1"})
            raise PlatformError("illegal", "The files contradict each other.")
        return {"y": room.store.read("x")}

    assert results(*room.together(room.log(b"."), once)) == ["3", "3"]
    assert [room.store.read(path) for path in ("log", "x", "y")] == [b".", b"1", b"1"]


def test_who_lost_too_many_races_is_told_so_and_the_others_go_on(room: Room) -> None:
    first = room.first()
    patient, hasty = room.start(room.log(b"p")), room.start(room.log(b"h"), attempts=1)
    room.gate.before = [lambda: None, room.overtake]
    room.gate.opened.set()
    results(first, patient)
    with pytest.raises(ConflictError):
        hasty.result(60)
    assert room.store.read("log") == b"p"


def test_a_leader_that_is_interrupted_leaves_the_lead_to_another(room: Room) -> None:
    leader = room.first()
    others = [room.start(room.log(b"%d" % n)) for n in range(3)]
    room.gate.before = [stop]
    room.gate.opened.set()
    with pytest.raises(Stopped):
        leader.result(60)
    assert set(results(*others)) == {"1"}
    assert room.store.read("log") == b"012"


def test_an_interrupt_ends_the_leader_whoever_s_change_it_evaluates(room: Room) -> None:
    asked: list[int] = []

    def interrupted() -> Changes:
        asked.append(1)
        if len(asked) == 1:
            raise KeyboardInterrupt
        return {"a": b"1"}

    errors = [future.exception(60) for future in room.together(room.log(b"."), interrupted)]
    assert sorted(map(type, errors), key=str) == [KeyboardInterrupt, type(None)]
    assert room.store._queue.waiting() == ()
    assert len(room.store.list()) == 2


def test_who_stops_before_leading_leaves_the_lead(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Grouping, "_lead", lambda store, own: stop())
    with pytest.raises(Stopped):
        transact(room.store, lambda: {"a": b"1"}, "stopped")
    monkeypatch.undo()
    assert room.start(lambda: {"b": b"1"}).result(60) == "1"
    assert room.store.list() == ("b",)


def test_a_medium_that_cannot_say_its_version_fails_each_who_waits() -> None:
    class Down(MemoryRepository):
        def head(self) -> str:
            raise TransientError("store_silent", "No answer.")

    store = Grouping(Down())
    with refused("store_silent"):
        transact(store, lambda: {"a": b"1"}, "m")
    assert store._queue.waiting() == ()


# The budget of commits


class Budgeted:
    """A budget that lets commits through when it is told to."""

    def __init__(self) -> None:
        self.open = threading.Event()

    def delay(self, commits: int) -> float:
        assert commits == 1
        return 0.0 if self.open.is_set() else 1.0

    def ready(self, commits: int) -> None:
        assert commits == 1
        assert self.open.wait(60)


def test_whatever_comes_while_the_budget_lets_none_through_is_one_commit() -> None:
    budget = Budgeted()
    store = Grouping(MemoryRepository(), budget)
    with ThreadPoolExecutor(20) as pool:
        change = append_to(store, "log", b".")
        futures = [pool.submit(transact, store, change, f"m{n}") for n in range(20)]
        until(lambda: len(store._queue.waiting()) == 20)
        assert store.list() == ()
        budget.open.set()
        assert set(results(*futures)) == {"1"}
    assert store.read("log") == b"." * 20


def test_nobody_waits_for_the_budget_to_be_told_that_there_is_nothing_to_do() -> None:
    store = Grouping(MemoryRepository(), Budgeted())
    assert transact(store, dict, "nothing") == "0"
    with refused("not_yours"):
        transact(store, refuse, "refused")


# Over the Hub


def test_threads_of_two_processes_share_commits(hub: HubServer, tmp_path: Path) -> None:
    parts = [created(hub, tmp_path / "one"), parts_of(hub, tmp_path / "other")]
    stores = [Grouping(each.public) for each in parts]

    def add(number: int) -> str:
        store = stores[number % 2]
        log, more = append_to(store, "log", b"%d." % number), {f"results/x{number}/b.json": b"{}"}
        return transact(store, lambda: {**log(), **more}, f"add {number}", attempts=200)

    with ThreadPoolExecutor(24) as pool:
        versions = set(pool.map(add, range(24)))
    seen = parts_of(hub, tmp_path / "third").public
    added = seen.read("log").decode().strip(".").split(".")
    assert sorted(added, key=int) == [str(n) for n in range(24)]
    assert len(seen.list("results/")) == 24
    assert len(versions) < 24


KEYS = ("k0", "k1", "k2", "k3", "k4")


@dataclass(frozen=True)
class Random:
    """A transaction that depends on what it reads, and leaves a file that says what it read."""

    number: int
    seed: int

    @property
    def marker(self) -> str:
        return f"done/{self.number}"

    def on(self, store: Repository) -> Changes:
        if store.has(self.marker):
            return {}  # An earlier try went through, though nobody was told.
        choice = random.Random(self.seed)
        reads = choice.sample(KEYS, 2)
        seen = [store.read(key) if store.has(key) else b"-" for key in reads]
        last = sum(seen[0] + seen[1])
        if choice.random() < 0.2 and last % 2:
            raise SubmitterError("odd", f"{self.number} refuses.")
        if choice.random() < 0.2 and last % 3:
            return {}
        target = choice.choice(KEYS)
        changes: dict[str, bytes | None] = {self.marker: b"|".join(seen)}
        if choice.random() < 0.15:
            changes[f"{target}/inside"] = b"%d" % self.number  # A clash, unless the file is gone.
        elif choice.random() < 0.2:
            changes[target] = None
            changes[f"{target}/inside"] = None
        else:
            changes[target] = b"%d:%d" % (self.number, last)
        return changes


class Trouble:
    """A repository that loses races, fails and loses answers at random, and notes what it did."""

    def __init__(self, seed: int, often: float) -> None:
        self.under = MemoryRepository()
        self.committed: list[list[str]] = []
        self._choice = random.Random(seed)
        self._often = often

    def __getattr__(self, name: str) -> object:
        return getattr(self.under, name)

    def commit(self, changes: Changes, *, parent: str, message: str) -> str:
        time.sleep(0.0005)
        fate = self._choice.random()
        if fate < self._often:
            self.under.commit({"foreign": b"x"}, parent=self.under.head(), message="another's")
        elif fate < 2 * self._often:
            raise TransientError("store_silent", "It failed before it was made.")
        version = self.under.commit(changes, parent=parent, message=message)
        lines = message.splitlines()
        self.committed.append(lines[2:] if len(lines) > 1 else lines)
        if fate > 1 - self._often:
            raise TransientError("store_silent", "Its answer was lost.")
        return version


def run_all(store: Repository, all_of: Sequence[Random]) -> dict[int, str]:
    """Run transactions in threads, again where the medium failed; how each ended."""
    ended: dict[int, str] = {}

    def run(one: Random) -> None:
        while one.number not in ended:
            with suppress(TransientError):
                ended[one.number] = outcome(store, one)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(run, all_of))
    return ended


def outcome(store: Repository, one: Random) -> str:
    try:
        transact(store, lambda: one.on(store), str(one.number), attempts=1000, sleep=lambda _: None)
    except TransientError:
        raise
    except AssayError as error:
        return error.code
    return "ok"


def states(all_of: Sequence[Random], order: Sequence[int]) -> Iterator[MemoryRepository]:
    """The store after each transaction, one after the other."""
    model = MemoryRepository()
    yield model
    for number in order:
        one = all_of[number]
        before = model.head()
        transact_alone(model, lambda: one.on(model), "m", attempts=1, sleep=lambda _: None)  # noqa: B023
        assert model.head() != before
        yield model


def refusal(model: MemoryRepository, one: Random) -> str:
    """Why a transaction would be refused now; empty where it would not."""
    copy = MemoryRepository()
    copy._files = dict(model._files)
    try:
        copy.commit(one.on(copy), parent="0", message="m")
    except AssayError as error:
        return error.code
    return ""


@pytest.mark.parametrize("often", [0.0, 0.15], ids=["calm", "in trouble"])
@pytest.mark.parametrize("seed", range(8))
def test_any_interleaving_equals_some_order(seed: int, often: float) -> None:
    medium = Trouble(seed, often)
    store = Grouping(medium, files=12)  # type: ignore[arg-type]
    all_of = [Random(n, seed * 1000 + n) for n in range(80)]
    ended = run_all(store, all_of)
    order = [int(name) for names in medium.committed for name in names]
    assert len(order) == len(set(order))  # none twice
    assert {n for n in ended if store.has(f"done/{n}")} == set(order)  # none lost, none made up
    assert {ended[n] for n in order} == {"ok"}
    refused = {n: code for n, code in ended.items() if code != "ok"}
    assert refused
    for last in states(all_of, order):  # each is refused at some point of the order
        for number in [n for n in refused if refused[n] == refusal(last, all_of[n])]:
            del refused[number]
    assert refused == {}
    found = {p: store.read(p) for p in store.list() if p != "foreign"}
    assert found == {path: last.read(path) for path in last.list()}
    assert len(medium.committed) < len(order)  # some did go together
