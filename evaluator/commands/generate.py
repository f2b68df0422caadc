"""`generate`: images for a benchmark's prompts, with any text-to-image pipeline of diffusers."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from benchmarks.command_line import errors
from benchmarks.registry import find, load_registry
from evaluator.commands.common import DataOption, JsonOption, console
from evaluator.generation.check import FolderReport, check_folder
from evaluator.generation.checkpoint import locate
from evaluator.generation.folder import CONTACT_SHEET, RunFolder
from evaluator.generation.outline import Outline
from evaluator.generation.overview import (
    bar,
    facts_table,
    report_lines,
    truncation_line,
    withheld_line,
)
from evaluator.generation.prompts import (
    Choice,
    PromptSet,
    benchmark_prompts,
    file_prompts,
    parse_seeds,
)
from evaluator.generation.recipes import DEFAULT_SEEDS, Overrides, Recipe
from evaluator.generation.rows import SeedMode

if TYPE_CHECKING:
    from evaluator.generation.pipelines import LoadedPipeline
    from evaluator.generation.request import Summary

INTERRUPTED = 130
"""Exit code of a command that Ctrl-C ended, as shells have it."""


class Dtype(StrEnum):
    """Precision of the weights."""

    AUTO = "auto"
    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"
    FLOAT16 = "float16"


class Seeding(StrEnum):
    """Where the noise of an image comes from."""

    PER_IMAGE = "per_image"
    STREAM = "stream"


class Checker(StrEnum):
    """What becomes of a checkpoint's safety checker."""

    ON = "on"
    OFF = "off"


