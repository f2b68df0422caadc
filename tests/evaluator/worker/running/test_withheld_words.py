"""What a scorer says of questions whose answers are kept is not published."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.errors import PlatformError, SubmitterError
from evaluator.isolation.supervising.failures import Code, failure, without_its_words
from leaderboard.ledger.ledger import Ledger
from tests.benchmarks.toy import Toy
from tests.evaluator.rig import FakeBackend, Rig

SECRET = "the hidden prompt"


class Private(Toy):
    card = Toy.card.model_copy(update={"answers_public": False})


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def raising(code: Code) -> FakeBackend:
    def score(*_: object) -> float:
        raise failure(code, f"ValueError: {SECRET} (while scoring batch 1).")

    return FakeBackend(score)


@pytest.mark.parametrize(
    "code",
    ["scorer_raised", "wrong_count", "wrong_type", "not_finite", "out_of_memory", "protocol"],
)
def test_the_words_of_an_error_are_withheld_where_answers_are(rig: Rig, code: str) -> None:
    rig.toy = Private()
    rig.backend = raising(Code(code))
    queued = rig.send()
    rig.worker().run_next()
    ledger = Ledger(rig.store)
    status = ledger.status(queued.submission.submission_id)
    assert (status.code, status.fault) == (code, "submitter")
    assert "withheld" in status.reason
    assert "check" in status.hint
    assert SECRET not in str(ledger.events(queued.submission.submission_id))


def test_they_are_told_where_answers_are_public(rig: Rig) -> None:
    rig.backend = raising(Code.SCORER_RAISED)
    queued = rig.send()
    rig.worker().run_next()
    assert SECRET in Ledger(rig.store).status(queued.submission.submission_id).reason


@pytest.mark.parametrize(
    "error",
    [
        failure(Code.IMPORT_FAILED, "No module named x (while importing)."),
        failure(Code.TIMEOUT, "Scoring batch 1 took longer than 3 s."),
        SubmitterError("model_missing", "There is no model a/b."),
        PlatformError("box_not_ended", "Processes are still running."),
    ],
)
def test_what_holds_no_words_of_a_scorer_that_saw_questions_stays(error: SubmitterError) -> None:
    assert without_its_words(error) is error
