"""A store that fails, or during which the process dies, at a chosen call; and what must be equal."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.errors import TransientError
from leaderboard.ledger.ledger import Ledger
from leaderboard.records import RunResult
from leaderboard.states import State
from leaderboard.store.interface import Changes, Repository, Store
from tests.evaluator.rig import Rig


@dataclass
class Switch:
    """Counts the calls of a store and fails at one of them.

    Attributes:
        at: number of that call, from 1; 0: none.
        error: what is raised then.
        only: which methods count; empty: all.
        calls: so far.
    """

    at: int = 0
    error: BaseException | None = None
    only: frozenset[str] = frozenset()
    calls: int = 0

    def step(self, what: str) -> None:
        if self.only and what not in self.only:
            return
        self.calls += 1
        if self.calls == self.at and self.error:
            raise self.error


class Outage(Switch):
    """Whether a store answers."""

    away = False

    def step(self, what: str) -> None:
        if self.away:
            raise TransientError("hub_down", "The Hub does not answer.")

    def begins(self) -> None:
        self.away = True

    def ends(self, rig: Rig, **later: float) -> None:
        self.away = False
        rig.clock.move(**later)


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
    paths = store.public.list(f"results/{submission_id}/")
    found: dict[str, Any] = {path: store.public.read(path) for path in paths}
    return {p: _timeless(c) if p.endswith(".json") else c for p, c in found.items()}


def _timeless(content: bytes) -> dict[str, Any]:
    result = RunResult.model_validate_json(content)
    record: dict[str, Any] = json.loads(result.model_dump_json(exclude={"judged_at"}))
    for name in ("seconds", "pairs_per_s", "calls", "images_decoded"):
        record["cost"].pop(name)
    record["trust"].pop("spread")
    for check in record["trust"]["checks"]:
        check["example"] = None  # Of pairs that moved alike, one is named, and they are shuffled.
    return record
