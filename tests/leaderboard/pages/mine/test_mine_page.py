"""What an account sees of its own submissions, and what its buttons do."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from leaderboard.governance.accounts import Account
from leaderboard.governance.acts import Acts
from leaderboard.governance.bans import read_bans
from leaderboard.governance.policy import Allowance, Policy, read_policy
from leaderboard.governance.rights import Action, actions
from leaderboard.governance.signing_in import SignIn, Way
from leaderboard.ledger.chronicle import read_lines, verify
from leaderboard.pages.mine.acts import Deed, PolicyForm, act_on, bar, set_policy
from leaderboard.pages.mine.mine_page import Asked, mine
from leaderboard.pages.mine.operator_panel import bans_list
from leaderboard.pages.page import Context
from leaderboard.pages.reading import Reader
from leaderboard.records import Kind
from leaderboard.states import State
from leaderboard.store.memory import memory_store
from tests.leaderboard.pages.mine.own_submissions import (
    ADA,
    FAILED,
    GRACE,
    HELD,
    NEW,
    OLD,
    OPERATOR,
    QUEUED,
    give,
)
from tests.leaderboard.pages.synthetic import NASTY, NOW, StubDesk, cards, fill


@pytest.fixture
def site() -> Context:
    store = give(fill(memory_store()), ADA)
    return Context(
        Reader(store, cards()), store.live, StubDesk(), cards(), lambda: NOW, store, SignIn(Way.HUB)
    )


def acts(site: Context) -> Acts:
    return Acts(site.store, site.cards, site.clock)


def shown(site: Context, account: Account | None, submission_id: str = "") -> str:
    return "".join(mine(site, account, Asked(submission_id)).parts)


def test_a_guest_is_told_how_to_sign_in_and_shown_nothing(site: Context) -> None:
    found = mine(site, None, Asked(HELD, everybody=True))
    assert "You are not signed in" in found.parts[0]
    assert found.parts[1:] == ("", "", "")
    assert found.actions == ()


def test_an_owner_sees_all_of_its_own_private_ones_by_name(site: Context) -> None:
    html = shown(site, ADA)
    for name in ("secret-metric", "waiting-metric", "steady-metric"):
        assert name in html
    assert "CLIPScore" not in html
    assert "3 of 10 scored" in html


def test_held_results_are_shown_to_their_owner_with_intervals(site: Context) -> None:
    html = shown(site, ADA, HELD)
    assert "Results (only you see them)" in html
    assert "<td>0.630</td>" in html
    assert "[0.525, 0.733]" in html
    assert "All 13 rows" in html
    assert "own network namespace" in html


def test_a_failure_says_whose_fault_it_is_and_shows_the_log_as_text(site: Context) -> None:
    html = shown(site, ADA, FAILED)
    assert "<code>scorer_failed</code>" in html
    assert "to be mended by the submitter" in html
    assert "Catch the error in `score`" in html
    assert "=1+2|cmd\n" in html
    for hostile in ("<img", "\x1b", "\u202e", "{{7*7}}"):
        assert hostile not in html


def test_other_versions_lead_to_one_another(site: Context) -> None:
    assert f"./mine?submission={OLD}" in shown(site, ADA, NEW)
    assert f"./mine?submission={NEW}" in shown(site, ADA, OLD)


@pytest.mark.parametrize("submission_id", [HELD, QUEUED, "private-0123456789", NASTY])
def test_what_is_another_s_looks_like_what_is_nobody_s(site: Context, submission_id: str) -> None:
    html = shown(site, GRACE, submission_id)
    assert "You have no submission of that id here." in html
    assert "<code>not_yours</code>" in html
    assert "secret-metric" not in html
    assert "waiting-metric" not in html
    assert "<img" not in html


@pytest.mark.parametrize("account", [ADA, GRACE, OPERATOR])
@pytest.mark.parametrize("submission_id", [HELD, FAILED, QUEUED, OLD, NEW])
def test_exactly_the_buttons_that_work_are_offered(
    site: Context, account: Account, submission_id: str
) -> None:
    status = site.own(OPERATOR).status(submission_id)
    assert mine(site, account, Asked(submission_id)).actions == actions(status, account)


def test_only_operators_see_everybody_s(site: Context) -> None:
    everybody = Asked(everybody=True)
    assert "CLIPScore" in mine(site, OPERATOR, everybody).parts[2]
    assert "secret-metric" in mine(site, OPERATOR, everybody).parts[2]
    assert "Nothing submitted yet" in mine(site, GRACE, everybody).parts[2]
    assert "Everybody" not in mine(site, GRACE, everybody).parts[0]


def test_nothing_changes_while_nothing_happens(site: Context) -> None:
    later = replace(site, clock=lambda: NOW + timedelta(seconds=20))
    asked = Asked(FAILED)
    assert mine(site, ADA, asked).digests == mine(later, ADA, asked).digests


def test_an_owner_withdraws_and_the_ledger_says_so(site: Context) -> None:
    html = act_on(site, acts(site), ADA, Deed(Action.WITHDRAW, QUEUED))
    assert ">withdrawn</span>" in html
    line = read_lines(site.store.public, QUEUED)[-1]
    assert (line.action, line.by) == ("withdrawn", ADA.key)
    assert verify(site.store.public) == ()


@pytest.mark.parametrize(
    ("account", "action", "submission_id", "code"),
    [
        (None, Action.WITHDRAW, QUEUED, "not_signed_in"),
        (GRACE, Action.WITHDRAW, QUEUED, "not_yours"),
        (GRACE, Action.PUBLISH, HELD, "not_yours"),
        (OPERATOR, Action.PUBLISH, HELD, "not_yours"),
        (ADA, Action.HIDE, NEW, "not_operator"),
        (ADA, Action.RERUN, FAILED, "not_operator"),
        (ADA, Action.PUBLISH, QUEUED, "not_now"),
        (ADA, Action.WITHDRAW, NASTY, "unknown_submission"),
    ],
)
def test_who_may_not_is_told_why_and_nothing_happens(
    site: Context, account: Account | None, action: Action, submission_id: str, code: str
) -> None:
    before = site.store.public.head()
    html = act_on(site, acts(site), account, Deed(action, submission_id, "because"))
    assert f"<code>{code}</code>" in html
    assert "<img" not in html
    assert site.store.public.head() == before


def test_an_operator_hides_with_a_reason_that_is_shown_as_text(site: Context) -> None:
    without = act_on(site, acts(site), OPERATOR, Deed(Action.HIDE, NEW, "  "))
    assert 'role="alert"' in without
    act_on(site, acts(site), OPERATOR, Deed(Action.HIDE, NEW, f"Copied. {NASTY}"))
    assert site.own(ADA).status(NEW).state is State.HIDDEN
    html = shown(site, ADA, NEW)
    assert "Copied." in html
    assert "<img" not in html


def test_a_ban_is_shown_with_its_reason_and_lifted_again(site: Context) -> None:
    assert "not_operator" in bar(site, acts(site), ADA, GRACE.key, "Floods us.", lift=False)
    bar(site, acts(site), OPERATOR, f" {GRACE.key} ", f"Floods us. {NASTY}", lift=False)
    listed = bans_list(read_bans(site.store.public))
    assert GRACE.key in listed
    assert "Floods us." in listed
    assert "<img" not in listed
    assert "Floods us." in shown(site, GRACE)
    bar(site, acts(site), OPERATOR, GRACE.key, "Was a mistake.", lift=True)
    assert read_bans(site.store.public) == {}


def test_a_policy_is_set_whole_or_not_at_all(site: Context) -> None:
    for numbers in ((7, 1, 1, 1, None), (0, 1, 1, 1, 1), (7, 1.5, 1, 1, 1), (7, -1, 1, 1, 1)):
        html = set_policy(site, acts(site), OPERATOR, PolicyForm((*numbers, 1, 1), "because"))
        assert "<code>bad_policy</code>" in html
    assert read_policy(site.store.public) == Policy()
    set_policy(site, acts(site), OPERATOR, PolicyForm((30, 2, 1, 4, 3, 6, 5), "Fewer machines."))
    policy = read_policy(site.store.public)
    assert (policy.period_days, policy.allowances[Kind.SCORES].scored) == (30, 4)
    assert policy.allowances[Kind.GENERATIONS] == Allowance(scored=6, unfinished=5)
    assert "3 of 2 scored, <b>0 left</b>, the next is free at" in shown(site, ADA)
