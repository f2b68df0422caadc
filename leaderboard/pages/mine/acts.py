"""Buttons of 'My submissions'. Rights are checked where the action is, not by a button."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from benchmarks.errors import SubmitterError
from leaderboard.accounts import Account
from leaderboard.governance.acts import Acts
from leaderboard.governance.rights import Action
from leaderboard.ledger.policy import Allowance, Policy
from leaderboard.pages.page import Context
from leaderboard.pages.shown.markup import submitted, text
from leaderboard.pages.shown.states_shown import chip
from leaderboard.pages.submit.answers import done
from leaderboard.pages.submit.submitting import answer
from leaderboard.pages.visitors import required
from leaderboard.records import Kind, Status

BUTTONS: Mapping[Action, str] = {
    Action.PUBLISH: "Publish",
    Action.WITHDRAW: "Withdraw",
    Action.HIDE: "Hide",
    Action.SHOW: "Show again",
    Action.RERUN: "Run again",
}
"""In the order of display."""


KINDS = (Kind.METRIC, Kind.SCORES, Kind.GENERATIONS)
"""In the order of the fields of a policy."""


@dataclass(frozen=True)
class PolicyForm:
    """The fields of a policy, as they were filled in.

    Attributes:
        numbers: days of the period; then, of scoring modules, of scores files and of generations
            each, how many may be scored within it and how many may wait or run at once.
        reason: why it is changed.
    """

    numbers: tuple[float | None, ...]
    reason: str = ""

    def policy(self) -> Policy:
        """The policy that is asked for.

        Raises:
            SubmitterError: `bad_policy`.
        """
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
                "A policy has whole numbers: a period of 1 to 366 days, and allowances from 0.",
                "Fill in every field.",
            ) from error


def _whole(given: float | None) -> int:
    if given is None or given != int(given):
        raise ValueError("not a whole number")
    return int(given)


@dataclass(frozen=True)
class Deed:
    """What a button asks for.

    Attributes:
        action: what is to be done.
        submission_id: to which submission.
        reason: why; some acts need one.
    """

    action: Action
    submission_id: str
    reason: str = ""


def act_on(context: Context, acts: Acts, account: Account | None, deed: Deed) -> str:
    """Do one thing to one submission, and say what came of it."""

    def act() -> str:
        by = required(context, account)
        own, why = deed.submission_id, deed.reason
        ways: Mapping[Action, Callable[[], Status]] = {
            Action.WITHDRAW: lambda: acts.withdraw(own, by, why),
            Action.PUBLISH: lambda: acts.publish(own, by),
            Action.HIDE: lambda: acts.hide(own, by, why),
            Action.SHOW: lambda: acts.show(own, by, why),
            Action.RERUN: lambda: acts.rerun(own, by, why),
        }
        status = ways[deed.action]()
        return done(
            f"<p><b>{submitted(status.submission.name)}</b> is {chip(status.state)} now. "
            f'<a href="./ledger?subject={text(own)}">See the ledger</a></p>'
        )

    return answer(act)


def ask_to_withdraw(context: Context, account: Account | None, status: Callable[[], Status]) -> str:
    """What withdrawing would mean, for the step before it."""

    def act() -> str:
        required(context, account)
        own = status().submission
        return (
            f'<p class="as-sure"><b>Withdraw {submitted(own.name)} {submitted(own.version, limit=40)} for good?</b> '
            "Its results leave the boards, a run that is under way stops, and it cannot be brought "
            "back; it can be submitted again. The ledger keeps that it was here.</p>"
        )

    return answer(act)


def bar(
    context: Context, acts: Acts, account: Account | None, key: str, reason: str, *, lift: bool
) -> str:
    """Ban an account, or lift its ban."""

    def act() -> str:
        by = required(context, account)
        if lift:
            acts.unban(key.strip(), by, reason)
        else:
            acts.ban(key.strip(), by, reason)
        said = "may submit again" if lift else "may not submit any more"
        return done(f"<p><code>{text(key.strip(), limit=120)}</code> {said}.</p>")

    return answer(act)


def set_policy(context: Context, acts: Acts, account: Account | None, form: PolicyForm) -> str:
    """Say what every account may have from now on."""

    def act() -> str:
        by = required(context, account)
        acts.set_policy(form.policy(), by, form.reason)
        return done(
            "<p>The policy is set. It counts from now on, for what was scored before too.</p>"
        )

    return answer(act)
