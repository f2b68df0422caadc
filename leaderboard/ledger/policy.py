"""Quota policy of the operator, and its file."""

from __future__ import annotations

from datetime import timedelta
from types import MappingProxyType
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from leaderboard.records import Kind
from leaderboard.store.interface import NotFoundError, Repository

PATH = "policy.json"


class Allowance(BaseModel):
    """What one account may have of one kind of submission."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    scored: int = Field(ge=0)
    """Submissions that may be scored within any period. Only a scored result is charged: what is
    rejected, fails or is withdrawn before it was scored costs nothing."""
    unfinished: int = Field(ge=0)
    """Submissions that may wait or run at the same time."""


_USUAL = MappingProxyType(
    {
        Kind.METRIC: Allowance(scored=10, unfinished=3),
        Kind.SCORES: Allowance(scored=40, unfinished=10),
        Kind.GENERATIONS: Allowance(scored=5, unfinished=2),
    }
)
_LATER = (Kind.GENERATIONS,)


class Policy(BaseModel):
    """Allowances and their period."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: Literal[1] = 1
    period_days: int = Field(default=7, ge=1, le=366)
    allowances: dict[Kind, Allowance] = Field(default_factory=lambda: dict(_USUAL))
    reevaluate: bool = True
    """Whether a worker that starts queues again what a new revision or version concerns; otherwise
    an operator says when."""

    @field_validator("allowances")
    @classmethod
    def _older(cls, given: dict[Kind, Allowance]) -> dict[Kind, Allowance]:
        # A policy that is older than generations says nothing of them.
        return {**given, **{kind: _USUAL[kind] for kind in _LATER if kind not in given}}

    @model_validator(mode="after")
    def _every_kind(self) -> Self:
        missing = [kind for kind in Kind if kind not in self.allowances]
        if missing:
            raise ValueError(f"no allowance is given for {', '.join(missing)}")
        return self

    @property
    def period(self) -> timedelta:
        """The rolling window in which scored submissions are counted."""
        return timedelta(days=self.period_days)


def read_policy(public: Repository) -> Policy:
    """The policy of a store; the default where its operator set none."""
    try:
        return Policy.model_validate_json(public.read(PATH))
    except NotFoundError:
        return Policy()
