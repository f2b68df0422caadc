"""A made-up submission that is being scored: its second attempt, with words of its scorer."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from leaderboard.accounts import Account, Origin
from leaderboard.ledger.ledger import Ledger
from leaderboard.states import State
from leaderboard.store.interface import Store
from leaderboard.store.memory import memory_store
from tests.leaderboard.web.own_submissions import give
from tests.leaderboard.web.synthetic import NASTY, NOW, cards, event, fill, pulse, submission

RUNNING = "made-up-0210"
WORKER = "gpu-2"
SILENT = "gpu-1 was silent since 2026-03-01 11:31:00 UTC."
SAID = "".join(f"batch {n}: 32 pairs, 0.4 s\n" for n in range(60)) + f"careful: {NASTY}\n"


def run_one(store: Store, account: Account) -> Store:
    """Put it into a store, with the pulse of its worker and its running log."""
    own = submission(
        2, "running-metric", ("ratings", "graphs"), submission_id=RUNNING, account=account.key,
        submitter=account.name, received_at=NOW - timedelta(hours=1),
    )  # fmt: skip
    steps = [
        (State.RECEIVED, account.key, 50, ""), (State.QUEUED, account.key, 50, ""),
        (State.CLAIMED, "gpu-1", 40, ""), (State.SCORING, "gpu-1", 40, ""),
        (State.CLAIMED, WORKER, 20, SILENT), (State.SCORING, WORKER, 20, ""),
    ]  # fmt: skip
    lease = {State.CLAIMED: {"lease_until": NOW + timedelta(hours=2)}}
    events = [
        event(state, minutes, by=by, reason=reason, **lease.get(state, {}))
        for state, by, minutes, reason in steps
    ]
    Ledger(store).receive(own, b"upload", events)
    store.live.beat(
        pulse(
            worker=WORKER, isolation="own namespaces", submission_id=RUNNING,
            stage="ratings: scoring", done=1_920, total=4_800, rate_per_s=81.3, eta_s=754.0,
            attempt=2, claimed=(RUNNING, "made-up-0211"), last_line=f"careful: {NASTY}",
        )
    )  # fmt: skip
    store.live.say(RUNNING, SAID)
    return store


def app() -> Any:
    """The site of everything that happens to a submission, for `synthetic`."""
    from tests.leaderboard.web.serving import app_of

    ada = Account(origin=Origin.LOCAL, name="ada")
    return app_of(run_one(give(fill(memory_store()), ada), ada), cards())
