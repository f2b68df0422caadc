"""Request of a run, the record of it in its folder, and its outcome."""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from evaluator.generation.drawing import Drawn
from evaluator.generation.manifest import GenerationsManifest
from evaluator.generation.pipelines import LoadedPipeline
from evaluator.generation.plan import Job
from evaluator.generation.prompts import ChosenPrompts
from evaluator.generation.rows import ImageRow, SeedMode
from evaluator.generation.settings import Settings

_LIBRARIES = ("diffusers", "torch", "transformers", "pillow")


@dataclass(frozen=True)
class Request:
    """What is wanted.

    Attributes:
        prompts: in the order of drawing.
        seeds: each once.
        arguments: of the pipeline's call, all spelt out (`recipes.call_arguments`).
        batch_size: images drawn at a time, at most.
        variant: which of several files of the same weights was loaded.
        recipe: name of the recipe the arguments came from.
        name: of the model on boards; empty: by its id.
        licence: of the weights; empty where it is not known.
    """

    prompts: ChosenPrompts
    seeds: tuple[int, ...]
    arguments: Mapping[str, Any]
    seed_mode: SeedMode = "per_image"
    batch_size: int = 1
    variant: str = ""
    recipe: str = ""
    name: str = ""
    licence: str = ""


@dataclass(frozen=True)
class Summary:
    """What a run did.

    Attributes:
        wanted: images that were asked for.
        drawn: images drawn by this start.
        damaged: files of earlier starts that were not as written, and were drawn again.
        withheld: problem to how many of the wanted images have none for it.
        truncated: ids of the prompts whose end a text encoder left out.
        batch_size: the last that fitted.
        shrunk: whether that is less than was asked for.
        mixed_versions: whether images of other versions of the libraries are among them.
    """

    wanted: int
    drawn: int
    damaged: int
    withheld: Mapping[str, int]
    truncated: tuple[str, ...]
    batch_size: int
    shrunk: bool
    mixed_versions: bool


def versions() -> dict[str, str]:
    """Of Python and of the libraries that images depend on."""
    return {"python": platform.python_version(), **{name: version(name) for name in _LIBRARIES}}


def default_name(model: str) -> str:
    """A name for boards, from a Hub id or a folder's name."""
    name = re.sub(r"[^A-Za-z0-9._+-]+", "-", model.rsplit("/", 1)[-1])[:64]
    return re.sub(r"^[^A-Za-z0-9]+", "", name) or "model"


def settings_of(loaded: LoadedPipeline, request: Request) -> Settings:
    """The settings of a run, all spelt out."""
    return Settings(
        model=loaded.checkpoint.name,
        revision=loaded.checkpoint.revision,
        variant=request.variant,
        pipeline=type(loaded.pipe).__name__,
        scheduler=type(loaded.pipe.scheduler).__name__ if hasattr(loaded.pipe, "scheduler") else "",
        recipe=request.recipe,
        seed_mode=request.seed_mode,
        dtype=loaded.dtype,
        decoder_dtype=loaded.decoder_dtype,
        device=loaded.device.partition(":")[0],
        safety_checker=loaded.safety_checker,
        call=dict(request.arguments),
    )


def manifest_of(
    settings: Settings, request: Request, before: GenerationsManifest | None
) -> GenerationsManifest:
    """The manifest of a run; what people wrote into the one before stays."""
    model = settings.model
    on_hub = not settings.revision.startswith("sha256:")
    base = before or GenerationsManifest(
        name=default_name(model),
        links={"model": f"https://huggingface.co/{model}"} if on_hub else {},
    )
    return base.model_copy(
        update={
            "name": request.name or base.name,
            "licence": request.licence or base.licence,
            "model": model,
            "revision": settings.revision,
            "benchmark": request.prompts.benchmark,
            "benchmark_revision": request.prompts.revision,
            "seeds": tuple(dict.fromkeys([*base.seeds, *request.seeds])),
            "settings": settings,
            "versions": versions(),
        }
    )


def row_of(
    job: Job,
    drawn: Drawn,
    sha256: str | None,
    settings: Settings,
    cuts: tuple[str, ...] | None,
) -> ImageRow:
    """The row of an image.

    Args:
        job: what was asked for.
        drawn: what was drawn.
        sha256: of the file; None where the image is withheld.
        settings: of the run.
        cuts: the text encoders that left out the end of the prompt; None: not known.
    """
    steps, guidance = (settings.call.get(k) for k in ("num_inference_steps", "guidance_scale"))
    return ImageRow(
        prompt_id=job.prompt.prompt_id,
        prompt=job.prompt.text,
        seed=job.seed,
        file=job.file if sha256 else None,
        sha256=sha256,
        width=drawn.image.width if drawn.image else None,
        height=drawn.image.height if drawn.image else None,
        problem=drawn.problem,
        nsfw=drawn.nsfw,
        truncated=None if cuts is None else bool(cuts),
        cut_by=cuts or (),
        model=settings.model,
        revision=settings.revision,
        pipeline=settings.pipeline,
        scheduler=settings.scheduler,
        steps=steps if isinstance(steps, int) else None,
        guidance=float(guidance) if isinstance(guidance, int | float) else None,
        seed_mode=settings.seed_mode,
        position=job.position if settings.seed_mode == "stream" else None,
        dtype=settings.dtype,
        device=settings.device,
        versions=versions(),
        seconds=round(drawn.seconds, 4),
    )
