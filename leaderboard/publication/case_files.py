"""The cases of benchmarks in the public store: once for each revision, beside its first results."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from pathlib import Path

from benchmarks.cases import cases_path, write_cases
from benchmarks.schema import Benchmark
from leaderboard.store.interface import Repository


class CaseFiles:
    """Makes the files of cases that a store lacks. Several threads may share one.

    Args:
        registry: the benchmarks known here.
        data: folder of benchmark data, if there is one.
    """

    def __init__(self, registry: Mapping[str, Benchmark], data: Path | None) -> None:
        self._registry = registry
        self._data = data
        self._lock = threading.Lock()
        self._made: dict[str, bytes | None] = {}

    def missing(self, public: Repository, benchmarks: Iterable[str]) -> dict[str, bytes]:
        """What to commit so that the store has the cases of these benchmarks.

        Where answers are not public, nothing is: cases say what people answered.

        Args:
            public: the public repository.
            benchmarks: names of benchmarks that are known here, whose answers are at hand.

        Raises:
            SubmitterError: a benchmark's answers are not here after all.
            PlatformError: `bad_cases`, of a benchmark whose cases are none.
        """
        found: dict[str, bytes] = {}
        for name in sorted(set(benchmarks)):
            card = self._registry[name].card
            path = cases_path(name, card.revision)
            if not card.answers_public or public.has(path):
                continue
            content = self._file(path, self._registry[name])
            if content is not None:
                found[path] = content
        return found

    def _file(self, path: str, benchmark: Benchmark) -> bytes | None:
        """The file, made once: a commit that loses its race asks again."""
        with self._lock:
            if path not in self._made:
                cases = benchmark.cases(benchmark.answers(self._data), self._data)
                self._made[path] = None if cases is None else write_cases(cases)
            return self._made[path]
