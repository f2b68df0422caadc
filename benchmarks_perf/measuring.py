"""Timing, figures with limits, and the registry of all measurements."""

from __future__ import annotations

import inspect
import os
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

_BY_MODULE = {
    "correlations": {
        "tie_calibration": "pairwise accuracy with calibrated ties, by prompt: against pair by pair",
        "flat_tie_calibration": "the same over 20,000 images: against one tau-b of scipy, and memory",
        "bootstrap": "1,000 resamples of prompts: against scipy in each resample",
        "correlation_board": "30 metrics and 1,500 draws, all images and skills: against scipy, and memory",
    },
    "permutation": {
        "permutation_tests": "tests of two metrics with 1,000 draws: against draw by draw with scipy",
        "permutation_board": "tests of all pairs of 30 metrics: against one matrix product",
        "joint_board": "tests of all pairs of 30 to 500 metrics together: against a test of each pair",
        "paired_tests": "t and Wilcoxon tests of all pairs of 30 metrics: against loops over scipy",
    },
    "mt_metrics_eval": {
        "agreement": "ties and permutation tests: the same results as mt-metrics-eval",
    },
    "ts2_protocol": {
        "ts2_protocol": "the whole protocol of TS2: against a plain evaluation with scipy",
    },
    "evalmuse_protocol": {
        "evalmuse_protocol": "the protocol of EvalMuse: against a plain evaluation with scipy",
    },
    "preferences": {
        "preference_board": "a million comparisons, 20 metrics: against a loop with pandas, and memory",
    },
    "engine": {
        "throughput": "CLIP over two texts an image: against published loops and the image tower",
        "overhead": "a scorer that does nothing: against a bare loop, in decodings of a JPEG",
        "scoring_memory": "peak memory with four times as many images",
        "preprocessing": "decoding and resizing: against Pillow with open_clip's transform",
    },
    "served": {
        "service": "a metric asked over HTTP by several clients: against the metric called directly",
    },
    "shared_images": {
        "itm_sharing": "several texts of one image by BLIP2-ITM: against a call a pair",
        "vlm_prefix": "several texts of one image by a chat VLM: against a call a pair",
    },
    "processes": {
        "isolation": "scoring in each sandbox: against a plain process",
    },
    "boards": {
        "interaction": "a change of a board of 500 metrics: against a pandas Styler of its figures",
        "loading": "1,000 results in one table: against a JSON file each",
        "index_weights": "a new weight in the index over benchmarks: against a pandas loop",
        "model_filter": "a new filter on a board of models: seconds",
    },
    "site": {
        "first_board": "the first figure in a browser: against a bare Gradio page",
        "visitors": "a hundred visitors for a minute: errors, waiting and memory",
    },
    "store": {
        "opening": "a board of a large store in a new process: processor time and memory",
        "publishing": "one more submission: against making all boards",
    },
    "archives": {
        "archive_memory": "archives of 100,000 files and of 2 GiB: memory of the intake",
        "generations_check": "checking generations: against decoding alone, and memory by image",
        "copies": "copies of generations told from other pictures by their hash",
    },
}

MODULES = {name: module for module, names in _BY_MODULE.items() for name in names}
"""Measurement to the module of this package that holds it."""
ABOUT = {name: about for names in _BY_MODULE.values() for name, about in names.items()}
"""Measurement to what it compares with what."""

_T = TypeVar("_T")
Clock = Callable[[], float]
MIB = 2**20
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""Environment of every measurement: libraries read it when they are loaded."""


class NotAvailableError(Exception):
    """This machine lacks what a measurement needs; the message says what."""


@dataclass(frozen=True)
class Figure:
    """One measured value and its limit."""

    name: str  # what was measured
    value: float  # the figure
    unit: str = ""  # `x` for a ratio, `s`, `ms`, `MiB`; empty for a count
    at_least: float | None = None  # lower limit; None: there is none
    at_most: float | None = None  # upper limit; None: there is none
    details: str = ""  # both sides of a ratio, or what else explains the value

    @property
    def holds(self) -> bool | None:
        """Whether the limit holds; None without a limit. NaN holds no limit."""
        if self.at_least is None and self.at_most is None:
            return None
        low = self.at_least is None or self.value >= self.at_least
        return low and (self.at_most is None or self.value <= self.at_most)

    @property
    def limit(self) -> str:
        """The limit in words."""
        if self.at_least is not None:
            return f"at least {written(self.at_least)}"
        return "" if self.at_most is None else f"at most {written(self.at_most)}"


def written(value: float) -> str:
    """A value with three significant digits."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


