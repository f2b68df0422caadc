"""`scorers`: the built-in metrics: list, describe, try one, run one, reckon what it costs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.errors import SubmitterError
from evaluator.commands import scorers_shown as shown
from evaluator.commands.common import JsonOption, console
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
from evaluator.commands.scorers_check import check
from evaluator.commands.scorers_cost import cost
from evaluator.commands.scorers_run import run
from evaluator.scorers.registry import family_of, find_row, load_rows
from evaluator.scorers.trying import try_out


def scorers_app() -> typer.Typer:
    """The group of commands."""
    app = typer.Typer(
        help="The built-in metrics: list, describe, try, run, check, cost.", no_args_is_help=True
    )
    app.command("list")(list_)
    app.command()(describe)
    app.command()(score)
    app.command()(run)
    app.command()(check)
    app.command()(cost)
    return app


def list_(
    family: Annotated[str, typer.Option(help="Only this family.")] = "",
    as_json: JsonOption = False,
) -> None:
    """List the built-in metrics.

    Example: python -m evaluator scorers list --family dual_encoder
    """
    rows = list(load_rows().values())
    families = sorted({row.family for row in rows})
    if family and family not in families:
        raise SubmitterError(
            "unknown_family",
            f"There is no family {family!r}.",
            f"Families: {', '.join(families)}.",
        )
    wanted = [row for row in rows if family in {"", row.family}]
    if as_json:
        typer.echo(json.dumps([shown.row_json(row) for row in wanted], ensure_ascii=False))
        return
    console().print(shown.rows_table(wanted))


def describe(name: NameArgument, as_json: JsonOption = False) -> None:
    """Say what a metric computes, from what, and where its checkpoint is.

    Example: python -m evaluator scorers describe siglip-so400m
    """
    row = find_row(name, load_rows())
    family = family_of(row)
    options = family.check(row).model_dump(mode="json")
    if as_json:
        more = {"options": options, "checkpoints": shown.checkpoints_json(row)}
        typer.echo(json.dumps({**shown.row_json(row), **more}, ensure_ascii=False))
        return
    console().print(shown.description(row, options, family.title))


def score(
    name: NameArgument,
    images: Annotated[
        list[str],
        typer.Argument(metavar='IMAGE... "PROMPT"', help="Images, then the prompt."),
    ],
    *,
    prompt: Annotated[
        list[str] | None,
        typer.Option(help="A prompt; repeatable. With it, all arguments are images."),
    ] = None,
    element: Annotated[
        list[str] | None,
        typer.Option(help="A part of the prompt to score on its own; repeatable."),
    ] = None,
    device: DeviceOption = "cpu",
    dtype: DtypeOption = None,
    checkpoint: CheckpointOption = None,
    revision: RevisionOption = None,
    questions: QuestionsOption = None,
    offline: OfflineOption = False,
    allow_pickle: AllowPickleOption = False,
    trust_remote_code: TrustRemoteCodeOption = False,
    as_json: JsonOption = False,
) -> None:
    """Score images with prompts: every image with every prompt.

    Example: python -m evaluator scorers score clipscore-hessel dog.png "a dog on a sofa"
    """
    row = find_row(name, load_rows())
    paths, prompts = _asked(images, prompt or ())
    if element and "elements" not in row.granularity:
        raise SubmitterError("no_elements", f"{row.name} scores whole prompts, not elements.")
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
    trial = try_out(row, given.runtime(row), paths, prompts, element or ())
    if as_json:
        pairs = [pair.to_json() for pair in trial.pairs]
        ends = {"low": row.low, "high": row.high, "higher_is_better": row.higher_is_better}
        told = {"metric": row.name, **ends, "pairs": pairs, "environment": trial.environment}
        typer.echo(json.dumps(told, ensure_ascii=False))
        return
    out = console()
    out.print(shown.scores_table(row, trial.pairs))
    for line in shown.remarks(trial.pairs):
        out.print(line, markup=False, highlight=False)


def _asked(given: Sequence[str], prompts: Sequence[str]) -> tuple[list[Path], list[str]]:
    """Images and prompts; without `--prompt`, the last argument is the prompt."""
    if prompts:
        return [Path(image) for image in given], list(prompts)
    if len(given) < 2:
        raise SubmitterError(
            "prompt_missing",
            "There is no prompt.",
            'Put it after the images: score METRIC IMAGE "a prompt".',
        )
    *images, last = given
    return [Path(image) for image in images], [last]
