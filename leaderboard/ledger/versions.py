"""Versions of a metric: which submission stands over which."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime

from leaderboard.records import Event, Status, Submission
from leaderboard.states import State

Further = Callable[[Sequence[Status]], Mapping[str, Sequence[Event]]]
"""From all submissions, as the events of a commit leave them, to further events for that commit."""


def superseded_by(new: Submission, statuses: Iterable[Status]) -> tuple[Status, ...]:
    """Earlier submissions on the boards whose place a new one takes.

    One that is being run again keeps it until that has ended.
    """
    return tuple(
        status
        for status in statuses
        if status.on_boards and not status.unfinished and _covers(new, status.submission)
    )


def superseded_versions(new: Submission, statuses: Iterable[Status]) -> tuple[Status, ...]:
    """Earlier versions that are superseded and covered by a new one, the latest first."""
    found = (s for s in statuses if s.state is State.SUPERSEDED and _covers(new, s.submission))
    return tuple(sorted(found, key=lambda s: _age(s.submission), reverse=True))


def standing_over(old: Submission, statuses: Iterable[Status]) -> Status | None:
    """A later version on the boards that covers an old one; None where there is none."""
    return next((s for s in statuses if s.on_boards and _covers(s.submission, old)), None)


def superseding(submission_id: str, at: datetime, by: str) -> Further:
    """What publishing a submission, or a rerun that failed, does to the other versions of it."""

    def further(statuses: Sequence[Status]) -> dict[str, list[Event]]:
        new = next(s for s in statuses if s.submission.submission_id == submission_id)
        if not new.on_boards or new.unfinished:
            return {}
        later = standing_over(new.submission, statuses)
        if later is not None:
            return {submission_id: [_superseded(later.submission, at, by)]}
        return {
            old.submission.submission_id: [_superseded(new.submission, at, by)]
            for old in superseded_by(new.submission, statuses)
        }

    return further


def restoring(submission_id: str, at: datetime, by: str) -> Further:
    """What taking a submission off the boards does to the versions it had superseded.

    The latest of them comes back, and of the others those that it does not cover.
    """

    def further(statuses: Sequence[Status]) -> dict[str, list[Event]]:
        gone = next(s for s in statuses if s.submission.submission_id == submission_id)
        standing = [s for s in statuses if s.on_boards]
        back: dict[str, list[Event]] = {}
        for old in sorted(statuses, key=lambda s: s.submission.received_at, reverse=True):
            covered = old.state is State.SUPERSEDED and _covers(gone.submission, old.submission)
            if covered and standing_over(old.submission, standing) is None:
                reason = f"Stands again, since {submission_id} was {gone.state}."
                event = Event(at=at, state=State.PUBLISHED, by=by, reason=reason)
                back[old.submission.submission_id] = [event]
                standing.append(old.model_copy(update={"on_boards": True}))
        return back

    return further


def _covers(new: Submission, old: Submission) -> bool:
    """Whether one is a later version of the other, with at least its metrics on its benchmarks."""
    return (
        new.account != ""
        and (new.account, new.kind, new.name) == (old.account, old.kind, old.name)
        and _age(old) < _age(new)
        and set(old.benchmarks) <= set(new.benchmarks)
        and all(_outputs_on(old, one) <= _outputs_on(new, one) for one in old.benchmarks)
    )


def _outputs_on(submission: Submission, benchmark: str) -> set[str]:
    return set(submission.metrics_on(benchmark))


def _age(submission: Submission) -> tuple[datetime, str]:
    """Orders versions; the id decides between two of the same instant."""
    return submission.received_at, submission.submission_id


def _superseded(by_version: Submission, at: datetime, by: str) -> Event:
    version = f" (version {by_version.version})" if by_version.version else ""
    return Event(
        at=at,
        state=State.SUPERSEDED,
        by=by,
        reason=f"{by_version.submission_id}{version} by the same author takes its place.",
    )
