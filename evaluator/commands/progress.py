"""Progress bars on a terminal, and sources of submissions that are fetched under one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from benchmarks.command_line import errors
from evaluator.hub.source import PREFIX, HubSource, Tell, fetched
from evaluator.submission.archives.entries import ArchiveLimits
from evaluator.submission.generations.sources import GenerationsLimits
from evaluator.worker.liveness import RunProgress


def _counting(*, transient: bool = False) -> Progress:
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        console=errors(),
        transient=transient,
    )


@contextmanager
def run_bars(total: int | None = None) -> Iterator[Callable[[RunProgress], None]]:
    """Show bars while inside; gives the listener for a worker."""
    with _counting() as bars:
        yield _Bars(bars, total)


@contextmanager
def progress_bar(
    what: str, rate: Callable[[float], str] | None = None, *, transient: bool = False
) -> Iterator[Callable[[Any], None]]:
    """Show one bar while inside; gives its listener, to any progress with `done` and `total`.

    `rate`: a speed in words, where the bar says it. `transient`: whether the bar goes at the end.
    """
    with _counting(transient=transient) as bars:
        task = bars.add_task(what, total=None, rate="")

        def listen(now: Any) -> None:
            said = "" if rate is None else rate(now.rate)
            bars.update(task, completed=now.done, total=now.total, rate=said)

        yield listen


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


_SHOWN = 40


@contextmanager
def local_source(named: str) -> Iterator[Path]:
    """A submission on this machine, by a path or as `hub:owner/name@revision`.

    What had to be fetched is removed afterwards.
    """
    of_images = named.startswith(f"{PREFIX}datasets/")
    with fetched_source(named, GenerationsLimits() if of_images else ArchiveLimits()) as (place, _):
        yield place


@contextmanager
def fetched_source(
    named: str, limits: ArchiveLimits | GenerationsLimits
) -> Iterator[tuple[Path, str]]:
    """A path, or a repository of the Hub, fetched under a bar and removed afterwards.

    Gives where its files are, and of a repository the commit, as `hub:owner/name@commit`.
    """
    if not named.startswith(PREFIX):
        yield Path(named), ""
        return
    # Whoever types this may fetch what their own token opens.
    source = HubSource.parse(named, token=True)
    with ExitStack() as stack:
        with download_bar() as tell:
            found = stack.enter_context(
                fetched(source, most_files=limits.entries, most_bytes=limits.total_bytes, tell=tell)
            )
        yield found.folder, found.source


@contextmanager
def download_bar() -> Iterator[Tell]:
    """A bar over all files of a repository, on standard error."""
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Progress(*columns, TimeRemainingColumn(), console=errors(), transient=True) as bars:
        task = bars.add_task("fetching")

        def tell(name: str, done: int, total: int) -> None:
            shown = Text(name).plain[-_SHOWN:].replace("[", "\\[")
            bars.update(task, description=shown, completed=done, total=total)

        yield tell
