"""`status` and `logs`: what became of submissions, once or as it happens.

All of it may hold the words of an untrusted user, so all of it is plain `Text`, never markup, and
nothing in it moves the cursor.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from benchmarks.command_line import JsonOption
from benchmarks.errors import AssayError, SubmitterError, TransientError
from evaluator.commands.common import DEFAULT_STORE, StoreOption, console, stopped_in_words
from leaderboard.governance.authentication import this_person
from leaderboard.governance.rights import Own, owns
from leaderboard.ledger.ledger import Ledger
from leaderboard.publication.results import old_results, old_tags, read_results
from leaderboard.publication.snapshot import read_snapshot
from leaderboard.records import Event, RunResult, Status
from leaderboard.replay import attempts_of, without_renewals
from leaderboard.states import IN_WORK, WAITING, State
from leaderboard.store.interface import Store
from leaderboard.store.live.interface import Heartbeat, new_lines, readable_text
from leaderboard.text import duration
from leaderboard.views.submissions import (
    QueueEstimate,
    attempt_words,
    measured_s,
    outlooks,
    worker_of,
)

FollowOption = Annotated[
    bool, typer.Option("--follow", help="Go on until the submission is finished.")
]


def status(
    submission_id: Annotated[str, typer.Argument(help="Submission; empty lists all.")] = "",
    follow: FollowOption = False,
    mine: Annotated[bool, typer.Option("--mine", help="List your own only.")] = False,
    store: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
) -> None:
    """Show the state of one submission, or of all; your own private ones with their names.

    With `--follow` the exit code says how it ended: 0 published or held, 1 your input, 3 ours.

    Example: python -m evaluator status my-metric-0123456789 --follow
    """
    if follow and not submission_id:
        raise typer.BadParameter("name the submission to follow")
    opened = store.existing()
    if follow:
        with stopped_in_words("The submission goes on without you."):
            last = (
                _follow_json(opened, submission_id) if as_json else _follow(opened, submission_id)
            )
        raise typer.Exit(exit_code_of(last))
    found = [visible_status(opened, submission_id)] if submission_id else _listed(opened, mine=mine)
    if as_json:
        typer.echo(json.dumps([s.model_dump(mode="json") for s in found], indent=1))
        return
    turns = QueueEstimates(opened).of(found)
    console().print(status_table(found, opened.clock(), turns))
    if (minutes := opened.commit_wait_min()) and any(status.unfinished for status in found):
        console().print(Text(f"waits for commits, the next in {minutes} min"))
    if submission_id:
        for line in _now_lines(opened, found[0], turns.get(submission_id)):
            console().print(line)


def logs(
    submission_id: Annotated[str, typer.Argument(help="Submission.")],
    follow: FollowOption = False,
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Print what happened to a submission, and what its scorer printed.

    What your own prints while it runs is shown, with `--follow` as it comes.

    Example: python -m evaluator logs my-metric-0123456789 --follow
    """
    opened = store.existing()
    with stopped_in_words("The submission goes on without you."):
        telling = None
        for current in watched(opened, submission_id, follow=follow):
            telling = telling or ProgressPrinter(opened, submission_id)
            for line in telling.lines(current):
                console().print(line, soft_wrap=True)


def exit_code_of(status: Status) -> int:
    """How a command ends that waited for a submission."""
    if status.state not in (State.FAILED, State.REJECTED):
        return 0
    return 1 if status.fault in ("", "submitter") else 3


def _listed(opened: Store, *, mine: bool) -> list[Status]:
    """All submissions, one's own private ones whole."""
    own = {s.submission.submission_id: s for s in Own(opened, this_person()).statuses()}
    if mine:
        return list(own.values())
    return [own.get(s.submission.submission_id, s) for s in Ledger(opened).statuses()]


def _follow(opened: Store, submission_id: str) -> Status:
    turns = QueueEstimates(opened)
    with Live(console=console(), auto_refresh=False, transient=False) as screen:
        for current in watched(opened, submission_id, follow=True):
            screen.update(_screen(opened, current, turns), refresh=True)
    return current


