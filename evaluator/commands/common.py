"""Shared parts of the commands: options, errors, the store, the console."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from benchmarks.command_line import CommandConsole, errors
from evaluator.isolation.availability import IsolationChoice
from evaluator.isolation.backend import Layer
from leaderboard.store.opening import StoreName

INTERRUPTED = 130
ENDING_SIGNALS = (signal.SIGTERM, signal.SIGINT)
"""Exit code of a command that Ctrl-C ended, as shells have it."""
DEFAULT_STORE = StoreName(".assay/store")
DEFAULT_MODELS = Path(".assay/models")

StoreOption = Annotated[
    StoreName,
    typer.Option(
        "--store",
        envvar="ASSAY_STORE",
        help="The store: a folder, or hub:OWNER/NAME.",
        parser=StoreName.parse,
        metavar="STORE",
    ),
]
LowerIsBetterOption = Annotated[
    list[str] | None, typer.Option(help="Metric for which lower is better; repeatable.")
]


def store_words(store: StoreName) -> str:
    """What a command needs after it to open the same store here; nothing where it does anyway."""
    if store.text == (os.environ.get("ASSAY_STORE") or str(DEFAULT_STORE)):
        return ""
    return f" --store {shlex.quote(str(store))}"


def models_folder() -> Path:
    """Where models of the Hub are kept that modules name: ASSAY_MODELS, or beside the store."""
    return Path(os.environ.get("ASSAY_MODELS", DEFAULT_MODELS)).absolute()


def now() -> datetime:
    """The current time, with its zone."""
    return datetime.now(UTC)


def console() -> CommandConsole:
    """Where people read; wide enough for a table when the output is not a terminal."""
    piped = not sys.stdout.isatty()
    return CommandConsole(width=160 if piped and "COLUMNS" not in os.environ else None, emoji=False)


@contextmanager
def stopped_in_words(how_to_go_on: str) -> Iterator[None]:
    """End a command that Ctrl-C or SIGTERM stops with a sentence and `INTERRUPTED`."""
    try:
        with ended_in_order():
            yield
    except KeyboardInterrupt as stop:
        errors().print(f"Stopped. {how_to_go_on}")
        raise typer.Exit(INTERRUPTED) from stop


@contextmanager
def ended_in_order() -> Iterator[None]:
    """While this is entered, SIGTERM is as Ctrl-C, which counts in the background too.

    So temporary folders are removed, which may hold private uploads, and a worker hands back what
    it holds.
    """
    before = {
        number: signal.signal(number, signal.default_int_handler) for number in ENDING_SIGNALS
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


OutputNameOption = Annotated[
    str,
    typer.Option("--output-name", help="Output that is asked, of a scoring module with several."),
]
IsolationOption = Annotated[
    IsolationChoice,
    typer.Option(
        "--isolation",
        help="What isolates the code that is scored. `none` is for your own code alone: it can read "
        "your files and reach the network, and its results get no ranks.",
    ),
]

RequireOption = Annotated[
    list[Layer] | None,
    typer.Option(
        "--require",
        help="Take strangers' code only where this layer holds, e.g. 'memory: cgroup'; repeatable.",
    ),
]


def table(
    heads: Sequence[str], rows: Iterable[Sequence[str | Text]], title: str | None = None
) -> Table:
    """A table for people; cells are plain text, whoever wrote them, and never markup."""
    made = Table(*heads, title=title)
    for row in rows:
        made.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    return made


Head = tuple[str, Literal["left", "right"]]
"""Name of a column, and on which side its cells stand."""


def aligned_table(heads: Sequence[Head], rows: Iterable[Sequence[str]]) -> Table:
    """A table of numbers: no lines between rows, and cells that are folded and never cut."""
    made = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name, justify in heads:
        made.add_column(Text(name), justify=justify, overflow="fold")
    for row in rows:
        made.add_row(*map(Text, row))
    return made
