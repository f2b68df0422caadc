"""`init`: a new folder that can be checked and submitted as it is."""

from __future__ import annotations

import shlex
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.errors import SubmitterError
from benchmarks.registry import find, load_registry
from benchmarks.score_columns import check_metric_name
from evaluator.commands.common import DataOption, console
from evaluator.generation.names import IMAGES
from evaluator.generation.prompts import (
    Choice,
    PromptSet,
    benchmark_prompts,
    file_prompts,
    parse_seeds,
)
from evaluator.hub.model_shelf import NAMED
from evaluator.isolation.supervising.text import one_line
from evaluator.submission.making.generations_folder import generations_files
from evaluator.submission.making.skeletons import SkeletonKind, module_files, provided, taken_names
from evaluator.submission.making.wrapping import ClassFile, read_class

SEEDS = "42"
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
    str, typer.Option("--benchmark", help="Whose prompts are drawn (generations).")
]
SeedsOption = Annotated[str, typer.Option("--seeds", help="Seeds of the images (generations).")]


def init(
    kind: Annotated[SkeletonKind, typer.Argument(help="What to begin.")],
    folder: Annotated[Path, typer.Argument(help="A new folder.")],
    name: Annotated[str, typer.Option(help="Name on the boards; the folder's if not given.")] = "",
    source: FromOption = "",
    model: ModelOption = "",
    benchmark: BenchmarkOption = "",
    prompts: PromptsOption = None,
    seeds: SeedsOption = SEEDS,
    data: DataOption = None,
) -> None:
    """Write a metric that runs at once, or the manifest of a model's images, into a new folder.

    plain: a function of image and prompt.

    dual-encoder: images and texts are encoded apart.

    vlm: asks a model of the Hub.

    ts2, croc: runs an existing class of T2IScoreScore or CROC unchanged.

    generations: a model's images for a benchmark's prompts.

    Example: python -m evaluator init ts2 my-metric --from metrics/mine.py:MyMetric
    """
    _check_options(kind, source, model, benchmark, prompts, seeds)
    title = _checked_name(name, folder)
    if kind is SkeletonKind.GENERATIONS:
        wanted = _prompts(benchmark, prompts, data)
        write_new(folder, generations_files(title, wanted, parse_seeds(seeds)), (IMAGES,))
        _say(folder, kind)
        return
    wrapped = read_class(source, provided(kind), taken_names(kind)) if source else None
    write_new(folder, module_files(kind, title, wrapped=wrapped, model=model))
    _say(folder, kind)
    if wrapped is not None:
        _say_of(wrapped)
    if kind is SkeletonKind.VLM and not model:
        _print("Name its model in assay.toml before you check it; README.md says how.")


def write_new(folder: Path, files: Mapping[str, bytes], empty: tuple[str, ...] = ()) -> None:
    """Write a folder that was not there before, whole or not at all.

    Args:
        folder: the new folder.
        files: relative path to content.
        empty: folders in it.

    Raises:
        SubmitterError: `folder_exists`, `cannot_write`.
    """
    try:
        there = folder.is_symlink() or folder.exists()
    except OSError as error:  # a name that is too long
        raise _unwritable(folder, error) from error
    if there:
        raise SubmitterError(
            "folder_exists", f"{folder} is there already.", "Name a new folder; none is changed."
        )
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f".{folder.name[:40]}-", dir=folder.parent))
    except OSError as error:
        raise _unwritable(folder, error) from error
    try:
        for path in (part / name for name in empty):
            path.mkdir(parents=True)
        for name, content in files.items():
            (part / name).parent.mkdir(parents=True, exist_ok=True)
            (part / name).write_bytes(content)
        part.chmod(0o755)
        part.rename(folder)
    except OSError as error:
        raise _unwritable(folder, error) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _unwritable(folder: Path, error: OSError) -> SubmitterError:
    return SubmitterError(
        "cannot_write",
        f"{folder} cannot be written: {error.strerror or error}.",
        "Choose another folder.",
    )


def _check_options(
    kind: SkeletonKind, source: str, model: str, benchmark: str, prompts: Path | None, seeds: str
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
    if seeds != SEEDS and not of_images:
        raise typer.BadParameter("only generations have seeds", param_hint="--seeds")
    if benchmark and prompts:
        raise typer.BadParameter("give --benchmark or --prompts, not both")


def _checked_name(name: str, folder: Path) -> str:
    try:
        return check_metric_name(name or folder.resolve().name)
    except SubmitterError as error:
        if name:
            raise
        raise SubmitterError(
            error.code,
            f"The folder's name is none for a board: {error.message}",
            f"Give the name with --name. {error.hint}",
        ) from error


def _prompts(benchmark: str, prompts: Path | None, data: Path | None) -> PromptSet | None:
    if benchmark:
        return benchmark_prompts(find(load_registry(), benchmark), data, Choice())
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
