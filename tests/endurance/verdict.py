"""What must be true in the end, whatever happened on the way."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

from leaderboard.ledger.audit_log import verify
from leaderboard.ledger.ledger import Ledger
from leaderboard.publication.publisher import cards_of
from leaderboard.publication.rebuilding import differences, queue_differences, rebuilt
from leaderboard.publication.snapshot import read_snapshot
from leaderboard.records import Event
from leaderboard.replay import attempts_of
from leaderboard.states import FINISHED, State
from leaderboard.store.interface import Store
from tests.endurance.ladder import PAIRS, Asked, CallLog, Ladder, asked_of_runs
from tests.endurance.worker_process import BATCH_PAIRS, Given, made, store_of
from tests.kit.worker import results, stock

REGISTRY = {"toy": Ladder()}
ACCOUNTS = tuple(f"hub:u{n}" for n in range(12))
"""Of those whose submissions are compared with a run of nobody else."""
Results = Mapping[str, Any]


@dataclass(frozen=True)
class Undisturbed:
    """What is published of the first so many submissions when nothing happens to their worker."""

    by_id: Mapping[str, Results]


def undisturbed(place: Path, accounts: Sequence[str]) -> Undisturbed:
    """Run them in this process, in a store of their own."""
    given = Given("plain", str(place), str(place / "store"), str(place / "scratch"), delay_s=0.0)
    store = store_of(given)
    ids = stock(store, accounts)
    made(given, store).run_all()
    return Undisturbed({name: results(store, name) for name in ids})


def all_finished(store: Store, ids: Sequence[str]) -> bool:
    """Whether nothing waits and nothing is in work."""
    states = {s.submission.submission_id: s.state for s in Ledger(store).statuses()}
    return all(states[name] in FINISHED for name in ids)


def check_published(store: Store, ids: Sequence[str], wanted: Undisturbed) -> None:
    """Each exactly once, the first with the bytes that are wanted, on boards and in a queue that follow from events."""
    ledger = Ledger(store)
    events = {name: ledger.events(name) for name in ids}
    ended = {name: _ends(found) for name, found in events.items()}
    failed = {name: told(events[name]) for name in ids if State.FAILED in ended[name]}
    assert not failed, f"failed though nothing was wrong with them: {failed}"
    assert ended == {name: [State.PUBLISHED] for name in ids}
    compared = wanted.by_id.keys() & set(ids)
    assert compared
    for name in compared:
        assert results(store, name) == wanted.by_id[name], name
    assert verify(store.public) == ()
    assert queue_differences(store) == ()
    right = rebuilt(store, cards_of(REGISTRY), store.clock())
    assert differences(read_snapshot(store.public), right) == ()


def _ends(events: Sequence[Event]) -> list[State]:
    return [event.state for event in events if event.state in FINISHED]


def told(events: Sequence[Event]) -> list[str]:
    """A history in words, for who has to find out what happened."""
    return [f"{e.state} by {e.by}: {e.code} {e.reason}" for e in events]


def attempts(store: Store, ids: Sequence[str]) -> Counter[int]:
    """How many submissions took so many attempts."""
    ledger = Ledger(store)
    return Counter(len(attempts_of(ledger.events(name))) for name in ids)


def check_asked(calls: CallLog, deaths: int, disk_faults: int = 0) -> int:
    """No two workers asked for a submission at overlapping times, none for a pair without need."""
    again = 0
    for module, asked in asked_of_runs(calls.read()).items():
        assert _in_turns(asked), f"two workers asked {module} at once"
        counted = Counter(pair for one in asked for pair in one.pairs)
        assert set(counted) == set(PAIRS), f"{module} was never asked for some pairs"
        repeated = counted.total() - len(PAIRS)
        workers = len({one.worker for one in asked})
        spoilt = min(workers - 1, deaths) + disk_faults
        assert repeated <= BATCH_PAIRS * spoilt, f"{module} was asked more than that explains"
        again += repeated
    assert again <= BATCH_PAIRS * (deaths + disk_faults)
    return again


def _in_turns(asked: Sequence[Asked]) -> bool:
    order = [one.worker for one in asked]
    changes = sum(a != b for a, b in pairwise(order))
    return changes == len(set(order)) - 1


def check_nothing_left(store: Store, root: Path, given: Given) -> None:
    """After the sweeps of a later day nothing is left of what was in the works."""
    long_ago = time.time() - timedelta(days=2).total_seconds()
    for draft in (root / "live").rglob("*.draft"):  # swept by the times of files
        os.utime(draft, (long_ago, long_ago))
    later = replace(store, clock=lambda: store.clock() + timedelta(days=2))
    made(replace(given, name="sweeper"), later).run_all()
    scratch = Path(given.scratch)
    for folder in ("outbox", "unpacked", "shards"):
        assert not list((scratch / folder).glob("*")), folder
    assert not [path for path in store.private.list() if path.startswith("held/")]
    assert not list(root.rglob("*.draft")), "half a file was left"
    assert not list(root.rglob("staged-*")), "half a commit was left"
    assert not list(root.rglob("journal.json"))
