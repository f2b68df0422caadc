"""`croc`: make benchmarks of contrasting prompt pairs, as CROC_syn was made."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from benchmarks.command_line import JsonOption, errors
from benchmarks.errors import SubmitterError
from evaluator.commands.common import console, stopped_in_words
from evaluator.commands.croc_compare import compare
from evaluator.commands.croc_review import review, review_export
from evaluator.commands.generate import (
    GOES_ON,
    AllowPickleOption,
    BatchSizeOption,
    Checker,
    CheckerOption,
    DeviceOption,
    DtypeOption,
    GuidanceOption,
    HeightOption,
    LicenceOption,
    Loading,
    NegativePromptOption,
    OfflineOption,
    Precision,
    RecipeOption,
    RevisionOption,
    SettingsOption,
    StepsOption,
    VariantOption,
    WidthOption,
    draw_outline,
    open_pipeline,
    setting,
)
from evaluator.commands.language_model import (
    EndpointOption,
    LanguageModelOption,
    open_language_model,
)
from evaluator.commands.progress import progress_bar
from evaluator.scorers.registry import Runtime

if TYPE_CHECKING:
    from evaluator.croc.folder import CrocFolder
    from evaluator.croc.writing import WritingPlan

app = typer.Typer(help="CROC data of your own: contrasting prompt pairs and their images.")
_KEY = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")


class Kind(StrEnum):
    """What a prompt pair contrasts."""

    PROPERTY = "subject_property"
    VARIATION = "entity_variation"
    PLACEMENT = "entity_placement"


class DrawnAs(StrEnum):
    """Whose draws of subjects."""

    PAPER = "paper"
    RELEASED = "released"


@app.command()
def prompts(
    out: Annotated[Path, typer.Option("--out", help="Folder to make, or to go on with.")],
    model: LanguageModelOption,
    *,
    taxonomy: Annotated[
        Path | None,
        typer.Option(help="JSON file in the authors' form; without it, a small one of Assay."),
    ] = None,
    endpoint: EndpointOption = None,
    text_model: Annotated[
        str, typer.Option(help="Short name of the language model in files; else of its id.")
    ] = "",
    image_model: Annotated[
        str,
        typer.Option(
            help="Short name of the image model that prompts are for: flux and sd have guides of "
            "their own."
        ),
    ] = "flux",
    kind: Annotated[
        list[Kind] | None, typer.Option(help="Only this kind; repeatable. Without it, all three.")
    ] = None,
    n: Annotated[int, typer.Option("--n", min=1, help="Completions of each request.")] = 5,
    draws: Annotated[
        DrawnAs, typer.Option(help="Subjects as the paper draws them, or like the released code.")
    ] = DrawnAs.PAPER,
    seed: Annotated[int, typer.Option(min=0, help="Of draws and completions.")] = 0,
    most_words: Annotated[
        int, typer.Option(min=3, help="Of a prompt; a longer one is dropped.")
    ] = 30,
    max_tokens: Annotated[int, typer.Option(min=16, help="Of a completion.")] = 4096,
    revision: Annotated[str, typer.Option(help="Commit of the model.")] = "",
    device: Annotated[str, typer.Option(help="As torch names it.")] = "cpu",
    offline: Annotated[bool, typer.Option("--offline", help="Never ask the Hub.")] = False,
    plan: Annotated[
        bool, typer.Option("--plan", help="Say what would be asked and cost, and ask nothing.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Write contrasting prompt pairs about a taxonomy with a language model.

    Every reply is kept, and a run that was stopped goes on where it was. What cannot be used is
    dropped, counted by reason and by property in report.json. The folder is a benchmark in the
    layout of CROC_syn; `croc images` draws its images. Another model writes another file of it.

    Example: python -m evaluator croc prompts --taxonomy taxonomy.json --model Qwen/QwQ-32B
    --image-model flux --out boards/my_croc
    """
    from evaluator.croc.coverage import write_report  # noqa: PLC0415 (where it is used)
    from evaluator.croc.folder import CrocFolder, WritingRun  # noqa: PLC0415
    from evaluator.croc.instructions import guide_to, wording  # noqa: PLC0415
    from evaluator.croc.requests import MODES, draw_requests, properties_of  # noqa: PLC0415
    from evaluator.croc.taxonomy import EXAMPLE, read_taxonomy  # noqa: PLC0415
    from evaluator.croc.writing import plan_of, write_pairs  # noqa: PLC0415
    from evaluator.scorers.endpoints import find_endpoint  # noqa: PLC0415
    from evaluator.scorers.models.sampling import Sampling  # noqa: PLC0415

    about = read_taxonomy(taxonomy or EXAMPLE)
    modes = tuple(mode for mode in MODES if Kind(mode) in (kind or Kind))
    requests = draw_requests(about, modes, draws.value, seed)
    if not requests:
        raise SubmitterError(
            "bad_taxonomy", "The taxonomy asks for nothing of this kind.", "Name another kind."
        )
    guide, folder = guide_to(image_model), CrocFolder(out)
    run = WritingRun(
        order=0,
        image_model=_key(image_model, "--image-model"),
        text_model=_key(text_model or _short(model), "--text-model"),
        model=model,
        taxonomy=about.digest,
        draws=draws.value,
        seed=seed,
        modes=modes,
        completions=n,
        most_words=most_words,
        max_tokens=max_tokens,
        sampling=asdict(Sampling()),
        wording=wording(guide),
        requests=len(requests),
        skills={one.key: one.skill for one in properties_of(about, draws.value)},
    )
    prices = find_endpoint(endpoint).model(model) if endpoint else None
    # The commit of a model is known once it is open.
    there = folder.check(run, but=() if endpoint else ("model",))
    expected = plan_of(requests, run, guide, there, prices)
    if plan and as_json:
        typer.echo(json.dumps(asdict(expected)))
        return
    if not as_json:
        console().print(_plan_table(expected))
    if plan:
        return
    with folder.opened(), stopped_in_words("The same command goes on where it was."):
        opened, named = open_language_model(
            model, endpoint, revision, Runtime(device, offline=offline)
        )
        run = folder.begin(run.model_copy(update={"model": named}))
        try:
            with progress_bar("writing") as bar:
                write_pairs(requests, run, opened, folder, guide=guide, listener=bar)
        except SubmitterError:
            write_report(folder, list(folder.read()))
            raise
        figures = _publish(folder)
    _print(figures, folder, as_json=as_json)


