"""Use of an account's quota, computed from events alone."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from pydantic import BaseModel, ConfigDict

from leaderboard.ledger.policy import Policy
from leaderboard.records import Kind, Status


class QuotaUse(BaseModel):
    """Where an account stands with one kind of submission."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Kind
    scored: int
    """Charged within the period."""
    scored_most: int
    unfinished: int
    unfinished_most: int
    promised: int = 0
    """Of the unfinished, those that are charged if they are scored: all but reruns. They count as
    if they were: otherwise many at once would be scored more often than one after the other."""
    next_free: datetime | None = None
    """When the oldest charge leaves the period; None where nothing is charged."""

    @property
    def left(self) -> int:
        """How many more can be sent and scored now."""
        return max(0, self.scored_most - self.scored - self.promised)


def quota_use(
    account_key: str, statuses: Iterable[Status], policy: Policy, now: datetime
) -> tuple[QuotaUse, ...]:
    """Where an account stands, one line for each kind the policy knows.

    A submission is charged once, at the time it was first scored (`Status.scored_at`), however
    often an operator has it run again.
    """
    own = [s for s in statuses if s.submission.account == account_key]
    return tuple(_standing(kind, own, policy, now) for kind in policy.allowances)


def _standing(kind: Kind, own: list[Status], policy: Policy, now: datetime) -> QuotaUse:
    of_kind = [s for s in own if s.submission.kind is kind]
    charged = sorted(
        s.scored_at
        for s in of_kind
        if s.scored_at is not None and s.scored_at > now - policy.period
    )
    allowance = policy.allowances[kind]
    return QuotaUse(
        kind=kind,
        scored=len(charged),
        scored_most=allowance.scored,
        unfinished=sum(s.unfinished for s in of_kind),
        unfinished_most=allowance.unfinished,
        promised=sum(s.unfinished and s.scored_at is None for s in of_kind),
        next_free=charged[0] + policy.period if charged else None,
    )
