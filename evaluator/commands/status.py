"""`status` and `logs`: what became of submissions."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.table import Table

from evaluator.commands.common import DEFAULT_STORE, JsonOption, StoreOption, console
from leaderboard.ledger import Ledger
from leaderboard.store.folder import folder_store


def status(
    submission_id: Annotated[str, typer.Argument(help="Submission; empty lists all.")] = "",
    store: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
) -> None:
    """Show the state of one submission, or of all.

    Example: python -m evaluator status
    """
    ledger = Ledger(folder_store(store))
    found = [ledger.status(submission_id)] if submission_id else list(ledger.statuses())
    if as_json:
        typer.echo(json.dumps([s.model_dump(mode="json") for s in found], indent=1))
        return
    table = Table("submission", "state", "since", "attempts", "reason")
    for one in found:
        table.add_row(
            one.submission.submission_id,
            one.state,
            f"{one.since:%Y-%m-%d %H:%M:%S}",
            str(one.attempts),
            f"{one.reason} {one.hint}".strip(),
        )
    console().print(table)


def logs(
    submission_id: Annotated[str, typer.Argument(help="Submission.")],
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Print what happened to a submission, and the end of its scorer's output.

    Example: python -m evaluator logs my-metric-0123456789
    """
    ledger = Ledger(folder_store(store))
    ledger.status(submission_id)
    for event in ledger.events(submission_id):
        line = f"{event.at:%Y-%m-%d %H:%M:%S} {event.state} by {event.by}"
        reason = f": [{event.code}] {event.reason} {event.hint}" if event.reason else ""
        console().print(line + reason, markup=False, highlight=False, soft_wrap=True)
        for printed in event.log.splitlines():
            console().print(f"    | {printed}", markup=False, highlight=False, soft_wrap=True)
