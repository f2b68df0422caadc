"""`submit`: send a scoring module or a scores file."""

from __future__ import annotations

import getpass
import json
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.registry import load_registry
from evaluator.commands.bars import run_bars
from evaluator.commands.common import (
    DEFAULT_STORE,
    DataOption,
    JsonOption,
    StoreOption,
    console,
    now,
)
from evaluator.commands.work import make_worker
from evaluator.isolation.gate import isolation_gate
from evaluator.submission.desk import SubmissionDesk
from leaderboard.ledger import Ledger
from leaderboard.records import Kind, Status
from leaderboard.states import State
from leaderboard.store.folder import folder_store


def submit(
    path: Annotated[Path, typer.Argument(help="Archive or folder, or a scores file.")],
    kind: Annotated[Kind, typer.Option(help="metric (code) or scores (a file).")] = Kind.METRIC,
    benchmark: Annotated[str, typer.Option(help="Benchmark of a scores file.")] = "",
    name: Annotated[str, typer.Option(help="Name of a scores file on the boards.")] = "",
    submitter: Annotated[str, typer.Option(help="Who submits.")] = "",
    description: Annotated[str, typer.Option(help="One sentence for the boards.")] = "",
    lower_is_better: Annotated[
        list[str] | None, typer.Option(help="Metric for which lower is better; repeatable.")
    ] = None,
    wait: Annotated[
        bool, typer.Option(help="Process the submission here and now, unless a worker has it.")
    ] = True,
    store: StoreOption = DEFAULT_STORE,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Submit a metric.

    Example: python -m evaluator submit scores.csv --kind scores --benchmark ts2 --data data
    """
    if kind is Kind.SCORES and not benchmark:
        raise typer.BadParameter("a scores file needs --benchmark", param_hint="--benchmark")
    if kind is Kind.METRIC and benchmark:
        raise typer.BadParameter("a module names its benchmarks in assay.toml")
    if kind is Kind.METRIC and path.suffix in (".csv", ".parquet", ".npz", ".pkl"):
        raise typer.BadParameter(
            "this looks like a scores file: add --kind scores --benchmark NAME"
        )
    opened = folder_store(store)
    registry = load_registry()
    desk = SubmissionDesk(opened, registry, data, isolation_gate, now)
    who = submitter or getpass.getuser()
    if kind is Kind.METRIC:
        status = desk.submit_metric(path, submitter=who)
    else:
        status = desk.submit_scores(
            path,
            benchmark=benchmark,
            submitter=who,
            name=name,
            description=description,
            lower_is_better=tuple(lower_is_better or ()),
        )
    submission_id = status.submission.submission_id
    if wait:
        with run_bars() as listener:
            make_worker(opened, store, registry, data, listener).run(submission_id)
        status = Ledger(opened).status(submission_id)
    _report(status, as_json)
    if status.state in (State.FAILED, State.REJECTED):
        raise typer.Exit(1 if status.fault == "submitter" else 3)


def _report(status: Status, as_json: bool) -> None:
    submission = status.submission
    if as_json:
        typer.echo(json.dumps(status.model_dump(mode="json"), indent=1))
        return
    text = f"{submission.submission_id}: {status.state}"
    if status.state is State.PUBLISHED:
        text += f" ({len(submission.metrics)} metrics on {', '.join(submission.benchmarks)})"
    console().print(text, markup=False)
    if status.reason:
        console().print(f"{status.reason} {status.hint}", markup=False)
    if status.state is State.QUEUED:
        console().print("Follow it with: python -m evaluator status " + submission.submission_id)
