"""`grid`: which metrics have scored which generations, and what the rest will cost."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.text import Text

from benchmarks.command_line import JsonOption
from evaluator.commands.common import DEFAULT_STORE, StoreOption, console, table
from leaderboard.ledger.ledger import Ledger
from leaderboard.models.grid import GridCell, ranked_metrics
from leaderboard.models.grid import grid as every_cell
from leaderboard.publication.model_entries import read_track
from leaderboard.publication.snapshot import read_snapshot

_LISTED = 40


def grid(
    prompt_set: Annotated[
        str, typer.Argument(help="Only generations of this prompt set; empty: of all.")
    ] = "",
    todo: Annotated[
        bool, typer.Option("--todo", help="Only what is not scored, in the order of its worth.")
    ] = False,
    store: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
) -> None:
    """Show the grid of metrics and generations: what is scored, and what the rest will take.

    Every ranked metric that is code scores every set of generations on the boards. What stands in
    the first tier of more boards, for less time an image, is scored first.

    Example: python -m evaluator grid demo_prompts --todo
    """
    opened = store.existing()
    metrics = ranked_metrics(read_snapshot(opened.public), Ledger(opened).statuses())
    cells = [
        cell
        for cell in every_cell(read_track(opened.public), metrics)
        if prompt_set in ("", cell.entry.prompt_set) and not (todo and cell.done)
    ]
    if as_json:
        typer.echo(json.dumps([_record(cell) for cell in cells], indent=1))
        return
    _print(cells)


def _print(cells: Sequence[GridCell]) -> None:
    out = console()
    if not cells:
        out.print(Text("Every ranked metric has scored all generations that are on the boards."))
        return
    rows = []
    for cell in cells[:_LISTED]:
        state = "to score" if cell.run is None else "failed" if cell.run.failed else "scored"
        model = Text(cell.entry.title, overflow="fold")
        metric = Text(cell.metric.title, overflow="fold")
        todo = ("", "") if cell.done else (f"{cell.images:,}", _took(cell.seconds))
        rows.append((model, cell.entry.prompt_set, metric, state, *todo))
    out.print(table(("model", "prompt set", "metric", "state", "images", "about"), rows))
    left = [cell for cell in cells if not cell.done]
    if len(cells) > _LISTED:
        out.print(Text(f"and {len(cells) - _LISTED} more; --json lists all"))
    done, seconds = len(cells) - len(left), sum(cell.seconds for cell in left)
    said = f"{done} of {len(cells)} are scored; the rest takes about {_took(seconds)}."
    out.print(Text(said if left else f"All {len(cells)} are scored."))


def _took(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _record(cell: GridCell) -> dict[str, object]:
    run = cell.run
    return {
        "submission_id": cell.entry.submission_id,
        "model": cell.entry.title,
        "prompt_set": cell.entry.prompt_set,
        "metric": cell.metric.entry_id,
        "done": cell.done,
        "failed": run.failed if run is not None else "",
        "reused": run.reused if run is not None else 0,
        "images": cell.images,
        "expected_seconds": cell.seconds,
        "measured_seconds": run.cost.seconds if run is not None and run.cost else None,
        "worth": cell.worth,
    }
