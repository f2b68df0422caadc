"""Buttons of submissions and of operators: what they do, and to whom they say no."""

from __future__ import annotations

import math

import pytest

from benchmarks.problems import Problem
from leaderboard.accounts import Account
from leaderboard.governance.authentication import Authentication, AuthenticationMethod
from leaderboard.governance.operator_actions import OperatorActions
from leaderboard.governance.rights import Action, actions
from leaderboard.ledger.audit_log import read_lines, verify
from leaderboard.ledger.policy import (
    MOST_ALLOWED,
    POLICY_PATH,
    Policy,
    Quota,
    read_bans,
    read_policy,
)
from leaderboard.records import Kind
from leaderboard.states import State
from leaderboard.store.interface import transact
from leaderboard.submission_service import BuiltinForm, ValidationReport
from leaderboard.views.submit import SubmitQuery
from leaderboard.web.page import Context
from leaderboard.web.submission_controls import head, operator_parts, submit_parts
from leaderboard.web.submitting import (
    act_on,
    ask_to_withdraw,
    ban,
    bans_list,
    check_builtin,
    queue_builtin,
    set_policy,
)
from tests.kit import boards
from tests.kit.html import Node, parse, read
from tests.kit.site import Caller, app_of, endpoints, served
from tests.kit.store import memory_store
from tests.leaderboard.web import own_submissions as sent


@pytest.fixture
def site() -> Context:
    return boards.site_of(sent.give(boards.fill(memory_store()), sent.ADA))


def acts(site: Context) -> OperatorActions:
    return OperatorActions(site.store, site.cards, site.clock)


def parsed(html: str) -> Node:
    return parse(html)


def did(site: Context, account: Account | None, action: Action, ident: str, why: str = "") -> Node:
    return parsed(act_on(site, acts(site), account, action, ident, reason=why))


@pytest.mark.parametrize("account", [sent.ADA, sent.GRACE, sent.OPERATOR])
def test_exactly_the_buttons_that_work_are_offered(site: Context, account: Account) -> None:
    for ident in (sent.HELD, sent.FAILED, sent.QUEUED, sent.OLD, sent.NEW):
        wanted = actions(site.own(sent.OPERATOR).status(ident), account)
        assert submit_parts(site, account, SubmitQuery(submission_id=ident)).actions == wanted
        of_operators = operator_parts(site, account, ident)
        assert of_operators.actions == (wanted if account.operator else ())
        assert ("secret-metric" in of_operators.html[1]) is account.operator


def test_an_author_withdraws_after_being_asked_and_the_audit_log_says_so(site: Context) -> None:
    assert "for good" in parsed(ask_to_withdraw(site, sent.ADA, sent.QUEUED))
    assert "not_yours" in ask_to_withdraw(site, sent.GRACE, sent.QUEUED)
    assert "withdrawn" in did(site, sent.ADA, Action.WITHDRAW, sent.QUEUED).texts("span")
    line = read_lines(site.store.public, sent.QUEUED)[-1]
    assert (line.action, line.by) == ("withdrawn", sent.ADA.key)
    assert verify(site.store.public) == ()


@pytest.mark.parametrize(
    ("account", "action", "ident", "code"),
    [(None, Action.WITHDRAW, sent.QUEUED, "not_signed_in"), (sent.GRACE, Action.WITHDRAW, sent.QUEUED, "not_yours"),
     (sent.ADA, Action.RERUN, sent.FAILED, "not_operator"), (sent.ADA, Action.PUBLISH, sent.QUEUED, "not_now"),
     (sent.ADA, Action.WITHDRAW, boards.NASTY, "unknown_submission")],
)  # fmt: skip
def test_who_may_not_is_told_why_and_nothing_happens(
    site: Context, account: Account | None, action: Action, ident: str, code: str
) -> None:
    before = site.store.public.head()
    assert code in did(site, account, action, ident, "because").texts("code")
    assert site.store.public.head() == before


def test_an_operator_hides_with_a_reason(site: Context) -> None:
    assert did(site, sent.OPERATOR, Action.HIDE, sent.NEW, "  ").all("[role=alert]")
    did(site, sent.OPERATOR, Action.HIDE, sent.NEW, f"Copied. {boards.NASTY}")
    assert site.own(sent.ADA).status(sent.NEW).state is State.HIDDEN
    assert "Copied." in submit_parts(site, sent.ADA, SubmitQuery(submission_id=sent.NEW)).html[1]


def test_a_ban_is_shown_with_its_reason_and_lifted_again(site: Context) -> None:
    assert "not_operator" in ban(
        site, acts(site), sent.ADA, sent.GRACE.key, "Floods us.", lift=False
    )
    ban(
        site,
        acts(site),
        sent.OPERATOR,
        f" {sent.GRACE.key} ",
        f"Floods us. {boards.NASTY}",
        lift=False,
    )
    listed = parsed(bans_list(site))
    assert sent.GRACE.key in listed and "Floods us." in listed
    assert "Floods us." in head(site, sent.GRACE, Kind.METRIC)
    ban(site, acts(site), sent.OPERATOR, sent.GRACE.key, "Was a mistake.", lift=True)
    assert read_bans(site.store.public) == {} and "Nobody" in bans_list(site)


