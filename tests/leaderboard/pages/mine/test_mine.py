"""What an account sees of its own submissions, and what its buttons do."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from leaderboard.pages.mine.acts import Deed, PolicyForm, act_on, bar, set_policy
from leaderboard.pages.mine.mine_page import Asked, mine
from leaderboard.pages.mine.operator_panel import bans_list

from leaderboard.accounts import Account
from leaderboard.governance.acts import Acts
from leaderboard.governance.rights import Action, actions
from leaderboard.ledger.bans import read_bans
from leaderboard.ledger.chronicle import read_lines, verify
from leaderboard.ledger.policy import Allowance, Policy, read_policy
from leaderboard.pages.page import Context
from leaderboard.records import Kind
from leaderboard.states import State
from leaderboard.store.memory import memory_store
from tests.leaderboard.pages.parsed import Node, harmless, read
from tests.leaderboard.pages.synthetic import NASTY, NOW, fill, site_of
from tests.leaderboard.web.own_submissions import (
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

OWN = ("secret-metric", "waiting-metric", "steady-metric")


@pytest.fixture
def site() -> Context:
    return site_of(give(fill(memory_store()), ADA))


def acts(site: Context) -> Acts:
    return Acts(site.store, site.cards, site.clock)


def parsed(html: str) -> Node:
    harmless(html)
    return read(html)


def html_of(site: Context, account: Account | None, ident: str = "") -> str:
    return "".join(mine(site, account, Asked(ident)).parts)


def shown(site: Context, account: Account | None, ident: str = "") -> Node:
    return parsed(html_of(site, account, ident))


def did(site: Context, account: Account | None, action: Action, ident: str, why: str = "") -> Node:
    return parsed(act_on(site, acts(site), account, Deed(action, ident, why)))


def test_a_guest_is_told_how_to_sign_in_and_shown_nothing(site: Context) -> None:
    found = mine(site, None, Asked(HELD, everybody=True))
    assert "not signed" in found.parts[0]
    assert (found.parts[1:], found.actions) == (("", "", ""), ())


def test_an_owner_sees_all_of_its_own_and_held_results_with_intervals(site: Context) -> None:
    page = shown(site, ADA)
    assert all(name in page for name in OWN) and "3 of 10" in page
    assert "CLIPScore" not in html_of(site, ADA)
    held = shown(site, ADA, HELD)
    assert "0.630" in held.texts("td")
    for words in ("[0.525, 0.733]", "All 13 rows", "own network namespace", "only you"):
        assert words in held
    for ident, other in ((NEW, OLD), (OLD, NEW)):
        assert f"./mine?submission={other}" in shown(site, ADA, ident).links()


def test_a_failure_says_whose_fault_it_is_and_shows_the_log_as_text(site: Context) -> None:
    page = shown(site, ADA, FAILED)
    assert "scorer_failed" in page.texts("code") and "=1+2|cmd" in page
    assert "by the submitter" in page and "in `score`" in page


@pytest.mark.parametrize("ident", [HELD, QUEUED, "private-0123456789", NASTY])
def test_what_is_another_s_looks_like_what_is_nobody_s(site: Context, ident: str) -> None:
    html = html_of(site, GRACE, ident)
    assert "not_yours" in parsed(html).texts("code") and not any(name in html for name in OWN)


@pytest.mark.parametrize("account", [ADA, GRACE, OPERATOR])
def test_exactly_the_buttons_that_work_are_offered(site: Context, account: Account) -> None:
    for ident in (HELD, FAILED, QUEUED, OLD, NEW):
        status = site.own(OPERATOR).status(ident)
        assert mine(site, account, Asked(ident)).actions == actions(status, account)


def test_only_operators_see_everybody_s(site: Context) -> None:
    everybody = Asked(everybody=True)
    of_all = mine(site, OPERATOR, everybody).parts[2]
    assert "CLIPScore" in of_all and "secret-metric" in of_all
    other = mine(site, GRACE, everybody).parts
    assert not read(other[2]).all("table") and "Everybody" not in other[0]


def test_nothing_changes_while_nothing_happens(site: Context) -> None:
    later = replace(site, clock=lambda: NOW + timedelta(seconds=20))
    asked = Asked(FAILED)
    assert mine(site, ADA, asked).digests == mine(later, ADA, asked).digests


def test_an_owner_withdraws_and_the_ledger_says_so(site: Context) -> None:
    assert "withdrawn" in did(site, ADA, Action.WITHDRAW, QUEUED).texts("span")
    line = read_lines(site.store.public, QUEUED)[-1]
    assert (line.action, line.by) == ("withdrawn", ADA.key)
    assert verify(site.store.public) == ()


@pytest.mark.parametrize(
    ("account", "action", "ident", "code"),
    [(None, Action.WITHDRAW, QUEUED, "not_signed_in"), (GRACE, Action.WITHDRAW, QUEUED, "not_yours"),
     (GRACE, Action.PUBLISH, HELD, "not_yours"), (OPERATOR, Action.PUBLISH, HELD, "not_yours"),
     (ADA, Action.HIDE, NEW, "not_operator"), (ADA, Action.RERUN, FAILED, "not_operator"),
     (ADA, Action.PUBLISH, QUEUED, "not_now"), (ADA, Action.WITHDRAW, NASTY, "unknown_submission")],
)  # fmt: skip
def test_who_may_not_is_told_why_and_nothing_happens(
    site: Context, account: Account | None, action: Action, ident: str, code: str
) -> None:
    before = site.store.public.head()
    assert code in did(site, account, action, ident, "because").texts("code")
    assert site.store.public.head() == before


def test_an_operator_hides_with_a_reason(site: Context) -> None:
    assert did(site, OPERATOR, Action.HIDE, NEW, "  ").all("[role=alert]")
    did(site, OPERATOR, Action.HIDE, NEW, f"Copied. {NASTY}")
    assert site.own(ADA).status(NEW).state is State.HIDDEN
    assert "Copied." in shown(site, ADA, NEW)


def test_a_ban_is_shown_with_its_reason_and_lifted_again(site: Context) -> None:
    assert "not_operator" in bar(site, acts(site), ADA, GRACE.key, "Floods us.", lift=False)
    bar(site, acts(site), OPERATOR, f" {GRACE.key} ", f"Floods us. {NASTY}", lift=False)
    listed = parsed(bans_list(read_bans(site.store.public)))
    assert GRACE.key in listed and "Floods us." in listed and "Floods us." in shown(site, GRACE)
    bar(site, acts(site), OPERATOR, GRACE.key, "Was a mistake.", lift=True)
    assert read_bans(site.store.public) == {}


def test_a_policy_is_set_whole_or_not_at_all(site: Context) -> None:
    for numbers in ((7, 1, 1, 1, None), (0, 1, 1, 1, 1), (7, 1.5, 1, 1, 1), (7, -1, 1, 1, 1)):
        html = set_policy(site, acts(site), OPERATOR, PolicyForm((*numbers, 1, 1), "because"))
        assert "bad_policy" in html
    assert read_policy(site.store.public) == Policy()
    set_policy(site, acts(site), OPERATOR, PolicyForm((30, 2, 1, 4, 3, 6, 5), "Fewer machines."))
    policy = read_policy(site.store.public)
    assert (policy.period_days, policy.allowances[Kind.SCORES].scored) == (30, 4)
    assert policy.allowances[Kind.GENERATIONS] == Allowance(scored=6, unfinished=5)
    assert "3 of 2 scored, 0 left, the next" in shown(site, ADA)
