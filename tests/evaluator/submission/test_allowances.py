"""What an account may submit: never more than the policy says, and nothing while it is banned."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from benchmarks.errors import AssayError
from evaluator.submission.intake import allowed
from leaderboard.accounts import ASSAY, Account
from leaderboard.governance.quota import quota_use
from leaderboard.ledger.policy import Policy, Quota, read_policy
from leaderboard.ledger.private_records import BANNED
from leaderboard.records import Kind, Status
from leaderboard.states import State
from tests.evaluator.submission import desks
from tests.kit.refusals import refused
from tests.kit.worker import ADA, BOB, MODULE, ROOT, Files, Rig

NOW = datetime(2026, 1, 10, tzinfo=UTC)


def policy_of(scored: int, unfinished: int) -> Policy:
    return Policy(allowances=dict.fromkeys(Kind, Quota(scored=scored, unfinished=unfinished)))


def allow(rig: Rig, *, scored: int, unfinished: int) -> None:
    rig.acts.set_policy(policy_of(scored, unfinished), ROOT, "a test")


def numbered(n: int) -> Files:
    return desks.module(f"grey-{n}")


def queue(rig: Rig, *numbers: int, account: Account = ADA, private: bool = False) -> str:
    for n in numbers:
        status = rig.send(numbered(n), account=account, private=private)
        assert status.state is State.QUEUED
    return status.submission.submission_id


def refusal(rig: Rig, files: Files, code: str = "quota_exceeded") -> AssayError:
    """Nothing is kept of what is refused."""
    heads = rig.store.public.head(), rig.store.private.head()
    with refused(code) as caught:
        rig.send(files)
    assert (rig.store.public.head(), rig.store.private.head()) == heads
    return caught.value


def test_only_so_many_may_wait_at_once_in_public_or_private(rig: Rig) -> None:
    allow(rig, scored=10, unfinished=2)
    queue(rig, 0)
    queue(rig, 1, private=True)
    assert refusal(rig, numbered(2)).message.startswith("2 of your scoring modules wait or run")
    queue(rig, 2, account=BOB)
    assert rig.send_scores(desks.SCORES).state is State.QUEUED, (
        "scores have an allowance of their own"
    )
    rig.worker().run_next()
    queue(rig, 2)


def test_what_was_scored_is_charged_until_it_leaves_the_period(rig: Rig) -> None:
    allow(rig, scored=2, unfinished=5)
    for n in range(2):
        queue(rig, n)
        rig.worker().run_all()
        rig.clock.move(days=1)
    error = refusal(rig, numbered(2))
    assert error.message == "2 of your scoring modules were scored within 7 days; 2 may be."
    assert "2026-01-08 00:00 UTC" in error.hint
    rig.clock.move(days=5)
    queue(rig, 2)


def test_what_waits_counts_as_scored_and_what_is_left_is_what_is_taken(rig: Rig) -> None:
    allow(rig, scored=1, unfinished=5)
    queue(rig, 0)
    assert "withdraw" in refusal(rig, numbered(1)).hint
    allow(rig, scored=3, unfinished=5)
    rig.worker().run_all()
    queue(rig, 1)
    statuses = rig.ledger.statuses_with_records()
    lines = quota_use(ADA.key, statuses, read_policy(rig.store.public), rig.clock())
    assert [line.left for line in lines if line.kind is Kind.METRIC] == [1]
    queue(rig, 2)
    said = refusal(rig, numbered(3)).message
    assert said.startswith("1 of your scoring modules were scored") and "2 more wait" in said
    rig.worker().run_all()
    assert refusal(rig, numbered(3)).message.startswith("3 of your scoring modules were scored")


def test_what_failed_or_was_withdrawn_is_not_charged_until_it_is_sent_again(rig: Rig) -> None:
    allow(rig, scored=1, unfinished=1)
    rig.acts.withdraw(queue(rig, 0), ADA)
    rig.backend.score = lambda *_: 1 / 0
    second = queue(rig, 1)
    rig.worker().run_all()
    assert rig.ledger.status(second).state is State.FAILED
    queue(rig, 2)
    refusal(rig, numbered(1))


@pytest.mark.parametrize(("scored", "unfinished"), [(0, 1), (1, 0)])
def test_an_operator_may_take_only_assays_own(rig: Rig, scored: int, unfinished: int) -> None:
    allow(rig, scored=scored, unfinished=unfinished)
    assert "operator" in refusal(rig, numbered(0)).hint
    queue(rig, 0, account=ASSAY)


@pytest.mark.parametrize("by_operator", [True, False])
def test_what_runs_a_second_time_is_charged_once(rig: Rig, by_operator: bool) -> None:
    allow(rig, scored=2, unfinished=2)
    first = queue(rig, 0)
    rig.worker().run_all()
    if by_operator:
        rig.acts.rerun(first, ROOT, "new data")
    else:
        desks.happen(rig, first, State.QUEUED)
        rig.clock.move(days=1)
        rig.worker().run_all()
    statuses = rig.ledger.whole_statuses()
    found = allowed(ADA.key, Kind.METRIC, statuses, policy_of(2, 2), rig.clock())
    assert found is not None
    assert (found.standing.scored, found.standing.promised) == (1, 0)
    queue(rig, 1)


def test_when_the_next_is_free_is_counted_from_the_oldest_charge(rig: Rig) -> None:
    one = Status(submission=rig.send().submission, state=State.PUBLISHED, since=NOW, by="w")
    charged = [
        one.model_copy(update={"scored_at": NOW - timedelta(days=days)}) for days in (8, 6, 2)
    ]
    found = allowed(ADA.key, Kind.METRIC, charged, policy_of(2, 2), NOW)
    assert found is not None
    with refused("quota_exceeded", "2026-01-11 00:00 UTC"):
        found.check()


def test_two_tabs_at_once_get_no_more_than_one_after_the_other(rig: Rig) -> None:
    allow(rig, scored=10, unfinished=1)
    desks.overtaken(rig, lambda: queue(rig, 1))
    with refused("quota_exceeded"):
        rig.send(numbered(0))
    assert [s.submission.name for s in rig.ledger.statuses()] == ["grey-1"]


def test_two_tabs_with_the_same_content_make_one_submission(rig: Rig) -> None:
    desks.overtaken(rig, lambda: queue(rig, 0))
    assert rig.desk.submit_metric(rig.module(numbered(0)), account=ADA).recognised
    assert len(rig.ledger.statuses()) == 1


@pytest.mark.parametrize("private", [False, True])
def test_who_is_banned_between_check_and_commit_does_not_come_in(rig: Rig, private: bool) -> None:
    desks.overtaken(rig, lambda: rig.acts.ban(ADA.key, ROOT, "spam"))
    with refused("banned"):
        rig.send(private=private)
    rig.worker().run_all()
    (status,) = rig.ledger.whole_statuses()
    assert (status.state, status.code) == (State.FAILED if private else State.REJECTED, BANNED)
    assert rig.backend.asked == []


def test_the_banned_are_told_why_and_may_send_again_once_it_is_lifted(rig: Rig) -> None:
    rig.send()
    rig.acts.ban(ADA.key, ROOT, "a mix-up")
    assert "a mix-up" in refusal(rig, MODULE, "banned").message
    with refused("banned"):
        rig.send_scores(desks.SCORES)
    assert rig.send(account=BOB).state is State.QUEUED
    rig.acts.unban(ADA.key, ROOT, "It was one.")
    accepted = rig.desk.submit_metric(rig.module(), account=ADA)
    assert (accepted.recognised, accepted.status.state) == (True, State.QUEUED)


def test_a_refusal_names_the_ban_before_the_gate_the_form_and_the_allowance(rig: Rig) -> None:
    """From the outside in: nobody mends a module that would not be taken all the same."""
    nothing: Files = {"assay.toml": b"name = 1"}
    allow(rig, scored=0, unfinished=1)
    rig.isolated = False
    rig.acts.ban(ADA.key, ROOT, "spam")
    refusal(rig, nothing, "banned")
    rig.acts.unban(ADA.key, ROOT, "no spam")
    refusal(rig, nothing, "code_refused")
    rig.isolated = True
    refusal(rig, nothing, "several_problems")
    refusal(rig, numbered(0))
    allow(rig, scored=9, unfinished=9)
    queue(rig, 0)
    allow(rig, scored=0, unfinished=9)
    changed = desks.module("grey-0", more=b"x = 1")
    refusal(rig, changed)
    allow(rig, scored=9, unfinished=9)
    rig.toy.has_questions = lambda data: False  # type: ignore[method-assign]
    refusal(rig, changed, "version_taken")
    refusal(rig, numbered(1), "images_missing")
