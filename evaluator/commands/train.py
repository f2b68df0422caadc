"""`train`: from data to a metric that can be submitted, or is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from benchmarks.command_line import DataOption
from benchmarks.errors import SubmitterError
from benchmarks.registry import load_registry
from benchmarks.scores import check_metric_name
from evaluator.commands.common import (
    DEFAULT_STORE,
    IsolationOption,
    StoreOption,
    console,
    stopped_in_words,
    table,
)
from evaluator.commands.generate import setting
from evaluator.commands.progress import progress_bar
from evaluator.commands.scorer_options import Precision
from evaluator.commands.submit import submit as submit_paths
from evaluator.isolation.availability import IsolationChoice
from evaluator.scorers.device import check_device
from evaluator.scorers.in_process import check_installed
from evaluator.submission.manifest import Manifest
from evaluator.training.checkpoints import TrainingFolder
from evaluator.training.loop import RunOptions, Trained
from evaluator.training.loop import train as run_training
from evaluator.training.packing import pack
from evaluator.training.preparing import Preparation, open_data, prepare
from evaluator.training.recipe import Recipe, TrainingSettings, find_recipe, load_recipes

SUBMISSION = "submission"
"""Folder below `--out` that can be submitted."""


def train(
    recipe: Annotated[
        str, typer.Argument(help="Recipe, for example dual-encoder; --list names all.")
    ] = "",
    *,
    on: Annotated[
        str,
        typer.Option(
            "--on",
            metavar="BENCHMARK|FOLDER",
            help="Data: a benchmark at hand, or a folder of images with prompts.csv.",
        ),
    ] = "",
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Folder of the run, new or to go on with."),
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="How often each example is seen.")
    ] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Steps, in place of epochs.")] = None,
    change: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Setting of the recipe; repeatable."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the split, order and weights.")] = 0,
    device: Annotated[str, typer.Option(help="As torch names it: cpu, cuda, cuda:1.")] = "cpu",
    precision: Annotated[
        Precision, typer.Option(help="Of activations; weights stay in float32.")
    ] = Precision.FLOAT32,
    checkpoint_every: Annotated[int, typer.Option(min=1, help="Steps between checkpoints.")] = 100,
    evaluate_every: Annotated[
        int | None,
        typer.Option(
            min=1, help="Steps between looks at the held-out part; one at the end anyway."
        ),
    ] = None,
    overlap: Annotated[
        list[str] | None,
        typer.Option(
            help="Benchmark whose prompts and images may be trained on; the submission says that "
            "they were. Repeatable."
        ),
    ] = None,
    name: Annotated[str, typer.Option(help="Name of the metric on the boards.")] = "",
    submit: Annotated[bool, typer.Option("--submit", help="Submit it when it is trained.")] = False,
    isolation: IsolationOption = IsolationChoice.AUTO,
    store: StoreOption = DEFAULT_STORE,
    data: DataOption = None,
    show_list: Annotated[bool, typer.Option("--list", help="Name the recipes, and end.")] = False,
) -> None:
    """Train a metric by a recipe, measure it on a held-out part, and pack it as a submission.

    The same command goes on where it was stopped, and ends with the same weights. What a benchmark at
    hand measures on is never trained on, by prompt and by image; what is dropped for it is counted.

    Example: python -m evaluator train dual-encoder --on demo_croc --out trained --submit
    """
    if show_list:
        rows = [(one.name, one.summary) for one in load_recipes().values()]
        console().print(table(("recipe", "what it trains"), rows))
        return
    if out is None or not recipe or not on:
        raise typer.BadParameter("RECIPE, --on and --out are needed; --list names the recipes")
    changes = dict(map(setting, change or ()))
    changes |= {k: v for k, v in (("epochs", epochs), ("steps", steps)) if v is not None}
    chosen = find_recipe(recipe)
    by_recipe = chosen(_settings(chosen, changes))
    if name:
        check_metric_name(name)
    check_installed()
    check_device(device)
    options = RunOptions(seed, device, precision.value, checkpoint_every, evaluate_every)
    with stopped_in_words("The same command goes on where it was."):
        registry = load_registry()
        opened = open_data(on, registry, data)
        with progress_bar("comparing with what is held out") as bar:
            preparation = prepare(
                by_recipe, opened, registry, data, seed=seed, overlap=overlap or (), listener=bar
            )
        _say_examples(preparation)
        folder = TrainingFolder(out)
        with progress_bar("training") as bar:
            trained = run_training(by_recipe, preparation.prepared, folder, options, bar)
        called = name or f"{recipe}-{opened.name}"[:64]
        manifest = pack(
            by_recipe, preparation, options, trained, folder=out / SUBMISSION, name=called
        )
    _say_result(preparation, trained, manifest, out / SUBMISSION)
    if submit:
        submit_paths([str(out / SUBMISSION)], isolation=isolation, store=store, data=data)


def _settings(recipe: type[Recipe], changes: Mapping[str, object]) -> TrainingSettings:
    try:
        return recipe.settings_class.model_validate(changes)
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        known = ", ".join(recipe.settings_class.model_fields)
        raise SubmitterError(
            "bad_setting", f"{recipe.name}: {wrong}.", f"Its settings: {known}."
        ) from error


def _say_examples(preparation: Preparation) -> None:
    held_out = preparation.prepared.held_out
    n_held_out = 0 if held_out is None else len(held_out.answers.clusters)
    out = console()
    out.print(
        f"{len(preparation.prepared.examples)} examples to train on; {n_held_out} of "
        f"{len(preparation.data.answers.clusters)} clusters are held out.",
        highlight=False,
    )
    for reason, count in preparation.dropped.items():
        out.print(f"{count} dropped: {reason}", markup=False, highlight=False)
    if preparation.not_at_hand:
        out.print(
            f"Not compared with {len(preparation.not_at_hand)} benchmarks that are not at hand; the "
            "card names them.",
            highlight=False,
        )


def _say_result(
    preparation: Preparation, trained: Trained, manifest: Manifest, folder: Path
) -> None:
    out = console()
    if preparation.prepared.held_out is not None:
        row = preparation.prepared.held_out.headline(trained.rows)
        facet = f" ({row.facet})" if row.facet else ""
        out.print(
            f"{row.measure}{facet} on the held-out part: {row.value:.3f}, 95 % interval "
            f"{row.ci_low:.3f} to {row.ci_high:.3f}.",
            highlight=False,
        )
    out.print(
        f"{folder} holds {manifest.name} {manifest.version}; README.md in it says how it was made.",
        markup=False,
        highlight=False,
    )
