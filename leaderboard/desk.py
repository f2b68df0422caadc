"""What the pages need from the evaluator, as a contract, so that pages never import it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from leaderboard.records import Status


@dataclass(frozen=True)
class Gate:
    """Whether this installation takes strangers' code.

    Attributes:
        ok: code can be isolated here.
        reason: why not, in a sentence; empty when ok.
        remedy: what the operator should do; empty when ok.
    """

    ok: bool
    reason: str = ""
    remedy: str = ""


class Desk(Protocol):
    """Takes submissions. All methods raise SubmitterError with a text fit for the page."""

    def gate(self) -> Gate:
        """Whether code is taken."""

    def score_benchmarks(self) -> tuple[str, ...]:
        """Names of the benchmarks for which a scores file can be judged here."""

    def submit_metric(self, path: Path, *, submitter: str) -> Status:
        """Check and queue a scoring module: an archive (.zip, .tar, .tar.gz) or a folder."""

    def submit_scores(
        self,
        path: Path,
        *,
        benchmark: str,
        submitter: str,
        name: str = "",
        description: str = "",
        lower_is_better: tuple[str, ...] = (),
    ) -> Status:
        """Check and queue a scores file (CSV or Parquet)."""
