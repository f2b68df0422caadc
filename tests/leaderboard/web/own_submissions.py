"""Submissions of an account in every state, and one that a worker runs."""

from __future__ import annotations

from datetime import timedelta

import numpy as np

from leaderboard.accounts import Account, Origin
from leaderboard.ledger.ledger import Ledger
from leaderboard.ledger.private_records import results_folder
from leaderboard.records import Event, RunResult, Submission
from leaderboard.states import State
from leaderboard.store.interface import Store
from tests.kit.boards import NASTY, NOW, event, published, pulse, submission

ADA = Account(origin=Origin.HUB, name="ada")
GRACE = Account(origin=Origin.HUB, name="grace")
OPERATOR = Account(origin=Origin.HUB, name="root", operator=True)
HELD, FAILED, QUEUED = "private-00000000aa", "made-up-0103", "made-up-0104"
OLD, NEW = "made-up-0106", "made-up-0108"
_RUN = (State.RECEIVED, State.QUEUED, State.CLAIMED, State.SCORING, State.SCORED, State.JUDGING)
_PATHS: dict[str, tuple[State, ...]] = {
    HELD: (*_RUN, State.HELD),
    FAILED: (*_RUN[:4], State.FAILED),
    QUEUED: _RUN[:2],
    OLD: (*_RUN, State.PUBLISHED, State.SUPERSEDED),
    NEW: (*_RUN, State.PUBLISHED),
}
_NAMES = {HELD: "secret-metric", FAILED: NASTY, QUEUED: "waiting-metric"}


def give(store: Store, account: Account) -> Store:
    """Put one submission of each kind into a store."""
    ledger = Ledger(store)
    for number, (ident, path) in enumerate(_PATHS.items()):
        own = submission(0, _NAMES.get(ident, "steady-metric"), ("ratings",)).model_copy(
            update={
                "submission_id": ident, "account": account.key, "submitter": account.name,
                "private": ident == HELD, "version": "2.0" if ident == NEW else "1.0",
                "same_content_as": ("made-up-0000",) if ident == QUEUED else (),
                "received_at": NOW - timedelta(hours=60 - number),
            }
        )  # fmt: skip
        events = [_event(state, account, ident, place) for place, state in enumerate(path)]
        ledger.receive(own, b"upload", events)
        if State.JUDGING in path:
            _keep_results(store, own)
    return store


def _event(state: State, account: Account, ident: str, place: int) -> Event:
    worker = place >= 2 and state is not State.SUPERSEDED
    more = {"by": "worker-1" if worker else account.key}
    if state is State.FAILED:
        more["reason"] = f"The scorer stopped on pair 12 of {ident}: {NASTY}"
        lines = ["Traceback (most recent call last):", f"  {NASTY}", "=1+2|cmd"]
        more["log"] = "\n".join(lines * 40)
    return event(state, 300 - place, **more)


def _keep_results(store: Store, own: Submission) -> None:
    run = published(own, "ratings", 2, np.random.default_rng(3)).result
    if own.submission_id == NEW:
        run = run.model_copy(update={"same_scores_as": ("made-up-0000",)})
    repository, folder = (
        (store.private, results_folder(own.submission_id))
        if own.private
        else (store.public, f"results/{own.submission_id}/")
    )
    files = {f"{folder}ratings.json": RunResult.model_dump_json(run).encode()}
    repository.commit(files, parent=repository.head(), message="results")


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
    store.live.set_log(RUNNING, SAID)
    return store
