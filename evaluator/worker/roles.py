"""Roles of a worker."""

from __future__ import annotations

from enum import StrEnum


class WorkerRole(StrEnum):
    """The scorer role runs code and sees no answers; the judge role has them and runs no code."""

    BOTH = "both"
    SCORE = "score"
    JUDGE = "judge"

    @property
    def scores(self) -> bool:
        """Whether code is run."""
        return self is not WorkerRole.JUDGE

    @property
    def judges(self) -> bool:
        """Whether scores become results."""
        return self is not WorkerRole.SCORE
