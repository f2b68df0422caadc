"""Run of an image model behind an endpoint: asks for what is missing in a folder, several at a time."""

from __future__ import annotations

import platform
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from datetime import UTC, date, datetime
from importlib.metadata import version

from evaluator.generation.folder import RunFolder, RunTable, default_name, of_prompts
from evaluator.generation.image_endpoint import EndpointImage, ImageEndpoint
from evaluator.generation.manifest import EndpointSettings, GenerationsManifest, ImageRow
from evaluator.generation.prompts import ChosenPrompts, Job, all_jobs
from evaluator.scorers.endpoints import Endpoint
from evaluator.scorers.models.endpoint_requests import RequestFailure
from evaluator.scoring.progress import Listener, Tracker


@dataclass(frozen=True)
class EndpointRequest:
    """What is wanted of an endpoint."""

    endpoint: Endpoint  # of the operator's file
    settings: EndpointSettings  # how images are asked for
    prompts: ChosenPrompts  # in the order of asking
    seeds: tuple[int, ...]  # each once
    name: str = ""  # of the model on boards; empty: by its id
    licence: str = ""  # of what the model draws; empty where it is not known


@dataclass(frozen=True)
class EndpointSummary:
    """What a run did."""

    wanted: int  # images that were asked for
    drawn: int  # images that this start got, or was refused
    damaged: int  # files of earlier starts that were not as written, and were asked for again
    withheld: Mapping[str, int]  # problem to how many of the wanted images have none for it
    failed: Mapping[str, int]  # reason to how many requests got no image this time
    usd: float  # what the images of the folder that were wanted have cost
    reproducible: bool  # whether the endpoint takes the seed


def endpoint_manifest(
    request: EndpointRequest, before: GenerationsManifest | None, today: date
) -> GenerationsManifest:
    """The manifest of a run; what people wrote into the one before stays."""
    settings = request.settings
    base = before or GenerationsManifest(
        name=default_name(settings.model), drawn_on=today.isoformat()
    )
    return of_prompts(
        base, request.prompts, request.seeds, name=request.name, licence=request.licence
    ).model_copy(
        update={"model": settings.model, "endpoint": settings, "versions": endpoint_versions()}
    )


def endpoint_versions() -> dict[str, str]:
    """Of Python and of the library that reads and writes images."""
    return {"python": platform.python_version(), "pillow": version("pillow")}


def ask_for_images(
    request: EndpointRequest,
    folder: RunFolder,
    listener: Listener | None = None,
    *,
    sleep: Callable[[float], object] | None = None,
) -> EndpointSummary:
    """Ask for what is missing in a folder.

    May be cut off at any moment: what was finished stays, and the same call goes on from there. What
    is under way when a run stops is waited for and kept, since it is paid for.

    Raises:
        PlatformError: `budget_spent`, `endpoint_refused`.
        TransientError: `endpoint_unavailable`.
    """
    with folder.opened():
        return _EndpointRun(request, folder, listener, sleep).go()


class _EndpointRun:
    """One start of a run."""

    def __init__(
        self,
        request: EndpointRequest,
        folder: RunFolder,
        listener: Listener | None,
        sleep: Callable[[float], object] | None,
    ) -> None:
        self._request, self._folder, self._listener = request, folder, listener
        self._jobs = all_jobs(request.prompts.prompts, request.seeds)
        self._table = RunTable(folder, self._jobs)
        self._failed: Counter[str] = Counter()
        self._drawn = 0
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._sleep = sleep

    def go(self) -> EndpointSummary:
        settings = self._request.settings
        endpoint = ImageEndpoint(self._request.endpoint, settings, sleep=self._sleep)
        before = self._folder.manifest()
        manifest = endpoint_manifest(self._request, before, _today())
        damaged = self._table.take_over(manifest, before)
        try:
            self._ask(endpoint)
        finally:
            self._table.finish(f"{settings.model} at {settings.endpoint}")
        return EndpointSummary(
            wanted=len(self._jobs),
            drawn=self._drawn,
            damaged=damaged,
            withheld=self._table.withheld,
            failed=dict(self._failed),
            usd=sum(row.usd or 0.0 for row in self._table.requested_rows),
            reproducible=settings.reproducible,
        )

    def _ask(self, endpoint: ImageEndpoint) -> None:
        finished = self._table.finished
        todo = [job for job in self._jobs if job.key not in finished]
        tracker = Tracker(
            len(self._jobs),
            self._listener,
            already_done=len(self._jobs) - len(todo),
            stage="generating",
        )
        threads = self._request.endpoint.concurrency
        with ThreadPoolExecutor(threads, thread_name_prefix="images") as pool:
            asked = [pool.submit(self._one, endpoint, job) for job in todo]
            try:
                for done in as_completed(asked):
                    done.result()
                    tracker.advance(1)
            finally:
                self._stopped.set()
                pool.shutdown(wait=False, cancel_futures=True)

    def _one(self, endpoint: ImageEndpoint, job: Job) -> None:
        """Ask for an image, and write it, then its row: whichever is cut off is made again."""
        started = time.perf_counter()
        try:
            found = endpoint.draw(job.prompt.text, job.seed, self._stopped)
        except RequestFailure as failure:
            with self._lock:
                self._failed[str(failure)] += 1
            return
        row = self._row(job, found, time.perf_counter() - started)
        with self._lock:
            self._table.add([row])
            self._drawn += 1

    def _row(self, job: Job, found: EndpointImage, seconds: float) -> ImageRow:
        settings = self._request.settings
        image = found.image
        if image is None:
            problem: str | None = "refused"
        else:
            problem = "black" if image.getbbox() is None else None
        kept = None if problem else image
        if kept is None:
            (self._folder.path / job.file).unlink(missing_ok=True)
        return ImageRow(
            prompt_id=job.prompt.prompt_id,
            prompt=job.prompt.text,
            seed=job.seed,
            file=job.file if kept else None,
            sha256=self._folder.write_image(job.file, kept) if kept else None,
            width=kept.width if kept else None,
            height=kept.height if kept else None,
            problem=problem,
            model=settings.model,
            endpoint=settings.endpoint,
            drawn_on=_today().isoformat(),
            usd=found.usd,
            revised_prompt=found.revised_prompt or None,
            refusal=found.refusal or None,
            versions=endpoint_versions(),
            seconds=round(seconds, 4),
        )


def _today() -> date:
    return datetime.now(UTC).date()
