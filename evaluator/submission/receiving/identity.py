"""Identity of a submission: the same content, under the same name, from the same account."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from leaderboard.accounts import ASSAY
from leaderboard.ledger.private_records import PRIVATE_ID
from leaderboard.records import Kind, Status, Submission


@dataclass(frozen=True)
class Identity:
    """Tells a submission from all others.

    Attributes:
        kind: of submission.
        name: of the metric, of the scores file, or of the model.
        version: as its author counts.
        account: key of the account that sends it.
        content_sha256: of its content.
        benchmark: of a scores file, or the prompt set of a model's images; empty for a module,
            which is one thing on all benchmarks.
    """

    kind: Kind
    name: str
    version: str
    account: str
    content_sha256: str
    benchmark: str = ""

    @property
    def submission_id(self) -> str:
        """An id people can read, which the same submission has again; tells its name and content.

        Assay's own modules are known by their content alone, as before there were accounts.
        """
        words = (self.kind, self.name, self.version, self.account, self.content_sha256)
        own = self.account == ASSAY.key
        found = self.content_sha256 if own else digest(*(word.encode() for word in words))
        slug = re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")[:40] or "metric"
        made = f"{slug}-{found[:10]}"
        # Ids of this form are given to private submissions, at random.
        return f"metric-{made}" if PRIVATE_ID.fullmatch(made) else made

    def among(self, statuses: Iterable[Status]) -> Status | None:
        """The submission with this identity; None where there is none yet."""
        return next((s for s in statuses if self._is(s.submission)), None)

    def of_this_version(self, statuses: Iterable[Status]) -> tuple[Status, ...]:
        """Submissions that would read the same on a board, though their content is another."""
        return tuple(
            status
            for status in statuses
            if _names(status.submission) == (self.kind, self.name, self.version, self.account)
            and status.submission.content_sha256 != self.content_sha256
            and (not self.benchmark or self.benchmark in status.submission.benchmarks)
        )

    def _is(self, other: Submission) -> bool:
        if other.submission_id == self.submission_id:
            # Ids are short enough that somebody could make theirs that of another's.
            older = self.account == ASSAY.key and not other.account
            return other.account == self.account or older
        names = (self.kind, self.name, self.version, self.account)
        return _names(other) == names and other.content_sha256 == self.content_sha256


def digest(*parts: bytes) -> str:
    """Hash over parts of which none but the last holds a zero byte."""
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def _names(submission: Submission) -> tuple[Kind, str, str, str]:
    return submission.kind, submission.name, submission.version, submission.account
