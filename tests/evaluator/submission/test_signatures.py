"""How submissions are signed on the boards: nobody can pose as another."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.errors import SubmitterError
from evaluator.submission.receiving.labels import checked_signature
from leaderboard.governance.accounts import ASSAY, Account, Origin
from leaderboard.records import Submission
from tests.evaluator.rig import ADA, BOB, Rig

SCORES = "pair_id,score\na,1\nb,2\nc,3\n"


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def earlier(signature: str, account: str) -> Submission:
    return Submission.model_validate(
        {
            "submission_id": "clip-0000000000",
            "kind": "scores",
            "name": "clip",
            "metrics": ("clip",),
            "benchmarks": ("toy",),
            "submitter": signature,
            "account": account,
            "content_sha256": "0" * 64,
            "archive": "uploads/x",
            "received_at": "2026-01-01T00:00:00Z",
        }
    )


def refusal(signature: str, account: Account, *shown: Submission) -> str:
    with pytest.raises(SubmitterError) as caught:
        checked_signature(signature, account, shown)
    return caught.value.code


def test_who_signs_with_nothing_signs_with_the_name_of_the_account() -> None:
    assert checked_signature("  ", ADA, ()) == "ada"
    assert checked_signature("  A   Group ", ADA, ()) == "A Group"


@pytest.mark.parametrize("name", ["Assay", "assay", " ASSAY ", "\uff21ssay"])
def test_nobody_signs_as_assay_but_assay(name: str) -> None:
    assert refusal(name, ADA) == "reserved_submitter"
    assert checked_signature(name, ASSAY, ()) == "Assay"
    assert checked_signature("Assay team", ADA, ()) == "Assay team"


def test_an_account_that_is_called_assay_cannot_sign_so_either() -> None:
    impostor = Account(origin=Origin.HUB, name="ASSAY")
    assert refusal("", impostor) == "reserved_submitter"
    assert checked_signature("somebody", impostor, ()) == "somebody"


@pytest.mark.parametrize("name", ["bob", "BOB", "\uff42\uff4f\uff42", "The  Lab", "the lab"])
def test_nobody_signs_with_anothers_name_or_signature(name: str) -> None:
    assert refusal(name, ADA, earlier("The Lab", BOB.key)) == "signature_taken"


def test_ones_own_name_and_signatures_stay_ones_own() -> None:
    squatter = earlier("ada", BOB.key)
    assert checked_signature("ada", ADA, (squatter,)) == "ada"
    own = earlier("The Lab", ADA.key)
    assert checked_signature("the lab", ADA, (earlier("The Lab", BOB.key), own)) == "the lab"


def test_signatures_older_than_accounts_bind_nobody() -> None:
    assert checked_signature("The Lab", ADA, (earlier("The Lab", ""),)) == "The Lab"


@pytest.mark.parametrize("signature", ["x" * 81, "<script>", "a\u202eb", "=cmd()", "a\nb;"])
def test_odd_signatures_are_refused(signature: str) -> None:
    assert refusal(signature, ADA) == "bad_submitter"


def test_the_signature_of_a_private_submission_is_nobodys_business(rig: Rig) -> None:
    rig.send_scores(SCORES, account=BOB, submitter="Secret Lab", private=True)
    shown = rig.send_scores(SCORES, submitter="Secret Lab").submission
    assert shown.submitter == "Secret Lab"
    other = SCORES.replace("3", "4")
    own = rig.send_scores(other, account=BOB, submitter="Secret Lab", name="next").submission
    assert own.submitter == "Secret Lab", "it was theirs before"


def test_a_signature_on_the_boards_cannot_be_taken_over(rig: Rig) -> None:
    rig.send_scores(SCORES, account=BOB, submitter="The Lab")
    with pytest.raises(SubmitterError, match="another account"):
        rig.send_scores(SCORES, submitter="THE LAB")
