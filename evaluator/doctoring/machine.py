"""Diagnostics of this machine: isolation, data, disk, models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks.errors import SubmitterError
from benchmarks.released.bundle import read_manifest, released_bytes
from benchmarks.schema import Benchmark
from evaluator.doctoring.rows import Row
from evaluator.hub.model_shelf import ModelShelf
from evaluator.isolation.backend import IsolationStatus
from evaluator.isolation.layers import LEGEND, Layer
from leaderboard.service.health import disk_of
from leaderboard.service.verdict import DISK_FLOOR_BYTES


def isolation_rows(status: IsolationStatus) -> Iterator[Row]:
    """How code is isolated here.

    Args:
        status: of this machine, probed just now.
    """
    what = "isolation of code"
    if not status.ok or status.backend is None:
        yield Row(what, status.reason, status.remedy)
        return
    yield Row(what, f"by {status.backend.name}")
    for name in status.layers:
        known = name in set(Layer)
        yield Row(f"  {name}", LEGEND[Layer(name)] if known else "holds", _advice(name))
    for note in status.notes:
        yield Row("  note", note)


def benchmark_rows(registry: Mapping[str, Benchmark], data: Path | None) -> Iterator[Row]:
    """Which benchmarks can be measured here.

    Args:
        registry: the benchmarks known here.
        data: folder of benchmark data, if there is one.
    """
    for name, benchmark in sorted(registry.items()):
        images = "with images" if benchmark.has_questions(data) else "scores files only"
        if benchmark.has_answers(data):
            yield Row(f"benchmark {name}", images)
        else:
            yield _without_answers(benchmark, data)


def _without_answers(benchmark: Benchmark, data: Path | None) -> Row:
    try:
        benchmark.answers(data)
    except SubmitterError as error:
        if error.code != "data_missing":
            return Row(f"benchmark {benchmark.name}", error.message, error.hint)
    said = "give their folder with --data or ASSAY_DATA"
    return Row(f"benchmark {benchmark.name}", "its data files are not here", said)


def released_rows() -> Iterator[Row]:
    """Whether the released results that ship with Assay are as their manifest names them."""
    files = read_manifest().files
    whole = True
    for file in files:
        try:
            released_bytes(file.path)
        except SubmitterError as error:
            whole = False
            yield Row("released results", error.message, error.hint, broken=True)
    if whole:
        yield Row("released results", f"{len(files)} tables, as their manifest names them")


def disk_rows(places: Mapping[str, Path]) -> Iterator[Row]:
    """What is free where things are kept.

    Args:
        places: what is kept there, to the folder.
    """
    for what, folder in places.items():
        disk = disk_of(folder)
        if disk is None:
            yield Row(f"disk of {what}", f"{folder} cannot be asked", "see whether it is mounted")
            continue
        full = disk.free_bytes < DISK_FLOOR_BYTES
        yield Row(
            f"disk of {what}",
            f"{gib(disk.free_bytes)} of {gib(disk.total_bytes)} free, {folder}",
            "make room; workers begin nothing here" if full else "",
            broken=full,
        )


def shelf_rows(shelf: ModelShelf) -> Iterator[Row]:
    """Which models of the Hub are kept here.

    Args:
        shelf: of this machine.
    """
    models = shelf.models()
    used = sum(one.in_use for one in models)
    size = gib(sum(one.n_bytes for one in models))
    yield Row("models", f"{len(models)} kept, {used} in use, {size}, {shelf.folder}")


def gib(n_bytes: int) -> str:
    """A size as people read it."""
    return f"{n_bytes / 2**30:.1f} GiB"


def _advice(layer: str) -> str:
    if layer == Layer.MEMORY_WATCHDOG:
        return "for a hard bound, give the worker a cgroup with the memory controller"
    if layer == Layer.CPU_NICENESS:
        return "for a hard bound, give the worker a cgroup with the cpu controller"
    return ""
