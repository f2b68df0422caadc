"""Quota check: the account is not banned, and within what everyone is allowed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from benchmarks.errors import SubmitterError
from leaderboard.accounts import ASSAY, Account
from leaderboard.governance.quota import Standing, standings
from leaderboard.ledger.policy import Policy, read_bans, read_policy
from leaderboard.records import Kind, Status
from leaderboard.store.interface import Repository

_CALLED = {
    Kind.METRIC: "scoring modules",
    Kind.SCORES: "scores files",
    Kind.GENERATIONS: "submissions of generations",
}


def check_not_banned(public: Repository, account: Account) -> None:
    """Whether an account may submit at all.

    Raises:
        SubmitterError: `banned`, with the operator's reason.
    """
    ban = None if account.key == ASSAY.key else read_bans(public).get(account.key)
    if ban is not None:
        raise SubmitterError(
            "banned",
            f"The account {account.name} may not submit here: {ban.reason}",
            "Ask the operator of this installation.",
        )


@dataclass(frozen=True)
class Allowed:
    """What one account may still submit.

    Attributes:
        standing: what it has used, as it is shown to it.
        period_days: in which charges count.
    """

    standing: Standing
    period_days: int

    def check(self) -> None:
        """Whether one more may come.

        Raises:
            SubmitterError: `quota_exceeded`: what is used, of how much, and when more is free.
        """
        standing = self.standing
        called = _CALLED[standing.kind]
        if 0 in (standing.scored_most, standing.unfinished_most):
            raise SubmitterError(
                "quota_exceeded", f"This installation takes no {called} now.", "Ask its operator."
            )
        if standing.unfinished >= standing.unfinished_most:
            raise SubmitterError(
                "quota_exceeded",
                f"{standing.unfinished} of your {called} wait or run already, and "
                f"{standing.unfinished_most} may at the same time.",
                "Wait until one has ended, or withdraw one.",
            )
        if not standing.left:
            promised = standing.promised
            waiting = f", and {promised} more wait or run" if promised else ""
            raise SubmitterError(
                "quota_exceeded",
                f"{standing.scored} of your {called} were scored within {self.period_days} days"
                f"{waiting}; {standing.scored_most} may be.",
                self._when(),
            )

    def _when(self) -> str:
        moment = self.standing.next_free
        if moment is None:
            return "Wait until one has ended without a result, or withdraw one."
        return f"The next is free at {moment:%Y-%m-%d %H:%M} UTC."


def allowed(
    account_key: str, kind: Kind, statuses: Sequence[Status], policy: Policy, now: datetime
) -> Allowed | None:
    """What an account may still submit of one kind; None where nothing limits it.

    Args:
        account_key: whose submissions are counted.
        kind: of submission.
        statuses: all submissions, with the accounts of private ones.
        policy: what is allowed.
        now: the current time.
    """
    if account_key == ASSAY.key:
        return None
    found = standings(account_key, statuses, policy, now)
    standing = next((line for line in found if line.kind is kind), None)
    if standing is None:
        return None
    return Allowed(standing, policy.period_days)


def check_allowance(
    public: Repository, account: Account, kind: Kind, statuses: Sequence[Status], now: datetime
) -> None:
    """Whether an account may have one more submission of a kind.

    Raises:
        SubmitterError: `quota_exceeded`.
    """
    found = allowed(account.key, kind, statuses, read_policy(public), now)
    if found is not None:
        found.check()
