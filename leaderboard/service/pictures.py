"""The images and prompts of benchmarks that are on this machine, for whoever may see them."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from benchmarks.errors import SubmitterError
from benchmarks.schema import Benchmark

log = logging.getLogger(__name__)

MOST_BENCHMARKS = 4  # Whose lists of images are kept in memory between two looks
_Readers = Mapping[str, Callable[[], bytes]]


class Pictures:
    """Finds images by benchmark and image id, and prompts. Several threads may share one.

    An id is looked up among those of the question side, and never becomes a part of a path. What
    belongs to a benchmark whose answers are withheld is shown to nobody.
    """

    def __init__(self, registry: Mapping[str, Benchmark], data: Path | None) -> None:
        self._registry = registry
        self._data = data
        self._lock = threading.Lock()
        self._readers: OrderedDict[object, _Readers] = OrderedDict()
        self._texts: dict[str, tuple[object, Mapping[str, str]]] = {}

    def has(self, benchmark: str) -> bool:
        """Whether the images of a benchmark are here and may be shown."""
        found = self._registry.get(benchmark)
        return found is not None and found.card.answers_public and found.has_questions(self._data)

    def available(self, benchmark: str) -> Collection[str]:
        """Ids of the images of a benchmark that are here and may be shown."""
        if not self.has(benchmark):
            return ()
        return self._of(self._registry[benchmark]).keys()

    def __call__(self, benchmark: str, image_id: str) -> bytes | None:
        """An image as it is kept; None where there is none, or none that may be shown."""
        if not self.has(benchmark):
            return None
        read = self._of(self._registry[benchmark]).get(image_id)
        return read() if read is not None else None

    def texts(self, benchmark: str) -> Mapping[str, str]:
        """Cluster to its prompt, where the prompts of a benchmark are here; none where they are not."""
        found = self._registry.get(benchmark)
        if found is None or not found.card.answers_public:
            return {}
        with self._lock:
            state = found.folder(self._data).signature()
            if self._texts.get(benchmark, (None, {}))[0] != state:
                self._texts[benchmark] = state, self._read_texts(found)
            return self._texts[benchmark][1]

    def _read_texts(self, benchmark: Benchmark) -> Mapping[str, str]:
        try:
            return benchmark.texts(self._data)
        except SubmitterError as error:
            log.warning("No prompts of %s are shown: %s", benchmark.name, error)
            return {}

    def _of(self, benchmark: Benchmark) -> _Readers:
        # Under the lock, so that many who ask at once do not list the same folder many times.
        with self._lock:
            key = (benchmark.name, benchmark.folder(self._data).signature())
            if key not in self._readers:
                self._readers[key] = self._listed(benchmark)
            self._readers.move_to_end(key)
            while len(self._readers) > MOST_BENCHMARKS:
                self._readers.popitem(last=False)
            return self._readers[key]

    def _listed(self, benchmark: Benchmark) -> _Readers:
        try:
            return benchmark.questions(self._data).images
        except SubmitterError as error:
            log.warning("No images of %s are shown: %s", benchmark.name, error)
            return {}
