"""Entry point of the command lines: one message for an error, and its exit code."""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Callable

from rich.console import Console

from benchmarks.errors import AssayError, PlatformError, SubmitterError
from benchmarks.settings.model import load_process

_TELLS_HOW = frozenset({"--help", "--example"})
"""Whoever asks how something is done is answered, however wrong the settings are."""
_LONG_WORD = re.compile(r"\S{400,}")
_HEAD, _TAIL = 200, 60
NOBODY_READS = 141
"""As shells say of a program that a closed pipe ended: 128 and the number of SIGPIPE."""


def errors() -> Console:
    """Console for errors and progress, apart from what programs read."""
    return Console(stderr=True, soft_wrap=True, emoji=False)


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
