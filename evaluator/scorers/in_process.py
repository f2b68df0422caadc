"""Built-in metrics in this process: in a thread of the engine, or in an actor."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from benchmarks.errors import AssayError, PlatformError
from evaluator.environments.cache import EnvironmentCache
from evaluator.environments.naming import builtin_lock, recorded_lock
from evaluator.scorers import device as model_device
from evaluator.scorers.apart import opened_apart
from evaluator.scorers.checkpoints import Source, resolve
from evaluator.scorers.device import in_one_line, is_out_of_memory, versions
from evaluator.scorers.embeddings import About, EmbeddingCache, digest_of_text
from evaluator.scorers.family_code import code_digest
from evaluator.scorers.fitting import missing_libraries
from evaluator.scorers.questions.files import check_questions
from evaluator.scorers.registry import Loaded, Runtime, ScorerRow, family_of, load_scorer
from evaluator.scoring.asking import (
    Finding,
    Item,
    OutOfMemoryError,
    PairRequest,
    Ready,
    Reply,
    ScorerClient,
    Work,
)
from evaluator.scoring.comparing import method_missing, unpacked
from evaluator.scoring.contract import Verdict
from evaluator.scoring.images import Remark, decode

_T = TypeVar("_T")


@dataclass(slots=True)
class Picture:
    """An image as these ways take it; what is found out about it stays with it."""

    digest: bytes  # SHA-256 of its encoded bytes
    prepared: Any = None  # what the scorer takes; None where its vector was kept
    vector: NDArray[np.float32] | None = None  # its embedding, once it is known
    remarks: tuple[Remark, ...] = ()  # what was done to it
    problem: str = ""  # why the scorer cannot take it; empty where it can
    uncounted: int = 0  # images that were decoded, and are not yet among the work that was told


@dataclass(slots=True)
class Meter:
    """Counts work until it is told; what a failed request cost goes to the next one that works."""

    clock: Callable[[], float] = time.perf_counter
    calls: int = 0
    decoded: int = 0
    images: int = 0
    texts: int = 0
    seconds: float = 0.0

    def call(self, method: Callable[..., _T], *arguments: Any) -> _T:
        """Call a method of the scorer."""
        started = self.clock()
        self.calls += 1
        try:
            return method(*arguments)
        finally:
            self.seconds += self.clock() - started

    def take(self) -> Work:
        """What was done since the last time."""
        work = Work(self.calls, self.decoded, self.images, self.texts, self.seconds)
        self.calls = self.decoded = self.images = self.texts = 0
        self.seconds = 0.0
        return work


ScoringPath = Callable[[Sequence[Item]], list[tuple[Verdict, ...]]]
"""Scores a batch, for each item one verdict per prompt, or raises whatever the scorer raised."""


def path_of(
    scorer: Any, meter: Meter, *, batch_texts: int, cache: EmbeddingCache | None = None
) -> ScoringPath:
    """The cheapest way that a scorer offers."""
    if compares(scorer):
        return partial(by_comparison, scorer, meter)
    if is_dual_encoder(scorer):
        return DualPath(scorer, meter, batch_texts, cache).score
    return partial(by_image if offers(scorer, "score_texts") else by_pair, scorer, meter)


def offers(scorer: Any, *methods: str) -> bool:
    """Whether a scorer has these methods."""
    return all(callable(getattr(scorer, name, None)) for name in methods)


def compares(scorer: Any) -> bool:
    """Whether it compares two images of a prompt, and gives no score of one."""
    return offers(scorer, "compare") and not offers(scorer, "score")


def is_dual_encoder(scorer: Any) -> bool:
    """Whether it encodes images and texts apart."""
    return offers(scorer, "encode_images", "encode_texts", "similarity")


@dataclass(slots=True)
class DualPath:
    """Each image once, each text once in a run, then the wanted combinations row by row.

    In which company a text is encoded depends on what was asked before; where that must not even
    change rounding, `batch_texts` is 1.
    """

    scorer: Any
    meter: Meter
    batch_texts: int
    cache: EmbeddingCache | None = None
    _texts: dict[str, NDArray[np.float32]] = field(default_factory=dict)

    def score(self, items: Sequence[Item]) -> list[tuple[Verdict, ...]]:
        """See `ScoringPath`."""
        self._encode_images(_pictures(items))
        self._encode_texts({asked.prompt for item in items for asked in item.asked})
        images = [item.image.content.vector for item in items for _ in item.asked]
        texts = [self._texts[asked.prompt] for item in items for asked in item.asked]
        scores = self.meter.call(self.scorer.similarity, np.stack(images), np.stack(texts))
        return _split(checked(scores, len(images), "similarity"), items)

    def _encode_images(self, pictures: Sequence[Picture]) -> None:
        known = {one.digest: one.vector for one in pictures if one.vector is not None}
        missing = {one.digest: one for one in pictures if one.digest not in known}
        if missing:
            images = [one.prepared for one in missing.values()]
            found = self.meter.call(self.scorer.encode_images, images)
            vectors = _rows(found, len(images), "encode_images")
            self.meter.images += len(images)
            for one, vector in zip(missing.values(), vectors, strict=True):
                known[one.digest] = vector
                if self.cache is not None:
                    self.cache.add("image", one.digest, vector, one.remarks)
        for one in pictures:
            one.vector = known[one.digest]

    def _encode_texts(self, prompts: set[str]) -> None:
        # Texts of like length together: they are padded to the longest.
        missing = sorted(prompts - self._texts.keys(), key=lambda prompt: (len(prompt), prompt))
        if self.cache is not None:
            missing = [prompt for prompt in missing if not self._recall(prompt, self.cache)]
        for start in range(0, len(missing), self.batch_texts):
            chunk = missing[start : start + self.batch_texts]
            found = self.meter.call(self.scorer.encode_texts, chunk)
            vectors = _rows(found, len(chunk), "encode_texts")
            self.meter.texts += len(chunk)
            for prompt, vector in zip(chunk, vectors, strict=True):
                self._texts[prompt] = vector
                if self.cache is not None:
                    self.cache.add("text", digest_of_text(prompt), vector)

    def _recall(self, prompt: str, cache: EmbeddingCache) -> bool:
        row = cache.find("text", digest_of_text(prompt))
        if row is not None:
            self._texts[prompt] = row.vector
        return row is not None


def by_image(scorer: Any, meter: Meter, items: Sequence[Item]) -> list[tuple[Verdict, ...]]:
    """Each image once with all its texts."""
    images = [picture.prepared for picture in _pictures(items)]
    prompts = [[asked.prompt for asked in item.asked] for item in items]
    found = meter.call(scorer.score_texts, images, prompts)
    rows = checked(found, len(items), "score_texts")
    scores = [
        tuple(Verdict.of(value) for value in checked(row, len(asked), "score_texts"))
        for row, asked in zip(rows, prompts, strict=True)
    ]
    meter.images += len(images)
    meter.texts += sum(map(len, prompts))
    return scores


def by_pair(scorer: Any, meter: Meter, items: Sequence[Item]) -> list[tuple[Verdict, ...]]:
    """Each pair on its own."""
    pairs = [
        (picture.prepared, asked.prompt)
        for item, picture in zip(items, _pictures(items), strict=True)
        for asked in item.asked
    ]
    images, prompts = [image for image, _ in pairs], [prompt for _, prompt in pairs]
    found = checked(meter.call(scorer.score, images, prompts), len(pairs), "score")
    meter.images += len(pairs)
    meter.texts += len(pairs)
    return _split(found, items)


def by_comparison(scorer: Any, meter: Meter, items: Sequence[Item]) -> list[tuple[Verdict, ...]]:
    """Each comparison on its own; an item holds two images."""
    asked = [
        (one.prompt, *picture.prepared)
        for item, picture in zip(items, _pictures(items), strict=True)
        for one in item.asked
    ]
    prompts, first, second = (list(column) for column in zip(*asked, strict=True))
    found = checked(meter.call(scorer.compare, prompts, first, second), len(asked), "compare")
    meter.images += 2 * len(asked)
    meter.texts += len(asked)
    return _split(found, items)


def checked(values: Any, n: int, method: str) -> list[Any]:
    """What a method gave, as a list of the right length."""
    found = values.tolist() if hasattr(values, "tolist") else list(values)
    if len(found) != n:
        raise PlatformError("scorer_defect", f"{method} gave {len(found)} values for {n}.")
    return found


def _rows(values: Any, n: int, method: str) -> NDArray[np.float32]:
    # A copy: the scorer may use its buffer again.
    vectors = np.array(values, dtype=np.float32)
    if vectors.ndim < 2 or len(vectors) != n:
        raise PlatformError(
            "scorer_defect", f"{method} gave an array of shape {vectors.shape} for {n} rows."
        )
    return vectors


def _split(scores: Sequence[Any], items: Sequence[Item]) -> list[tuple[Verdict, ...]]:
    left = iter(scores)
    return [tuple(Verdict.of(next(left)) for _ in item.asked) for item in items]


def _pictures(items: Sequence[Item]) -> list[Picture]:
    return [item.image.content for item in items]


CONTRACT_VERSION = 1  # Raised when the same scorer could be given other inputs for the same pair


def fingerprint_of(row: ScorerRow, runtime: Runtime) -> str:
    """SHA-256 over everything that can change a score or an embedding, as 64 hex digits.

    What only describes a row is left out; so are batch sizes, which change no more than rounding.
    Checkpoints count by commit, and an operator's own folders by their bytes.
    """
    family = family_of(row)
    said = {
        "contract": CONTRACT_VERSION,
        "scorer": row.name,
        "family": row.family,
        "options": row.options,
        "checkpoints": {
            role: _identity(resolve(row, runtime, role), row.checkpoints[role].file)
            for role in _roles(row, runtime)
        },
        "questions": _content(runtime.questions) if runtime.questions else "",
        "remote_code": runtime.trust_remote_code,
        "dtype": runtime.dtype or row.dtype,
        "device": runtime.device.split(":")[0],
        "packages": versions(),
        "code": code_digest(row.family),
    }
    if row.environment:
        said["environment"] = builtin_lock(row.environment).record
    if family.identity is not None:
        said["identity"] = family.identity(family.check(row))
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def _roles(row: ScorerRow, runtime: Runtime) -> list[str]:
    """Checkpoints that are read: an operator's own folder of a model holds its processor, too."""
    own = "model" in runtime.folders and "processor" not in runtime.folders
    return sorted(role for role in row.checkpoints if not (own and role == "processor"))


