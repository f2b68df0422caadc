"""Submissions, their events and their progress, as a terminal shows them.

All of it may hold a stranger's words, so all of it is plain `Text`, never markup, and nothing in it
moves the cursor.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from rich.table import Table
from rich.text import Text

from leaderboard.folding import attempts_of
from leaderboard.records import Event, Status
from leaderboard.states import IN_WORK, WAITING, State
from leaderboard.store.live.interface import Pulse
from leaderboard.store.live.text import readable_text
from leaderboard.views.queue import MOST_ATTEMPTS, Outlook, worker_of

_STYLES = {
    State.PUBLISHED: "green",
    State.HELD: "green",
    State.FAILED: "red",
    State.REJECTED: "red",
    State.HIDDEN: "yellow",
}


def status_table(
    statuses: Sequence[Status], now: datetime, turns: Mapping[str, Outlook] | None = None
) -> Table:
    """One line for each submission.

    Args:
        statuses: what to list.
        now: the moment of display.
        turns: submission id to its place among all that wait, and the expected wait.
    """
    table = Table("submission", "name", "state", "for", "by or place", "attempt", "reason")
    table.columns[0].overflow = "fold"  # People copy it.
    for status in statuses:
        submission = status.submission
        cells = (
            plain(submission.submission_id),
            plain(f"{submission.name} {submission.version}".strip()),
            Text(status.state, style=_STYLES.get(status.state, "")),
            Text(duration((now - status.since).total_seconds())),
            _holder(status, (turns or {}).get(submission.submission_id)),
            Text(attempt_of(status)),
            plain(f"{status.reason} {status.hint}".strip()),
        )
        table.add_row(*cells)
    return table


def plain(words: str) -> Text:
    """A stranger's words in one line."""
    return Text(" ".join(readable_text(words).split()))


def printed(log: str) -> Iterator[Text]:
    """What a scorer printed, line by line, marked as such."""
    for line in readable_text(log).splitlines():
        yield Text(f"    | {line}")


def event_lines(event: Event, log: str | None = None) -> Iterator[Text]:
    """An event, and below it what the scorer printed.

    Args:
        event: what happened.
        log: what is still to be shown of its log; by default all of it.
    """
    code = f"[{event.code}] " if event.code else ""
    reason = f": {code}{event.reason} {event.hint}".rstrip() if event.reason else ""
    yield plain(f"{event.at:%Y-%m-%d %H:%M:%S} {event.state} by {event.by}{reason}")
    yield from printed(event.log if log is None else log)


def attempt_of(status: Status) -> str:
    """`2 of 3`, and of one that is finished `2`; nothing before the first."""
    if not status.attempts or not status.unfinished:
        return f"{status.attempts or ''}"
    return f"{status.attempts} of {max(MOST_ATTEMPTS, status.attempts)}"


def earlier_attempts(events: Sequence[Event]) -> Iterator[Text]:
    """Who tried before, and why that came to nothing."""
    for one in attempts_of(events) if events else ():
        if one.ended_at is not None:
            why = f": {one.why}" if one.why else ""
            yield plain(f"attempt {one.number} by {one.by} ended {one.ended_at:%H:%M:%S}{why}")


def progress_line(
    pulses: Sequence[Pulse], status: Status, now: datetime, outlook: Outlook | None = None
) -> Text:
    """Who has it, what is done, how fast, and what remains; or when its turn may come."""
    if status.state in WAITING:
        return Text(f"waiting for a worker{_turn(outlook)}", style="dim")
    if status.to_judge:
        return Text("waiting for a judge", style="dim")
    if status.state not in IN_WORK:
        return Text("")
    pulse = worker_of(status, pulses, now)
    if pulse is None:
        return plain(f"{status.by} has not been heard of lately; another one takes over")
    if pulse.submission_id != status.submission.submission_id or not pulse.stage:
        return plain(f"{pulse.worker} has it; no progress reported yet")
    rate = f", {pulse.rate_per_s:,.1f} pairs/s" if pulse.rate_per_s else ""
    left = f", about {duration(pulse.eta_s)} left" if pulse.eta_s is not None else ""
    return plain(f"{pulse.worker}: {pulse.stage} {pulse.done:,} of {pulse.total:,}{rate}{left}")


def _holder(status: Status, outlook: Outlook | None) -> Text:
    if status.state in WAITING:
        return Text(_turn(outlook).removeprefix(": "))
    return plain(status.by) if status.state in IN_WORK and not status.to_judge else Text("")


def _turn(outlook: Outlook | None) -> str:
    if outlook is None:
        return ""
    begins = "" if outlook.wait_s is None else f", may begin in {duration(outlook.wait_s)}"
    return f": place {outlook.place:,} of {outlook.of:,}{begins}"


def duration(seconds: float) -> str:
    """A length of time in the largest unit that fits."""
    for unit, size in (("d", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{max(seconds, 0.0):.0f} s"
