"""Transactions that come together are one commit, and each goes as if it had come alone."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

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
from leaderboard.store.memory import MemoryRepository
from leaderboard.store.turns import Member, Turns


class Gate:
    """A repository in memory whose commits wait until they are let through.

    Attributes:
        messages: of the commits that were made.
        before: done once, just before the next commit.
    """

    def __init__(self) -> None:
        self._under = MemoryRepository()
        self._open = threading.Event()
        self._open.set()
        self.arrived = threading.Event()
        self.messages: list[str] = []
        self.before: Callable[[], None] | None = None

    def __getattr__(self, name: str) -> object:
        return getattr(self._under, name)

    def commit(self, changes: Changes, *, parent: str, message: str) -> str:
        self.arrived.set()
        assert self._open.wait(20)
        act, self.before = self.before, None
        if act is not None:
            act()
        version = self._under.commit(changes, parent=parent, message=message)
        self.messages.append(message)
        return version

    def close(self) -> None:
        self.arrived.clear()
        self._open.clear()

    def open(self) -> None:
        self._open.set()


@dataclass
class Room:
    """Threads that run transactions on one grouping; the first commit waits until all are there."""

    gate: Gate = field(default_factory=Gate)
    limits: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.store = Grouping(self.gate, **self.limits)  # type: ignore[arg-type]
        self._pool = ThreadPoolExecutor(40)

    def start(self, change: Callable[[], Changes], message: str = "m") -> Future[str]:
        def run() -> str:
            return transact(self.store, change, message, sleep=lambda _: None)

        waiting = len(self.store._turns.waiting())
        future = self._pool.submit(run)
        until(lambda: future.done() or len(self.store._turns.waiting()) > waiting)
        return future

    def together(self, *changes: Callable[[], Changes]) -> list[Future[str]]:
        """Run them while another commit is under way, so that they come to the next one together."""
        self.gate.close()
        first = self.start(lambda: {"first": b"1"}, "first")
        assert self.gate.arrived.wait(20)
        futures = [self.start(change, f"m{n}") for n, change in enumerate(changes)]
        self.gate.open()
        first.result(20)
        return futures


def until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not done():
        assert time.monotonic() < end
        time.sleep(0.0005)


@pytest.fixture
def room() -> Room:
    return Room()


def append_to(store: Repository, path: str, text: bytes) -> Callable[[], Changes]:
    def change() -> Changes:
        before = store.read(path) if store.has(path) else b""
        return {path: before + text}

    return change


def test_transactions_that_come_while_a_commit_runs_are_the_next_one(room: Room) -> None:
    changes = [append_to(room.store, "log", b"%d." % n) for n in range(10)]
    versions = {future.result(20) for future in room.together(*changes)}
    assert versions == {"2"}
    assert room.store.read("log") == b"0.1.2.3.4.5.6.7.8.9."
    assert len(room.gate.messages) == 2
    assert room.gate.messages[1].splitlines()[2:] == [f"m{n}" for n in range(10)]


def test_a_change_sees_what_those_before_it_write_and_nobody_else_does(
    room: Room, tmp_path: Path
) -> None:
    (tmp_path / "big").write_bytes(b"of this machine")
    seen: list[object] = []
    outside: list[tuple[str, ...]] = []

    def look() -> Changes:
        with ThreadPoolExecutor(1) as other:
            outside.append(other.submit(room.store.list).result(20))
        room.store.fetch("big", tmp_path / "copy")
        with pytest.raises(NotFoundError):
            room.store.read("first")
        seen.append((room.store.list(), room.store.read("big"), (tmp_path / "copy").read_bytes()))
        return {"looked": b"1"}

    writes: list[Changes] = [{"a/b": b"1"}, {"big": tmp_path / "big"}, {"first": None}]
    futures = room.together(*((lambda w=w: w) for w in writes), look)
    assert [future.result(20) for future in futures] == ["2"] * 4
    assert seen == [(("a/b", "big"), b"of this machine", b"of this machine")]
    assert outside == [("first",)]
    assert room.store.list() == ("a/b", "big", "looked")


def test_every_step_has_a_head_that_is_no_version(room: Room) -> None:
    heads: list[str] = []

    def step() -> Changes:
        heads.append(room.store.head())
        return {f"f{len(heads)}": b"1"}

    def stumble() -> None:
        room.gate._under.commit({"x": b""}, parent=room.gate._under.head(), message="meanwhile")

    room.gate.close()
    first = room.start(lambda: {"first": b"1"})
    assert room.gate.arrived.wait(20)
    futures = [room.start(step) for _ in range(3)]
    room.gate.before = lambda: setattr(room.gate, "before", stumble)
    room.gate.open()
    for future in (first, *futures):
        future.result(20)
    assert len(heads) == len(set(heads)) == 6  # asked again after the lost race
    assert not {head for head in heads if head.isdigit()}


def test_who_is_refused_leaves_no_trace_and_holds_nobody_up(room: Room) -> None:
    def refuse() -> Changes:
        raise SubmitterError("no", "Not this one.")

    ok, no, also = room.together(
        append_to(room.store, "log", b"a"), refuse, append_to(room.store, "log", b"b")
    )
    assert (ok.result(20), also.result(20)) == ("2", "2")
    with pytest.raises(SubmitterError, match="Not this one"):
        no.result(20)
    assert room.store.read("log") == b"ab"
    assert "m1" not in room.gate.messages[1].splitlines()


def test_a_refusal_over_what_was_never_committed_does_not_count(room: Room) -> None:
    """The second refuses because of the first, whose commit fails: then it is asked again."""

    def only_one() -> Changes:
        if room.store.has("taken"):
            raise SubmitterError("taken", "Somebody else was first.")
        return {"taken": b"second"}

    def fail() -> None:
        raise TransientError("hub_down", "The medium failed.")

    room.gate.close()
    before = room.start(lambda: {"first": b"1"})
    assert room.gate.arrived.wait(20)
    futures = [room.start(lambda: {"taken": b"first"}), room.start(only_one)]
    room.gate.before = lambda: setattr(room.gate, "before", fail)
    room.gate.open()
    before.result(20)
    with pytest.raises(TransientError, match="The medium failed"):
        futures[0].result(20)
    futures[1].result(20)
    assert room.store.read("taken") == b"second"


def test_only_those_who_cannot_be_committed_are_told_so(room: Room) -> None:
    """One would make a folder of a file that is there; the medium alone knows."""
    good = [append_to(room.store, "log", b"%d" % n) for n in range(3)]
    futures = room.together(good[0], lambda: {"first/inside": b"1"}, good[1], good[2])
    with pytest.raises(PlatformError) as caught:
        futures[1].result(20)
    assert caught.value.code == "path_clash"
    for n in (0, 2, 3):
        futures[n].result(20)
    assert room.store.read("log") == b"012"


def test_what_could_not_be_committed_is_not_mended_by_who_comes_after_it(room: Room) -> None:
    clash, gone = room.together(lambda: {"first/inside": b"1"}, lambda: {"first": None})
    with pytest.raises(PlatformError, match="cannot be a file and"):
        clash.result(20)
    gone.result(20)
    assert room.store.list() == ()


def test_what_is_written_and_taken_away_again_is_two_commits(room: Room) -> None:
    """In one it would be as if it had never been, and nobody could tell whether it could."""
    futures = room.together(lambda: {"a": b"1"}, lambda: {"a": None, "b": room.store.read("a")})
    assert [future.result(20) for future in futures] == ["2", "3"]
    assert room.store.list() == ("b", "first")


@pytest.mark.parametrize(
    ("limits", "commits"),
    [({"files": 3}, 4), ({"n_bytes": 350}, 4), ({}, 1)],
    ids=["files", "bytes", "neither"],
)
def test_a_commit_that_would_be_too_large_is_several(limits: dict[str, int], commits: int) -> None:
    room = Room(limits=limits)
    futures = room.together(*((lambda n=n: {f"f{n}": bytes(100)}) for n in range(10)))
    for future in futures:
        future.result(20)
    assert len(room.gate.messages) == 1 + commits
    assert len(room.store.list()) == 11


def test_a_file_that_cannot_be_read_fails_its_own_commit(room: Room, tmp_path: Path) -> None:
    futures = room.together(
        lambda: {"a": b"1"}, lambda: {"b": tmp_path / "missing"}, lambda: {"c": b"1"}
    )
    with pytest.raises(FileNotFoundError):
        futures[1].result(20)
    assert [futures[0].result(20), futures[2].result(20)] == ["2", "3"]


def test_a_bad_path_is_refused_to_whoever_asked_for_it(room: Room) -> None:
    futures = room.together(lambda: {"a": b"1"}, lambda: {"../b": b"1"}, lambda: {"c": b"1"})
    with pytest.raises(PlatformError, match="not a path inside the store"):
        futures[1].result(20)
    assert {futures[0].result(20), futures[2].result(20)} == {"2"}


def test_who_lost_too_many_races_is_told_so_and_the_others_go_on(room: Room) -> None:
    def meanwhile() -> None:
        room.gate._under.commit({"x": b""}, parent=room.gate._under.head(), message="meanwhile")

    room.gate.close()
    first = room.start(lambda: {"first": b"1"})
    assert room.gate.arrived.wait(20)
    patient = room.start(append_to(room.store, "log", b"p"))
    hasty = room._pool.submit(
        transact, room.store, append_to(room.store, "log", b"h"), "hasty", attempts=1
    )
    until(lambda: len(room.store._turns.waiting()) == 3)
    room.gate.before = lambda: setattr(room.gate, "before", meanwhile)
    room.gate.open()
    first.result(20)
    with pytest.raises(ConflictError):
        hasty.result(20)
    patient.result(20)
    assert room.store.read("log") == b"p"


def test_a_transaction_inside_a_change_is_made_by_itself(room: Room) -> None:
    """Also while all groups are at work: nobody waits for one who waits for them."""
    other = Grouping(MemoryRepository())

    def change() -> Changes:
        transact(other, append_to(other, "details", b"."), "details")
        return append_to(room.store, "log", other.read("details")[-1:])()

    def look() -> Changes:
        return {"looked": str(room.store.list()).encode()}

    futures = room.together(*[change] * 5)
    futures += [room._pool.submit(transact, other, look, "look") for _ in range(3)]
    for future in futures:
        future.result(20)
    assert room.store.read("log") == b"....."
    assert other.read("details").count(b".") >= 5


def test_a_thread_that_is_interrupted_holds_nobody_up(room: Room) -> None:
    class Stopped(BaseException):
        pass

    def stop() -> Changes:
        raise Stopped

    futures = room.together(lambda: {"a": b"1"}, stop, lambda: {"c": b"1"})
    with pytest.raises(Stopped):
        futures[1].result(20)
    assert {futures[0].result(20), futures[2].result(20)} == {"2"}
    assert room.store._turns.waiting() == ()


def test_a_leader_that_is_interrupted_leaves_the_lead_to_another(room: Room) -> None:
    class Stopped(BaseException):
        pass

    def stop() -> None:
        raise Stopped

    room.gate.close()
    room.gate.before = stop
    leader = room.start(lambda: {"first": b"1"})
    assert room.gate.arrived.wait(20)
    others = [room.start(append_to(room.store, "log", b"%d" % n)) for n in range(3)]
    room.gate.open()
    with pytest.raises(Stopped):
        leader.result(20)
    assert {other.result(20) for other in others} == {"1"}
    assert room.store.read("log") == b"012"


def test_a_leader_that_is_interrupted_before_it_begins_leaves_the_lead_to_another(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stopped(BaseException):
        pass

    def stop(store: Grouping, own: Member) -> None:
        monkeypatch.undo()
        raise Stopped

    monkeypatch.setattr(Grouping, "_lead", stop)
    with pytest.raises(Stopped):
        transact(room.store, lambda: {"a": b"1"}, "stopped")
    assert room.start(lambda: {"b": b"1"}).result(20) == "1"
    assert room.store.list() == ("b",)


@pytest.mark.parametrize("how", ["gone", "over"])
def test_who_was_interrupted_at_work_or_has_ended_is_not_waited_for(room: Room, how: str) -> None:
    turns, left = Turns(), Member(dict, "m", 1, lambda _: None, busy=True)
    turns.join(left)
    if how == "gone":
        left.gone = True
    else:
        left.version = "1"
    assert turns.waiting() == ()
    assert room._pool.submit(turns.ask, left, room.store).result(20) is None


def test_a_medium_that_cannot_say_its_version_fails_each_who_waits() -> None:
    class Down(MemoryRepository):
        def head(self) -> str:
            raise TransientError("hub_down", "No answer.")

    store = Grouping(Down())
    with pytest.raises(TransientError, match="No answer"):
        transact(store, lambda: {"a": b"1"}, "m")
    assert store._turns.waiting() == ()


def test_a_commit_of_its_own_works_as_before(room: Room) -> None:
    version = room.store.commit({"a": b"1"}, parent=room.store.head(), message="m")
    with pytest.raises(ConflictError):
        room.store.commit({"a": b"2"}, parent="0", message="m")
    assert (room.store.head(), room.store.read("a")) == (version, b"1")


def test_a_change_that_commits_by_itself_loses_its_race(room: Room) -> None:
    """As it does without groups: what it had read is of an older version then."""
    tries: list[int] = []

    def once() -> Changes:
        tries.append(1)
        if len(tries) == 1:
            room.store.commit({"x": b"1"}, parent=room.store.head(), message="by itself")
            raise PlatformError("illegal", "The files contradict each other.")
        return {"y": room.store.read("x")}

    first, second = room.together(append_to(room.store, "log", b"."), once)
    assert first.result(20) == second.result(20) == "3"
    assert [room.store.read(path) for path in ("log", "x", "y")] == [b".", b"1", b"1"]


class Budgeted:
    """A budget that lets commits through when it is told to."""

    def __init__(self) -> None:
        self.open = threading.Event()

    def delay(self, commits: int) -> float:
        assert commits == 1
        return 0.0 if self.open.is_set() else 1.0

    def ready(self, commits: int) -> None:
        assert commits == 1
        assert self.open.wait(20)


def test_whatever_comes_while_the_budget_lets_none_through_is_one_commit() -> None:
    gate, budget = Gate(), Budgeted()
    store = Grouping(gate, budget)  # type: ignore[arg-type]
    with ThreadPoolExecutor(20) as pool:
        futures = [
            pool.submit(transact, store, append_to(store, "log", b"."), f"m{n}") for n in range(20)
        ]
        until(lambda: len(store._turns.waiting()) == 20)
        assert store.list() == ()
        budget.open.set()
        assert {future.result(20) for future in futures} == {"1"}
    assert store.read("log") == b"." * 20


def test_nobody_waits_for_the_budget_to_be_told_that_there_is_nothing_to_do() -> None:
    store = Grouping(MemoryRepository(), Budgeted())

    def refuse() -> Changes:
        raise SubmitterError("no", "Not this one.")

    assert transact(store, dict, "nothing") == "0"
    with pytest.raises(SubmitterError):
        transact(store, refuse, "refused")


# Any interleaving equals some order.

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
            raise TransientError("hub_down", "It failed before it was made.")
        version = self.under.commit(changes, parent=parent, message=message)
        lines = message.splitlines()
        self.committed.append(lines[2:] if len(lines) > 1 else lines)
        if fate > 1 - self._often:
            raise TransientError("hub_down", "Its answer was lost.")
        return version


def run_all(store: Repository, all_of: Sequence[Random], threads: int) -> dict[int, str]:
    """Run transactions in threads, again where the medium failed; how each ended."""
    ended: dict[int, str] = {}

    def run(mine: Sequence[Random]) -> None:
        for one in mine:
            while one.number not in ended:
                with suppress(TransientError):
                    ended[one.number] = outcome(store, one)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(run, [all_of[n::threads] for n in range(threads)]))
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


@pytest.mark.parametrize("often", [0.0, 0.15], ids=["calm", "in trouble"])
@pytest.mark.parametrize("seed", range(8))
def test_any_interleaving_equals_some_order(seed: int, often: float) -> None:
    medium = Trouble(seed, often)
    store = Grouping(medium, files=12)  # type: ignore[arg-type]
    all_of = [Random(n, seed * 1000 + n) for n in range(80)]
    ended = run_all(store, all_of, threads=8)
    order = [int(name) for names in medium.committed for name in names]
    assert len(order) == len(set(order))  # none twice
    assert {n for n in ended if store.has(f"done/{n}")} == set(order)  # none lost, none made up
    assert {ended[n] for n in order} == {"ok"}
    *_, last = states(all_of, order)
    found = {p: store.read(p) for p in store.list() if p != "foreign"}
    assert found == {path: last.read(path) for path in last.list()}
    assert len(medium.committed) < len(order)  # some did go together


def test_whatever_was_refused_is_refused_at_some_point_of_the_order() -> None:
    for seed in range(5):
        medium = Trouble(seed, 0.1)
        all_of = [Random(n, seed * 1000 + n) for n in range(60)]
        ended = run_all(Grouping(medium), all_of, threads=8)  # type: ignore[arg-type]
        order = [int(name) for names in medium.committed for name in names]
        refused = {n: code for n, code in ended.items() if code != "ok"}
        assert refused
        for model in states(all_of, order):
            for number in [n for n in refused if refused[n] == refusal(model, all_of[n])]:
                del refused[number]
        assert refused == {}


def refusal(model: MemoryRepository, one: Random) -> str:
    """Why a transaction would be refused now; empty where it would not."""
    copy = MemoryRepository()
    copy._files = dict(model._files)
    try:
        copy.commit(one.on(copy), parent="0", message="m")
    except AssayError as error:
        return error.code
    return ""
