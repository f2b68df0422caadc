"""Measures beside those of a benchmark's own protocol: one module of this package for each.

A benchmark's protocol gives the measures of its paper. Whoever wants another one of the same scores
and answers adds a module with `MEASURES`, a tuple of `FurtherMeasure`; nothing else changes, and
its rows get intervals, ranks, tests and columns as all others do.
"""

from __future__ import annotations

import copy
import importlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.errors import PlatformError
from benchmarks.rows import Measured
from benchmarks.schema import Benchmark, MeasureInfo, ScoreTable
from benchmarks.statistics.resampling import ResamplingPlan

Compute = Callable[[ScoreTable, Any, ResamplingPlan, str, str], Measured]


@dataclass(frozen=True)
class FurtherMeasure:
    """A measure added to some benchmarks.

    Attributes:
        name: of its rows, lower case, e.g. `best_of_prompt`.
        info: what it means.
        benchmarks: names of those it is computed on; their answers must have the tables it reads.
        compute: its rows, as `Benchmark.measure` makes them, given scores, answers, plan, and the
            benchmark's name and revision for the rows.
    """

    name: str
    info: MeasureInfo
    benchmarks: tuple[str, ...]
    compute: Compute


def load_further(package: str = __name__) -> tuple[FurtherMeasure, ...]:
    """The measures of all modules of the package, in the order of their names.

    Raises:
        PlatformError: `invalid_measure`, a module's `MEASURES` is no tuple of measures.
    """
    found: list[FurtherMeasure] = []
    home = importlib.import_module(package)
    for module in pkgutil.iter_modules(home.__path__, f"{package}."):
        declared = getattr(importlib.import_module(module.name), "MEASURES", None)
        if not isinstance(declared, tuple) or not all(
            isinstance(one, FurtherMeasure) for one in declared
        ):
            raise PlatformError(
                "invalid_measure", f"{module.name} does not define MEASURES, a tuple of measures."
            )
        found += declared
    return tuple(found)


def with_further(
    benchmarks: Mapping[str, Benchmark], further: Iterable[FurtherMeasure]
) -> dict[str, Benchmark]:
    """The benchmarks, those that are named with the measures added.

    Raises:
        PlatformError: `invalid_measure`, it names a benchmark that does not exist, or is called as
            a measure of the benchmark is.
    """
    found = dict(benchmarks)
    for one in further:
        for name in one.benchmarks:
            if name not in found:
                raise PlatformError(
                    "invalid_measure",
                    f"Measure {one.name!r} names {name!r}, which is no benchmark.",
                )
            found[name] = _with(found[name], one)
    return found


def _with(benchmark: Benchmark, further: FurtherMeasure) -> Benchmark:
    if further.name in benchmark.card.measures:
        raise PlatformError(
            "invalid_measure", f"{benchmark.name} has a measure {further.name!r} already."
        )
    wider = copy.copy(benchmark)
    known = {**benchmark.card.measures, further.name: further.info}
    wider.card = benchmark.card.model_copy(update={"measures": known})
    wider.further = (*benchmark.further, further.compute)
    return wider