def _identity(source: Source, file: str) -> list[str]:
    if source.revision:
        return [source.name, source.revision, file]
    return [_content(source.place), file]


def _content(place: Path) -> str:
    """Hash of the bytes and names of a file, or of all files of a folder."""
    whole = hashlib.sha256()
    paths = [place] if place.is_file() else sorted(p for p in place.rglob("*") if p.is_file())
    for path in paths:
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        name = path.relative_to(place).as_posix() if path != place else ""
        whole.update(f"{name}\0{digest}\0".encode())
    return whole.hexdigest()


_LOG = logging.getLogger(__name__)


class TextNotes:
    """Says of each text once what there is to say."""

    def __init__(self, scorer: Any, meter: Meter) -> None:
        self._scorer = scorer
        self._meter = meter
        self._seen: set[str] = set()
        self._cut: dict[str, bool] = {}

    def about(self, items: Sequence[Item]) -> list[Finding]:
        """Findings on the texts of a batch that no earlier batch had."""
        new = {
            asked.text_id: asked
            for item in items
            for asked in item.asked
            if asked.text_id not in self._seen
        }
        cut = self._truncated({asked.prompt for asked in new.values()})
        self._seen |= new.keys()
        return [finding for asked in new.values() for finding in _findings(asked, cut)]

    def _truncated(self, prompts: set[str]) -> set[str]:
        """Those of the prompts that are not read to their end; each is looked at once in a run."""
        missing = sorted(prompts - self._cut.keys())
        if missing and offers(self._scorer, "truncated"):
            self._cut.update(zip(missing, self._flags(missing), strict=True))
        return {prompt for prompt in prompts if self._cut.get(prompt, False)}

    def _flags(self, prompts: Sequence[str]) -> list[bool]:
        try:
            flags = self._meter.call(self._scorer.truncated, prompts)
        except Exception as error:  # whatever a model's code raises
            if is_out_of_memory(error):
                raise
            if len(prompts) == 1:
                # What the scorer cannot read has no score either, and the reason is told there.
                _LOG.warning("Whether a prompt is read to its end is not known.", exc_info=True)
                return [False]
            return [flag for prompt in prompts for flag in self._flags([prompt])]
        return [bool(flag) for flag in checked(flags, len(prompts), "truncated")]


