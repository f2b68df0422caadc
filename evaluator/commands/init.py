"""`init`: a new folder that can be checked and submitted as it is."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.command_line import DataOption
from benchmarks.prompt_sets.prompt_set import IMAGES
from benchmarks.scores import name_for
from benchmarks.sources.output import write_new
from evaluator.commands.common import console
from evaluator.commands.generate import prompts_by_name, seeds_of
from evaluator.generation.prompts import Choice, ChosenPrompts, file_prompts
from evaluator.hub.model_cache import NAMED
from evaluator.isolation.session import one_line
from evaluator.submission.templates import (
    ClassFile,
    SkeletonKind,
    generations_files,
    module_files,
    provided,
    read_class,
    taken_names,
)

SEEDS = (42,)
_WRAPPERS = (SkeletonKind.TS2, SkeletonKind.CROC)

FromOption = Annotated[
    str, typer.Option("--from", help="path.py:Class of an existing metric (ts2, croc).")
]
ModelOption = Annotated[
    str, typer.Option("--model", help="owner/name@commit of the model to be asked (vlm).")
]
PromptsOption = Annotated[
    Path | None, typer.Option("--prompts", help="CSV with prompt_id and prompt (generations).")
]
BenchmarkOption = Annotated[
    str,
    typer.Option("--benchmark", help="Prompt set, or benchmark, to be drawn (generations)."),
]
SeedsOption = Annotated[
    str | None,
    typer.Option(
        "--seeds", help="Of the images; without it, as the prompt set proposes (generations)."
    ),
]


def init(
    kind: Annotated[SkeletonKind, typer.Argument(help="What to begin.")],
    folder: Annotated[Path, typer.Argument(help="A new folder.")],
    name: Annotated[str, typer.Option(help="Name on the boards; the folder's if not given.")] = "",
    source: FromOption = "",
    model: ModelOption = "",
    benchmark: BenchmarkOption = "",
    prompts: PromptsOption = None,
    seeds: SeedsOption = None,
    data: DataOption = None,
) -> None:
    """Write a metric that runs at once, or the manifest of a model's images, into a new folder.

    plain: a function of image and prompt.

    dual-encoder: images and texts are encoded apart.

    vlm: asks a model of the Hub.

    compare: compares two images of a prompt.

    outputs: gives several numbers, each a metric of its own.

    ts2, croc: runs an existing class of T2IScoreScore or CROC unchanged.

    generations: a model's images for the prompts of a prompt set.

    Example: python -m evaluator init ts2 my-metric --from metrics/mine.py:MyMetric
    """
    _check_options(kind, source, model, benchmark, prompts, seeds)
    title = name_for(name, folder)
    if kind is SkeletonKind.GENERATIONS:
        wanted = _prompts(benchmark, prompts, data)
        drawn = seeds_of(seeds, wanted, SEEDS)
        write_new(folder, generations_files(title, wanted, drawn), (IMAGES,))
        _say(folder, kind)
        return
    wrapped = read_class(source, provided(kind), taken_names(kind)) if source else None
    write_new(folder, module_files(kind, title, wrapped=wrapped, model=model))
    _say(folder, kind)
    if wrapped is not None:
        _say_of(wrapped)
    if kind is SkeletonKind.VLM and not model:
        _print("Name its model in assay.toml before you check it; README.md says how.")


def _check_options(
    kind: SkeletonKind,
    source: str,
    model: str,
    benchmark: str,
    prompts: Path | None,
    seeds: str | None,
) -> None:
    of_images = kind is SkeletonKind.GENERATIONS
    if source and kind not in _WRAPPERS:
        raise typer.BadParameter("only ts2 and croc wrap a class", param_hint="--from")
    if model and kind is not SkeletonKind.VLM:
        raise typer.BadParameter("only vlm names its model here", param_hint="--model")
    if model and not NAMED.fullmatch(model):
        raise typer.BadParameter(
            "write owner/name@commit, with all 40 digits of the commit", param_hint="--model"
        )
    if (benchmark or prompts) and not of_images:
        raise typer.BadParameter("only generations have prompts", param_hint="--benchmark")
    if seeds is not None and not of_images:
        raise typer.BadParameter("only generations have seeds", param_hint="--seeds")
    if benchmark and prompts:
        raise typer.BadParameter("give --benchmark or --prompts, not both")


def _prompts(benchmark: str, prompts: Path | None, data: Path | None) -> ChosenPrompts | None:
    if benchmark:
        return prompts_by_name(benchmark, data, Choice())
    return file_prompts(prompts, Choice()) if prompts else None


def _say(folder: Path, kind: SkeletonKind) -> None:
    _print(f"{folder}: a new {kind} folder. README.md says what to change.")
    _print(f"Try it: python -m evaluator check {shlex.quote(str(folder))}")


def _say_of(wrapped: ClassFile) -> None:
    where = wrapped.path
    for remark in wrapped.remarks:
        _print(f"{where}:{remark.line}: {remark.message}; put it into the folder.")
    for name in wrapped.models:
        _print(f"{where} loads {name}: name it with its commit under models in assay.toml.")


def _print(text: str) -> None:
    # Never folded: it names files and lines, and commands to copy.
    line = one_line(text.encode(errors="replace"))
    console().print(line, markup=False, highlight=False, soft_wrap=True)