def _follow_json(opened: Store, submission_id: str) -> Status:
    """A line of JSON at every change of the state, of the progress or of the place."""
    before, turns = "", QueueEstimates(opened)
    for current in watched(opened, submission_id, follow=True):
        # The last pulse outlives the work it tells of.
        pulse = progress_of(opened, current) if current.unfinished else None
        turn = turns.of([current]).get(submission_id)
        line = json.dumps(
            {
                "status": current.model_dump(mode="json"),
                "progress": pulse.model_dump(mode="json", exclude={"at"}) if pulse else None,
                "turn": {"place": turn.place, "of": turn.of, "wait_s": turn.wait_s}
                if turn
                else None,
            }
        )
        if line != before:
            typer.echo(line)
        before = line
    return current


def _screen(opened: Store, current: Status, turns: QueueEstimates) -> RenderableType:
    own = current.submission.submission_id
    history = Table.grid(padding=(0, 1))
    for event in visible_events(opened, own)[-8:]:
        history.add_row(*(Text(cell) for cell in (f"{event.at:%H:%M:%S}", event.state, event.by)))
    found = turns.of([current])
    return Group(
        status_table([current], opened.clock(), found),
        history,
        *_now_lines(opened, current, found.get(own)),
    )


def _now_lines(opened: Store, current: Status, turn: QueueEstimate | None) -> list[Text]:
    """What happens to it now, and what came of earlier attempts."""
    if not current.unfinished:
        return []
    pulses, now = opened.live.pulses(), opened.clock()
    lines = [*earlier_attempts(visible_events(opened, current.submission.submission_id))]
    lines.append(progress_line(pulses, current, now, turn))
    own = progress_of(opened, current)
    if own is not None and own.last_line:
        lines.append(Text.assemble("last line: ", plain(own.last_line)))
    return lines


POLL_S = 1.0
OUTAGE_S = 300.0
"""So long a store may not answer before following ends."""


class QueueEstimates:
    """Whose turn it is; what was measured is read once, and only where something waits."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def of(self, shown: Sequence[Status]) -> dict[str, QueueEstimate]:
        """Submission id to its place and expected wait; empty where none of these waits."""
        if not any(status.state in WAITING for status in shown):
            return {}
        store = self._store
        known = {status.submission.submission_id: status for status in shown}
        every = [known.get(s.submission.submission_id, s) for s in Ledger(store).statuses()]
        return outlooks(every, store.live.pulses(), store.clock(), self._each_s)

    @cached_property
    def _each_s(self) -> float | None:
        snapshot = read_snapshot(self._store.public)
        return measured_s(snapshot.entries.values()) if snapshot is not None else None


def watched(
    opened: Store,
    submission_id: str,
    *,
    follow: bool,
    sleep: Callable[[float], None] = time.sleep,
    steady: Callable[[], float] = time.monotonic,
) -> Iterator[Status]:
    """The submission now, and if wanted again and again until it is finished."""
    answered = steady()
    while True:
        try:
            found = visible_status(opened, submission_id)
        except TransientError:
            if not follow or steady() - answered > OUTAGE_S:
                raise
            sleep(5 * POLL_S)
            continue
        answered = steady()
        yield found
        if not follow or not found.unfinished:
            return
        sleep(POLL_S)


class ProgressPrinter:
    """Tells what happened to a submission, and to its author what its scorer prints, each once."""

    def __init__(self, store: Store, submission_id: str) -> None:
        self._store = store
        self._submission_id = submission_id
        self._hears = _may_hear(store, submission_id)
        self._told = 0
        self._before = ""
        self._trouble = ""

    def lines(self, status: Status) -> Iterator[Text]:
        """What is new."""
        if not self._told:
            yield from self._happened()
            yield from self._log_tail() if status.unfinished else ()
        else:
            yield from self._log_tail()
            yield from self._happened()

    def _happened(self) -> Iterator[Text]:
        events = visible_events(self._store, self._submission_id)
        for event in events[self._told :]:
            yield from event_lines(event, self._rest_of(event))
        self._told = len(events)

    def _log_tail(self) -> Iterator[Text]:
        if not self._hears:
            return
        try:
            said = self._store.live.log_end(self._submission_id)
        except (OSError, AssayError) as error:
            if str(error) != self._trouble:
                self._trouble = str(error)
                yield Text(f"The running log cannot be read: {error}", style="dim")
            self._hears = not isinstance(error, SubmitterError)
            return
        if said:
            new, self._before = new_lines(self._before, said)
            yield from printed(new)

    def _rest_of(self, event: Event) -> str:
        """What of an event's log was not told while it was printed."""
        log = readable_text(event.log)
        last = "".join(self._before.splitlines(keepends=True)[-5:])
        if not last or not log:
            return log
        _, found, rest = log.rpartition(last)
        return rest if found else log


