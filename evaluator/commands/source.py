"""What is named on a command line as a submission: a path, or a repository of the Hub."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from benchmarks.command_line import errors
from evaluator.hub.source import PREFIX, HubSource, Tell, fetched
from evaluator.submission.archives.limits import ArchiveLimits

_SHOWN = 40


@contextmanager
def local_source(named: str) -> Iterator[Path]:
    """A submission on this machine; what had to be fetched is removed afterwards.

    Args:
        named: a path, or `hub:owner/name@revision`.

    Raises:
        SubmitterError: `bad_source`, `repository_missing`, `too_many_files`, `too_large`.
        TransientError: `hub_unreachable`.
    """
    if not named.startswith(PREFIX):
        yield Path(named)
        return
    limits = ArchiveLimits()
    # Whoever types this may fetch what their own token opens.
    source = HubSource.parse(named, token=True)
    with ExitStack() as stack:
        with download_bar() as tell:
            found = stack.enter_context(
                fetched(source, most_files=limits.entries, most_bytes=limits.total_bytes, tell=tell)
            )
        yield found.folder


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
