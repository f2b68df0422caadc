"""`report`: everything published about a submission, and the same computed again from its scores."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.text import Text

from benchmarks.errors import SubmitterError
from benchmarks.registry import load_registry
from evaluator.commands.common import (
    DEFAULT_STORE,
    DataOption,
    JsonOption,
    StoreOption,
    console,
)
from evaluator.commands.meta_table import report as measures
from evaluator.commands.recomputing import Recomputed, recomputed
from evaluator.commands.report_words import about_run, standing_lines
from evaluator.commands.shown import status_table
from evaluator.commands.visible import visible_old_results, visible_results, visible_status
from leaderboard.ledger.editions import is_current
from leaderboard.publication.snapshot import read_snapshot
from leaderboard.records import RunResult, Status
from leaderboard.store.interface import Store


def report(
    submission_id: Annotated[str, typer.Argument(help="Submission.")],
    benchmark: Annotated[
        list[str] | None, typer.Option(help="Only this benchmark; repeatable.")
    ] = None,
    skills: Annotated[bool, typer.Option(help="Show skills too, not only the whole.")] = False,
    recompute: Annotated[
        bool,
        typer.Option("--recompute", help="Compute every row again from the published scores."),
    ] = False,
    revision: Annotated[
        str, typer.Option(help="Its old results of this revision of a benchmark, or tag.")
    ] = "",
    store: StoreOption = DEFAULT_STORE,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print all results of a submission: measures, ranks, trust checks, cost, what it ran in.

    With `--recompute`, rows that do not come out as published end the command with exit code 3.

    Example: python -m evaluator report my-metric-0123456789 --recompute
    """
    if revision and recompute:
        raise typer.BadParameter("old results are not computed again: leave --revision out")
    opened = store.existing()
    status = visible_status(opened, submission_id)
    found = (
        visible_old_results(opened, submission_id, revision)
        if revision
        else visible_results(opened, submission_id)
    )
    results = _chosen(found, benchmark or [], status)
    again = [_again(opened, status, result, data) for result in results] if recompute else []
    if as_json:
        typer.echo(json.dumps(_record(status, results, again), indent=1))
    else:
        _print(opened, status, results, skills=skills)
        for each in again:
            console().print(Text(each.words))
    if not all(each.same for each in again):
        raise typer.Exit(3)


def _chosen(
    results: Sequence[RunResult], wanted: Sequence[str], status: Status
) -> tuple[RunResult, ...]:
    """Those that were asked for.

    Raises:
        SubmitterError: `no_results`, `unknown_benchmark`.
    """
    submission_id = status.submission.submission_id
    if not results:
        raise SubmitterError(
            "no_results",
            f"{submission_id} has no results; it is {status.state}.",
            f"Follow it with: python -m evaluator status {submission_id} --follow",
        )
    known = [result.benchmark for result in results]
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise SubmitterError(
            "unknown_benchmark",
            f"{submission_id} was not run on {', '.join(unknown)}.",
            f"It was run on: {', '.join(known)}.",
        )
    return tuple(result for result in results if not wanted or result.benchmark in wanted)


def _again(opened: Store, status: Status, result: RunResult, data: Path | None) -> Recomputed:
    return recomputed(opened, status, result, load_registry(), data)


def _record(
    status: Status, results: Sequence[RunResult], again: Sequence[Recomputed]
) -> dict[str, Any]:
    """All of it, for programs."""
    return {
        "status": status.model_dump(mode="json"),
        "results": [result.model_dump(mode="json") for result in results],
        "recomputed": [each.to_json() for each in again],
    }


def _print(opened: Store, status: Status, results: Sequence[RunResult], *, skills: bool) -> None:
    out = console()
    out.print(status_table([status], opened.clock()))
    # Set in, so that no line of a stranger's can pass for one of ours.
    for line in status.submission.description.splitlines():
        out.print(Text(f"    {line}"))
    for block in _blocks(opened, status, results, out.width, skills=skills):
        out.print(block)


def _blocks(
    opened: Store, status: Status, results: Sequence[RunResult], width: int, *, skills: bool
) -> Iterator[RenderableType]:
    snapshot = read_snapshot(opened.public)
    for result in results:
        yield Text(f"\n{result.benchmark} (revision {result.revision})", style="bold")
        rows = [row for row in result.as_rows() if skills or row.skill is None]
        yield from measures(rows, width)
        board = snapshot.boards.get(result.benchmark) if snapshot is not None else None
        shown = board is not None and is_current(result, board.card)
        if snapshot is not None and shown and status.on_boards:
            yield from map(Text, standing_lines(snapshot, status.submission, result.benchmark))
        yield from map(Text, about_run(result))