def progress_of(opened: Store, status: Status) -> Heartbeat | None:
    """The pulse of the worker that is at work on it; its scorer's words for its author alone."""
    pulse = worker_of(status, opened.live.pulses(), opened.clock())
    if pulse is None or pulse.submission_id != status.submission.submission_id:
        return None
    return pulse if owns(status, this_person()) else pulse.for_everybody


def _may_hear(store: Store, submission_id: str) -> bool:
    try:
        Own(store, this_person()).status(submission_id)
    except SubmitterError:
        return False
    return True


def visible_status(store: Store, submission_id: str) -> Status:
    """A submission, whole where it is one's own."""
    ledger = Ledger(store)
    whole = ledger.whole_status(submission_id)
    return whole if owns(whole, this_person()) else ledger.status(submission_id)


def visible_events(store: Store, submission_id: str) -> tuple[Event, ...]:
    """What happened to it, oldest first; with reasons and logs where it is one's own."""
    ledger = Ledger(store)
    own = owns(ledger.whole_status(submission_id), this_person())
    events = ledger.whole_events(submission_id) if own else ledger.events(submission_id)
    return without_renewals(events)


def visible_results(store: Store, submission_id: str) -> tuple[RunResult, ...]:
    """Its results; of somebody else's those on the boards."""
    whole = Ledger(store).whole_status(submission_id)
    hidden = whole.submission.private and not owns(whole, this_person())
    return () if hidden else read_results(store, whole.submission)


def visible_old_results(store: Store, submission_id: str, revision: str) -> tuple[RunResult, ...]:
    """Its results of an earlier revision, or of this one; of somebody else's the public ones."""
    whole = Ledger(store).whole_status(submission_id)
    hidden = whole.submission.private and not owns(whole, this_person())
    now = visible_results(store, submission_id)
    if hidden:
        return ()
    old = tuple(one.result for one in old_results(store, whole.submission, revision))
    found = (*old, *(result for result in now if result.revision == revision))
    if not found:
        tags = old_tags(store, whole.submission)
        known = dict.fromkeys((*tags, *(result.revision for result in now)))
        raise SubmitterError(
            "unknown_revision",
            f"{submission_id} has no results of revision {revision[:80]!r}.",
            f"It has results of: {', '.join(known)}." if known else "",
        )
    return found


_STYLES = {
    State.PUBLISHED: "green",
    State.HELD: "green",
    State.FAILED: "red",
    State.REJECTED: "red",
    State.HIDDEN: "yellow",
}


def status_table(
    statuses: Sequence[Status], now: datetime, turns: Mapping[str, QueueEstimate] | None = None
) -> Table:
    """One line for each submission."""
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
            Text(attempt_words(status)),
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
    """An event, and below it what the scorer printed."""
    code = f"[{event.code}] " if event.code else ""
    reason = f": {code}{event.reason} {event.hint}".rstrip() if event.reason else ""
    yield plain(f"{event.at:%Y-%m-%d %H:%M:%S} {event.state} by {event.by}{reason}")
    yield from printed(event.log if log is None else log)


def earlier_attempts(events: Sequence[Event]) -> Iterator[Text]:
    """Who tried before, and why that came to nothing."""
    for one in attempts_of(events) if events else ():
        if one.ended_at is not None:
            why = f": {one.why}" if one.why else ""
            yield plain(f"attempt {one.number} by {one.by} ended {one.ended_at:%H:%M:%S}{why}")


def progress_line(
    pulses: Sequence[Heartbeat], status: Status, now: datetime, outlook: QueueEstimate | None = None
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


def _holder(status: Status, outlook: QueueEstimate | None) -> Text:
    if status.state in WAITING:
        return Text(_turn(outlook).removeprefix(": "))
    return plain(status.by) if status.state in IN_WORK and not status.to_judge else Text("")


def _turn(outlook: QueueEstimate | None) -> str:
    if outlook is None:
        return ""
    begins = "" if outlook.wait_s is None else f", may begin in {duration(outlook.wait_s)}"
    return f": place {outlook.place:,} of {outlook.of:,}{begins}"
