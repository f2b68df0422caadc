"""Metric in use: a built-in row or the code of a scoring module, loaded and asked for scores."""

from __future__ import annotations

import math
import os
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, Self, get_args

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from benchmarks.errors import PlatformError, SubmitterError
from benchmarks.problems import Problem, one_error
from benchmarks.registry import load_registry
from benchmarks.settings.model import value_of
from evaluator.bundled import bundled_modules
from evaluator.environments.cache import EnvironmentCache
from evaluator.hub.model_cache import ModelCache
from evaluator.isolation.availability import IsolationChoice, machine_isolation
from evaluator.isolation.job import Job, scorer_limits
from evaluator.manifest import read_manifest
from evaluator.scorers import device as model_device
from evaluator.scorers.in_process import ModelClient, ModelSource, check_installed
from evaluator.scorers.questions.files import check_questions
from evaluator.scorers.registry import Runtime, ScorerRow, find_row, load_rows
from evaluator.scoring import engine
from evaluator.scoring.asking import Batch, ClientSource, PairRequest, RawItem, ScorerClient
from evaluator.scoring.comparing import packed
from evaluator.scoring.contract import Verdict
from evaluator.scoring.engine import Room
from evaluator.scoring.images import DAMAGE, ImageError, as_bmp, check_header, decode_opened
from evaluator.scoring.sandbox import StartedSandboxes
from evaluator.submission.dry_run import Machine
from evaluator.submission.manifest import Manifest
from evaluator.submission.receipts import environment_versions
from evaluator.submission.validate import ScoringModule, opened_source

Picture = Image.Image | str | os.PathLike[str] | NDArray[np.uint8]
"""An image: of Pillow, the path of a file, or an array of uint8, shape (h, w) or (h, w, 1, 3 or 4)."""
RuntimeFor = Callable[[ScorerRow | None], Runtime]
"""How a metric is run; None stands for a scoring module."""
ImageReader = Callable[[], bytes]
"""Gives the bytes of an image when it is its turn: not all of them are in memory at once."""
Precision = Literal["float32", "bfloat16", "float16"]
"""Of weights and forward pass."""
_BATCH_PAIRS = 64
_THREADS = 2
_MOST_TOLD = 10
_CHANNELS = frozenset({1, 3, 4})


@dataclass(frozen=True)
class MetricSource:
    """A metric that is known and not loaded yet."""

    name: str  # of the row, or in the manifest
    title: str  # for people
    low: float | None  # smallest possible score; None where unbounded or not known
    high: float | None  # largest possible score, likewise
    higher_is_better: bool
    source: ClientSource  # opens it
    row: ScorerRow | None = None  # of a built-in metric
    # of a scoring module with several: their names, in the order of its scores; else none
    outputs: tuple[str, ...] = ()
    place: int = 0  # of the output that this is
    own_weights: bool = False  # whether the caller named its weights, by folder or commit


