"""Quota policy and bans of accounts, in files of the public repository."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Literal, Self

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, field_validator, model_validator

from leaderboard.ledger.private_records import BANNED
from leaderboard.records import Event, Kind
from leaderboard.states import State
from leaderboard.store.interface import NotFoundError, Repository

POLICY_PATH = "policy.json"
MOST_ALLOWED = 999_999
"""Largest quota that can be set; records of before may hold larger ones."""


class Quota(BaseModel):
    """What one account may have of one kind of submission."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    scored: int = Field(ge=0)
    """Submissions that may be scored within any period. Only a scored result is charged: what is
    rejected, fails or is withdrawn before it was scored costs nothing."""
    unfinished: int = Field(ge=0)
    """Submissions that may wait or run at the same time."""


_USUAL = MappingProxyType(
    {
        Kind.METRIC: Quota(scored=10, unfinished=3),
        Kind.SCORES: Quota(scored=40, unfinished=10),
        Kind.GENERATIONS: Quota(scored=5, unfinished=2),
    }
)
_LATER = (Kind.GENERATIONS,)


class Policy(BaseModel):
    """Allowances and their period."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: Literal[1] = 1
    period_days: int = Field(default=7, ge=1, le=366)
    allowances: dict[Kind, Quota] = Field(default_factory=lambda: dict(_USUAL))
    reevaluate: bool = True
    """Whether a worker that starts queues again what a new revision or version concerns; otherwise
    an operator says when."""

    @field_validator("allowances")
    @classmethod
    def _older(cls, given: dict[Kind, Quota]) -> dict[Kind, Quota]:
        # A policy that is older than generations says nothing of them.
        return {**given, **{kind: _USUAL[kind] for kind in _LATER if kind not in given}}

    @model_validator(mode="after")
    def _every_kind(self) -> Self:
        missing = [kind for kind in Kind if kind not in self.allowances]
        if missing:
            raise ValueError(f"no allowance is given for {', '.join(missing)}")
        return self

    @property
    def largest(self) -> int:
        """The largest of its quotas."""
        every = self.allowances.values()
        return max(n for one in every for n in (one.scored, one.unfinished))

    @property
    def period(self) -> timedelta:
        """The rolling window in which scored submissions are counted."""
        return timedelta(days=self.period_days)


def read_policy(public: Repository) -> Policy:
    """The policy of a store; the default where its operator set none."""
    try:
        return Policy.model_validate_json(public.read(POLICY_PATH))
    except NotFoundError:
        return Policy()


BANS_PATH = "bans.json"


class Ban(BaseModel):
    """An account that may not submit until the ban is lifted."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    account: str
    """Its key, as `leaderboard.accounts` has it."""
    reason: str
    by: str
    """Key of the operator's account."""
    at: AwareDatetime

    @property
    def record(self) -> bytes:
        """What the chronicle holds the hash of."""
        return self.model_dump_json().encode()


def rejection(ban: Ban) -> Event:
    """What a ban does to a public submission that waits and was never scored."""
    return Event(
        at=ban.at,
        state=State.REJECTED,
        by=ban.by,
        code=BANNED,
        fault="submitter",
        reason=f"{ban.account} was banned: {ban.reason}",
        hint="Send it again once the ban is lifted.",
    )


def read_bans(public: Repository) -> dict[str, Ban]:
    """The bans in force, by account key."""
    try:
        return parse_bans(public.read(BANS_PATH))
    except NotFoundError:
        return {}


def parse_bans(content: bytes) -> dict[str, Ban]:
    """The inverse of `bans_file`."""
    found = json.loads(content)
    return {key: Ban.model_validate(ban) for key, ban in found.items()}


def bans_file(bans: Mapping[str, Ban]) -> dict[str, bytes]:
    """The file that says which bans are in force."""
    content = {key: ban.model_dump(mode="json") for key, ban in sorted(bans.items())}
    return {BANS_PATH: json.dumps(content, indent=1, ensure_ascii=False).encode()}
