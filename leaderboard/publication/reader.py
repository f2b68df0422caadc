"""Reader of the published snapshot: once per change of the store, indexed by slice."""

from __future__ import annotations

import contextlib
import hashlib
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from types import MappingProxyType
from typing import Generic, TypeVar

from benchmarks.errors import TransientError
from benchmarks.schema import BY_GENERATOR, KINDS, Card, Selector
from leaderboard.ledger.ledger import Ledger
from leaderboard.ledger.policy import Ban, Policy, read_bans, read_policy
from leaderboard.publication.entries import Entry
from leaderboard.publication.measure_names import nearest, short_titles
from leaderboard.publication.results import read_results
from leaderboard.publication.snapshot import (
    OLD_PATH,
    PATH,
    Board,
    Snapshot,
    parse_old_snapshot,
    parse_snapshot,
)
from leaderboard.ranking.cells import Cell
from leaderboard.ranking.orders import Orders
from leaderboard.ranking.skill_tests import SkillTests
from leaderboard.records import Event, RunResult, Status
from leaderboard.store.interface import NotFoundError, Store, utc_now

REFRESH_WAIT_S = 2.0
"""How long a page waits for a refresh that another began; then it shows what was read before."""
RETRY_AFTER_S = 5.0
"""Rest after the store could not be read, in which pages do not wait for it again."""
_Selected = tuple[Selector, str | None]


class BoardIndex:
    """The cells of a board by slice; a slice is read when it is first looked at."""

    def __init__(self, board: Board) -> None:
        self.card = board.card
        self._board = board
        self._sorted: dict[_Selected, tuple[Cell, ...]] = {}

    @cached_property
    def _selectors(self) -> dict[str | None, tuple[Selector, ...]]:
        """Skill to what is measured for it; a generator is no choice of a board."""
        found: dict[str | None, list[Selector]] = {}
        for measure, variant, split, facet, skill in self._board.keys:
            if measure == BY_GENERATOR:
                continue
            selector = Selector(measure=measure, variant=variant, split=split, facet=facet)
            found.setdefault(skill, []).append(selector)
        return {skill: tuple(selectors) for skill, selectors in found.items()}

    @property
    def empty(self) -> bool:
        """Whether nothing is published on this board."""
        return not self._board.keys

    def skills(self) -> tuple[str, ...]:
        """Skills that have cells: in the card's order, further ones after it by name."""
        found = {skill for skill in self._selectors if skill is not None}
        listed = [skill for skill in self.card.skills if skill in found]
        return (*listed, *sorted(found.difference(listed)))

    def selectors(self, skill: str | None) -> tuple[Selector, ...]:
        """What is measured for a skill (None: over all skills)."""
        return self._selectors.get(skill, ())

    def every_selector(self) -> tuple[Selector, ...]:
        """Everything that is measured, for all skills or for any."""
        return tuple(
            dict.fromkeys(
                Selector(measure=measure, variant=variant, split=split, facet=facet)
                for measure, variant, split, facet, _ in self._board.keys
            )
        )

    def cells(self, selector: Selector, skill: str | None) -> tuple[Cell, ...]:
        """The cells of one ranking, best first; empty where there is no such slice."""
        key = (selector, skill)
        if key not in self._sorted:
            self._sorted[key] = self._board.slice(selector, skill)
        return self._sorted[key]

    def of_entries(self, entry_ids: Collection[str]) -> tuple[Cell, ...]:
        """The cells of some entries in all rankings, in the order of the board."""
        return self._board.columns.of_entries(entry_ids)


@dataclass(frozen=True)
class Revision:
    """State of a store that figures were read from, by which they are cited."""

    commit: str = ""  # of its public side; empty where nothing was read
    snapshot: str = ""  # SHA-256 of the file of the boards; empty where none is published
    made_at: datetime | None = None  # when that file was made
    # where exactly this state stays readable; empty where the store keeps no history
    address: str = ""


