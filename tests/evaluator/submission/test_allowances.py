"""What an account may submit: never more than the policy says, and nothing while it is banned."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from benchmarks.errors import SubmitterError
from evaluator.submission.receiving.allowance import allowed
from evaluator.submission.receiving.desk import SubmissionDesk
from leaderboard.governance.accounts import ASSAY, Account
from leaderboard.governance.acts import Acts
from leaderboard.governance.policy import Allowance, Policy, read_policy
from leaderboard.governance.quota import standings
from leaderboard.ledger.ledger import Ledger
from leaderboard.records import Event, Kind, Status
from leaderboard.states import State
from tests.benchmarks.toy import Toy
from tests.evaluator.rig import ADA, BOB, MODULE, ROOT, Files, Rig

NOW = datetime(2026, 1, 10, tzinfo=UTC)


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def acts(rig: Rig) -> Acts:
    return Acts(rig.store, {"toy": Toy.card}, rig.clock)


def allow(rig: Rig, *, scored: int, unfinished: int) -> None:
    allowance = Allowance(scored=scored, unfinished=unfinished)
    policy = Policy(allowances=dict.fromkeys(Kind, allowance))
    acts(rig).set_policy(policy, ROOT, "a test")


def numbered(n: int) -> Files:
    return {**MODULE, "assay.toml": f'name = "grey-{n}"'.encode()}


def refusal(rig: Rig, files: Files, account: Account = ADA) -> SubmitterError:
    heads = rig.store.public.head(), rig.store.private.head()
    with pytest.raises(SubmitterError) as caught:
        rig.send(files, account=account)
    assert (rig.store.public.head(), rig.store.private.head()) == heads
    return caught.value


def test_only_so_many_may_wait_at_once(rig: Rig) -> None:
    allow(rig, scored=10, unfinished=2)
    for n in range(2):
        rig.send(numbered(n))
    error = refusal(rig, numbered(2))
    assert error.code == "quota_exceeded"
    assert "2 of your scoring modules wait or run already, and 2 may" in error.message
    assert rig.send(numbered(2), account=BOB)
    rig.worker().run_next()
    assert rig.send(numbered(2)).state is State.QUEUED


def test_what_was_scored_is_charged_until_it_leaves_the_period(rig: Rig) -> None:
    allow(rig, scored=2, unfinished=5)
    for n in range(2):
        rig.send(numbered(n))
        rig.worker().run_all()
        rig.clock.move(days=1)
    error = refusal(rig, numbered(2))
    assert error.message == "2 of your scoring modules were scored within 7 days; 2 may be."
    assert error.hint == "The next is free at 2026-01-08 00:00 UTC."
    rig.clock.move(days=5)
    assert rig.send(numbered(2)).state is State.QUEUED


def test_many_at_once_are_scored_no_more_often_than_one_after_the_other(rig: Rig) -> None:
    allow(rig, scored=2, unfinished=5)
    for n in range(2):
        rig.send(numbered(n))
    error = refusal(rig, numbered(2))
    assert "0 of your scoring modules were scored" in error.message
    assert "2 more wait or run" in error.message
    rig.worker().run_all()
    assert "2 of your scoring modules were scored" in refusal(rig, numbered(2)).message


def test_what_is_said_to_be_left_is_what_is_still_taken(rig: Rig) -> None:
    allow(rig, scored=3, unfinished=3)
    rig.send(numbered(0))
    rig.worker().run_all()
    rig.send(numbered(1))
    statuses = Ledger(rig.store).statuses_with_records()
    policy = read_policy(rig.store.public)
    found = next(
        line
        for line in standings(ADA.key, statuses, policy, rig.clock())
        if line.kind is Kind.METRIC
    )
    assert found.left == 1
    rig.send(numbered(2))
    assert refusal(rig, numbered(3)).code == "quota_exceeded"


def test_private_submissions_are_counted_too(rig: Rig) -> None:
    allow(rig, scored=10, unfinished=1)
    rig.send(numbered(0), private=True)
    assert refusal(rig, numbered(1)).code == "quota_exceeded"


def test_scores_files_have_an_allowance_of_their_own(rig: Rig) -> None:
    allow(rig, scored=10, unfinished=1)
    rig.send()
    assert rig.send_scores("pair_id,m\na,1\nb,2\nc,3\n").state is State.QUEUED


def test_what_failed_or_was_withdrawn_is_not_charged(rig: Rig) -> None:
    allow(rig, scored=1, unfinished=1)
    first = rig.send(numbered(0)).submission.submission_id
    acts(rig).withdraw(first, ADA)
    rig.backend.score = lambda *_: 1 / 0
    second = rig.send(numbered(1)).submission.submission_id
    rig.worker().run_all()
    assert Ledger(rig.store).status(second).state is State.FAILED
    assert rig.send(numbered(2)).state is State.QUEUED


def test_sending_again_what_failed_takes_an_allowance_too(rig: Rig) -> None:
    allow(rig, scored=10, unfinished=1)
    rig.backend.score = lambda *_: 1 / 0
    rig.send(numbered(0))
    rig.worker().run_all()
    rig.send(numbered(1))
    assert refusal(rig, numbered(0)).code == "quota_exceeded"


@pytest.mark.parametrize(("scored", "unfinished"), [(0, 1), (1, 0)])
def test_an_operator_may_take_nothing_but_assays_own(
    rig: Rig, scored: int, unfinished: int
) -> None:
    allow(rig, scored=scored, unfinished=unfinished)
    error = refusal(rig, numbered(0))
    assert (error.code, error.hint) == ("quota_exceeded", "Ask its operator.")
    assert "takes no scoring modules now" in error.message
    assert rig.send(numbered(0), account=ASSAY).state is State.QUEUED


def test_an_operators_rerun_is_not_charged_again(rig: Rig) -> None:
    allow(rig, scored=2, unfinished=2)
    first = rig.send(numbered(0)).submission.submission_id
    rig.worker().run_all()
    acts(rig).rerun(first, ROOT, "new data")
    statuses = Ledger(rig.store).whole_statuses()
    policy = Policy(allowances=dict.fromkeys(Kind, Allowance(scored=2, unfinished=2)))
    found = allowed(ADA.key, Kind.METRIC, statuses, policy, rig.clock())
    assert found is not None
    assert (found.standing.scored, found.standing.promised) == (1, 0)
    assert rig.send(numbered(1)).state is State.QUEUED


def race(rig: Rig, rival: SubmissionDesk, files: Files) -> None:
    """Let another request come in between the checks and the commit of the next one."""
    repository = rig.store.public
    commit = repository.commit

    def overtaken(*args: object, **named: object) -> str:
        repository.commit = commit  # type: ignore[method-assign]
        rival.submit_metric(rig.module(files), account=ADA)
        return commit(*args, **named)  # type: ignore[arg-type]

    repository.commit = overtaken  # type: ignore[method-assign]


def test_two_tabs_at_once_get_no_more_than_one_after_the_other(rig: Rig) -> None:
    allow(rig, scored=10, unfinished=1)
    race(rig, rig.desk, numbered(1))
    with pytest.raises(SubmitterError) as caught:
        rig.send(numbered(0))
    assert caught.value.code == "quota_exceeded"
    assert [s.submission.name for s in Ledger(rig.store).statuses()] == ["grey-1"]


def test_two_tabs_with_the_same_content_make_one_submission(rig: Rig) -> None:
    race(rig, rig.desk, numbered(0))
    accepted = rig.desk.submit_metric(rig.module(numbered(0)), account=ADA)
    assert accepted.recognised
    assert len(Ledger(rig.store).statuses()) == 1


def test_who_is_banned_between_check_and_commit_does_not_come_in(rig: Rig) -> None:
    repository = rig.store.public
    commit = repository.commit

    def banned_meanwhile(*args: object, **named: object) -> str:
        repository.commit = commit  # type: ignore[method-assign]
        acts(rig).ban(ADA.key, ROOT, "spam")
        return commit(*args, **named)  # type: ignore[arg-type]

    repository.commit = banned_meanwhile  # type: ignore[method-assign]
    with pytest.raises(SubmitterError) as caught:
        rig.send()
    assert caught.value.code == "banned"
    assert Ledger(rig.store).statuses() == ()


def test_a_banned_account_is_told_the_reason_and_others_go_on(rig: Rig) -> None:
    acts(rig).ban(ADA.key, ROOT, "It sent the same thing ninety times.")
    error = refusal(rig, MODULE)
    assert error.code == "banned"
    assert "It sent the same thing ninety times." in error.message
    with pytest.raises(SubmitterError, match="ninety times"):
        rig.send_scores("pair_id,m\na,1\nb,2\nc,3\n")
    assert rig.send(account=BOB).state is State.QUEUED


def test_what_a_ban_rejected_can_be_sent_again_when_it_is_lifted(rig: Rig) -> None:
    rig.send()
    acts(rig).ban(ADA.key, ROOT, "a mix-up")
    acts(rig).unban(ADA.key, ROOT, "It was a mix-up.")
    accepted = rig.desk.submit_metric(rig.module(), account=ADA)
    assert (accepted.recognised, accepted.status.state) == (True, State.QUEUED)


def test_a_refusal_names_the_ban_before_the_gate_the_form_and_the_allowance(rig: Rig) -> None:
    """From the outside in: nobody mends a module that would not be taken all the same."""
    nothing: Files = {"assay.toml": b"name = 1"}
    allow(rig, scored=0, unfinished=1)
    rig.isolated = False
    acts(rig).ban(ADA.key, ROOT, "spam")
    assert refusal(rig, nothing).code == "banned"
    acts(rig).unban(ADA.key, ROOT, "no spam")
    assert refusal(rig, nothing).code == "code_refused"
    rig.isolated = True
    assert refusal(rig, nothing).code in ("bad_manifest", "several_problems")
    assert refusal(rig, numbered(0)).code == "quota_exceeded"
    allow(rig, scored=9, unfinished=9)
    rig.send(numbered(0))
    allow(rig, scored=0, unfinished=9)
    changed = {**numbered(0), "more.py": b""}
    assert refusal(rig, changed).code == "quota_exceeded"
    allow(rig, scored=9, unfinished=9)
    rig.toy.has_questions = lambda data: False  # type: ignore[method-assign]
    assert refusal(rig, changed).code == "version_taken"
    assert refusal(rig, numbered(1)).code == "images_missing"


def test_when_the_next_is_free_is_counted_from_the_oldest_charge(rig: Rig) -> None:
    submission = rig.send().submission
    charged = [
        Status(
            submission=submission,
            state=State.PUBLISHED,
            since=NOW,
            by="w",
            scored_at=NOW - timedelta(days=days),
        )
        for days in (8, 6, 2)
    ]
    policy = Policy(allowances=dict.fromkeys(Kind, Allowance(scored=2, unfinished=2)))
    found = allowed(ADA.key, Kind.METRIC, charged, policy, NOW)
    assert found is not None
    with pytest.raises(SubmitterError) as caught:
        found.check()
    assert caught.value.hint == "The next is free at 2026-01-11 00:00 UTC."


def test_what_is_given_back_to_the_queue_is_not_charged_twice(rig: Rig) -> None:
    first = rig.send().submission.submission_id
    rig.worker().run_all()
    again = [Event(at=rig.clock(), state=State.QUEUED, by=ROOT.key, reason="again")]
    Ledger(rig.store).append(first, again)
    rig.clock.move(days=1)
    rig.worker().run_all()
    found = allowed(ADA.key, Kind.METRIC, Ledger(rig.store).statuses(), Policy(), rig.clock())
    assert found is not None
    assert found.standing.scored == 1
