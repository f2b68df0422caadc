"""`status` and `logs`: what became of submissions, once or as it happens."""

from __future__ import annotations

import json
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
from evaluator.commands.following import Telling, Turns, progress_of, watched
from evaluator.commands.person import this_person
from evaluator.commands.shown import earlier_attempts, plain, progress_line, status_table
from evaluator.commands.visible import visible_events, visible_status
from leaderboard.governance.own import Own
from leaderboard.ledger.ledger import Ledger
from leaderboard.records import Status
from leaderboard.states import State
from leaderboard.store.interface import Store
from leaderboard.views.queue import Outlook

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
    turns = Turns(opened).of(found)
    console().print(status_table(found, opened.clock(), turns))
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
            telling = telling or Telling(opened, submission_id)
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
    turns = Turns(opened)
    with Live(console=console(), auto_refresh=False, transient=False) as screen:
        for current in watched(opened, submission_id, follow=True):
            screen.update(_screen(opened, current, turns), refresh=True)
    return current


def _follow_json(opened: Store, submission_id: str) -> Status:
    """A line of JSON at every change of the state, of the progress or of the place."""
    before, turns = "", Turns(opened)
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


def _screen(opened: Store, current: Status, turns: Turns) -> RenderableType:
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


def _now_lines(opened: Store, current: Status, turn: Outlook | None) -> list[Text]:
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
