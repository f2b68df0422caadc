"""Poll of a submission for `status` and `logs` while somebody follows it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

from rich.text import Text

from benchmarks.errors import AssayError, SubmitterError, TransientError
from evaluator.commands.person import this_person
from evaluator.commands.shown import event_lines, printed
from evaluator.commands.visible import visible_events, visible_status
from leaderboard.governance.own import Own
from leaderboard.governance.rights import owns
from leaderboard.ledger.ledger import Ledger
from leaderboard.publication.snapshot import read_snapshot
from leaderboard.records import Event, Status
from leaderboard.states import WAITING
from leaderboard.store.interface import Store
from leaderboard.store.live.interface import Pulse
from leaderboard.store.live.text import new_lines, readable_text
from leaderboard.views.queue import Outlook, measured_s, outlooks, worker_of

POLL_S = 1.0
OUTAGE_S = 300.0
"""So long a store may not answer before following ends."""


class Turns:
    """Whose turn it is; what was measured is read once, and only where something waits.

    Args:
        store: where submissions wait.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def of(self, shown: Sequence[Status]) -> dict[str, Outlook]:
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
    """The submission now, and if wanted again and again until it is finished.

    Raises:
        TransientError: the store does not answer; of one that is followed, for minutes.
    """
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


class Telling:
    """Tells what happened to a submission, and to its author what its scorer prints, each once.

    Args:
        store: where it is.
        submission_id: which one.
    """

    def __init__(self, store: Store, submission_id: str) -> None:
        self._store = store
        self._submission_id = submission_id
        self._hears = _may_hear(store, submission_id)
        self._told = 0
        self._before = ""
        self._trouble = ""

    def lines(self, status: Status) -> Iterator[Text]:
        """What is new.

        Args:
            status: of the submission; of one that had ended before, the events hold the log.
        """
        if not self._told:
            yield from self._happened()
            yield from self._said() if status.unfinished else ()
        else:
            yield from self._said()
            yield from self._happened()

    def _happened(self) -> Iterator[Text]:
        events = visible_events(self._store, self._submission_id)
        for event in events[self._told :]:
            yield from event_lines(event, self._rest_of(event))
        self._told = len(events)

    def _said(self) -> Iterator[Text]:
        if not self._hears:
            return
        try:
            said = self._store.live.said(self._submission_id)
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


def progress_of(opened: Store, status: Status) -> Pulse | None:
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
