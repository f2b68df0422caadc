"""`watch`: samples of a training run are scored as they come, and drawn as curves."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.command_line import DataOption, errors
from benchmarks.errors import PlatformError
from benchmarks.sources.output import alone_in
from evaluator.commands.ab import DEFAULT_CACHE, opened, prompts_of
from evaluator.commands.common import IsolationOption, console, now, stopped_in_words
from evaluator.commands.scorer_options import RuntimeOf
from evaluator.generation.prompts import Choice
from evaluator.isolation.availability import IsolationChoice

_RUN = re.compile(r"[\w.-]{1,100}(/[\w.-]{1,64})?", re.ASCII)


def watch(
    folder: Annotated[Path, typer.Argument(help="Folder with a folder of samples per checkpoint.")],
    prompts: Annotated[
        str,
        typer.Option(
            help="CSV of prompts (prompt_id, prompt[, skills]), or a prompt set or benchmark by name."
        ),
    ],
    metric: Annotated[
        list[str],
        typer.Option(help="Metric: built in, bundled, or a folder; repeatable."),
    ],
    out: Annotated[
        Path, typer.Option(help="Folder for curves.parquet and curves.html; gone on with.")
    ],
    skill: Annotated[
        list[str] | None, typer.Option(help="Only prompts with this skill; repeatable.")
    ] = None,
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between two looks.")] = 30.0,
    once: Annotated[
        bool,
        typer.Option(
            "--once",
            help="Score what is whole now and end, with exit code 3 if something was not sent; nothing "
            "may be writing.",
        ),
    ] = False,
    webhook: Annotated[
        str, typer.Option(help="Address that is sent the rows of each checkpoint as JSON.")
    ] = "",
    tensorboard: Annotated[
        Path | None,
        typer.Option(help="Folder for event files of TensorBoard; needs the extra `watch`."),
    ] = None,
    wandb: Annotated[
        str,
        typer.Option(
            metavar="PROJECT[/RUN]",
            help="Project of Weights & Biases, and id of a run that is gone on with; needs the extra `watch`.",
        ),
    ] = "",
    cache: Annotated[Path, typer.Option(help="Folder that keeps scores.")] = DEFAULT_CACHE,
    data: DataOption = None,
    *,
    runtime_of: RuntimeOf,
    isolation: IsolationOption = IsolationChoice.AUTO,
) -> None:
    """Score new sample folders of a training run, and draw a curve with a band for each skill.

    A folder is scored once it has an image for every prompt and two looks find it the same; its images
    go by name or by the table of `generate`, as for `ab`. What is in the table is not scored again.

    Example: python -m evaluator watch samples --prompts prompts.csv --metric clipscore-hessel --out curves
    """
    from evaluator.ab.scoring import FolderScorer, judging_metrics  # noqa: PLC0415 (with SciPy)
    from evaluator.ab.sinks import Deliveries, Sink, TensorBoard, Webhook, WeightsAndBiases  # noqa: PLC0415 (as above)
    from evaluator.ab.watching import PAGE, Curves, Watcher  # noqa: PLC0415 (as above)

    if wandb and not _RUN.fullmatch(wandb):
        raise typer.BadParameter("letters, digits, _, . and -: PROJECT[/RUN]", param_hint="--wandb")
    chosen = prompts_of(prompts, data, Choice(tuple(skill or ()), (), None))
    watcher, told, sinks = Watcher(folder, chosen), dict[str, str](), list[Sink]()
    if webhook:
        sinks.append(Webhook(webhook))
    if tensorboard is not None:
        sinks.append(TensorBoard(tensorboard))
    if wandb:
        project, _, run = wandb.partition("/")
        sinks.append(WeightsAndBiases(project, run, folder.resolve().name, out))
    with ExitStack() as until, stopped_in_words("The same command goes on where it was."):
        until.enter_context(alone_in(out))
        curves, deliveries = Curves(out), Deliveries(out)
        found = judging_metrics(
            dict.fromkeys(metric), lambda named: opened(named, runtime_of, isolation), until
        )
        scorer = FolderScorer(found, cache)
        curves.go_on(chosen, scorer.identities)
        for sink in sinks:
            until.callback(sink.close)

        def sent() -> dict[str, str]:
            return {sink.address: deliveries.send(sink, curves.checkpoints) for sink in sinks}

        while True:
            news: dict[str, str] = {}
            for sample in watcher.whole(curves.done, settled=once):
                rows = watcher.scored(sample, scorer, now())
                if not rows:
                    continue
                curves.add(rows, len(chosen))
                means = ", ".join(map(_mean_text, (row for row in rows if not row["skill"])))
                console().print(f"{sample.name}: {means}", markup=False, highlight=False)
                news = sent()
            news = news or sent()  # what failed at the last look
            news |= {name: f"{name} waits: {why}" for name, why in watcher.waiting.items()}
            for about, why in news.items():
                if why and told.get(about) != why:
                    errors().print(why, markup=False, highlight=False)
            told = news
            if once:
                break
            time.sleep(every)
    drawn = f": {out / PAGE}" if curves.done else ""
    console().print(f"{len(curves.done)} checkpoints{drawn}", markup=False, highlight=False)
    if any(news[sink.address] for sink in sinks):
        raise typer.Exit(PlatformError.exit_code)


def _mean_text(row: Mapping[str, Any]) -> str:
    missing = f" ({row['n_missing']} prompts without a score)" if row["n_missing"] else ""
    return f"{row['metric']} {row['mean']:.4g}{missing}"
