"""Loads the model of `generate`, draws, checks the folder and says what was done."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from benchmarks.command_line import errors
from evaluator.commands.common import console, stopped_in_words
from evaluator.commands.generate_options import Precision
from evaluator.generation.check import GenerationsReport
from evaluator.generation.folder import CONTACT_SHEET
from evaluator.generation.manifest import Dtype
from evaluator.generation.overview import Outline, bar, report_lines, summary_lines
from evaluator.generation.recipes import Recipe
from evaluator.generation.rows import SeedMode
from evaluator.submission.generations.checking import check_folder

if TYPE_CHECKING:
    from evaluator.generation.pipelines import LoadedPipeline
    from evaluator.generation.run import Summary

_NAMED: Mapping[Precision, Dtype] = {
    Precision.FLOAT32: "float32",
    Precision.BFLOAT16: "bfloat16",
    Precision.FLOAT16: "float16",
}


@dataclass(frozen=True)
class Loading:
    """How the model is loaded.

    Attributes:
        device: `auto`, or as torch names it.
        dtype: precision of the weights.
        variant: which of several files of the same weights; empty: those without one.
        allow_pickle: whether weights that are not safetensors may be read.
        checker: whether the checkpoint's safety checker is kept.
    """

    device: str
    dtype: Precision
    variant: str
    allow_pickle: bool
    checker: bool


@dataclass(frozen=True)
class Asked:
    """How images are drawn, and what the manifest says.

    Attributes:
        seed_mode: where the noise of an image comes from.
        batch_size: images at a time, at most.
        name: of the model on boards; empty: by its id.
        licence: of the weights; empty: not known.
    """

    seed_mode: SeedMode
    batch_size: int
    name: str
    licence: str


def draw_outline(outline: Outline, loading: Loading, asked: Asked, *, as_json: bool) -> None:
    """Draw what is missing, check all of the folder, and print what was done.

    Raises:
        typer.Exit: 1 where images are missing or wrong afterwards; 130 when it was stopped.
        SubmitterError: a checkpoint or a folder that cannot be used.
    """
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