@dataclass(frozen=True)
class Times:
    """Seconds of several sides that ran in turns, round by round."""

    seconds: Mapping[str, list[float]]

    def of(self, side: str) -> float:
        """Median seconds of a side."""
        return median(self.seconds[side])

    def scaled(self, side: str, factor: float) -> Times:
        """The same with a side's seconds multiplied: it ran a part of the work, or many times it."""
        return Times({**self.seconds, side: [one * factor for one in self.seconds[side]]})

    def ratio(self, one: str, other: str) -> float:
        """Median over the rounds of one side's seconds by the other's."""
        pairs = zip(self.seconds[one], self.seconds[other], strict=True)
        return median(a / b for a, b in pairs)

    def compared(
        self,
        name: str,
        one: str,
        other: str,
        *,
        at_least: float | None = None,
        at_most: float | None = None,
    ) -> Figure:
        """The ratio of two sides as a figure."""
        details = f"{one} {written(self.of(one))} s, {other} {written(self.of(other))} s"
        return Figure(name, self.ratio(one, other), "x", at_least, at_most, details)


def seconds(run: Callable[[], object], clock: Clock = time.process_time) -> float:
    """Seconds of one call, by default of the processor."""
    start = clock()
    run()
    return clock() - start


def interleaved(
    sides: Mapping[str, Callable[[], object]], rounds: int, clock: Clock = time.process_time
) -> Times:
    """Run every side once a round, each round beginning with another one."""
    names = list(sides)
    found: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(rounds):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            found[name].append(seconds(sides[name], clock))
    return Times(found)


def alone(function: Callable[..., _T], *arguments: object, **named: object) -> _T:
    """Call a function of a module in a new process; its result."""
    with _new_process() as pool:
        return pool.submit(function, *arguments, **named).result()


def memory_bytes(key: str, process: int | str = "self") -> int:
    """Resident memory of a process: `VmRSS` now, `VmHWM` at most."""
    for line in Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines():
        if line.startswith(f"{key}:"):
            return int(line.split()[1]) << 10
    raise KeyError(key)


def added_memory(run: Callable[[], _T]) -> tuple[_T, int]:
    """What a call returns, and the bytes that it added to this process at its peak."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # The peak begins anew.
    before = memory_bytes("VmRSS")
    result = run()
    return result, memory_bytes("VmHWM") - before


def sizes_of(name: str) -> dict[str, Any]:
    """The sizes that a measurement takes, with their defaults."""
    parameters = inspect.signature(_function(name)).parameters.values()
    return {one.name: one.default for one in parameters}


def parse_sizes(name: str, given: Iterable[str]) -> dict[str, Any]:
    """Sizes written as `key=value`, of the type of their defaults; a default of None is a path."""
    defaults = sizes_of(name)
    found: dict[str, Any] = {}
    for word in given:
        key, _, value = word.partition("=")
        if key in defaults:
            default = defaults[key]
            found[key] = Path(value) if default is None else type(default)(value)
    return found


@dataclass(frozen=True)
class Outcome:
    """What one measurement found."""

    name: str  # of the measurement
    figures: tuple[Figure, ...]  # with their limits
    took_s: float  # seconds that passed
    left_out: str = ""  # what this machine lacks for it; empty where it ran
    failed: str = ""  # the error that ended it; empty where none did

    @property
    def passed(self) -> bool:
        """Whether no limit is missed and nothing failed."""
        return not self.failed and all(figure.holds is not False for figure in self.figures)

    @property
    def about(self) -> str:
        """What is compared with what."""
        return ABOUT[self.name]


def measure(name: str, sizes: Mapping[str, Any]) -> Outcome:
    """Run a measurement in a process of its own, on one thread."""
    os.environ.update(ONE_THREAD)
    start = time.perf_counter()
    with _new_process() as pool:
        found = pool.submit(_figures, name, dict(sizes))
        error = found.exception()
    took_s = time.perf_counter() - start
    if error is None:
        return Outcome(name, found.result(), took_s)
    if isinstance(error, NotAvailableError):
        return Outcome(name, (), took_s, left_out=str(error))
    return Outcome(name, (), took_s, failed=f"{type(error).__name__}: {error}")


def _figures(name: str, sizes: dict[str, Any]) -> tuple[Figure, ...]:
    return tuple(_function(name)(**sizes))


def _new_process() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1)


def _function(name: str) -> Callable[..., Iterable[Figure]]:
    found: Callable[..., Iterable[Figure]] = getattr(
        import_module(f"benchmarks_perf.{MODULES[name]}"), name
    )
    return found
