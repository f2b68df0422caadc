"""Asks a built-in metric in this process: in a thread of the engine, or in an actor."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from benchmarks.errors import AssayError, PlatformError
from evaluator.scorers.family import Loaded
from evaluator.scorers.registry import load_scorer
from evaluator.scorers.row import ScorerRow
from evaluator.scorers.runtime import Runtime
from evaluator.scoring.asking import Item, OutOfMemoryError, Ready, Reply
from evaluator.scoring.contract import Verdict
from evaluator.scoring.embeddings.cache import EmbeddingCache
from evaluator.scoring.embeddings.packs import About
from evaluator.scoring.images.decoding import decode
from evaluator.scoring.in_process import device as model_device
from evaluator.scoring.in_process.device import in_one_line
from evaluator.scoring.in_process.elements import ElementAsker
from evaluator.scoring.in_process.fingerprint import fingerprint_of
from evaluator.scoring.in_process.paths import Meter, Picture, is_dual_encoder, offers, path_of
from evaluator.scoring.in_process.texts import TextNotes

_DEFECT_AFTER = 2
"""Images that failed before any was scored: then it is not the images."""


class ModelAsker:
    """An `Asker` over a scorer that is loaded. Use it in one run only: it keeps vectors of texts.

    Args:
        loaded: the scorer.
        runtime: how it is run.
        dtype: its precision, for the record.
        cache: embeddings of earlier runs; for dual encoders only.
    """

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
        self._elements = ElementAsker(self._scorer, self._meter, _raise_if_final) if able else None
        self._prepares = offers(self._scorer, "prepare")
        self._environment = {
            **loaded.environment,
            **model_device.versions(),
            **model_device.device_description(runtime.device),
            "dtype": dtype,
        }
        self._failed_images = 0
        self._worked = False
        model_device.forget_peak(runtime.device)

    @property
    def asks_elements(self) -> bool:
        """See `Asker`."""
        return self._elements is not None

    @property
    def peak_memory_bytes(self) -> int:
        """See `Asker`."""
        return model_device.peak_memory_bytes(self._device)

    @property
    def environment(self) -> dict[str, str]:
        """See `Asker`."""
        return dict(self._environment)

    def ready(self, data: bytes) -> Ready:
        """See `Asker`; an image whose embedding is kept is not decoded."""
        picture = Picture(hashlib.sha256(data).digest())
        kept = self._cache.find("image", picture.digest) if self._cache is not None else None
        if kept is not None:
            picture.vector, picture.remarks = kept.vector, kept.remarks
            if not self.asks_elements:
                return Ready(picture, kept.vector.nbytes, remarks=kept.remarks)
        decoded = decode(data)
        picture.remarks, picture.uncounted = decoded.remarks, True
        try:
            image = decoded.image
            with model_device.without_gradients():
                picture.prepared = self._scorer.prepare(image) if self._prepares else image
        except Exception as error:  # noqa: BLE001  # whatever a model's code raises
            picture.problem = in_one_line(error)
        return Ready(
            picture,
            model_device.held_bytes(picture.prepared),
            pixels=decoded.image.width * decoded.image.height,
            remarks=decoded.remarks,
        )

    def ask(self, items: Sequence[Item]) -> Reply:
        """See `Asker`.

        What fails for a batch is asked again by image, then by prompt; what fails alone has no
        score, and the error is the reason.

        Raises:
            OutOfMemoryError: a smaller batch may do.
            PlatformError: `scorer_failed`, nothing could be scored from the start;
                `scorer_defect`, it does not keep to the contract; `device_failed`.
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
            item.image.content.uncounted = False
        fit = [item for item in items if not item.image.content.problem]
        scored = iter(self._scored(fit) if fit else ())
        verdicts = [_unprepared(i) if i.image.content.problem else next(scored) for i in items]
        self._note_failures(items, verdicts)
        elements, findings = self._elements.scores(items) if self._elements else (None, [])
        findings += self._texts.about(items)
        if self._cache is not None:
            self._cache.flush_if_due()
        return Reply(tuple(verdicts), elements, tuple(findings), self._meter.take())

    def _scored(self, items: Sequence[Item]) -> list[tuple[Verdict, ...]]:
        try:
            found = self._path.score(items)
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
    """Opens a built-in metric; see `AskerSource`. It can be sent to an actor with pickle.

    Attributes:
        row: of the table of metrics.
        runtime: how it is run.
        cache_folder: where embeddings are kept; None: they are not.
    """

    row: ScorerRow
    runtime: Runtime
    cache_folder: Path | None = None

    @cached_property
    def fingerprint(self) -> str:
        """See `AskerSource`; worked out once, and then sent along to actors."""
        return fingerprint_of(self.row, self.runtime)

    @contextmanager
    def open(self) -> Iterator[ModelAsker]:
        """Load the metric; when the context is left, its memory is free and embeddings are kept.

        Raises:
            SubmitterError: a checkpoint or a question file that cannot be used.
        """
        with model_device.repeatable():
            loaded = load_scorer(self.row, self.runtime)
            with self._cache(loaded) or nullcontext() as cache:
                yield ModelAsker(
                    loaded, self.runtime, dtype=self.runtime.dtype or self.row.dtype, cache=cache
                )
            del loaded
        model_device.free_memory(self.runtime.device)

    def _cache(self, loaded: Loaded) -> EmbeddingCache | None:
        if self.cache_folder is None or not is_dual_encoder(loaded.scorer):
            return None
        about = About(self.fingerprint, loaded.preprocessing, self.row.name)
        return EmbeddingCache(self.cache_folder, about)


def _raise_if_final(error: Exception) -> None:
    """Raise what another request would not mend."""
    if isinstance(error, AssayError) or model_device.is_out_of_memory(error):
        raise error
    if model_device.is_broken_device(error):
        raise PlatformError("device_failed", f"The device failed: {in_one_line(error)}") from error


def _unprepared(item: Item) -> tuple[Verdict, ...]:
    problem = f"the metric cannot take the image: {item.image.content.problem}"
    return tuple(Verdict(math.nan, problem) for _ in item.asked)