def generate(
    model: Annotated[
        str, typer.Option("--model", help="Hub id, or a folder with a model_index.json.")
    ],
    out: Annotated[Path, typer.Option("--out", help="Folder to make, or to go on with.")],
    benchmark: Annotated[
        str | None, typer.Option(help="Benchmark whose prompts are drawn.")
    ] = None,
    prompts: Annotated[
        Path | None, typer.Option(help="CSV of your own: prompt_id, prompt[, split, skills].")
    ] = None,
    data: DataOption = None,
    seeds: Annotated[str, typer.Option(help="Whole numbers, joined by commas.")] = DEFAULT_SEEDS,
    skill: Annotated[list[str] | None, typer.Option(help="Only this skill; repeatable.")] = None,
    split: Annotated[list[str] | None, typer.Option(help="Only this split; repeatable.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only so many prompts.")] = None,
    recipe: Annotated[
        str | None,
        typer.Option(help="Recipe by name; without it, by the model or its class of pipeline."),
    ] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Denoising steps.")] = None,
    guidance: Annotated[float | None, typer.Option(min=0, help="Guidance scale.")] = None,
    width: Annotated[int | None, typer.Option(min=8, help="In pixels.")] = None,
    height: Annotated[int | None, typer.Option(min=8, help="In pixels.")] = None,
    negative_prompt: Annotated[str | None, typer.Option(help="What not to draw.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Any other argument of the pipeline's call, for example "
            "max_sequence_length=512; repeatable.",
        ),
    ] = None,
    seed_mode: Annotated[
        Seeding,
        typer.Option(
            help="per_image: each image starts from its seed. stream: the prompts of a seed go "
            "on with one stream of noise."
        ),
    ] = Seeding.PER_IMAGE,
    batch_size: Annotated[
        int,
        typer.Option(
            min=1,
            help="Images at a time; halved when memory runs out. Their noise is the same; "
            "single values can be rounded otherwise.",
        ),
    ] = 1,
    revision: Annotated[str, typer.Option(help="Branch, tag or commit on the Hub.")] = "",
    variant: Annotated[str, typer.Option(help="Which files of the weights, e.g. fp16.")] = "",
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps.")] = "auto",
    dtype: Annotated[
        Dtype, typer.Option(help="auto: float32 on a CPU, the recipe's elsewhere.")
    ] = Dtype.AUTO,
    safety_checker: Annotated[
        Checker,
        typer.Option(
            help="on: an image that the model's checker blackens is withheld and marked. off: "
            "the checker is taken away, and images are kept as drawn."
        ),
    ] = Checker.ON,
    allow_pickle: Annotated[
        bool,
        typer.Option(
            "--allow-pickle",
            help="Read weights that are not safetensors. They can run any code: only for those "
            "you trust.",
        ),
    ] = False,
    offline: Annotated[bool, typer.Option("--offline", help="Never ask the Hub.")] = False,
    name: Annotated[str, typer.Option(help="Of the model on boards; else by its id.")] = "",
    licence: Annotated[str, typer.Option(help="Of the weights, for the manifest.")] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be drawn, and draw nothing.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Draw the prompts of a benchmark into a folder that can be submitted.

    One PNG for each prompt and seed, a table images.jsonl with what made each, assay.toml and a
    contact sheet. Run it again to go on: only what is missing or damaged is drawn.

    Example: python -m evaluator generate --model stabilityai/stable-diffusion-xl-base-1.0
    --benchmark genai_527 --seeds 42,3407,5096 --out sdxl --data data
    """
    chosen = _prompts(
        benchmark, prompts, data, Choice(tuple(skill or ()), tuple(split or ()), limit)
    )
    wanted = parse_seeds(seeds)
    overrides = Overrides(
        steps=steps,
        guidance=guidance,
        width=width,
        height=height,
        negative_prompt=negative_prompt,
        call=dict(_setting(text) for text in settings or ()),
    )
    checkpoint = locate(
        model,
        revision=revision,
        variant=variant,
        allow_pickle=allow_pickle,
        offline=offline,
        configs_only=dry_run,
    )
    outline = Outline.of(
        checkpoint,
        recipe=recipe,
        overrides=overrides,
        prompts=chosen,
        seeds=wanted,
        folder=RunFolder(out),
    )
    facts = outline.facts()
    if not as_json:
        console().print(facts_table(facts))
    elif dry_run:
        typer.echo(json.dumps(facts, ensure_ascii=False))
    if dry_run:
        return
    loading = _Loading(device, dtype, variant, allow_pickle, safety_checker is Checker.ON)
    asked = _Asked(seed_mode.value, batch_size, name, licence)
    _draw(outline, loading, asked, as_json=as_json)


@dataclass(frozen=True)
class _Loading:
    """How the model is loaded."""

    device: str
    dtype: Dtype
    variant: str
    allow_pickle: bool
    checker: bool


@dataclass(frozen=True)
class _Asked:
    """How images are drawn, and what the manifest says."""

    seed_mode: SeedMode
    batch_size: int
    name: str
    licence: str


def _draw(outline: Outline, loading: _Loading, asked: _Asked, *, as_json: bool) -> None:
    from evaluator.generation.request import Request  # noqa: PLC0415 (takes seconds to import)
    from evaluator.generation.run import generate_images  # noqa: PLC0415

    try:
        loaded = _load(outline, loading)
        request = Request(
            prompts=outline.prompts,
            seeds=outline.seeds,
            arguments=outline.arguments(loaded.pipe),
            seed_mode=asked.seed_mode,
            batch_size=asked.batch_size,
            variant=loading.variant,
            recipe=outline.recipe.name if outline.recipe else "",
            name=asked.name,
            licence=asked.licence,
        )
        with bar("images", errors()) as listener:
            summary = generate_images(loaded, request, outline.folder, listener)
    except KeyboardInterrupt as stop:
        errors().print("Stopped. What is finished is kept: the same command goes on with the rest.")
        raise typer.Exit(INTERRUPTED) from stop
    report = check_folder(outline.folder.path, outline.prompts.prompts, outline.seeds)
    if as_json:
        _print_json(outline.folder.path, summary, report)
    else:
        _print_lines(outline.folder.path, summary, report, loaded.dtype)
    if any(problem.kind != "extra" for problem in report.problems):
        raise typer.Exit(1)


def _load(outline: Outline, loading: _Loading) -> LoadedPipeline:
    from evaluator.generation import pipelines  # noqa: PLC0415 (takes seconds to import)

    pipelines.quieten()
    device = pipelines.choose_device(loading.device)
    with errors().status(f"Loading {outline.checkpoint.name} on {device}"):
        return pipelines.load_pipeline(
            outline.checkpoint,
            device=device,
            dtype=_precision(loading.dtype, device, outline.recipe),
            variant=loading.variant,
            allow_pickle=loading.allow_pickle,
            safety_checker=loading.checker,
        )


def _precision(
    asked: Dtype, device: str, recipe: Recipe | None
) -> Literal["float32", "bfloat16", "float16"]:
    named: Mapping[Dtype, Literal["float32", "bfloat16", "float16"]] = {
        Dtype.FLOAT32: "float32",
        Dtype.BFLOAT16: "bfloat16",
        Dtype.FLOAT16: "float16",
    }
    if asked in named:
        return named[asked]
    if device == "cpu":
        return "float32"
    return recipe.gpu_dtype if recipe else "bfloat16"


def _prompts(
    benchmark: str | None, path: Path | None, data: Path | None, choice: Choice
) -> PromptSet:
    if (benchmark is None) == (path is None):
        raise typer.BadParameter("give one of --benchmark and --prompts")
    if benchmark is not None:
        return benchmark_prompts(find(load_registry(), benchmark), data, choice)
    if path is None:
        raise typer.BadParameter("give one of --benchmark and --prompts")
    return file_prompts(path, choice)


def _setting(text: str) -> tuple[str, Any]:
    """`NAME=VALUE`, the value as TOML has it; what is not TOML is text."""
    name, sign, value = text.partition("=")
    if not sign or not name.isidentifier():
        raise typer.BadParameter(f"{text!r} is not NAME=VALUE", param_hint="--set")
    try:
        read = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        read = value
    plain = tuple(read) if isinstance(read, list) else read
    for part in plain if isinstance(plain, tuple) else (plain,):
        if not isinstance(part, bool | int | float | str):
            raise typer.BadParameter(f"{text!r} is no plain value", param_hint="--set")
    return name, plain


def _print_json(folder: Path, summary: Summary, report: FolderReport) -> None:
    values = {
        "folder": str(folder),
        **asdict(summary),
        "usable": report.usable,
        "problems": [asdict(problem) for problem in report.problems],
    }
    typer.echo(json.dumps(values, ensure_ascii=False))


def _print_lines(folder: Path, summary: Summary, report: FolderReport, dtype: str) -> None:
    kept = summary.wanted - summary.drawn
    lines = [f"Drew {summary.drawn} images" + (f"; {kept} were there." if kept else ".")]
    if summary.damaged:
        lines.append(f"{summary.damaged} files were missing or damaged and were drawn again.")
    if summary.shrunk:
        lines.append(f"Memory allowed {summary.batch_size} images at a time.")
    if summary.truncated:
        lines.append(truncation_line(summary.truncated))
    if summary.withheld:
        lines.append(withheld_line(summary.withheld, dtype))
    if summary.mixed_versions:
        lines.append("Some images were drawn with other versions of the libraries; rows name them.")
    lines += [*report_lines(report), f"{folder}: look at {CONTACT_SHEET} first."]
    for line in lines:
        console().print(line, markup=False, highlight=False, soft_wrap=True)
