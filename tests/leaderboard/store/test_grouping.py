"""Transactions that come together are one commit, and each goes as if it had come alone."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from benchmarks.errors import AssayError, PlatformError, SubmitterError, TransientError
from leaderboard.store import grouping
from leaderboard.store.grouping import CommitQueue, Grouping, Member
from leaderboard.store.interface import (
    Changes,
    ConflictError,
    NotFoundError,
    Repository,
    transact,
)
from tests.kit.hub.server import HubServer
from tests.kit.hub_store import created, parts_of
from tests.kit.refusals import refused
from tests.kit.store import MemoryRepository, contents, put

Change = Callable[[], Changes]


class Stopped(BaseException):
    pass


def stop() -> Any:
    raise Stopped


def refuse() -> Changes:
    raise SubmitterError("not_yours", "Not this one.")


class Fate(StrEnum):
    """What becomes of a commit."""

    MADE = "made"
    OVERTAKEN = "overtaken"
    FAILED = "failed"
    UNANSWERED = "unanswered"


class Medium(MemoryRepository):
    """A repository in memory that notes its commits, and of which the next ones may go wrong."""

    def __init__(self, *fates: Fate) -> None:
        super().__init__()
        self.fates = list(fates)
        self.before: list[Callable[[], object]] = []  # done before the next commits
        self.messages: list[str] = []
        self.doubtful: list[str] = []  # messages of commits that their writers do not know of

    def commit(self, changes: Changes, *, parent: str, message: str) -> str:
        if self.before:
            self.before.pop(0)()
        fate = self.fates.pop(0) if self.fates else Fate.MADE
        if fate is Fate.OVERTAKEN:
            self.overtake()
        if fate is Fate.FAILED:
            self.doubtful.append(message)
            raise TransientError("store_silent", "It failed before it was made.")
        version = super().commit(changes, parent=parent, message=message)
        self.messages.append(message)
        if fate is Fate.UNANSWERED:
            self.doubtful.append(message)
            raise TransientError("store_silent", "Its answer was lost.")
        return version

    def overtake(self) -> None:
        """Somebody else commits."""
        super().commit({"foreign": b"x"}, parent=self.head(), message="another's")


class Arrivals(CommitQueue):
    """A queue that says when somebody joins it."""

    def __init__(self) -> None:
        super().__init__()
        self.joined = threading.Semaphore(0)

    def join(self, member: Member) -> None:
        super().join(member)
        self.joined.release()


class Room:
    """Threads whose transactions come together: the budget lets none through until all wait."""

    def __init__(self, *fates: Fate, **limits: int) -> None:
        self.medium, self.queue = Medium(*fates), Arrivals()
        self.open = threading.Event()
        self.open.set()
        self.delay_s = 0.0  # of the budget, as those who come are told
        self.pool = ThreadPoolExecutor(24)
        with mock.patch.object(grouping, "CommitQueue", lambda: self.queue):
            self.store = Grouping(self.medium, self, **limits)

    def delay(self, commits: int) -> float:
        assert commits == 1
        return self.delay_s

    def ready(self, commits: int) -> None:
        assert commits == 1
        assert self.open.wait(60)

    def start(self, change: Change, message: str = "m", attempts: int = 100) -> Future[str]:
        """A transaction that waits by now."""
        future = self.pool.submit(
            transact, self.store, change, message, attempts=attempts, sleep=lambda _: None
        )
        assert self.queue.joined.acquire(timeout=60)
        return future

    def together(self, *changes: Change, first: int = 0) -> list[Future[str]]:
        """Transactions that wait for one commit, in this order; their messages are numbers."""
        self.open.clear()
        futures = [self.start(change, str(n)) for n, change in enumerate(changes, first)]
        self.open.set()
        return futures

    def log(self, text: bytes) -> Change:
        return append_to(self.store, "log", text)


@pytest.fixture
def room() -> Room:
    return Room()


def append_to(store: Repository, path: str, text: bytes) -> Change:
    return lambda: {path: (store.read(path) if store.has(path) else b"") + text}


def results(*futures: Future[str]) -> list[str]:
    return [future.result(60) for future in futures]


# One commit


@pytest.mark.parametrize("delay_s", [0.0, 1.0], ids=["at once", "after the budget's pause"])
def test_transactions_that_come_while_none_can_be_committed_are_one_commit(
    room: Room, delay_s: float
) -> None:
    room.delay_s = delay_s
    futures = room.together(*(room.log(b"%d." % n) for n in range(10)))
    assert set(results(*futures)) == {"1"}
    assert room.store.read("log") == b"0.1.2.3.4.5.6.7.8.9."
    (message,) = room.medium.messages
    assert message.splitlines() == ["0, and 9 more", "", *map(str, range(10))]


def test_a_change_alone_sees_what_those_before_it_write(room: Room, tmp_path: Path) -> None:
    put(room.medium, {"first": b"1"})
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

    room.medium.fates = [Fate.OVERTAKEN]
    results(*room.together(step, step, step))
    assert len(heads) == len(set(heads)) == 6  # asked again after the lost race
    assert not {head for head in heads if head.isdigit()}


def test_what_is_written_and_taken_away_again_is_two_commits(room: Room) -> None:
    """In one it would be as if it had never been, and nobody could tell whether it could."""
    futures = room.together(lambda: {"a": b"1"}, lambda: {"a": None, "b": room.store.read("a")})
    assert results(*futures) == ["1", "2"]
    assert room.store.list() == ("b",)


@pytest.mark.parametrize("limits", [{"files": 3}, {"n_bytes": 350}], ids=str)
def test_a_commit_that_would_be_too_large_is_several(limits: dict[str, int]) -> None:
    room = Room(**limits)
    results(*room.together(*((lambda n=n: {f"f{n}": bytes(100)}) for n in range(10))))
    assert (len(room.medium.messages), len(room.store.list())) == (4, 10)


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
    put(room.medium, {"first": b"1"})
    before, failing, after = room.together(room.log(b"a"), change, room.log(b"b"))
    with pytest.raises(error) as caught:
        failing.result(60)
    assert getattr(caught.value, "code", "") == code
    results(before, after)
    assert (room.store.read("log"), room.store.list()) == (b"ab", ("first", "log"))
    assert not any("1" in message.splitlines() for message in room.medium.messages)
    assert room.queue.waiting() == ()


def test_a_change_that_commits_by_itself_loses_its_race(room: Room) -> None:
    """As it does without groups: what it had read is of an older version then."""
    tries: list[int] = []

    def once() -> Changes:
        tries.append(1)
        if len(tries) == 1:
            put(room.store, {"x": b"1"})
            raise PlatformError("illegal", "The files contradict each other.")
        return {"y": room.store.read("x")}

    assert results(*room.together(room.log(b"."), once)) == ["2", "2"]
    assert [room.store.read(path) for path in ("log", "x", "y")] == [b".", b"1", b"1"]


def test_who_lost_too_many_races_is_told_so_and_the_others_go_on(room: Room) -> None:
    room.open.clear()
    patient, hasty = room.start(room.log(b"p")), room.start(room.log(b"h"), attempts=1)
    room.medium.fates = [Fate.OVERTAKEN]
    room.open.set()
    patient.result(60)
    with pytest.raises(ConflictError):
        hasty.result(60)
    assert room.store.read("log") == b"p"


def test_a_leader_that_is_interrupted_leaves_the_lead_to_another(room: Room) -> None:
    """The others came while its commit was under way, so they are no part of it."""
    others: list[Future[str]] = []

    def come_and_stop() -> None:
        others.extend(room.start(room.log(b"%d" % n)) for n in range(3))
        stop()

    room.medium.before = [come_and_stop]
    with pytest.raises(Stopped):
        room.start(room.log(b"first")).result(60)
    assert set(results(*others)) == {"1"}
    assert room.store.read("log") == b"012"


def test_an_interrupt_ends_the_leader_whoever_s_change_it_evaluates(room: Room) -> None:
    tries: list[int] = []

    def interrupted() -> Changes:
        tries.append(1)
        if len(tries) == 1:
            raise KeyboardInterrupt
        return {"a": b"1"}

    errors = [future.exception(60) for future in room.together(room.log(b"."), interrupted)]
    assert sorted(map(type, errors), key=str) == [KeyboardInterrupt, type(None)]
    assert room.queue.waiting() == ()
    assert len(room.store.list()) == 1


def test_who_stops_before_leading_leaves_the_lead(room: Room) -> None:
    with mock.patch.object(room, "ready", lambda _: stop()), pytest.raises(Stopped):
        transact(room.store, lambda: {"a": b"1"}, "stopped")
    assert transact(room.store, lambda: {"b": b"1"}, "m") == "1"
    assert room.store.list() == ("b",)


def test_a_medium_that_cannot_say_its_version_fails_each_who_waits(room: Room) -> None:
    def head() -> str:
        raise TransientError("store_silent", "No answer.")

    with mock.patch.object(room.medium, "head", head):
        for future in room.together(lambda: {"a": b"1"}, lambda: {"b": b"1"}):
            with refused("store_silent"):
                future.result(60)
    assert room.queue.waiting() == ()


def test_nobody_waits_for_the_budget_to_be_told_that_there_is_nothing_to_do(room: Room) -> None:
    room.delay_s = 1.0
    room.open.clear()
    assert transact(room.store, dict, "nothing") == "0"
    with refused("not_yours"):
        transact(room.store, refuse, "refused")


# Any transactions


KEYS = ("a", "b", "c")


@dataclass(frozen=True)
class Step:
    """A transaction that leaves a file which says what it saw."""

    act: str  # `write`, `delete`, `below` (a clash while there is a file) or `nothing`
    key: str
    unless: str = ""  # a file; while that is there, the transaction is refused

    def on(self, store: Repository, number: int) -> Changes:
        seen = {key: store.read(key) if store.has(key) else None for key in KEYS}
        if seen.get(self.unless) is not None:
            raise SubmitterError("taken", f"{number} refuses.")
        inside, content = f"{self.key}/inside", str(number).encode()
        acts: dict[str, Changes] = {
            "write": {self.key: content},
            "delete": {self.key: None, inside: None},
            "below": {inside: content},
        }
        if self.act not in acts:
            return {}
        return {**acts[self.act], f"done/{number}": repr(seen).encode()}


def refusal(step: Step, number: int, model: MemoryRepository) -> str:
    """Why a transaction would be refused now; empty where it would not."""
    copy = model.copy()
    try:
        put(copy, step.on(copy, number))
    except AssayError as error:
        return error.code
    return ""


def numbers(messages: list[str]) -> list[int]:
    """Numbers of the transactions in commits, in their order."""
    lines = (message.splitlines() for message in messages)
    return [int(name) for each in lines for name in (each[2:] or each)]


STEPS = st.builds(
    Step,
    st.sampled_from(["write", "write", "write", "delete", "below", "nothing"]),
    st.sampled_from(KEYS),
    st.sampled_from(["", "", *KEYS]),
)
ROUNDS = st.lists(st.lists(STEPS, min_size=1, max_size=7), min_size=1, max_size=3)
FATES = st.lists(st.sampled_from([Fate.MADE, *Fate]), max_size=6)


@settings(max_examples=60)
@given(ROUNDS, FATES, st.integers(2, 20))
# Who clashes with a file is not helped by who takes it away afterwards.
@example([[Step("write", "a")], [Step("below", "a"), Step("delete", "a")]], [], 20)
# Who is refused over what fails to be committed is asked again.
@example([[Step("write", "a"), Step("write", "b", unless="a")]], [Fate.FAILED], 20)
def test_however_they_come_and_fail_it_is_as_if_they_had_come_one_after_the_other(
    rounds: list[list[Step]], fates: list[Fate], files: int
) -> None:
    room = Room(*fates, files=files)
    steps = list(chain.from_iterable(rounds))
    codes: list[str] = []
    for together in rounds:
        first = len(codes)
        changes = [partial(each.on, room.store, n) for n, each in enumerate(together, first)]
        errors = [future.exception(60) for future in room.together(*changes, first=first)]
        codes += [error.code if isinstance(error, AssayError) else "" for error in errors]
    order, doubtful = numbers(room.medium.messages), set(numbers(room.medium.doubtful))
    assert len(order) == len(set(order)), "none twice"
    marks = {int(path.removeprefix("done/")) for path in room.store.list("done/")}
    assert marks == set(order), "none lost and none made up"
    for number, code in enumerate(codes):
        if code == "store_silent":
            assert number in doubtful
        else:
            assert (number in order) == (code == "" and steps[number].act != "nothing")
    states = [MemoryRepository()]
    for number in order:
        states.append(states[-1].copy())
        put(states[-1], steps[number].on(states[-1], number))
    for number, code in enumerate(codes):
        if code not in {"", "store_silent"}:
            refusals = {refusal(steps[number], number, state) for state in states}
            assert code in refusals, "who was refused is refused at some point of that order"
    files_there = {p: c for p, c in contents(room.store).items() if p != "foreign"}
    assert files_there == contents(states[-1])


def test_threads_of_two_processes_share_commits(hub: HubServer, tmp_path: Path) -> None:
    parts = [created(hub, tmp_path / "one"), parts_of(hub, tmp_path / "other")]
    stores = [Grouping(each.public) for each in parts]

    def add(number: int) -> str:
        store = stores[number % 2]
        log, more = append_to(store, "log", b"%d." % number), {f"results/x{number}/b.json": b"{}"}
        return transact(store, lambda: {**log(), **more}, f"add {number}", attempts=200)

    with ThreadPoolExecutor(16) as pool:
        versions = set(pool.map(add, range(16)))
    seen = parts_of(hub, tmp_path / "third").public
    added = seen.read("log").decode().strip(".").split(".")
    assert sorted(added, key=int) == [str(n) for n in range(16)]
    assert len(seen.list("results/")) == 16
    assert len(versions) < 16
