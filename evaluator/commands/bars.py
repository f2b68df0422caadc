"""Progress of runs on a terminal: a bar each, with an estimate of what remains."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

from benchmarks.command_line import errors
from evaluator.worker.claims.heartbeat import RunProgress


@contextmanager
def run_bars(total: int | None = None) -> Iterator[Callable[[RunProgress], None]]:
    """Show bars while inside; gives the listener for a worker.

    Args:
        total: pairs of all runs together, where that is known: adds a bar over all of them.
    """
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        console=errors(),
    ) as bars:
        yield _Bars(bars, total)


class _Bars:
    """The listener: one bar per run, made when the run is first heard of."""

    def __init__(self, bars: Progress, total: int | None) -> None:
        self._bars = bars
        self._all = bars.add_task("all runs (pairs)", total=total, rate="") if total else None
        self._tasks: dict[tuple[str, str], TaskID] = {}
        self._done: dict[tuple[str, str], int] = {}

    def __call__(self, run: RunProgress) -> None:
        key, progress = (run.submission, run.benchmark), run.progress
        if key not in self._tasks:
            self._tasks[key] = self._bars.add_task(f"{run.metric} on {run.benchmark}", rate="")
        self._done[key] = progress.done
        self._bars.update(
            self._tasks[key],
            completed=progress.done,
            total=progress.total,
            rate=f"{progress.rate:,.0f} pairs/s" if progress.rate else progress.stage,
        )
        if self._all is not None:
            self._bars.update(self._all, completed=sum(self._done.values()))