def _findings(asked: PairRequest, cut: set[str]) -> Iterator[Finding]:
    if not asked.prompt.strip():
        message = "The prompt is empty; it is asked as it is."
        yield Finding("text_empty", "text", asked.text_id, message, scored=True)
    if asked.prompt in cut:
        words = len(asked.prompt.split())
        message = f"The metric does not read this prompt of {words} words to its end."
        yield Finding("text_truncated", "text", asked.text_id, message, scored=True)


Elements = tuple[NDArray[np.float64], ...]


class ElementClient:
    """Asks for all elements of a batch at once, and by pair where that fails."""

    def __init__(
        self, scorer: Any, meter: Meter, raise_if_final: Callable[[Exception], None]
    ) -> None:
        self._scorer = scorer
        self._meter = meter
        self._raise_if_final = raise_if_final

    def scores(self, items: Sequence[Item]) -> tuple[tuple[Elements, ...], list[Finding]]:
        """For each item and prompt, one score per element; and what there is to say of them."""
        able = [
            (item, asked)
            for item in items
            for asked in item.asked
            if asked.elements and not item.image.content.problem
        ]
        findings: list[Finding] = []
        found = self._scores(able, findings) if able else []
        values = {asked.pair_id: one for (_, asked), one in zip(able, found, strict=True)}
        nothing = {
            asked.pair_id: np.full(len(asked.elements), np.nan)
            for item in items
            for asked in item.asked
        }
        of_pair = {**nothing, **values}
        return (
            tuple(tuple(of_pair[asked.pair_id] for asked in item.asked) for item in items),
            findings,
        )

    def _scores(
        self, asked: Sequence[tuple[Item, PairRequest]], findings: list[Finding]
    ) -> list[NDArray[np.float64]]:
        try:
            return self._call(asked)
        except Exception as error:  # noqa: BLE001  # whatever a model's code raises
            self._raise_if_final(error)
            problem = in_one_line(error)
        if len(asked) > 1:
            return [scores for one in asked for scores in self._scores([one], findings)]
        _, one = asked[0]
        message = f"No scores of its elements: {problem.rstrip('.')}."
        findings.append(Finding("no_element_scores", "pair", one.pair_id, message, scored=True))
        return [np.full(len(one.elements), np.nan)]

    def _call(self, asked: Sequence[tuple[Item, PairRequest]]) -> list[NDArray[np.float64]]:
        found = self._meter.call(
            self._scorer.score_elements,
            [item.image.content.prepared for item, _ in asked],
            [one.prompt for _, one in asked],
            [[element.text for element in one.elements] for _, one in asked],
        )
        rows = checked(found, len(asked), "score_elements")
        return [
            np.array(checked(row, len(one.elements), "score_elements"), dtype=np.float64)
            for row, (_, one) in zip(rows, asked, strict=True)
        ]


