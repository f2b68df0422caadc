"""Options of `generate`."""

from __future__ import annotations

import tomllib
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.prompt_sets.prompt_set import parse_seeds
from benchmarks.prompt_sets.registry import load_prompt_sets, with_prompt_sets
from benchmarks.registry import find, load_registry
from evaluator.generation.manifest import Scalar
from evaluator.generation.prompts import Choice, ChosenPrompts, benchmark_prompts, file_prompts


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
    """The prompts of a prompt set, of a benchmark, or of a file.

    Raises:
        typer.BadParameter: neither or both are given.
        SubmitterError: `unknown_benchmark`, `no_prompts`, or a file that cannot be read.
    """
    if benchmark is not None and path is None:
        return prompts_by_name(benchmark, data, choice)
    if path is not None and benchmark is None:
        return file_prompts(path, choice)
    raise typer.BadParameter("give one of --benchmark and --prompts")


def prompts_by_name(name: str, data: Path | None, choice: Choice) -> ChosenPrompts:
    """The prompts of a prompt set or of a benchmark.

    Raises:
        SubmitterError: `unknown_benchmark`, `no_prompts`, `data_missing`, `data_malformed`,
            `unknown_choice`.
    """
    known = with_prompt_sets(load_registry(), load_prompt_sets())
    return benchmark_prompts(find(known, name), data, choice)


def seeds_of(
    text: str | None, prompts: ChosenPrompts | None, default: tuple[int, ...]
) -> tuple[int, ...]:
    """The seeds that were asked for, else those that the prompt set proposes, else the default.

    Raises:
        SubmitterError: `bad_seeds`.
    """
    if text is not None:
        return parse_seeds(text)
    drawing = prompts.drawing if prompts else None
    return drawing.seeds if drawing else default


def setting(text: str) -> tuple[str, Scalar | tuple[Scalar, ...]]:
    """`NAME=VALUE`, the value as TOML has it; what is not TOML is text.

    Raises:
        typer.BadParameter: no name, or a value that is neither plain nor a list of plain ones.
    """
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
