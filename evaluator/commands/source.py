"""Source of a submission as named on a command line: a path, or a repository of the Hub."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from benchmarks.command_line import errors
from evaluator.hub.source import PREFIX, Fetched, HubSource, Tell, fetched
from evaluator.submission.archives.limits import ArchiveLimits
from evaluator.submission.generations.limits import GenerationsLimits

_SHOWN = 40


@contextmanager
def local_source(named: str, limits: ArchiveLimits | None = None) -> Iterator[Path]:
    """A submission on this machine; what had to be fetched is removed afterwards.

    Args:
        named: a path, or `hub:owner/name@revision`.
        limits: how much may be fetched; None: as a scoring module may have, or, of a dataset, as
            generations may.

    Raises:
        SubmitterError: `bad_source`, `repository_missing`, `too_many_files`, `too_large`.
        TransientError: `hub_unreachable`.
    """
    if not named.startswith(PREFIX):
        yield Path(named)
        return
    bounds = limits or (
        GenerationsLimits() if named.startswith(f"{PREFIX}datasets/") else ArchiveLimits()
    )
    # Whoever types this may fetch what their own token opens.
    source = HubSource.parse(named, token=True)
    with ExitStack() as stack:
        with download_bar() as tell:
            found = stack.enter_context(
                fetched(source, most_files=bounds.entries, most_bytes=bounds.total_bytes, tell=tell)
            )
        yield found.folder


@contextmanager
def fetched_images(named: str) -> Iterator[Fetched]:
    """A repository of generations, fetched under a bar, and removed afterwards.

    Args:
        named: `hub:datasets/owner/name@revision`, of whoever types it.

    Raises:
        SubmitterError: `bad_source`, `repository_missing`, `too_many_files`, `too_large`.
        TransientError: `hub_unreachable`.
    """
    limits, source = GenerationsLimits(), HubSource.parse(named, token=True)
    with ExitStack() as stack:
        with download_bar() as tell:
            found = stack.enter_context(
                fetched(source, most_files=limits.entries, most_bytes=limits.total_bytes, tell=tell)
            )
        yield found


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