@dataclass(frozen=True)
class View:
    """What the pages show at one version of the store."""

    entries: Mapping[str, Entry]  # entry id to entry
    # benchmark name to its indexed board; benchmarks without results have empty ones
    boards: Mapping[str, BoardIndex]
    orders: Orders  # ranks what is looked at
    # tests metrics within skills, and remembers it
    skill_tests: SkillTests = field(default_factory=SkillTests, compare=False)
    # hash of the snapshot; empty where nothing was published
    version: str = field(default="", compare=False)
    # when the snapshot was made; None likewise
    built_at: datetime | None = field(default=None, compare=False)

    def group(self, ratings: str = "") -> View:
        """The boards that are shown together, and the metrics on them.

        `ratings`: a key of `GROUPS`; see `group_of`.
        """
        return self._groups[shown_group(self.boards, ratings)]

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups that may be chosen: those with results, unless another shows the same."""
        return groups_with_results(self.boards)

    @cached_property
    def short_titles(self) -> Mapping[str, str]:
        """Benchmark to its short title."""
        return short_titles(board.card for board in self.boards.values())

    @cached_property
    def _groups(self) -> Mapping[str, View]:
        return {ratings: self._of(group_of(self.boards, ratings)) for ratings in GROUPS}

    def _of(self, boards: Mapping[str, BoardIndex]) -> View:
        if len(boards) == len(self.boards):
            return self
        entries = {
            entry_id: entry
            for entry_id, entry in self.entries.items()
            if not boards.keys().isdisjoint(entry.isolation)
        }
        return replace(self, entries=entries, boards=boards)


_Made = TypeVar("_Made")


class PerView(Generic[_Made]):
    """What is made of a view at its first use, kept for the groups of one version."""

    def __init__(self, make: Callable[[View], _Made]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._kept: list[tuple[View, _Made]] = []

    def of(self, view: View) -> _Made:
        """Of a view."""
        # Made inside the lock: whoever comes meanwhile would only do the same work.
        with self._lock:
            found = next((one for one in self._kept if one[0] is view), None)
            if found is None:
                found = view, self._make(view)
            self._kept = [found, *(one for one in self._kept if one is not found)][: len(GROUPS)]
            return found[1]


SIMULATED = "simulated"
GROUPS = ("", *KINDS[1:], SIMULATED)
"""Groups of boards, as addresses name them in `ratings`: all real ones, those of a kind of their own,
and the simulated ones."""


def group_of(boards: Mapping[str, BoardIndex], ratings: str) -> Mapping[str, BoardIndex]:
    """The boards of a group, a key of `GROUPS`.

    Simulated ratings say how Assay works, not how good a metric is: they never stand beside real
    ones. What is averaged over real boards is over those of one kind, `boards_of_one_kind`.
    """
    return {
        name: one
        for name, one in boards.items()
        if one.card.simulated is (ratings == SIMULATED)
        and (ratings in ("", SIMULATED) or one.card.kind == ratings)
    }


def known_group(asked: str) -> str:
    """What is asked for, where there is such a group; else that of all real boards."""
    return asked if asked in GROUPS else ""


def groups_with_results(boards: Mapping[str, BoardIndex]) -> tuple[str, ...]:
    """The groups that have results and do not show what a group before them shows."""
    filled = {name: one for name, one in boards.items() if not one.empty}
    found: dict[tuple[str, ...], str] = {}
    for ratings in GROUPS:
        names = tuple(group_of(filled, ratings))
        if names:
            found.setdefault(names, ratings)
    return tuple(found.values())


def shown_group(boards: Mapping[str, BoardIndex], ratings: str) -> str:
    """The group that is asked for; where all real boards are, but none has results, another."""
    there = groups_with_results(boards)
    return ratings if ratings or "" in there or not there else there[0]


def boards_of_one_kind(boards: Mapping[str, BoardIndex]) -> Mapping[str, BoardIndex]:
    """Those of the first kind that has results: alignment, preference and quality never share a mean."""
    kinds = {one.card.kind for one in boards.values() if not one.empty}
    first = next((kind for kind in KINDS if kind in kinds), KINDS[0])
    return {name: one for name, one in boards.items() if one.card.kind == first}


class Reader:
    """Reads boards and queue again only when the store has changed.

    While the store cannot be read, pages show what was read last; `as_of` and `trouble` say so.
    What one version of the store costs: its heads, the snapshot and the queue, however many
    submissions there are; and the policy and the bans, once somebody asked for them.
    """

    def __init__(
        self,
        store: Store,  # where they are published
        cards: Mapping[str, Card],  # the benchmarks of this installation, in the order of display
        *,
        clock: Callable[[], datetime] = utc_now,
        steady: Callable[[], float] = time.monotonic,  # seconds that only go forward
    ) -> None:
        self._store = store
        self._clock, self._steady = clock, steady
        self._public = store.public
        self._ledger = Ledger(store)
        self._cards = cards
        self._lock = threading.Lock()
        self._version: tuple[str, str] | None = None
        self._content: bytes | None = None
        self._view = view_of(None, cards, Orders(store))
        self._statuses: tuple[Status, ...] = ()
        self._rules: tuple[Policy, Mapping[str, Ban]] | None = None
        self._runs: dict[str, tuple[RunResult, ...]] = {}
        self._as_of: datetime | None = None
        self._trouble = ""
        self._failed_at: float | None = None

    @property
    def as_of(self) -> datetime | None:
        """When the store last confirmed what is shown; None: it never was read."""
        return self._as_of

    @property
    def trouble(self) -> str:
        """Why what is shown may be out of date, for visitors; empty where it is not."""
        return self._trouble

    def commit_wait_min(self) -> int:
        """Minutes for which what is to be written waits; 0 where it is one at the most."""
        return self._store.commit_wait_min()

    def view(self) -> View:
        """What is published now."""
        self._refresh()
        return self._view

    def revision(self) -> Revision:
        """The state of the store that is shown."""
        self._refresh()
        view, commit = self._view, self._version[0] if self._version else ""
        address = ""
        if commit:
            # An outage takes the link away, and not the page: the commit is in the citation.
            with contextlib.suppress(TransientError):
                address = self._store.permanent_address(commit)
        return Revision(commit, view.version, view.built_at, address)

    def head(self) -> str:
        """The version that is shown; empty where nothing was read."""
        self._refresh()
        return "-".join(self._version or ())

    def statuses(self) -> tuple[Status, ...]:
        """All submissions, oldest first."""
        self._refresh()
        return self._statuses

    def policy(self) -> Policy:
        """The quota that is in force."""
        return self._rules_in_force()[0]

    def bans(self) -> Mapping[str, Ban]:
        """The bans in force, by account key."""
        return self._rules_in_force()[1]

    def events(self, submission_id: str) -> tuple[Event, ...]:
        """What happened to one submission, oldest first; none where it does not exist."""
        return self._ledger.events(submission_id)

    def runs(self, submission_id: str) -> tuple[RunResult, ...]:
        """The public results of a submission that is on the boards, by benchmark."""
        self._refresh()
        runs = self._runs
        if submission_id not in runs:
            shown = [s.submission for s in self._statuses if s.on_boards]
            own = next((s for s in shown if s.submission_id == submission_id), None)
            runs[submission_id] = read_results(self._store, own) if own else ()
        return runs[submission_id]

    def isolation(self) -> dict[str, tuple[str, ...]]:
        """Submission id to the layers in force while it was scored, of all that is published."""
        found: dict[str, tuple[str, ...]] = {}
        for entry in self.view().entries.values():
            for layers in entry.isolation.values():
                found.setdefault(entry.submission_id, layers)
        return found

    def _refresh(self) -> None:
        """Read what has changed; while that fails or takes long, what was read stays."""
        seen = self._as_of is not None
        if not self._lock.acquire(timeout=REFRESH_WAIT_S if seen else -1):
            return
        try:
            if seen and self._rests():
                return
            try:
                self._read()
            except TransientError as error:
                if not seen:
                    raise
                self._trouble = f"The store cannot be read at the moment: {error.message}"
                self._failed_at = self._steady()
            else:
                self._trouble, self._failed_at = "", None
                self._as_of = self._clock()
        finally:
            self._lock.release()

    def _rests(self) -> bool:
        failed_at = self._failed_at
        return failed_at is not None and self._steady() - failed_at < RETRY_AFTER_S

    def _read(self) -> None:
        # This is read first: what is read after it can only be newer, and is read again then.
        version = self._ledger.version()
        if version == self._version:
            return
        content, parse = self._read_snapshot()
        # Most commits are events of the queue and leave the snapshot as it was.
        if content != self._content:
            snapshot = parse(content) if content else None
            digest = hashlib.sha256(content).hexdigest() if content else ""
            self._view = view_of(snapshot, self._cards, Orders(self._store), digest)
            self._content = content
        self._statuses = self._ledger.statuses()
        if self._rules is not None:
            self._rules = self._read_rules()
        self._runs = {}
        self._version = version

    def _rules_in_force(self) -> tuple[Policy, Mapping[str, Ban]]:
        self._refresh()
        if self._rules is None:
            self._rules = self._read_rules()
        return self._rules

    def _read_rules(self) -> tuple[Policy, Mapping[str, Ban]]:
        return read_policy(self._public), read_bans(self._public)

    def _read_snapshot(self) -> tuple[bytes | None, Callable[[bytes], Snapshot]]:
        """The file of the snapshot, of the form before where there is no other, and its parser."""
        for path, parse in ((PATH, parse_snapshot), (OLD_PATH, parse_old_snapshot)):
            with contextlib.suppress(NotFoundError):
                return self._public.read(path), parse
        return None, parse_snapshot


def view_of(
    snapshot: Snapshot | None, cards: Mapping[str, Card], orders: Orders, version: str = ""
) -> View:
    """The view of a snapshot; None is a store in which nothing was published."""
    published = snapshot.boards if snapshot else {}
    boards = {
        name: BoardIndex(published.get(name) or Board(card=card, cells=()))
        for name, card in cards.items()
    }
    entries = snapshot.entries if snapshot else {}
    return View(
        MappingProxyType(entries),
        MappingProxyType(boards),
        orders,
        version=version,
        built_at=snapshot.built_at if snapshot else None,
    )


def headline_cells(board: BoardIndex) -> tuple[Cell, ...]:
    """The ranking a board is known by: its headline over all skills, or the nearest to it."""
    available = board.selectors(None)
    if not available:
        return ()
    return board.cells(nearest(board.card.headline, available, board.card), None)
