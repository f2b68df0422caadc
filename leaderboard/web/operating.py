"""Actions on submissions, accounts and the policy. Rights are checked where the action is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from benchmarks.errors import AssayError, SubmitterError
from leaderboard.accounts import Account
from leaderboard.governance.acts import Acts
from leaderboard.governance.rights import Action
from leaderboard.ledger.policy import Allowance, Policy
from leaderboard.records import Kind, Status
from leaderboard.rendering import render
from leaderboard.states import LEGEND
from leaderboard.web.page import Context
from leaderboard.web.submitting import refused
from leaderboard.web.visitors import required

BUTTONS: Mapping[Action, str] = {
    Action.PUBLISH: "Publish",
    Action.WITHDRAW: "Withdraw",
    Action.HIDE: "Hide",
    Action.SHOW: "Show again",
    Action.RERUN: "Run again",
}
"""In the order of display."""
REASONED = frozenset({Action.HIDE, Action.SHOW, Action.RERUN})
"""Actions that take a reason."""
KINDS = (Kind.METRIC, Kind.SCORES, Kind.GENERATIONS)
"""In the order of the fields of a policy."""


@dataclass(frozen=True)
class PolicyForm:
    """The fields of a policy, as they were filled in."""

    # days of the period; then, of scoring modules, of scores files and of generations each, how many may be scored within it and how many may wait or run at once
    numbers: tuple[float | None, ...]
    reason: str = ""  # why it is changed

    def policy(self) -> Policy:
        """The policy that is asked for."""
        try:
            days, *allowed = (_whole(given) for given in self.numbers)
            return Policy(
                period_days=days,
                allowances={
                    kind: Allowance(scored=scored, unfinished=unfinished)
                    for kind, scored, unfinished in zip(
                        KINDS, allowed[::2], allowed[1::2], strict=True
                    )
                },
            )
        except ValueError as error:
            raise SubmitterError(
                "bad_policy",
                "A policy has whole numbers: a period of 1 to 366 days, and quotas from 0.",
                "Fill in every field.",
            ) from error


@dataclass(frozen=True)
class Request:
    """What a button asks for."""

    action: Action  # what is to be done
    submission_id: str  # to which submission
    reason: str = ""  # why; some actions need one


def act_on(context: Context, acts: Acts, account: Account | None, asked: Request) -> str:
    """Do one thing to one submission, and say what came of it."""

    def act() -> str:
        by = required(context, account)
        submission_id, reason = asked.submission_id, asked.reason
        ways: Mapping[Action, Callable[[], Status]] = {
            Action.WITHDRAW: lambda: acts.withdraw(submission_id, by, reason),
            Action.PUBLISH: lambda: acts.publish(submission_id, by),
            Action.HIDE: lambda: acts.hide(submission_id, by, reason),
            Action.SHOW: lambda: acts.show(submission_id, by, reason),
            Action.RERUN: lambda: acts.rerun(submission_id, by, reason),
        }
        return _done("Done.", status=ways[asked.action]())

    return _said(act)


def ask_to_withdraw(context: Context, account: Account | None, submission_id: str) -> str:
    """What withdrawing would mean, for the step before it."""

    def act() -> str:
        status = context.own(required(context, account)).status(submission_id)
        return render("submit/sure.html", own=status.submission)

    return _said(act)


def ban(
    context: Context, acts: Acts, account: Account | None, key: str, reason: str, *, lift: bool
) -> str:
    """Ban an account, or lift its ban."""

    def act() -> str:
        by, whose = required(context, account), key.strip()
        if lift:
            acts.unban(whose, by, reason)
            return _done(f"{whose[:120]} may submit again.")
        acts.ban(whose, by, reason)
        return _done(f"{whose[:120]} may not submit any more.")

    return _said(act)


def set_policy(context: Context, acts: Acts, account: Account | None, form: PolicyForm) -> str:
    """Say what every account may have from now on."""

    def act() -> str:
        by = required(context, account)
        acts.set_policy(form.policy(), by, form.reason)
        text = "It counts from now on, for what was scored before too."
        return _done("The policy is set.", text)

    return _said(act)


def bans_list(context: Context) -> str:
    """The bans in force, with their reasons."""
    bans = tuple(context.reader.bans().values())
    return render("submit/bans.html", bans=bans, legend=LEGEND)


def _done(strong: str, text: str = "", status: Status | None = None) -> str:
    return render("submit/done.html", strong=strong, text=text, status=status, legend=LEGEND)


def _said(act: Callable[[], str]) -> str:
    try:
        return act()
    except AssayError as error:
        return refused(error)


def _whole(given: float | None) -> int:
    if given is None or given != int(given):
        raise ValueError("not a whole number")
    return int(given)