_DEFECT_AFTER = 2  # Images that failed before any was scored: then it is not the images


class ModelClient:
    """An `ScorerClient` over a scorer that is loaded. Use it in one run only: it keeps vectors of texts."""

    def __init__(
        self,
        loaded: Loaded,
        runtime: Runtime,
        *,
        dtype: str = "float32",
        cache: EmbeddingCache | None = None,
    ) -> None:
        self._scorer: Any = loaded.scorer
        self._device = runtime.device
        self._cache = cache if is_dual_encoder(self._scorer) else None
        self._meter = Meter()
        self._path = path_of(
            self._scorer, self._meter, batch_texts=runtime.batch_texts, cache=self._cache
        )
        self._texts = TextNotes(self._scorer, self._meter)
        able = offers(self._scorer, "score_elements")
        self._elements = ElementClient(self._scorer, self._meter, _raise_if_final) if able else None
        self._prepares = offers(self._scorer, "prepare")
        self.asks_elements = self._elements is not None
        self.environment: dict[str, str] = {
            **loaded.environment,
            **model_device.versions(),
            **model_device.device_description(runtime.device),
            "dtype": dtype,
        }
        self._failed_images = 0
        self._worked = False
        model_device.forget_peak(runtime.device)

    @property
    def peak_memory_bytes(self) -> int:
        """See `ScorerClient`."""
        return model_device.peak_memory_bytes(self._device)

    def ready(self, data: bytes) -> Ready:
        """See `ScorerClient`; an image whose embedding is kept is not decoded."""
        picture = Picture(hashlib.sha256(data).digest())
        kept = self._cache.find("image", picture.digest) if self._cache is not None else None
        if kept is not None:
            picture.vector, picture.remarks = kept.vector, kept.remarks
            if not self.asks_elements:
                return Ready(picture, kept.vector.nbytes, remarks=kept.remarks)
        both = unpacked(data)
        if bool(both) is not compares(self._scorer):
            raise method_missing("compare" if both else "score")
        decoded = [decode(one) for one in both or (data,)]
        picture.remarks = tuple(dict.fromkeys(remark for one in decoded for remark in one.remarks))
        picture.uncounted = len(decoded)
        try:
            with model_device.without_gradients():
                made = [
                    self._scorer.prepare(one.image) if self._prepares else one.image
                    for one in decoded
                ]
            picture.prepared = tuple(made) if both else made[0]
        except Exception as error:  # noqa: BLE001  # whatever a model's code raises
            picture.problem = in_one_line(error)
        return Ready(
            picture,
            model_device.held_bytes(picture.prepared),
            pixels=sum(one.image.width * one.image.height for one in decoded),
            remarks=picture.remarks,
        )

    def ask(self, items: Sequence[Item]) -> Reply:
        """See `ScorerClient`.

        What fails for a batch is asked again by image, then by prompt; what fails alone has no
        score, and the error is the reason.
        """
        try:
            with model_device.without_gradients():
                return self._reply(items)
        except Exception as error:
            if not model_device.is_out_of_memory(error):
                raise
            problem = str(error)
        # Outside of the handler: there, the error would hold on to the tensors of its frames.
        model_device.free_memory(self._device)
        raise OutOfMemoryError(problem)

    def _reply(self, items: Sequence[Item]) -> Reply:
        for item in items:
            self._meter.decoded += item.image.content.uncounted
            item.image.content.uncounted = 0
        fit = [item for item in items if not item.image.content.problem]
        scored = iter(self._scored(fit) if fit else ())
        verdicts = [_unprepared(i) if i.image.content.problem else next(scored) for i in items]
        self._note_failures(items, verdicts)
        elements, findings = self._elements.scores(items) if self._elements else (None, [])
        findings += self._texts.about(items)
        if self._cache is not None:
            self._cache.flush_if_due()
        return Reply(tuple(verdicts), elements, tuple(findings), self._work())

    def _work(self) -> Work:
        work = self._meter.take()
        paid = offers(self._scorer, "take_usd")
        return replace(work, usd=self._scorer.take_usd()) if paid else work

    def _scored(self, items: Sequence[Item]) -> list[tuple[Verdict, ...]]:
        try:
            found = self._path(items)
        except Exception as error:  # noqa: BLE001  # whatever a model's code raises
            _raise_if_final(error)
            problem = in_one_line(error)
        else:
            self._worked = True
            return found
        if len(items) > 1:
            return [verdicts for item in items for verdicts in self._scored([item])]
        (item,) = items
        if len(item.asked) > 1:
            alone = (replace(item, asked=(asked,)) for asked in item.asked)
            return [tuple(verdict for one in alone for verdict in self._scored([one])[0])]
        return [(Verdict(math.nan, problem),)]

    def _note_failures(
        self, items: Sequence[Item], verdicts: Sequence[tuple[Verdict, ...]]
    ) -> None:
        if self._worked:
            return
        self._failed_images += len(items)
        if self._failed_images >= _DEFECT_AFTER:
            problem = verdicts[-1][0].problem
            raise PlatformError("scorer_failed", f"The metric fails on every image: {problem}.")


