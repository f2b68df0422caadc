"""The author's own check: how it differed from this installation, and whether scores agree."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pytest

from benchmarks.errors import SubmitterError
from benchmarks.registry import load_registry
from evaluator.submission.agreement import agreement
from evaluator.submission.archives.archive import taken_in
from evaluator.submission.checking.drawn import USUAL_PAIRS, Drawn
from evaluator.submission.receipts import environment_versions, written
from leaderboard.ledger.ledger import Ledger
from leaderboard.publication.score_hash import scores_sha256
from leaderboard.records import Receipt, Status
from leaderboard.states import State
from tests.evaluator.rig import ADA, Rig

AS_THE_RIG_SCORES = pd.Series([0.0, 1.0, 2.0], index=["toy/a", "toy/b", "toy/c"])


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def receipt_of(module: Path, clock: Rig, **other: object) -> bytes:
    with taken_in(module) as content:
        sha256 = content.sha256
    made = Receipt(
        content_sha256=sha256,
        versions=environment_versions(),
        isolation=("fake",),
        benchmark="toy",
        pairs=3,
        scores_sha256=scores_sha256(AS_THE_RIG_SCORES),
        checked_at=clock.clock(),
    )
    return written(made.model_copy(update=other))


def finished(rig: Rig, **other: object) -> Status:
    """A module that was sent with a receipt, and scored."""
    module = rig.module()
    receipt = receipt_of(module, rig, **other)
    sent = rig.desk.submit_metric(module, account=ADA, receipt=receipt).status
    assert rig.worker().run_next()
    return Ledger(rig.store).status(sent.submission.submission_id)


def test_a_receipt_that_fits_is_kept_and_nothing_is_said(rig: Rig) -> None:
    module = rig.module()
    accepted = rig.desk.submit_metric(module, account=ADA, receipt=receipt_of(module, rig))
    assert accepted.status.submission.receipt is not None
    assert (accepted.notes, accepted.status.reason) == ((), "")


def test_other_versions_are_said_to_the_author_and_kept_with_the_submission(rig: Rig) -> None:
    module = rig.module()
    receipt = receipt_of(module, rig, versions={**environment_versions(), "numpy": "0.1"})
    accepted = rig.desk.submit_metric(module, account=ADA, receipt=receipt)
    (note,) = accepted.notes
    assert note.startswith("The dry run had numpy 0.1, here it is ")
    queued = Ledger(rig.store).events(accepted.status.submission.submission_id)[-1]
    assert (queued.state, queued.reason) == (State.QUEUED, note)


@pytest.mark.parametrize(
    ("change", "code"),
    [({"content_sha256": "0" * 64}, "receipt_mismatch"), ({"pairs": -1}, "bad_receipt")],
)
def test_a_receipt_of_something_else_is_refused(
    rig: Rig, change: dict[str, object], code: str
) -> None:
    module = rig.module()
    receipt = receipt_of(module, rig, **change)
    with pytest.raises(SubmitterError) as caught:
        rig.desk.submit_metric(module, account=ADA, receipt=receipt)
    assert caught.value.code == code
    assert Ledger(rig.store).statuses() == ()


def test_scores_that_agree_with_the_authors_check_are_said_to(rig: Rig) -> None:
    status = finished(rig)
    assert status.state is State.PUBLISHED
    assert status.reason == "The author's own check gave the same scores on its 3 pairs."


def test_scores_that_differ_from_the_authors_check_are_a_finding_and_no_failure(rig: Rig) -> None:
    rig.backend.score = lambda brightness, _: brightness + 1.0
    status = finished(rig)
    assert status.state is State.PUBLISHED
    assert "gave other scores" in status.reason


@pytest.mark.parametrize("other", [{"pairs": 2}, {"benchmark": "toy+elsewhere"}])
def test_of_a_check_whose_pairs_are_not_known_nothing_is_said(
    rig: Rig, other: dict[str, object]
) -> None:
    assert finished(rig, **other).reason == ""


@pytest.mark.parametrize("share", [None, USUAL_PAIRS // 2])
def test_the_pairs_of_a_check_of_the_demo_are_drawn_again(share: int | None) -> None:
    registry = load_registry()
    names = ("demo_croc", "demo_gecko")
    every = {
        name: pd.Series(range(len(pairs)), index=pairs, dtype=float)
        for name in names
        if (pairs := [p.pair_id for p in registry[name].questions(None).pairs])
    }
    drawn = [Drawn(registry[name], None, share) for name in names]
    asked = [
        every[one.name]
        .loc[[p.pair_id for p in one.questions(None).pairs]]
        .add_prefix(f"{one.name}/")
        for one in drawn
    ]
    receipt = Receipt(
        content_sha256="0" * 64,
        versions={},
        isolation=(),
        benchmark="+".join(names),
        pairs=sum(one.n_pairs for one in drawn),
        scores_sha256=scores_sha256(pd.concat(asked)),
        checked_at=datetime(2026, 1, 1, tzinfo=UTC),
    )
    assert "the same scores" in agreement(receipt, every, registry, None)
    other = {name: column * 1.001 for name, column in every.items()}
    assert "other scores" in agreement(receipt, other, registry, None)
