"""`generate`: images for the prompts of a prompt set, by pipelines of diffusers or by endpoints."""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import ValidationError

from benchmarks.command_line import DataOption, JsonOption, errors
from benchmarks.errors import AssayError
from benchmarks.prompt_sets.prompt_set import SEEDS, load_prompt_sets, parse_seeds, with_prompt_sets
from benchmarks.registry import find, load_registry
from evaluator.commands.common import console, stopped_in_words
from evaluator.commands.progress import progress_bar
from evaluator.generation.check import GenerationsReport
from evaluator.generation.checkpoint import locate
from evaluator.generation.endpoint_run import EndpointRequest, EndpointSummary, ask_for_images
from evaluator.generation.folder import CONTACT_SHEET, RunFolder, make_folder
from evaluator.generation.grid import (
    GridResult,
    ModelRequest,
    check_folders,
    faults,
    read_grid,
    write_page,
)
from evaluator.generation.image_endpoint import endpoint_settings
from evaluator.generation.manifest import Dtype, Scalar, SeedMode
from evaluator.generation.overview import (
    EndpointOutline,
    Outline,
    endpoint_lines,
    facts_table,
    grid_table,
    rate_words,
    report_lines,
    summary_lines,
)
from evaluator.generation.prompts import Choice, ChosenPrompts, benchmark_prompts, file_prompts
from evaluator.generation.recipes import Recipe
from evaluator.scorers.endpoints import find_endpoint
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
    str | None,
    typer.Option(
        "--model", help="Hub id, a folder with a model_index.json, or an id at the endpoint."
    ),
]
ModelsOption = Annotated[
    list[str] | None,
    typer.Option("--models", help="Likewise; repeatable: each gets a folder under --out."),
]
MoreModels = Annotated[
    list[str] | None, typer.Argument(metavar="[MODEL]...", help="Further models, after --models.")
]
GridOption = Annotated[
    Path | None,
    typer.Option(
        "--grid",
        help="TOML with a table [[model]] for each: model, endpoint, name, licence, revision, "
        "variant, recipe, steps, guidance, width, height, negative_prompt, quality, set.",
    ),
]
EndpointOption = Annotated[
    str,
    typer.Option(
        "--endpoint",
        help="Endpoint of the operator's file (ASSAY_ENDPOINTS) that draws, by OpenAI's protocol "
        "of images; without it, a pipeline of diffusers.",
    ),
]
QualityOption = Annotated[
    str, typer.Option("--quality", help="Of an endpoint's images, as it names it: high, hd.")
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
        help="Any other argument of the pipeline's call, or field of an endpoint's requests, for example "
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


_OF_ONE_MODEL = (
    "endpoint", "name", "licence", "revision", "variant", "recipe", "steps", "guidance", "width",
    "height", "negative_prompt", "quality", "settings",
)  # fmt: skip
_OF_PIPELINES = (
    "revision", "variant", "recipe", "steps", "guidance", "negative_prompt", "seed_mode",
    "batch_size", "device", "dtype", "safety_checker", "allow_pickle", "offline",
)  # fmt: skip


def generate(
    ctx: typer.Context,
    out: OutOption,
    more: MoreModels = None,
    model: ModelOption = None,
    models: ModelsOption = None,
    grid: GridOption = None,
    endpoint: EndpointOption = "",
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
    quality: QualityOption = "",
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
    contact sheet. Run it again to go on: only what is missing or damaged is drawn. With --models or
    --grid, one folder for each model and one page of all, grid.html; a model that fails is told, and
    the others go on.

    Example: python -m evaluator generate --model stabilityai/stable-diffusion-xl-base-1.0
    --benchmark gecko_s --seeds 42,3407,5096 --out sdxl --data data
    """
    if more and not models:
        raise typer.BadParameter(f"{more[0]!r} stands alone; several models are those of --models")
    models = [*(models or ()), *(more or ())]
    if [model is not None, bool(models), grid is not None].count(True) != 1:
        raise typer.BadParameter("give one of --model, --models and --grid")
    if grid is not None:
        _refuse(ctx, _OF_ONE_MODEL, "with --grid, it stands in the file")
        requests = read_grid(grid)
    else:
        if models:
            _refuse(ctx, ("name",), "of one model; a --grid has names for several")
        values = {
            "endpoint": endpoint, "name": name, "licence": licence, "revision": revision,
            "variant": variant, "recipe": recipe, "steps": steps, "guidance": guidance,
            "width": width, "height": height, "negative_prompt": negative_prompt,
            "quality": quality, "set": dict(setting(text) for text in settings or ()),
        }  # fmt: skip
        if endpoint:
            _refuse(ctx, _OF_PIPELINES, "it is for pipelines, not for endpoints")
        requests = _requests([model] if model is not None else models, values)
    choice = Choice(tuple(skill or ()), tuple(split or ()), limit)
    chosen = prompts_of(benchmark, prompts, data, choice)
    wanted = seeds_of(seeds, chosen, SEEDS)
    loading = Loading(device, dtype, variant, allow_pickle, safety_checker is Checker.ON)
    drawing = Drawing(chosen, wanted, loading, seed_mode.value, batch_size, offline, as_json)
    with stopped_in_words(GOES_ON):
        if model is not None:
            whole = _one(requests[0], RunFolder(out), drawing, dry_run=dry_run)
        else:
            whole = _grid(requests, out, drawing, dry_run=dry_run)
    if not whole:
        raise typer.Exit(1)


def _refuse(ctx: typer.Context, names: Sequence[str], why: str) -> None:
    """Refuse options that mean nothing here where they were typed."""
    for parameter in ctx.command.params:
        if parameter.name in names:
            source = ctx.get_parameter_source(parameter.name)
            if source is not None and source.name == "COMMANDLINE":
                raise typer.BadParameter(why, param_hint=parameter.opts[0])


def _requests(models: Sequence[str], values: Mapping[str, object]) -> tuple[ModelRequest, ...]:
    try:
        return tuple(ModelRequest.model_validate({"model": one, **values}) for one in models)
    except ValidationError as error:
        raise typer.BadParameter(faults(error)) from None


GOES_ON = "What is finished is kept: the same command goes on with the rest."


@dataclass(frozen=True)
class Loading:
    """How the model is loaded."""

    device: str  # `auto`, or as torch names it
    dtype: Precision  # precision of the weights
    variant: str  # which of several files of the same weights; empty: those without one
    allow_pickle: bool  # whether weights that are not safetensors may be read
    checker: bool  # whether the checkpoint's safety checker is kept


@dataclass(frozen=True)
class Drawing:
    """What every model of a call is to draw, and how."""

    prompts: ChosenPrompts
    seeds: tuple[int, ...]
    loading: Loading  # the variant is each model's own
    seed_mode: SeedMode  # where the noise of an image comes from
    batch_size: int  # images at a time, at most
    offline: bool  # whether the Hub is never asked
    as_json: bool  # whether programs read what is printed


@dataclass(frozen=True)
class ModelRun:
    """What became of a model."""

    summary: Summary | EndpointSummary
    report: GenerationsReport  # of all of its folder
    lines: tuple[str, ...]  # for people

    @property
    def problem(self) -> str:
        """Why its folder is not complete; empty where it is, also with files nobody asked for."""
        kinds = {kind: n for kind, n in self.report.counts.items() if kind != "extra"}
        return ", ".join(f"{n} {kind}" for kind, n in kinds.items())


def _one(request: ModelRequest, folder: RunFolder, drawing: Drawing, *, dry_run: bool) -> bool:
    """Draw one model and print what was done; whether its folder is complete."""
    outline = _outline(request, folder, drawing, configs_only=dry_run)
    facts = outline.facts()
    if not drawing.as_json:
        console().print(facts_table(facts))
    elif dry_run:
        typer.echo(json.dumps(facts, ensure_ascii=False))
    if dry_run:
        return True
    run = _drawn(outline, request, drawing)
    if drawing.as_json:
        record = {
            "folder": str(folder.path),
            **asdict(run.summary),
            "usable": run.report.usable,
            "problems": [asdict(problem) for problem in run.report.problems],
        }
        typer.echo(json.dumps(record, ensure_ascii=False))
    else:
        _print(*run.lines, f"{folder.path}: look at {CONTACT_SHEET} first.")
    return not run.problem


def _grid(requests: Sequence[ModelRequest], out: Path, drawing: Drawing, *, dry_run: bool) -> bool:
    """Draw several models, one after the other; whether all folders are complete."""
    check_folders(requests)
    if not dry_run:
        make_folder(out)
    results: list[GridResult] = []
    planned: list[Mapping[str, object]] = []
    for request in requests:
        folder = RunFolder(out / request.folder_name)
        try:
            outline = _outline(request, folder, drawing, configs_only=dry_run)
            planned.append(outline.facts())
            if not drawing.as_json:
                console().print(facts_table(planned[-1]))
            problem = "" if dry_run else _drawn_of_grid(outline, request, drawing)
        except Exception as error:  # noqa: BLE001  # whatever a model's pipeline raises
            problem = _error_text(error)
            errors().print(f"{request.model}: {problem}", markup=False, highlight=False)
        _let_go()
        results.append(GridResult.of(request, folder, drawing.prompts, drawing.seeds, problem))
    page = None if dry_run else write_page(out, results, drawing.prompts, drawing.seeds)
    if drawing.as_json:
        record = planned if dry_run else [asdict(one) for one in results]
        shown = {"models": record, "page": None if page is None else str(page)}
        typer.echo(json.dumps(shown, ensure_ascii=False))
    else:
        console().print(grid_table(results))
        if page is not None:
            _print(f"{page}: all models on one page.")
    return not any(one.problem for one in results)


def _drawn_of_grid(
    outline: Outline | EndpointOutline, request: ModelRequest, drawing: Drawing
) -> str:
    """Draw a model; why its folder is not complete."""
    run = _drawn(outline, request, drawing)
    if not drawing.as_json:
        _print(*run.lines)
    return run.problem


def _error_text(error: Exception) -> str:
    return str(error) if isinstance(error, AssayError) else f"{type(error).__name__}: {error}"[:300]


def _let_go() -> None:
    """Free what the last model held, if torch was ever loaded."""
    pipelines = sys.modules.get("evaluator.generation.pipelines")
    if pipelines is not None:
        pipelines.free_memory()


def _outline(
    request: ModelRequest, folder: RunFolder, drawing: Drawing, *, configs_only: bool
) -> Outline | EndpointOutline:
    if request.endpoint:
        endpoint = find_endpoint(request.endpoint)
        settings = endpoint_settings(
            endpoint,
            request.model,
            size=request.size,
            quality=request.quality,
            call=request.set,
        )
        asked = EndpointRequest(
            endpoint, settings, drawing.prompts, drawing.seeds, request.name, request.licence
        )
        return EndpointOutline(asked, folder)
    checkpoint = locate(
        request.model,
        revision=request.revision,
        variant=request.variant,
        allow_pickle=drawing.loading.allow_pickle,
        offline=drawing.offline,
        configs_only=configs_only,
    )
    return Outline.of(
        checkpoint,
        recipe=request.recipe,
        overrides=request.overrides,
        prompts=drawing.prompts,
        seeds=drawing.seeds,
        folder=folder,
    )


def _drawn(outline: Outline | EndpointOutline, request: ModelRequest, drawing: Drawing) -> ModelRun:
    """Draw what is missing, and check all of the folder."""
    summary: Summary | EndpointSummary
    if isinstance(outline, EndpointOutline):
        with progress_bar("images", rate_words) as listener:
            summary = ask_for_images(outline.request, outline.folder, listener)
        lines = endpoint_lines(summary)
    else:
        loaded = open_pipeline(outline, replace(drawing.loading, variant=request.variant))
        summary = draw_outline(
            outline,
            loaded,
            seed_mode=drawing.seed_mode,
            batch_size=drawing.batch_size,
            variant=request.variant,
            name=request.name,
            licence=request.licence,
        )
        lines = summary_lines(summary, loaded.dtype)
    report = check_folder(outline.folder.path, drawing.prompts.prompts, drawing.seeds)
    return ModelRun(summary, report, (*lines, *report_lines(report)))


def draw_outline(outline: Outline, loaded: LoadedPipeline, **how: Any) -> Summary:
    """Draw what is missing of a run, under a bar; `how`: further fields of its `Request`."""
    from evaluator.generation.run import Request, generate_images  # noqa: PLC0415 (takes seconds to import)

    request = Request(
        prompts=outline.prompts,
        seeds=outline.seeds,
        arguments=outline.arguments(loaded.pipe),
        recipe=outline.recipe.name if outline.recipe else "",
        **how,
    )
    with progress_bar("images", rate_words) as listener:
        return generate_images(loaded, request, outline.folder, listener)


def open_pipeline(outline: Outline, loading: Loading) -> LoadedPipeline:
    """Load the model of a run onto its device."""
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


def _print(*lines: str) -> None:
    for line in lines:
        console().print(line, markup=False, highlight=False, soft_wrap=True)
