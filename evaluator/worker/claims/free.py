"""Submissions that may be claimed."""

from __future__ import annotations

from dataclasses import dataclass

from evaluator.worker.claims.liveness import Gone
from leaderboard.records import Status
from leaderboard.states import State


@dataclass(frozen=True)
class Free:
    """What may be claimed, and why if somebody else holds it."""

    status: Status
    gone: Gone | None

    @property
    def submission_id(self) -> str:
        """Its id."""
        return self.status.submission.submission_id

    @property
    def claimed_as(self) -> State:
        """The state a claim puts it in."""
        return State.JUDGING if is_scored(self.status) else State.CLAIMED


def is_scored(status: Status) -> bool:
    """Whether its scores are in the store: left to a judge, or left behind by one."""
    return status.to_judge or status.state is State.JUDGING
