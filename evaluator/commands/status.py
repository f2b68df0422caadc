"""`status` and `logs`: what became of submissions, once or as it happens."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from evaluator.commands.common import (
    DEFAULT_STORE,
    JsonOption,
    StoreOption,
    console,
    stopped_in_words,
)
from evaluator.commands.person import this_person
from evaluator.commands.shown import (
    event_lines,
    progress_line,
    status_table,
    working_on,
)
from evaluator.commands.visible import visible_events, visible_status
from leaderboard.governance.own import Own
from leaderboard.ledger.ledger import Ledger
from leaderboard.records import Status
from leaderboard.states import State
from leaderboard.store.interface import Store

POLL_S = 1.0

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
    opened = store.open()
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
    console().print(status_table(found, opened.clock()))


def logs(
    submission_id: Annotated[str, typer.Argument(help="Submission.")],
    follow: FollowOption = False,
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Print what happened to a submission, and the end of its scorer's output.

    Example: python -m evaluator logs my-metric-0123456789 --follow
    """
    opened = store.open()
    told = 0
    with stopped_in_words("The submission goes on without you."):
        for current in _watched(opened, submission_id, follow=follow):
            events = visible_events(opened, submission_id)
            for event in events[told:]:
                for line in event_lines(event):
                    console().print(line, soft_wrap=True)
            told = len(events)
            if not current.unfinished:
                return


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


def _watched(
    opened: Store,
    submission_id: str,
    *,
    follow: bool,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Status]:
    """The submission now, and if wanted again and again until it is finished."""
    while True:
        found = visible_status(opened, submission_id)
        yield found
        if not follow or not found.unfinished:
            return
        sleep(POLL_S)


def _follow(opened: Store, submission_id: str) -> Status:
    with Live(console=console(), auto_refresh=False, transient=False) as screen:
        for current in _watched(opened, submission_id, follow=True):
            screen.update(_screen(opened, current), refresh=True)
    return current


def _follow_json(opened: Store, submission_id: str) -> Status:
    """A line of JSON at every change of the state or of the progress."""
    before = ""
    for current in _watched(opened, submission_id, follow=True):
        # The last pulse outlives the work it tells of.
        pulses = opened.live.pulses() if current.unfinished else ()
        pulse = working_on(pulses, submission_id, opened.clock())
        line = json.dumps(
            {
                "status": current.model_dump(mode="json"),
                "progress": pulse.model_dump(mode="json", exclude={"at"}) if pulse else None,
            }
        )
        if line != before:
            typer.echo(line)
        before = line
    return current


def _screen(opened: Store, current: Status) -> RenderableType:
    history = Table.grid(padding=(0, 1))
    for event in visible_events(opened, current.submission.submission_id)[-8:]:
        history.add_row(*(Text(cell) for cell in (f"{event.at:%H:%M:%S}", event.state, event.by)))
    pulse = working_on(opened.live.pulses(), current.submission.submission_id, opened.clock())
    parts: list[RenderableType] = [status_table([current], opened.clock()), history]
    if current.unfinished:
        parts.append(progress_line(pulse, current))
    return Group(*parts)
