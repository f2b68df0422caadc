"""How pages read the published snapshot: once per change of the store, indexed by slice."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from benchmarks.schema import Card, Selector
from leaderboard.ledger.ledger import Ledger
from leaderboard.pages.skill_tests import SkillTests
from leaderboard.publication.snapshot import PATH, Board, Entry, Snapshot
from leaderboard.ranking.cells import Cell, best_first
from leaderboard.ranking.orders import Orders
from leaderboard.records import Event, RunResult, Status
from leaderboard.store.interface import NotFoundError, Store

_SliceKey = tuple[Selector, str | None]


class BoardIndex:
    """The cells of a board by slice, so that one ranking costs no walk through all of them.

    Args:
        board: what is indexed, in one pass.
    """

    def __init__(self, board: Board) -> None:
        self.card = board.card
        self._sorted: dict[_SliceKey, tuple[Cell, ...]] = {}
        self._groups: dict[_SliceKey, list[Cell]] = {}
        # Building a Selector is far dearer than building a tuple: one per slice, not per cell.
        groups: dict[tuple[str | None, ...], list[Cell]] = {}
        for cell in board.cells:
            key = (cell.measure, cell.variant, cell.split, cell.facet, cell.skill)
            groups.setdefault(key, []).append(cell)
        of_skill: dict[str | None, list[Selector]] = {}
        for cells in groups.values():
            selector, skill = cells[0].selector, cells[0].skill
            self._groups[selector, skill] = cells
            of_skill.setdefault(skill, []).append(selector)
        self._selectors = {skill: tuple(found) for skill, found in of_skill.items()}

    @property
    def empty(self) -> bool:
        """Whether nothing is published on this board."""
        return not self._groups

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
        return tuple(dict.fromkeys(selector for selector, _ in self._groups))

    def cells(self, selector: Selector, skill: str | None) -> tuple[Cell, ...]:
        """The cells of one ranking, best first; empty where there is no such slice."""
        key = (selector, skill)
        if key not in self._sorted:
            higher = self.card.higher_is_better(selector.measure)
            cells = self._groups.get(key, ())
            self._sorted[key] = best_first(cells, higher_is_better=higher)
        return self._sorted[key]


@dataclass(frozen=True)
class View:
    """What the pages show at one version of the store.

    Attributes:
        entries: entry id to entry.
        boards: benchmark name to its indexed board; benchmarks without results have empty ones.
        orders: ranks what is looked at.
        skill_tests: tests metrics within skills, and remembers it.
    """

    entries: Mapping[str, Entry]
    boards: Mapping[str, BoardIndex]
    orders: Orders
    skill_tests: SkillTests = field(default_factory=SkillTests, compare=False)


class Reader:
    """Reads boards and queue again only when the store has changed.

    Args:
        store: where they are published.
        cards: the benchmarks of this installation, in the order of display.
    """

    def __init__(self, store: Store, cards: Mapping[str, Card]) -> None:
        self._store = store
        self._public = store.public
        self._ledger = Ledger(store)
        self._cards = cards
        self._lock = threading.Lock()
        self._head: str | None = None
        self._content: bytes | None = None
        self._view = view_of(None, cards, Orders(store))
        self._statuses: tuple[Status, ...] = ()
        self._runs: dict[str, tuple[RunResult, ...]] = {}

    def view(self) -> View:
        """What is published now."""
        with self._lock:
            self._refresh()
            return self._view

    def statuses(self) -> tuple[Status, ...]:
        """All submissions, oldest first."""
        with self._lock:
            self._refresh()
            return self._statuses

    def events(self, submission_id: str) -> tuple[Event, ...]:
        """What happened to one submission, oldest first; none where it does not exist."""
        return self._ledger.events(submission_id)

    def runs(self, submission_id: str) -> tuple[RunResult, ...]:
        """The public results of a submission that is on the boards, by benchmark."""
        with self._lock:
            self._refresh()
            shown = {s.submission.submission_id for s in self._statuses if s.on_boards}
            if submission_id not in shown:
                return ()
            if submission_id not in self._runs:
                paths = self._public.list(f"results/{submission_id}/")
                self._runs[submission_id] = tuple(
                    RunResult.model_validate_json(self._public.read(path))
                    for path in paths
                    if path.endswith(".json")
                )
            return self._runs[submission_id]

    def isolation(self) -> dict[str, tuple[str, ...]]:
        """Submission id to the layers in force while it was scored, of all that is published."""
        found: dict[str, tuple[str, ...]] = {}
        for entry in self.view().entries.values():
            for layers in entry.isolation.values():
                found.setdefault(entry.submission_id, layers)
        return found

    def _refresh(self) -> None:
        # The head is read first: what is read after it can only be newer, and is read again then.
        head = self._public.head()
        if head == self._head:
            return
        content = self._read_snapshot()
        # Most commits are events of the queue and leave the snapshot as it was.
        if content != self._content:
            snapshot = Snapshot.model_validate_json(content) if content else None
            self._view = view_of(snapshot, self._cards, Orders(self._store))
            self._content = content
        self._statuses = self._ledger.statuses()
        self._runs = {}
        self._head = head

    def _read_snapshot(self) -> bytes | None:
        try:
            return self._public.read(PATH)
        except NotFoundError:
            return None


def view_of(snapshot: Snapshot | None, cards: Mapping[str, Card], orders: Orders) -> View:
    """The view of a snapshot; None is a store in which nothing was published."""
    published = snapshot.boards if snapshot else {}
    boards = {
        name: BoardIndex(published.get(name) or Board(card=card, cells=()))
        for name, card in cards.items()
    }
    entries = snapshot.entries if snapshot else {}
    return View(MappingProxyType(entries), MappingProxyType(boards), orders)