def test_a_policy_is_set_whole_or_not_at_all(site: Context) -> None:
    for numbers in ((7, 1, 1, 1, None), (0, 1, 1, 1, 1), (7, 1.5, 1, 1, 1), (7, -1, 1, 1, 1),
                    (7, 1e30, 1, 1, 1), (7, math.inf, 1, 1, 1)):  # fmt: skip
        html = set_policy(site, acts(site), sent.OPERATOR, (*numbers, 1, 1), "because")
        assert "bad_policy" in html
    assert read_policy(site.store.public) == Policy()
    set_policy(site, acts(site), sent.OPERATOR, (30, 2, 1, 4, 3, 6, 5), "Fewer machines.")
    policy = read_policy(site.store.public)
    assert (policy.period_days, policy.allowances[Kind.SCORES].scored) == (30, 4)
    assert policy.allowances[Kind.GENERATIONS] == Quota(scored=6, unfinished=5)
    quota = read(submit_parts(site, sent.ADA, SubmitQuery()).html[3])
    assert "0 left: 3 of 2 used in 30 days" in quota and "the next is free at" in quota


@pytest.mark.slow
def test_the_fields_of_a_policy_hold_any_that_was_set_and_take_whole_numbers_alone() -> None:
    store = boards.fill(memory_store())
    huge = dict.fromkeys(Kind, Quota(scored=10**30, unfinished=1))
    record = Policy(allowances=huge).model_dump_json().encode()
    transact(store.public, lambda: {POLICY_PATH: record}, "of before")
    here = Authentication(AuthenticationMethod.LOCAL, local="root")
    app, options = app_of(store, boards.cards(), here)
    page = [one for one in endpoints(app) if one.page == "operators"]
    (put,) = (one for one in page if one.clicked == "Set policy")
    with served(app, options) as address:
        caller = Caller(address)
        opened = [one for one in page if not one.clicked and not one.inputs]
        assert any(str(MOST_ALLOWED) in caller.by_queue(one.number, []) for one in opened)
        assert "bad_policy" in caller.by_queue(put.number, [7, 1.5, *[1] * 5, "because"])
    assert read_policy(store.public).allowances == huge


WANTED = BuiltinForm("pickscore", gpu="t4")


@pytest.mark.parametrize(("account", "code"), [(None, "not_signed_in"), (sent.ADA, "not_operator")])
def test_only_operators_check_and_queue_built_in_metrics(
    account: Account | None, code: str
) -> None:
    desk = boards.StubDesk()
    for ask in (check_builtin, queue_builtin):
        assert code in parsed(ask(boards.site_of(desk=desk), account, WANTED)).texts("code")
    assert desk.taken == []


def test_an_operator_sees_what_a_metric_needs_and_all_that_stands_in_its_way() -> None:
    desk = boards.StubDesk()
    site = boards.site_of(desk=desk)
    assert "no_metric" in check_builtin(site, sent.OPERATOR, BuiltinForm(""))
    problems = (
        Problem("memory_too_small", f"Too small. {boards.NASTY}", "Take another."),
        Problem("checkpoint_missing", "No such repository."),
    )
    desk.found = ValidationReport(problems, name="pickscore", notes=("Memory: about 4.9 GB.",))
    for ask in (check_builtin, queue_builtin):
        found = parsed(ask(site, sent.OPERATOR, WANTED))
        assert found.texts(".as-code") == ["memory_too_small", "checkpoint_missing"]
        assert found.all("[role=alert]")
    assert "Memory: about 4.9 GB." in check_builtin(site, sent.OPERATOR, WANTED)
    assert desk.taken == ["examined pickscore"] * 2


@pytest.mark.slow
def test_the_form_sends_the_question_file_along() -> None:
    desk = boards.StubDesk()
    here = Authentication(AuthenticationMethod.LOCAL, local="root")
    app, options = app_of(boards.fill(memory_store()), boards.cards(), here, desk=desk)
    page = [one for one in endpoints(app) if one.page == "operators"]
    (queue,) = (one for one in page if one.clicked == "Queue metric")
    with served(app, options) as address:
        caller = Caller(address)
        for opening in (one for one in page if not one.clicked and not one.inputs):
            caller.by_queue(opening.number, [])  # fills the choices
        (place,) = caller.upload("gradio_api/upload", "left.jsonl").json()
        file = {"path": place, "meta": {"_type": "gradio.FileData"}}
        assert "queued" in caller.by_queue(queue.number, ["pickscore", "l4", file])
    wanted = desk.sent[0]["wanted"]
    assert isinstance(wanted, BuiltinForm) and wanted.questions is not None
    assert (wanted.name, wanted.gpu, wanted.questions.name) == ("pickscore", "l4", "left.jsonl")


def test_what_an_operator_queues_is_named_and_for_the_gpu_that_was_chosen() -> None:
    desk = boards.StubDesk()
    found = parsed(check_builtin(boards.site_of(desk=desk), sent.OPERATOR, WANTED))
    assert found.all("[role=status]") and "Ratings" in found
    queued = parsed(queue_builtin(boards.site_of(desk=desk), sent.OPERATOR, WANTED))
    assert queued.links("./ledger?subject=") and "queued" in queued
    assert desk.sent == [{"account": sent.OPERATOR, "wanted": WANTED}]
