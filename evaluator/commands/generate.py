"""`generate`: images for the prompts of a prompt set, with any text-to-image pipeline of diffusers."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from benchmarks.command_line import errors
from benchmarks.prompt_sets.prompt_set import SEEDS, load_prompt_sets, parse_seeds, with_prompt_sets
from benchmarks.registry import find, load_registry
from evaluator.commands.common import DataOption, JsonOption, console, stopped_in_words
from evaluator.generation.check import GenerationsReport
from evaluator.generation.checkpoint import locate
from evaluator.generation.folder import CONTACT_SHEET, RunFolder
from evaluator.generation.manifest import Dtype, Scalar, SeedMode
from evaluator.generation.overview import Outline, bar, facts_table, report_lines, summary_lines
from evaluator.generation.prompts import Choice, ChosenPrompts, benchmark_prompts, file_prompts
from evaluator.generation.recipes import Overrides, Recipe
from evaluator.submission.generations.checking import check_folder

if TYPE_CHECKING:
    from evaluator.generation.pipelines import LoadedPipeline
    from evaluator.generation.run import Summary


class Precision(StrEnum):
    """Of the weights."""

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


ModelOption = Annotated[
    str, typer.Option("--model", help="Hub id, or a folder with a model_index.json.")
]
OutOption = Annotated[Path, typer.Option("--out", help="Folder to make, or to go on with.")]
BenchmarkOption = Annotated[
    str | None,
    typer.Option("--benchmark", help="Prompt set, or benchmark, whose prompts are drawn."),
]
PromptsOption = Annotated[
    Path | None,
    typer.Option("--prompts", help="CSV of your own: prompt_id, prompt[, split, skills]."),
]
SeedsOption = Annotated[
    str | None,
    typer.Option(
        "--seeds",
        help="Whole numbers, joined by commas; without it, those the prompt set proposes, else "
        "42,3407,5096.",
    ),
]
SkillOption = Annotated[
    list[str] | None, typer.Option("--skill", help="Only this skill; repeatable.")
]
SplitOption = Annotated[
    list[str] | None, typer.Option("--split", help="Only this split; repeatable.")
]
LimitOption = Annotated[int | None, typer.Option("--limit", min=1, help="Only so many prompts.")]
RecipeOption = Annotated[
    str | None,
    typer.Option(
        "--recipe", help="Recipe by name; without it, by the model or its class of pipeline."
    ),
]
StepsOption = Annotated[int | None, typer.Option("--steps", min=1, help="Denoising steps.")]
GuidanceOption = Annotated[float | None, typer.Option("--guidance", min=0, help="Guidance scale.")]
WidthOption = Annotated[int | None, typer.Option("--width", min=8, help="In pixels.")]
HeightOption = Annotated[int | None, typer.Option("--height", min=8, help="In pixels.")]
NegativePromptOption = Annotated[
    str | None, typer.Option("--negative-prompt", help="What not to draw.")
]
SettingsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Any other argument of the pipeline's call, for example "
        "max_sequence_length=512; repeatable.",
    ),
]
SeedModeOption = Annotated[
    Seeding,
    typer.Option(
        "--seed-mode",
        help="per_image: each image starts from its seed. stream: the prompts of a seed go "
        "on with one stream of noise.",
    ),
]
BatchSizeOption = Annotated[
    int,
    typer.Option(
        "--batch-size",
        min=1,
        help="Images at a time; halved when memory runs out. Their noise is the same; "
        "single values can be rounded otherwise.",
    ),
]
RevisionOption = Annotated[
    str, typer.Option("--revision", help="Branch, tag or commit on the Hub.")
]
VariantOption = Annotated[
    str, typer.Option("--variant", help="Which files of the weights, e.g. fp16.")
]
DeviceOption = Annotated[str, typer.Option("--device", help="auto, cpu, cuda, cuda:1, mps.")]
DtypeOption = Annotated[
    Precision, typer.Option("--dtype", help="auto: float32 on a CPU, the recipe's elsewhere.")
]
CheckerOption = Annotated[
    Checker,
    typer.Option(
        "--safety-checker",
        help="on: an image that the model's checker blackens is withheld and marked. off: "
        "the checker is taken away, and images are kept as drawn.",
    ),
]
AllowPickleOption = Annotated[
    bool,
    typer.Option(
        "--allow-pickle",
        help="Read weights that are not safetensors. They can run any code: only for those "
        "you trust.",
    ),
]
OfflineOption = Annotated[bool, typer.Option("--offline", help="Never ask the Hub.")]
NameOption = Annotated[str, typer.Option("--name", help="Of the model on boards; else by its id.")]
LicenceOption = Annotated[str, typer.Option("--licence", help="Of the weights, for the manifest.")]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Say what would be drawn, and draw nothing.")
]


def prompts_of(
    benchmark: str | None, path: Path | None, data: Path | None, choice: Choice
) -> ChosenPrompts:
    """The prompts of a prompt set, of a benchmark, or of a file."""
    if benchmark is not None and path is None:
        return prompts_by_name(benchmark, data, choice)
    if path is not None and benchmark is None:
        return file_prompts(path, choice)
    raise typer.BadParameter("give one of --benchmark and --prompts")


def prompts_by_name(name: str, data: Path | None, choice: Choice) -> ChosenPrompts:
    """The prompts of a prompt set or of a benchmark."""
    known = with_prompt_sets(load_registry(), load_prompt_sets())
    return benchmark_prompts(find(known, name), data, choice)


def seeds_of(
    text: str | None, prompts: ChosenPrompts | None, default: tuple[int, ...]
) -> tuple[int, ...]:
    """The seeds that were asked for, else those that the prompt set proposes, else the default."""
    if text is not None:
        return parse_seeds(text)
    drawing = prompts.drawing if prompts else None
    return drawing.seeds if drawing else default


def setting(text: str) -> tuple[str, Scalar | tuple[Scalar, ...]]:
    """`NAME=VALUE`, the value as TOML has it; what is not TOML is text."""
    name, sign, value = text.partition("=")
    if not sign or not name.isidentifier():
        raise typer.BadParameter(f"{text!r} is not NAME=VALUE", param_hint="--set")
    try:
        read = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        read = value
    for part in read if isinstance(read, list) else [read]:
        if not isinstance(part, bool | int | float | str):
            raise typer.BadParameter(f"{text!r} is no plain value", param_hint="--set")
    return name, tuple(read) if isinstance(read, list) else read


_NAMED: Mapping[Precision, Dtype] = {
    Precision.FLOAT32: "float32",
    Precision.BFLOAT16: "bfloat16",
    Precision.FLOAT16: "float16",
}


def generate(
    model: ModelOption,
    out: OutOption,
    benchmark: BenchmarkOption = None,
    prompts: PromptsOption = None,
    data: DataOption = None,
    seeds: SeedsOption = None,
    skill: SkillOption = None,
    split: SplitOption = None,
    limit: LimitOption = None,
    recipe: RecipeOption = None,
    steps: StepsOption = None,
    guidance: GuidanceOption = None,
    width: WidthOption = None,
    height: HeightOption = None,
    negative_prompt: NegativePromptOption = None,
    settings: SettingsOption = None,
    seed_mode: SeedModeOption = Seeding.PER_IMAGE,
    batch_size: BatchSizeOption = 1,
    revision: RevisionOption = "",
    variant: VariantOption = "",
    device: DeviceOption = "auto",
    dtype: DtypeOption = Precision.AUTO,
    safety_checker: CheckerOption = Checker.ON,
    allow_pickle: AllowPickleOption = False,
    offline: OfflineOption = False,
    name: NameOption = "",
    licence: LicenceOption = "",
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Draw the prompts of a prompt set into a folder that can be submitted.

    One PNG for each prompt and seed, a table images.jsonl with what made each, assay.toml and a
    contact sheet. Run it again to go on: only what is missing or damaged is drawn.

    Example: python -m evaluator generate --model stabilityai/stable-diffusion-xl-base-1.0
    --benchmark gecko_s --seeds 42,3407,5096 --out sdxl --data data
    """
    choice = Choice(tuple(skill or ()), tuple(split or ()), limit)
    chosen = prompts_of(benchmark, prompts, data, choice)
    wanted = seeds_of(seeds, chosen, SEEDS)
    overrides = Overrides(
        steps=steps,
        guidance=guidance,
        width=width,
        height=height,
        negative_prompt=negative_prompt,
        call=dict(setting(text) for text in settings or ()),
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
    loading = Loading(device, dtype, variant, allow_pickle, safety_checker is Checker.ON)
    asked = GenerateRequest(seed_mode.value, batch_size, name, licence)
    draw_outline(outline, loading, asked, as_json=as_json)


@dataclass(frozen=True)
class Loading:
    """How the model is loaded."""

    device: str  # `auto`, or as torch names it
    dtype: Precision  # precision of the weights
    variant: str  # which of several files of the same weights; empty: those without one
    allow_pickle: bool  # whether weights that are not safetensors may be read
    checker: bool  # whether the checkpoint's safety checker is kept


@dataclass(frozen=True)
class GenerateRequest:
    """How images are drawn, and what the manifest says."""

    seed_mode: SeedMode  # where the noise of an image comes from
    batch_size: int  # images at a time, at most
    name: str  # of the model on boards; empty: by its id
    licence: str  # of the weights; empty: not known


def draw_outline(
    outline: Outline, loading: Loading, asked: GenerateRequest, *, as_json: bool
) -> None:
    """Draw what is missing, check all of the folder, and print what was done."""
    from evaluator.generation.run import (  # noqa: PLC0415 (takes seconds to import)
        Request,
        generate_images,
    )

    with stopped_in_words("What is finished is kept: the same command goes on with the rest."):
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
    report = check_folder(outline.folder.path, outline.prompts.prompts, outline.seeds)
    if as_json:
        _print_json(outline.folder.path, summary, report)
    else:
        _print_lines(outline.folder.path, summary, report, loaded.dtype)
    if any(problem.kind != "extra" for problem in report.problems):
        raise typer.Exit(1)


def _load(outline: Outline, loading: Loading) -> LoadedPipeline:
    from evaluator.generation import pipelines  # noqa: PLC0415 (takes seconds to import)

    pipelines.quieten()
    device = pipelines.choose_device(loading.device)
    with errors().status(f"Loading {outline.checkpoint.name} on {device}"):
        return pipelines.load_pipeline(
            outline.checkpoint,
            device=device,
            dtype=_dtype(loading.dtype, device, outline.recipe),
            variant=loading.variant,
            allow_pickle=loading.allow_pickle,
            safety_checker=loading.checker,
        )


def _dtype(asked: Precision, device: str, recipe: Recipe | None) -> Dtype:
    if asked in _NAMED:
        return _NAMED[asked]
    if device == "cpu":
        return "float32"
    return recipe.gpu_dtype if recipe else "bfloat16"


def _print_json(folder: Path, summary: Summary, report: GenerationsReport) -> None:
    values = {
        "folder": str(folder),
        **asdict(summary),
        "usable": report.usable,
        "problems": [asdict(problem) for problem in report.problems],
    }
    typer.echo(json.dumps(values, ensure_ascii=False))


def _print_lines(folder: Path, summary: Summary, report: GenerationsReport, dtype: Dtype) -> None:
    last = f"{folder}: look at {CONTACT_SHEET} first."
    for line in (*summary_lines(summary, dtype), *report_lines(report), last):
        console().print(line, markup=False, highlight=False, soft_wrap=True)
