"""Whether a hostile submission ended as it must, and the worker is as it was."""

from __future__ import annotations

import pytest

from leaderboard.states import State
from tests.hostile.case import Case, Category
from tests.hostile.leftovers import holdings, left_of, settled
from tests.hostile.proving_ground import BENCHMARK, Ground, Outcome
from tests.kit.tiers import nightly

OF_ITSELF = frozenset(
    {Category.VALUES, Category.ENDINGS, Category.CHEATING, Category.INJECTION}
)  # fmt: skip
"""What is wrong with these is in what they answer; they attack nothing."""
SOME = 5
"""So many submissions pass before a good one follows; in a nightly run it follows each attack."""


def let_loose(ground: Ground, case: Case) -> Outcome:
    """Run a case and a good submission behind it, and assert everything that is due of both."""
    folders = (ground.unpacked, ground.temporary)
    before = holdings(*folders)
    outcome = ground.run(case)
    assert_ended(outcome, case)
    assert_nothing_left(ground)
    ground.since_good += 1
    attacks = case.category not in OF_ITSELF
    if ground.since_good >= SOME or (attacks and nightly()):
        assert_next_unaffected(ground)
    held = settled(before, str(ground.folder), *folders)
    assert not held, held
    assert_untouched(ground)
    return outcome


def assert_next_unaffected(ground: Ground) -> None:
    """A good submission is published, with the scores that it must have."""
    good, due = ground.run_honest()
    assert good.status.state is State.PUBLISHED, "the next submission is unaffected"
    assert good.scores == due
    assert_nothing_left(ground)
    ground.since_good = 0


def assert_ended(outcome: Outcome, case: Case) -> None:
    """State, blame, code, message, scores and output are those the case asks for."""
    status, ending = outcome.status, case.ending
    told = f"{status.state} {status.code}: {status.reason} {status.hint}\n{outcome.log}"
    assert status.state is ending.state, told
    assert status.fault == ending.fault, told
    if ending.codes:
        assert status.code in ending.codes, told
        assert status.reason, told
        assert status.hint, told
    for said in ending.says:
        assert said in status.reason, told
    for printed in case.prints:
        assert printed in outcome.log, told
    for printed in case.never_prints:
        assert printed not in outcome.log, told
    if case.scores:
        assert outcome.scores == pytest.approx(case.scores, abs=0, nan_ok=True), told


def assert_trusted_as_due(ground: Ground, outcome: Outcome, case: Case) -> None:
    """A published case has no rank for the reason that it must have none for, or is trusted."""
    submission = outcome.status.submission
    entry = f"{submission.submission_id}/{submission.metrics[0]}"
    cells = [c for c in ground.snapshot().boards[BENCHMARK].cells if c.entry_id == entry]
    assert cells
    for cell in cells:
        if case.ending.unranked:
            assert case.ending.unranked in cell.why_unranked
            assert cell.rank is None
        else:
            assert not cell.distrust, cell.distrust


def assert_nothing_left(ground: Ground) -> None:
    """No process, control group or file of any box that was started so far."""
    left = [what for trace in ground.backend.traces for what in left_of(trace)]
    ground.backend.traces.clear()
    assert not left, left
    files = [str(path) for path in (*ground.unpacked.glob("*"), *ground.shards.glob("*"))]
    assert not files, files


def assert_untouched(ground: Ground) -> None:
    """Nobody came to the decoys, and what is secret is nowhere in the public store."""
    decoys = ground.decoys
    assert not decoys.heard, decoys.heard
    assert decoys.canary.read_text() == decoys.secret
    secret = decoys.secret.encode()
    public = ground.store.public
    told = [path for path in public.list("") if secret in public.read(path)]
    assert not told, told