@dataclass(frozen=True)
class ModelSource:
    """Opens a built-in metric; see `ClientSource`. It can be sent to an actor with pickle."""

    row: ScorerRow  # of the table of metrics
    runtime: Runtime  # how it is run
    cache_folder: Path | None = None  # where embeddings are kept; None: they are not
    # `NamedLock.record` of the row's environment that is kept to; empty: as it is first found
    environment: str = ""
    # whether this process has the packages of the row's environment
    inside: bool = False

    @cached_property
    def fingerprint(self) -> str:
        """See `ClientSource`; worked out once, and then sent along to actors.

        It is asked for first, and fetches weights: what would be refused after them is refused here.
        """
        check_installed()
        check_questions(self.row, self.runtime.questions)
        _ = self._locked
        return fingerprint_of(self.row, self.runtime)

    @cached_property
    def _locked(self) -> str:
        """The record that every machine keeps to; it travels along once it is known."""
        named = self.row.environment
        return self.environment or (builtin_lock(named).record if named else "")

    @contextmanager
    def open(self) -> Iterator[ScorerClient]:
        """Load the metric; when the context is left, its memory is free and embeddings are kept."""
        if self.row.environment and not self.inside:
            named = recorded_lock(self._locked, Path())
            with (
                EnvironmentCache.of_settings(os.environ).lent(named) as packages,
                opened_apart(replace(self, inside=True), packages, named.record) as client,
            ):
                yield client
            return
        check_installed()
        with model_device.repeatable():
            loaded = load_scorer(self.row, self.runtime)
            with self._cache(loaded) or nullcontext() as cache:
                yield ModelClient(
                    loaded, self.runtime, dtype=self.runtime.dtype or self.row.dtype, cache=cache
                )
            del loaded
        model_device.free_memory(self.runtime.device)

    def load(self) -> Loaded:
        """Load the metric, for whoever asks it more than once; the garbage collector frees it."""
        check_installed()
        with model_device.repeatable():
            return load_scorer(self.row, self.runtime)

    def _cache(self, loaded: Loaded) -> EmbeddingCache | None:
        if self.cache_folder is None or not is_dual_encoder(loaded.scorer):
            return None
        about = About(self.fingerprint, loaded.preprocessing, self.row.name)
        return EmbeddingCache(self.cache_folder, about)


def check_installed() -> None:
    """Raise where what runs models is not installed."""
    if missing := missing_libraries():
        raise PlatformError(
            "libraries_missing",
            f"Built-in metrics need {' and '.join(missing)}, which is not installed.",
            "Install the extra: pip install 'assay[metrics]', or .[metrics] in a clone.",
        )


def _raise_if_final(error: Exception) -> None:
    """Raise what another request would not mend."""
    if isinstance(error, AssayError) or model_device.is_out_of_memory(error):
        raise error
    if model_device.is_broken_device(error):
        raise PlatformError("device_failed", f"The device failed: {in_one_line(error)}") from error


def _unprepared(item: Item) -> tuple[Verdict, ...]:
    problem = f"the metric cannot take the image: {item.image.content.problem}"
    return tuple(Verdict(math.nan, problem) for _ in item.asked)