class Metric:
    """A loaded metric, which scores images with prompts.

    A context manager: leaving it frees the memory, as `close` does. Threads may share one; the
    model is asked by one of them at a time.

    Attributes:
        name: its name.
        title: its name for people.
        low: the smallest possible score; None where there is no bound, or none is known.
        high: the largest possible score, likewise.
        higher_is_better: whether a larger score says that the image follows the prompt better.
        outputs: names of the outputs of a scoring module with several, of which this is one.
    """

    name: str
    title: str
    low: float | None
    high: float | None
    higher_is_better: bool
    outputs: tuple[str, ...]

    def __init__(self, known: MetricSource, until: ExitStack) -> None:
        self.name, self.title = known.name, known.title
        self.low, self.high = known.low, known.high
        self.higher_is_better = known.higher_is_better
        self.outputs, self._place = known.outputs, known.place
        self._until = until
        self._opened: _Opened = (
            _InProcess(known.source)
            if isinstance(known.source, ModelSource) and not known.source.row.environment
            else _InSandbox(known.source)
        )
        until.callback(self._opened.close)
        self._lock = threading.Lock()
        self._room = Room()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Free the memory, and end the sandbox of a scoring module."""
        with self._lock:
            self._until.close()

    def score(
        self, images: Sequence[Picture], prompts: Sequence[str], *, cross: bool = False
    ) -> NDArray[np.float64]:
        """Score each image with its own prompt.

        Args:
            images: n images: Pillow images, paths of files, or arrays of uint8 of shape (h, w),
                (h, w, 1), (h, w, 3) or (h, w, 4). Metrics see them upright, in RGB, on white
                where they are transparent.
            prompts: n prompts, one per image; with `cross`, any number m of them.
            cross: score every image with every prompt instead.

        Returns:
            Scores within `low` and `high`, shape (n,), or (n, m) with `cross`. NaN where the metric
            gave no score, or a file breaks off among its pixels, which a warning explains.

        Raises:
            SubmitterError: images and prompts are not equally many, or are not what they should
                be; every file that is missing or no image is named before anything is scored.
            PlatformError: the metric or its device failed.
        """
        return self._scores(images, prompts, slice(self._place, self._place + 1), cross)[..., 0]

    def score_outputs(
        self, images: Sequence[Picture], prompts: Sequence[str], *, cross: bool = False
    ) -> dict[str, NDArray[np.float64]]:
        """Score as `score` does, by every output of the scoring module at once.

        Returns:
            Output, by its name in the manifest, to scores as of `score`, within bounds of its own.

        Raises:
            SubmitterError: as `score`; or the metric has one output and no name for it (`no_outputs`).
        """
        if not self.outputs:
            raise SubmitterError(
                "no_outputs", f"{self.name} gives one score per pair.", "Ask it by score."
            )
        scores = self._scores(images, prompts, slice(None), cross)
        return {name: scores[..., place] for place, name in enumerate(self.outputs)}

    def _scores(
        self, images: Sequence[Picture], prompts: Sequence[str], of: slice, cross: bool
    ) -> NDArray[np.float64]:
        """Of these outputs, shape (n, outputs), or (n, m, outputs) with `cross`."""
        texts = _checked_prompts(prompts)
        _check_list(images)
        if not cross and len(images) != len(texts):
            raise SubmitterError(
                "lengths_differ",
                f"There are {len(images)} images and {len(texts)} prompts.",
                "Give each image its own prompt, or say cross=True for every image with every one.",
            )
        data = _readers(images)
        pairs = (
            [(i, text) for i in range(len(data)) for text in texts]
            if cross
            else list(enumerate(texts))
        )
        verdicts = self._verdicts(data, pairs)
        every = np.array([self._row(verdict) for verdict in verdicts], dtype=np.float64)
        scores = every.reshape(len(pairs), max(1, len(self.outputs)))[:, of]
        _warn_of_none(scores, verdicts, pairs)
        shape = (len(data), len(texts)) if cross else (len(texts),)
        return scores.reshape(*shape, scores.shape[1])

    def _row(self, verdict: Verdict) -> tuple[float, ...]:
        """The score of each output; what could not be asked has a single NaN for all."""
        return (*verdict.outputs, *[math.nan] * (len(self.outputs) - len(verdict.outputs)))

    def compare(
        self, prompts: Sequence[str], images_a: Sequence[Picture], images_b: Sequence[Picture]
    ) -> NDArray[np.float64]:
        """Compare two images of each prompt by a metric that compares (`method = "compare"`).

        Args:
            prompts: n prompts.
            images_a: n images, as for `score`.
            images_b: n images to compare them with.

        Returns:
            Margins of shape (n, 2), positive where the image of `images_a` is better: as said with
            it first, and with it second. NaN where the metric gave none, which a warning explains.

        Raises:
            SubmitterError: they are not equally many or not what they should be, or the metric
                gives scores and compares nothing (`method_missing`).
            PlatformError: the metric or its device failed.
        """
        texts = _checked_prompts(prompts)
        for images in (images_a, images_b):
            _check_list(images)
            if len(images) != len(texts):
                raise SubmitterError(
                    "lengths_differ", f"There are {len(images)} images and {len(texts)} prompts."
                )
        n = len(texts)
        read = _readers([*images_a, *images_b])
        both = [(i, n + i) for i in range(n)] + [(n + i, i) for i in range(n)]

        def couple(first: int, second: int) -> ImageReader:
            return lambda: packed(read[first](), read[second]())

        pairs = [(place, texts[place % n]) for place in range(2 * n)]
        verdicts = self.verdicts([couple(*one) for one in both], pairs)
        margins = np.array([verdict.score for verdict in verdicts])
        _warn_of_none(margins[:, None], verdicts, pairs)
        there, back = margins.reshape(2, n)
        return np.stack([there, -back], axis=1)

    def verdicts(
        self, images: Sequence[ImageReader], pairs: Sequence[tuple[int, str]]
    ) -> list[Verdict]:
        """The verdict of each pair of an image, by its place among them, and a prompt.

        What cannot be read is a verdict without a score, which says so; `score` refuses it.

        Raises:
            SubmitterError: the metric is a scoring module, and its code failed.
            PlatformError: the metric or its device failed, or it was closed.
        """
        found = self._verdicts(images, pairs)
        if not self.outputs:
            return found
        scores = [self._row(verdict)[self._place] for verdict in found]
        return [
            Verdict(score, verdict.problem if math.isnan(score) else "")
            for verdict, score in zip(found, scores, strict=True)
        ]

    def _verdicts(
        self, images: Sequence[ImageReader], pairs: Sequence[tuple[int, str]]
    ) -> list[Verdict]:
        with self._lock, ThreadPoolExecutor(_THREADS, thread_name_prefix="ready") as pool:
            if self._opened.closed:
                raise PlatformError("metric_closed", f"{self.name} was closed.", "Load it again.")
            with self._opened.client() as client:
                return [
                    verdict
                    for start in range(0, len(pairs), _BATCH_PAIRS)
                    for verdict in _verdicts(
                        client, images, pairs[start : start + _BATCH_PAIRS], pool, self._room
                    )
                ]


def load_metric(
    name: str | os.PathLike[str],
    *,
    device: str = "cpu",
    dtype: Precision | None = None,
    checkpoints: Mapping[str, str | os.PathLike[str]] | None = None,
    revisions: Mapping[str, str] | None = None,
    questions: str | os.PathLike[str] | None = None,
    offline: bool = False,
    allow_pickle: bool = False,
    trust_remote_code: bool = False,
    isolation: str = "auto",
    output: str = "",
) -> Metric:
    """Load a metric: `load_metric("clipscore-hessel").score(images, prompts)`.

    Args:
        name: a built-in metric (`assay scorers list`), a bundled one, or the folder or archive of a
            scoring module, which runs in a sandbox.
        device: as torch names it: `cpu`, `cuda`, `cuda:1`.
        dtype: precision; by default the metric's own.
        checkpoints: role (`model`, as a rule) to a folder, in place of the Hub's.
        revisions: role to a commit, in place of the kept one.
        questions: question file, for metrics that ask.
        offline: never ask the Hub.
        allow_pickle: read weights that are pickles; they can run code.
        trust_remote_code: run code of the checkpoint's repository.
        isolation: of a scoring module: `auto`, or `none` for code of your own.
        output: of a scoring module with several: the one that `score` gives, by its name in the
            manifest; `score_outputs` gives them all.

    Raises:
        SubmitterError: there is no such metric, or it cannot be run as asked.
        PlatformError: what it needs is not on this machine.
    """
    folders = {role: Path(place).resolve() for role, place in (checkpoints or {}).items()}
    runtime = Runtime(
        device=device,
        dtype=dtype,
        folders=folders,
        revisions=dict(revisions or {}),
        offline=offline,
        allow_pickle=allow_pickle,
        trust_remote_code=trust_remote_code,
        questions=Path(questions).resolve() if questions else None,
    )
    if dtype is not None and dtype not in get_args(Precision):
        raise SubmitterError(
            "unknown_dtype",
            f"{dtype!r} is no precision.",
            f"Known: {', '.join(get_args(Precision))}.",
        )
    if isolation not in tuple(IsolationChoice):
        known = ", ".join(IsolationChoice)
        raise SubmitterError(
            "unknown_isolation", f"{isolation!r} isolates nothing.", f"Known: {known}."
        )
    chosen = IsolationChoice(isolation)
    return opened_metric(os.fspath(name), lambda _: runtime, chosen, output)


def opened_metric(
    named: str,
    runtime_for: RuntimeFor,
    isolation: IsolationChoice = IsolationChoice.AUTO,
    output: str = "",
) -> Metric:
    """The metric of that name, loaded; see `metric_source`."""
    with ExitStack() as stack:
        known = stack.enter_context(metric_source(named, runtime_for, isolation, output))
        return Metric(known, stack.pop_all())
    raise AssertionError  # A context that hides errors: there is none.


@contextmanager
def metric_source(
    named: str,
    runtime_for: RuntimeFor,
    isolation: IsolationChoice = IsolationChoice.AUTO,
    output: str = "",
) -> Iterator[MetricSource]:
    """Find a metric: a built-in row, a bundled scoring module, or the folder or archive of one.

    `output`: the one that is wanted of a scoring module with several.
    """
    rows = load_rows()
    if named in rows:
        row = rows[named]
        _check_output((), row.name, output)
        runtime = runtime_for(row)
        _check_roles(row, runtime)
        check_installed()
        model_device.check_device(runtime.device)
        check_questions(row, runtime.questions)
        yield MetricSource(
            row.name,
            row.title,
            row.low,
            row.high,
            row.higher_is_better,
            ModelSource(row, runtime),
            row,
            own_weights=bool(runtime.folders or runtime.revisions),
        )
        return
    place = _bundled(named) or Path(named)
    if not place.exists():
        find_row(named, rows)  # Raises, and names those that are meant.
    runtime = runtime_for(None)
    if runtime != Runtime(device=runtime.device):
        raise SubmitterError(
            "not_built_in",
            f"{named} is a scoring module: of what a built-in metric is run with it takes the device "
            "alone.",
            "Say the rest in its assay.toml.",
        )
    with opened_source(place, load_registry()) as (seen, module):
        if module is None:
            raise one_error(seen.problems)
        _check_output(tuple(module.manifest.outputs), module.manifest.name, output)
        with module_machine(module, isolation) as machine:
            yield _of_module(module, machine, runtime.device, output)


def _check_output(outputs: Sequence[str], name: str, wanted: str) -> None:
    if wanted in (outputs or ("",)):
        return
    if not outputs:
        raise SubmitterError(
            "unknown_output", f"{name} gives one score per pair, and none is named {wanted!r}."
        )
    has = f"{name} has the outputs {', '.join(outputs)}"
    raise SubmitterError(
        "unknown_output" if wanted else "output_missing",
        f"{has}, and none of the name {wanted[:80]!r}." if wanted else f"{has}, and none is named.",
        "Name one of them as output; on the command line with --output-name.",
    )


def _check_roles(row: ScorerRow, runtime: Runtime) -> None:
    unknown = (runtime.folders.keys() | runtime.revisions.keys()) - row.checkpoints.keys()
    if unknown:
        raise SubmitterError(
            "unknown_role",
            f"{row.name} has no checkpoint {' or '.join(map(repr, sorted(unknown)))}.",
            f"It has: {', '.join(row.checkpoints) or 'none'}.",
        )


@contextmanager
def module_machine(
    module: ScoringModule,
    isolation: IsolationChoice,
    models: Path | None = None,
    tell: Callable[[str, int, int], None] = lambda *_: None,
) -> Iterator[Machine]:
    """This machine, its isolation probed; models and packages of a scoring module are at hand."""
    status = machine_isolation(choice=isolation)
    if status.backend is None:
        raise PlatformError(
            "isolation_unavailable",
            f"Code cannot be isolated on this machine. {status.reason}",
            f"{status.remedy} Code of your own also runs with --isolation none, as yourself.",
        )
    cache = ModelCache(models or Path(value_of("models", os.environ)).absolute())
    with (
        tempfile.TemporaryDirectory(prefix="assay-check-") as scratch,
        ExitStack() as until,
    ):
        environment: Path | None = None
        if module.environment is not None:
            built = EnvironmentCache.of_settings(os.environ).lent(module.environment)
            environment = until.enter_context(built)
        brought = cache.bring(module.manifest.models, tell)
        limits = scorer_limits(os.environ)
        yield Machine(status.backend, status.layers, limits, brought, Path(scratch), environment)


def _bundled(named: str) -> Path | None:
    for folder in bundled_modules():
        if read_manifest((folder / "assay.toml").read_bytes(), Manifest).name == named:
            return folder
    return None


def _of_module(module: ScoringModule, machine: Machine, device: str, output: str) -> MetricSource:
    manifest = module.manifest
    job = Job(
        module.content.folder,
        manifest.entry_point,
        manifest.weights or None,
        machine.limits,
        device=device,
        models=machine.models,
        environment=machine.environment,
    )
    outputs = tuple(manifest.outputs)
    place = outputs.index(output) if outputs else 0
    name, own = list(manifest.of_metrics.items())[place]
    low, high = own.range or (None, None)
    versions = environment_versions(module.environment).values()
    locked = () if module.environment is None else (module.environment.record,)
    fingerprint = "-".join((module.content.sha256, device, *versions, *locked))
    return MetricSource(
        name,
        f"{name} {manifest.version}",
        low,
        high,
        own.direction == "higher_is_better",
        StartedSandboxes(
            lambda: machine.backend.start(job), fingerprint, outputs=len(outputs) or 1
        ),
        outputs=outputs,
        place=place,
    )


class _Opened(Protocol):
    closed: bool

    def client(self) -> AbstractContextManager[ScorerClient]:
        """A client for one request; what it keeps of texts and images goes with it."""

    def close(self) -> None:
        """Free what is held."""


class _InProcess:
    """A model in this process. What torch is set to is undone after every request."""

    def __init__(self, source: ModelSource) -> None:
        self.closed = False
        self._source = source
        self._loaded: Any = source.load()

    @contextmanager
    def client(self) -> Iterator[ScorerClient]:
        row, runtime = self._source.row, self._source.runtime
        with model_device.repeatable():
            yield ModelClient(self._loaded, runtime, dtype=runtime.dtype or row.dtype)

    def close(self) -> None:
        self.closed, self._loaded = True, None
        model_device.free_memory(self._source.runtime.device)


class _InSandbox:
    """A sandbox, which is started again where it failed."""

    def __init__(self, source: ClientSource) -> None:
        self.closed = False
        self._source = source
        self._until = ExitStack()
        self._client: ScorerClient | None = None

    @contextmanager
    def client(self) -> Iterator[ScorerClient]:
        if self._client is None:
            self._client = self._until.enter_context(self._source.open())
        try:
            yield self._client
        except BaseException:
            self._end()
            raise

    def close(self) -> None:
        self.closed = True
        self._end()

    def _end(self) -> None:
        self._client = None
        self._until.close()


def _verdicts(
    client: ScorerClient,
    images: Sequence[ImageReader],
    pairs: Sequence[tuple[int, str]],
    pool: ThreadPoolExecutor,
    room: Room,
) -> list[Verdict]:
    """The verdicts of one batch, in the order of its pairs; an image is sent once."""
    asked: dict[int, list[PairRequest]] = {}
    for number, (image, text) in enumerate(pairs):
        asked.setdefault(image, []).append(PairRequest(str(number), text, text))
    items = tuple(RawItem(str(i), images[i](), tuple(of)) for i, of in asked.items())
    reply = engine.answered(client, Batch(0, items), pool, room).reply
    found = {
        int(pair.pair_id): verdict
        for item, verdicts in zip(items, reply.verdicts, strict=True)
        for pair, verdict in zip(item.asked, verdicts, strict=True)
    }
    return [found[number] for number in range(len(pairs))]


def _checked_prompts(prompts: Sequence[str]) -> list[str]:
    if isinstance(prompts, str):
        raise SubmitterError("bad_prompts", "A single text was given for prompts.", "Give a list.")
    if not hasattr(prompts, "__len__"):
        raise SubmitterError(
            "bad_prompts", f"Prompts are no list but {type(prompts).__name__}.", "Give a list."
        )
    for place, prompt in enumerate(prompts):
        if not isinstance(prompt, str):
            raise SubmitterError(
                "bad_prompts", f"Prompt {place} is no text but {type(prompt).__name__}."
            )
    return list(prompts)


def _check_list(images: object) -> None:
    single = isinstance(images, np.ndarray) and images.ndim in (2, 3)
    if single or isinstance(images, Image.Image | str | os.PathLike):
        raise SubmitterError("bad_images", "A single image was given for images.", "Give a list.")
    if not hasattr(images, "__len__"):
        raise SubmitterError(
            "bad_images", f"Images are no list but {type(images).__name__}.", "Give a list."
        )


def _readers(images: Sequence[Picture]) -> list[ImageReader]:
    """What gives each image; everything that is wrong with them at once."""
    wrong: list[str] = []
    readers: list[ImageReader] = []
    for place, image in enumerate(images):
        try:
            readers.append(_reader(image))
        except DAMAGE as error:  # an ImageError is a ValueError, which is among them
            why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            named = f" ({image})" if isinstance(image, str | os.PathLike) else ""
            wrong.append(f"image {place}{named}: {why}")
    if wrong:
        message = f"{len(wrong)} of {len(images)} images cannot be scored."
        raise one_error(
            [Problem("image_unreadable", message, count=len(wrong), examples=tuple(wrong))]
        )
    return readers


def _reader(image: Picture) -> ImageReader:
    """What gives bytes that decode to the pixels that metrics see."""
    if isinstance(image, str | os.PathLike):
        check_header(Path(image))
        return Path(image).read_bytes
    opened = image if isinstance(image, Image.Image) else _of_array(image)
    decode_opened(opened.copy())
    return lambda: as_bmp(decode_opened(opened.copy()).image)


def _of_array(image: Any) -> Image.Image:
    if not hasattr(image, "__array__"):
        raise ImageError(
            f"{type(image).__name__}; images are Pillow images, paths, or arrays of uint8"
        )
    array = np.asarray(image)
    if array.dtype != np.uint8:
        raise ImageError(
            f"an array of {array.dtype}; arrays hold uint8, as (255 * x).round().astype('uint8') makes"
        )
    channels = array.shape[2] if array.ndim == 3 else 1
    if array.ndim not in (2, 3) or channels not in _CHANNELS or 0 in array.shape:
        raise ImageError(
            f"an array of shape {array.shape}; shapes are (height, width) and (height, width, 1, 3 or 4)"
        )
    return Image.fromarray(array[:, :, 0] if array.ndim == 3 and channels == 1 else array)


def _warn_of_none(
    scores: NDArray[np.float64], verdicts: Sequence[Verdict], pairs: Sequence[tuple[int, str]]
) -> None:
    """`scores`: those that were asked for, shape (pairs, outputs)."""
    none = [
        f"image {image} with {text[:80]!r}: {verdict.problem}"
        for row, verdict, (image, text) in zip(scores, verdicts, pairs, strict=True)
        if np.isnan(row).any()
    ]
    if none:
        why = "; ".join(none[:_MOST_TOLD]) + (" and so on" if len(none) > _MOST_TOLD else "")
        warnings.warn(f"{len(none)} of {len(pairs)} pairs have no score; {why}", stacklevel=3)
