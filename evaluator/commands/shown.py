"""Submissions, their events and their progress, as a terminal shows them.

All of it may hold a stranger's words, so all of it is plain `Text`, never markup.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from rich.table import Table
from rich.text import Text

from leaderboard.records import Event, Status
from leaderboard.states import IN_WORK, State
from leaderboard.store.live import Pulse

ALIVE_FOR = timedelta(seconds=60)
"""How long a worker that says nothing is believed to be at work."""
_STYLES = {
    State.PUBLISHED: "green",
    State.HELD: "green",
    State.FAILED: "red",
    State.REJECTED: "red",
    State.HIDDEN: "yellow",
}


def status_table(statuses: Sequence[Status], now: datetime) -> Table:
    """One line for each submission."""
    table = Table("submission", "name", "state", "for", "attempts", "reason")
    for status in statuses:
        submission = status.submission
        cells = (
            Text(submission.submission_id),
            Text(f"{submission.name} {submission.version}".strip()),
            Text(status.state, style=_STYLES.get(status.state, "")),
            Text(duration((now - status.since).total_seconds())),
            Text(str(status.attempts)),
            Text(f"{status.reason} {status.hint}".strip()),
        )
        table.add_row(*cells)
    return table


def event_lines(event: Event) -> Iterator[Text]:
    """An event, and below it what the scorer printed."""
    code = f"[{event.code}] " if event.code else ""
    reason = f": {code}{event.reason} {event.hint}".rstrip() if event.reason else ""
    yield Text(f"{event.at:%Y-%m-%d %H:%M:%S} {event.state} by {event.by}{reason}")
    for printed in event.log.splitlines():
        yield Text(f"    | {printed}")


def working_on(pulses: Sequence[Pulse], submission_id: str, now: datetime) -> Pulse | None:
    """The pulse of the worker that is at work on a submission."""
    living = [p for p in pulses if p.submission_id == submission_id and p.at > now - ALIVE_FOR]
    return max(living, key=lambda pulse: pulse.at, default=None)


def progress_line(pulse: Pulse | None, status: Status) -> Text:
    """What is done, how fast, and what remains."""
    if status.state not in IN_WORK:
        return Text("waiting for a worker", style="dim")
    if pulse is None:
        return Text(f"{status.by} has not been heard of lately", style="yellow")
    rate = f", {pulse.rate_per_s:,.1f} pairs/s" if pulse.rate_per_s else ""
    left = f", about {duration(pulse.eta_s)} left" if pulse.eta_s is not None else ""
    return Text(f"{pulse.worker}: {pulse.stage} {pulse.done:,} of {pulse.total:,}{rate}{left}")


def duration(seconds: float) -> str:
    """A length of time in the largest unit that fits."""
    for unit, size in (("d", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{max(seconds, 0.0):.0f} s"
