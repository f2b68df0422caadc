"""A store that fails, or during which the process dies, at a chosen call; and what must be equal."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from leaderboard.ledger.ledger import Ledger
from leaderboard.records import RunResult
from leaderboard.states import State
from leaderboard.store.interface import Changes, Repository, Store


@dataclass
class Switch:
    """Counts the calls of a store and does something at one of them.

    Attributes:
        at: number of that call, from 1; 0: of none.
        act: raises, or not.
        calls: so far.
        only: which methods count.
    """

    at: int = 0
    act: Callable[[], None] = lambda: None
    calls: int = 0
    only: frozenset[str] = frozenset()
    trace: list[str] = field(default_factory=list)

    def step(self, what: str) -> None:
        if self.only and what not in self.only:
            return
        self.calls += 1
        self.trace.append(what)
        if self.calls == self.at:
            self.act()


@dataclass
class Breaking:
    """A repository that asks a switch before each call, and once more after each commit."""

    under: Repository
    switch: Switch

    def head(self) -> str:
        self.switch.step("head")
        return self.under.head()

    def read(self, path: str) -> bytes:
        self.switch.step("read")
        return self.under.read(path)

    def fetch(self, path: str, target: Path) -> None:
        self.switch.step("fetch")
        self.under.fetch(path, target)

    def has(self, path: str) -> bool:
        self.switch.step("has")
        return self.under.has(path)

    def list(self, prefix: str = "") -> tuple[str, ...]:
        self.switch.step("list")
        return self.under.list(prefix)

    def commit(self, changes: Changes, *, parent: str, message: str) -> str:
        self.switch.step("commit")
        version = self.under.commit(changes, parent=parent, message=message)
        self.switch.step("committed")
        return version


def breaking(store: Store, switch: Switch) -> Store:
    """The same store, seen by a process that the switch breaks."""
    return replace(
        store, public=Breaking(store.public, switch), private=Breaking(store.private, switch)
    )


def published_once(store: Store, submission_id: str) -> bool:
    events = Ledger(store).events(submission_id)
    return [e.state for e in events].count(State.PUBLISHED) == 1


def results(store: Store, submission_id: str) -> dict[str, Any]:
    """What is published of a submission, without what no two runs share.

    That is times, and what depends on which pairs the trust checks happened to draw.
    """
    found: dict[str, Any] = {}
    for path in store.public.list(f"results/{submission_id}/"):
        content = store.public.read(path)
        found[path] = _timeless(content) if path.endswith(".json") else content
    return found


def _timeless(content: bytes) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(
        RunResult.model_validate_json(content).model_dump_json(exclude={"judged_at"})
    )
    for name in ("seconds", "pairs_per_s", "calls", "images_decoded"):
        record["cost"].pop(name)
    record["trust"].pop("spread")
    for check in record["trust"]["checks"]:
        check["example"] = None  # Of pairs that moved alike, one is named, and they are shuffled.
    return record