@app.command()
def images(
    folder: Annotated[Path, typer.Argument(help="Folder of `croc prompts`.")],
    model: Annotated[
        str, typer.Option("--model", help="Hub id, or a folder with a model_index.json.")
    ],
    *,
    image_model: Annotated[
        str | None,
        typer.Option(help="Whose prompts are drawn; without it, those of the only one there is."),
    ] = None,
    n: Annotated[
        int, typer.Option("--n", min=1, help="Images of each prompt; their seeds are 0 to n - 1.")
    ] = 5,
    recipe: RecipeOption = None,
    steps: StepsOption = None,
    guidance: GuidanceOption = None,
    width: WidthOption = None,
    height: HeightOption = None,
    negative_prompt: NegativePromptOption = None,
    settings: SettingsOption = None,
    batch_size: BatchSizeOption = 1,
    revision: RevisionOption = "",
    variant: VariantOption = "",
    device: DeviceOption = "auto",
    dtype: DtypeOption = Precision.AUTO,
    safety_checker: CheckerOption = Checker.ON,
    allow_pickle: AllowPickleOption = False,
    offline: OfflineOption = False,
    licence: LicenceOption = "",
    as_json: JsonOption = False,
) -> None:
    """Draw n images of every prompt and contrast prompt, with any text-to-image model of diffusers.

    The engine is that of `generate`: run it again to go on, and only what is missing is drawn. Image
    k starts from seed k for all prompts, as in CROC_syn. A prompt pair of which an image is
    withheld is dropped and counted.

    Example: python -m evaluator croc images boards/my_croc --model black-forest-labs/FLUX.1-schnell
    --image-model flux --steps 4 --guidance 0
    """
    from evaluator.croc.drawing import place_images, prompts_of, runs_of  # noqa: PLC0415 (as above)
    from evaluator.croc.folder import CrocFolder  # noqa: PLC0415
    from evaluator.generation.checkpoint import locate  # noqa: PLC0415
    from evaluator.generation.folder import RunFolder  # noqa: PLC0415
    from evaluator.generation.overview import Outline, summary_lines  # noqa: PLC0415
    from evaluator.generation.recipes import Overrides  # noqa: PLC0415

    place, loaded, seeds = CrocFolder(folder), None, tuple(range(n))
    runs = runs_of(place, image_model)
    call = dict(setting(text) for text in settings or ())
    overrides = Overrides(
        steps=steps,
        guidance=guidance,
        width=width,
        height=height,
        negative_prompt=negative_prompt,
        call=call,
    )
    checkpoint = locate(
        model, revision=revision, variant=variant, allow_pickle=allow_pickle, offline=offline
    )
    loading = Loading(device, dtype, variant, allow_pickle, safety_checker is Checker.ON)
    with place.opened(), stopped_in_words(GOES_ON):
        place.set_images_per_prompt(n)
        for run in runs:
            outline = Outline.of(
                checkpoint,
                recipe=recipe,
                overrides=overrides,
                prompts=prompts_of(place, run),
                seeds=seeds,
                folder=RunFolder(place.drawing(run)),
            )
            loaded = loaded or open_pipeline(outline, loading)
            summary = draw_outline(
                outline, loaded, batch_size=batch_size, variant=variant, licence=licence
            )
            count = place_images(place, run, seeds)
            for line in summary_lines(summary, loaded.dtype):
                errors().print(line, markup=False, highlight=False)
            errors().print(f"{run.key}: {count} images are in their places.", highlight=False)
        figures = _publish(place)
    _print(figures, place, as_json=as_json)


