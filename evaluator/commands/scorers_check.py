"""`scorers check`: a built-in metric through the trust checks of submissions."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from benchmarks.registry import find, load_registry
from evaluator.commands.common import DataOption, JsonOption, console
from evaluator.commands.scorer_options import (
    AllowPickleOption,
    CheckpointOption,
    DeviceOption,
    DtypeOption,
    Given,
    NameArgument,
    OfflineOption,
    QuestionsOption,
    RevisionOption,
    TrustRemoteCodeOption,
)
from evaluator.scorers.in_process import ModelSource
from evaluator.scorers.registry import find_row, load_rows
from evaluator.trust import precision_band, sampled, tried
from leaderboard.trust import TITLES, Check, TrustReport

FAILED = 1


def check(
    name: NameArgument,
    benchmark: Annotated[str, typer.Option(help="Benchmark whose pairs are asked.")],
    data: DataOption = None,
    device: DeviceOption = "cpu",
    dtype: DtypeOption = None,
    checkpoint: CheckpointOption = None,
    revision: RevisionOption = None,
    questions: QuestionsOption = None,
    images: Annotated[int, typer.Option(min=2, help="Images that are asked about.")] = 12,
    offline: OfflineOption = False,
    allow_pickle: AllowPickleOption = False,
    trust_remote_code: TrustRemoteCodeOption = False,
    as_json: JsonOption = False,
) -> None:
    """Ask the same pairs again: repeated, reordered, in other batches, alone, changed by one step.

    In another precision than float32, or on a GPU, the scores are also compared with those in
    float32 on the CPU. Exits with 1 where the metric might not rank.

    Example: python -m evaluator scorers check pickscore --benchmark demo_croc
    """
    row = find_row(name, load_rows())
    target = find(load_registry(), benchmark)
    given = Given(
        device,
        dtype,
        checkpoint,
        revision,
        questions,
        offline=offline,
        allow_pickle=allow_pickle,
        trust_remote_code=trust_remote_code,
    )
    runtime = given.runtime(row)
    seed = hashlib.sha256(f"{row.name} {target.name}".encode()).digest()
    few = sampled(target.questions(data), seed, n_images=images)
    exact = replace(runtime, device="cpu", dtype="float32")
    with ModelSource(row, runtime).open() as asker:
        trial = tried(asker, few, target.name)
    report = trial.report
    if (device, dtype or row.dtype) != ("cpu", "float32"):
        found = precision_band(trial.scores, ModelSource(row, exact), few)
        report = report.model_copy(update={"precision": found})
    _print(report, as_json=as_json)
    if report.failed:
        raise typer.Exit(FAILED)


def _print(report: TrustReport, *, as_json: bool) -> None:
    if as_json:
        typer.echo(report.model_dump_json(indent=1))
        return
    table = Table("asked again", "verdict", "mean change", "largest", "of the spread")
    for one in report.checks:
        table.add_row(*_row(one, report))
    shown = console()
    shown.print(table)
    shown.print(
        Text(
            f"{report.n_pairs} pairs of {report.n_images} images; scores spread by "
            f"{report.spread:.3g}, and {100 * report.limit:g} % of that is put down to rounding."
        )
    )
    band = report.precision
    if band and band.mean is not None and band.largest is not None:
        shown.print(
            Text(
                f"From float32 on the CPU the scores are off by {band.mean:.2g} on average and "
                f"{band.largest:.2g} at most."
            )
        )
    verdict = f"Would not rank: {report.why_not}." if report.failed else "Passed every check."
    shown.print(Text(verdict, style="bold red" if report.failed else "green"))


def _row(one: Check, report: TrustReport) -> tuple[str, str, str, str, str]:
    said = {True: "same", False: "differs", None: "measured"}[one.passed]
    share = f"{100 * one.largest / report.spread:.2g} %" if report.spread else "–"
    return TITLES[one.name], said, f"{one.mean:.3g}", f"{one.largest:.3g}", share
