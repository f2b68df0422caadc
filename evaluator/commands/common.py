"""What the commands share: options, errors, where the store is."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from benchmarks.errors import AssayError, PlatformError

DEFAULT_STORE = Path(".assay/store")

StoreOption = Annotated[
    Path, typer.Option("--store", envvar="ASSAY_STORE", help="Folder of the store.")
]
DataOption = Annotated[
    Path | None,
    typer.Option("--data", envvar="ASSAY_DATA", help="Folder of benchmark data files."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


def now() -> datetime:
    """The current time, with its zone."""
    return datetime.now(UTC)


def console() -> Console:
    """Where people read; wide enough for a table when the output is not a terminal."""
    piped = not sys.stdout.isatty()
    return Console(width=160 if piped and "COLUMNS" not in os.environ else None)


def errors() -> Console:
    """Where errors and progress go, apart from what programs read."""
    return Console(stderr=True, soft_wrap=True)


def run(app: Callable[[], object]) -> int:
    """Run a command line; every AssayError becomes one message and its exit code.

    Anything else is a defect of ours: its traceback is shown and the code is 3.
    """
    try:
        app()
    except AssayError as error:
        errors().print(f"[bold red]error[/] [{error.code}]", highlight=False, end=": ")
        errors().print(str(error), markup=False, highlight=False)
        return error.exit_code
    except Exception:  # noqa: BLE001 (the last resort: whatever it is, it is ours)
        errors().print_exception()
        return PlatformError.exit_code
    return 0