def _key(name: str, option: str) -> str:
    if not _KEY.fullmatch(name):
        raise typer.BadParameter(
            f"{name!r} is no name of small letters, digits and -, of 40 at most", param_hint=option
        )
    return name


def _short(model: str) -> str:
    """A short name from a Hub id, a folder or an id at an endpoint."""
    return re.sub(r"[^a-z0-9]+", "-", model.rstrip("/").rpartition("/")[2].lower()).strip("-")[:40]


def _publish(folder: CrocFolder) -> Mapping[str, Any]:
    from evaluator.croc.coverage import write_report  # noqa: PLC0415 (as above)

    requests = list(folder.read())
    figures = write_report(folder, requests)
    folder.publish(requests)
    return figures


def _plan_table(plan: WritingPlan) -> Table:
    table = Table("what", "number", show_header=False, title="Writing")
    table.add_row("requests", f"{plan.requests:,}")
    table.add_row("completions", f"{plan.completions:,}, of which {plan.there:,} are there")
    table.add_row("tokens to read, about", f"{plan.read_tokens:,}")
    most = f"at most {plan.most_written_tokens:,}"
    table.add_row("tokens to write, about", f"{plan.written_tokens:,}, {most}")
    cost = "none is known"
    if plan.usd is not None and plan.most_usd is not None:
        cost = f"{plan.usd:,.2f} USD, at most {plan.most_usd:,.2f}"
    table.add_row("cost, about", cost)
    return table


def _print(figures: Mapping[str, Any], folder: CrocFolder, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(figures, ensure_ascii=False))
        return
    table = Table("kind", "completions", "pairs kept", "dropped")
    for name, tally in [*figures["kinds"].items(), ("all", figures)]:
        dropped = ", ".join(f"{count} {reason}" for reason, count in tally["dropped"].items())
        table.add_row(name, f"{tally['asked']:,}", f"{tally['kept']:,}", dropped)
    console().print(table)
    told = f"{folder.path} is the benchmark {folder.name}; report.json tells of each property."
    console().print(told, markup=False, highlight=False, soft_wrap=True)


app.command()(review)
app.command()(review_export)
app.command()(compare)
