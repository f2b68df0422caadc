"""Run: draws what is missing in a folder, and keeps the folder whole at every moment."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from benchmarks.errors import SubmitterError
from evaluator.generation.folder import RunFolder, RunTable, default_name, of_prompts
from evaluator.generation.manifest import GenerationsManifest, ImageRow, SeedMode, Settings
from evaluator.generation.pipelines import Drawn, LoadedPipeline, draw, free_memory, readers
from evaluator.generation.prompts import Batches, ChosenPrompts, Job, all_jobs, stream_jobs
from evaluator.scoring.asking import OutOfMemoryError
from evaluator.scoring.progress import Listener, Tracker

_LIBRARIES = ("diffusers", "torch", "transformers", "pillow")


@dataclass(frozen=True)
class Request:
    """What is wanted."""

    prompts: ChosenPrompts  # in the order of drawing
    seeds: tuple[int, ...]  # each once
    arguments: Mapping[str, Any]  # of the pipeline's call, all spelt out (`recipes.call_arguments`)
    seed_mode: SeedMode = "per_image"
    batch_size: int = 1  # images drawn at a time, at most
    variant: str = ""  # which of several files of the same weights was loaded
    recipe: str = ""  # name of the recipe the arguments came from
    name: str = ""  # of the model on boards; empty: by its id
    licence: str = ""  # of the weights; empty where it is not known


@dataclass(frozen=True)
class Summary:
    """What a run did."""

    wanted: int  # images that were asked for
    drawn: int  # images drawn by this start
    damaged: int  # files of earlier starts that were not as written, and were drawn again
    withheld: Mapping[str, int]  # problem to how many of the wanted images have none for it
    truncated: tuple[str, ...]  # ids of the prompts whose end a text encoder left out
    batch_size: int  # the last that fitted
    shrunk: bool  # whether that is less than was asked for
    mixed_versions: bool  # whether images of other versions of the libraries are among them


def versions() -> dict[str, str]:
    """Of Python and of the libraries that images depend on."""
    return {"python": platform.python_version(), **{name: version(name) for name in _LIBRARIES}}


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
    links = {"model": f"https://huggingface.co/{model}"} if on_hub else {}
    base = before or GenerationsManifest(name=default_name(model), links=links)
    return of_prompts(
        base, request.prompts, request.seeds, name=request.name, licence=request.licence
    ).model_copy(
        update={
            "model": model,
            "revision": settings.revision,
            "settings": settings,
            "versions": versions(),
        }
    )


def row_of(
    job: Job, drawn: Drawn, sha256: str | None, settings: Settings, cuts: tuple[str, ...] | None
) -> ImageRow:
    """The row of an image."""
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


def generate_images(
    loaded: LoadedPipeline, request: Request, folder: RunFolder, listener: Listener | None = None
) -> Summary:
    """Draw what is missing in a folder.

    May be cut off at any moment: what was finished stays, and the same call goes on from there.
    """
    with folder.opened():
        return _Run(loaded, request, folder, listener).go()


class _Run:
    """One start of a run."""

    def __init__(
        self, loaded: LoadedPipeline, request: Request, folder: RunFolder, listener: Listener | None
    ) -> None:
        self._pipe = loaded.pipe
        self._device = loaded.device
        self._request = request
        self._folder = folder
        self._listener = listener
        self._settings = settings_of(loaded, request)
        self._jobs = all_jobs(request.prompts.prompts, request.seeds)
        found = tuple(readers(loaded.pipe, request.arguments))
        self._cut_by = {
            p.prompt_id: tuple(str(one) for one in found if one.cuts(p.text)) if found else None
            for p in request.prompts.prompts
        }
        self._noise: dict[int, bytes] = {}
        self._table = RunTable(folder, self._jobs)

    def go(self) -> Summary:
        before = self._folder.manifest()
        manifest = manifest_of(self._settings, self._request, before)
        damaged = self._table.take_over(manifest, before)
        todo = self._todo(self._table.finished)
        batches = Batches(todo, self._request.batch_size, self._request.seed_mode)
        tracker = Tracker(
            len(self._jobs),
            self._listener,
            already_done=len(self._jobs) - len(todo),
            stage="generating",
        )
        try:
            self._draw_all(batches, tracker)
        finally:
            self._table.finish(self._title())
        return self._summary(len(todo), damaged, batches.size)

    def _todo(self, finished: frozenset[tuple[str, int]]) -> tuple[Job, ...]:
        if self._request.seed_mode == "per_image":
            return tuple(job for job in self._jobs if job.key not in finished)
        kept = self._folder.kept_noise(self._request.seeds)
        todo = stream_jobs(self._jobs, finished, {seed: at for seed, (at, _) in kept.items()})
        for job in reversed(todo):
            position, state = kept.get(job.seed, (-1, b""))
            if position == job.position:
                self._noise[job.seed] = state
        return todo

    def _draw_all(self, batches: Batches, tracker: Tracker) -> None:
        with ThreadPoolExecutor(1, thread_name_prefix="writer") as writer:
            writing: Future[None] | None = None
            for batch in batches:
                drawn = self._attempt(batch)
                if drawn is None:
                    free_memory()
                    batches.retry_smaller(batch)
                    continue
                if writing is not None:
                    writing.result()
                # Compressing one batch takes place while the next is drawn.
                writing = writer.submit(self._keep, batch, drawn)
                tracker.advance(len(batch))
            if writing is not None:
                writing.result()

    def _attempt(self, batch: Sequence[Job]) -> list[Drawn] | None:
        """Draw a batch; None where it does not fit and a smaller one may."""
        try:
            drawn = draw(self._pipe, batch, self._request.arguments, self._noise)
        except OutOfMemoryError as error:
            if len(batch) > 1:
                return None
            raise SubmitterError(
                "out_of_memory",
                f"One image does not fit into the memory of {self._device}.",
                "Use --dtype float16 or bfloat16, a smaller --width and --height, or another "
                "device. What was finished is kept.",
            ) from error
        if self._request.seed_mode == "stream":
            self._noise |= {job.seed: d.noise_after for job, d in zip(batch, drawn, strict=True)}
        return drawn

    def _keep(self, batch: Sequence[Job], drawn: Sequence[Drawn]) -> None:
        """Write images, then rows, then noise: whichever is cut off is made again."""
        self._table.add([self._row(job, d) for job, d in zip(batch, drawn, strict=True)])
        if self._request.seed_mode == "stream":
            for job, d in zip(batch, drawn, strict=True):
                self._folder.keep_noise(job.seed, job.position + 1, d.noise_after)

    def _row(self, job: Job, drawn: Drawn) -> ImageRow:
        if drawn.image is None:
            (self._folder.path / job.file).unlink(missing_ok=True)
            sha256 = None
        else:
            sha256 = self._folder.write_image(job.file, drawn.image)
        return row_of(job, drawn, sha256, self._settings, self._cut_by[job.prompt.prompt_id])

    def _title(self) -> str:
        call = self._settings.call
        said = {"steps": call.get("num_inference_steps"), "guidance": call.get("guidance_scale")}
        parts = [f"{name} {value}" for name, value in said.items() if value is not None]
        return ", ".join([self._settings.model, *parts])

    def _summary(self, drawn: int, damaged: int, batch_size: int) -> Summary:
        return Summary(
            wanted=len(self._jobs),
            drawn=drawn,
            damaged=damaged,
            withheld=self._table.withheld,
            truncated=tuple(prompt_id for prompt_id, cuts in self._cut_by.items() if cuts),
            batch_size=batch_size,
            shrunk=batch_size < self._request.batch_size,
            mixed_versions=any(row.versions != versions() for row in self._table.requested_rows),
        )
