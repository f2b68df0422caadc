"""Entry point of the command lines, options they share, one message for an error and its exit code."""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from benchmarks.errors import AssayError, PlatformError, SubmitterError
from benchmarks.settings.model import load_process

DataOption = Annotated[
    Path | None,
    typer.Option("--data", envvar="ASSAY_DATA", help="Folder of benchmark data files."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace --out if it exists.")]

_TELLS_HOW = frozenset({"--help", "--example"})
"""Whoever asks how something is done is answered, however wrong the settings are."""
_LONG_WORD = re.compile(r"\S{400,}")
_HEAD, _TAIL = 200, 60
NOBODY_READS = 141
"""As shells say of a program that a closed pipe ended: 128 and the number of SIGPIPE."""


_MODULE_COMMAND = re.compile(r"python -m (evaluator|benchmarks)(?!\.?\w)")
_INSTALLED_COMMAND = {"evaluator": "assay", "benchmarks": "assay bench"}


def as_started(text: str) -> str:
    """A text that names commands, by the name that this process was started with.

    Messages and help say `python -m evaluator` and `python -m benchmarks`, which every checkout has;
    who typed `assay` reads `assay` and `assay bench`.
    """
    if Path(sys.argv[0]).stem != "assay":
        return text
    return _MODULE_COMMAND.sub(lambda found: _INSTALLED_COMMAND[found[1]], text)


class CommandConsole(Console):
    """Console whose lines name commands `as_started`; what stands in tables stays as it is."""

    def print(self, *objects: Any, **how: Any) -> None:
        """See `Console.print`."""
        super().print(*map(_renamed, objects), **how)


def _renamed(printed: Any) -> Any:
    if isinstance(printed, str):
        return as_started(printed)
    if isinstance(printed, Text) and as_started(printed.plain) != printed.plain:
        return Text(as_started(printed.plain), printed.style)
    return printed


_UNBOUNDED = Console(width=100_000)


def fits(table: Table, width: int) -> bool:
    """Whether a table needs no more than so many characters a line."""
    return Measurement.get(_UNBOUNDED, _UNBOUNDED.options, table).maximum <= width


def with_help_as_started(app: typer.Typer) -> Callable[[], object]:
    """A command line whose help names commands `as_started`."""
    whole = typer.main.get_command(app)
    waiting = [whole]
    while waiting:
        command = waiting.pop()
        command.help = command.help and as_started(command.help)
        waiting += getattr(command, "commands", {}).values()
    return whole


def errors() -> CommandConsole:
    """Console for errors and progress, apart from what programs read."""
    return CommandConsole(stderr=True, soft_wrap=True, emoji=False)


def shortened(text: str) -> str:
    """A message whose longest words, which are names of files, are cut in the middle."""
    return _LONG_WORD.sub(lambda word: f"{word[0][:_HEAD]}…{word[0][-_TAIL:]}", text)


def run(app: Callable[[], object]) -> int:
    """Run a command line; every AssayError becomes one message and its exit code.

    Settings are read first, for options and for everything else.

    Anything else is a defect of ours: its traceback is shown and the code is 3.

    Returns: 0, 1 (their input), 3 (ours), or 141, without a word, where whoever reads what is
    printed has seen enough (`| head`). Wrong usage ends with 2 before this returns.
    """
    try:
        try:
            return _run(app)
        finally:
            sys.stdout.flush()
    except (SystemExit, BrokenPipeError) as end:
        if not _nobody_reads(end):
            raise
        _print_no_more()
        return NOBODY_READS


def _run(app: Callable[[], object]) -> int:
    try:
        for warning in () if _TELLS_HOW & set(sys.argv[1:]) else load_process():
            errors().print(f"warning: {warning}", markup=False, highlight=False)
        app()
    except BrokenPipeError:
        raise
    except AssayError as error:
        errors().print(f"[bold red]error[/] \\[{error.code}]", highlight=False, end=": ")
        errors().print(shortened(str(error)), markup=False, highlight=False)
        return error.exit_code
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            errors().print_exception()
            return PlatformError.exit_code
        errors().print("[bold red]error[/] \\[name_too_long]: ", highlight=False, end="")
        named = shortened(f"No file can have the name {error.filename}. Check the path.")
        errors().print(named, markup=False, highlight=False)
        return SubmitterError.exit_code
    except Exception:  # noqa: BLE001 (the last resort: whatever it is, it is ours)
        errors().print_exception()
        return PlatformError.exit_code
    return 0


def _nobody_reads(end: BaseException) -> bool:
    """Whether the pipe that is printed to was closed, which Typer and Rich make an exit with 1."""
    return isinstance(end, BrokenPipeError) or isinstance(end.__context__, BrokenPipeError)


def _print_no_more() -> None:
    """Let what is left in buffers go nowhere when Python ends: it would complain."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.__stdout__.fileno() if sys.__stdout__ else 1)
    os.close(nowhere)
