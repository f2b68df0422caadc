"""Inside the box: what the author of a module is told, with the line of the module that it is about.

Only the standard library: this file is also bound into the box.
"""

from __future__ import annotations

import inspect
import os
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from .frames import ErrorKind


class ScorerFailure(Exception):  # noqa: N818 - an outcome to be reported, not a defect of ours
    """What the author of the module is told."""

    def __init__(self, kind: ErrorKind, text: str) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text


@contextmanager
def reporting(kind: ErrorKind, root: Path, doing: str) -> Iterator[None]:
    """Turn whatever a stranger's code raises into a report that names its line."""
    try:
        yield
    except ScorerFailure:
        raise
    except BaseException as error:  # sys.exit in a module is also just a failure of it
        with suppress(Exception):  # what it prints to may be the submission's as well
            traceback.print_exc()
        actual = ErrorKind.OUT_OF_MEMORY if _is_out_of_memory(error) else kind
        text = f"{doing} raised {_one_line(error)}{_where(error, root)}"
        raise ScorerFailure(actual, text) from error


def _is_out_of_memory(error: BaseException) -> bool:
    return isinstance(error, MemoryError) or (
        type(error).__name__ in {"OutOfMemoryError", "RuntimeError"}
        and ("can't allocate memory" in str(error) or "out of memory" in str(error))
    )


def _one_line(error: BaseException) -> str:
    try:
        text = " ".join(str(error).split())
    except Exception:  # noqa: BLE001 - __str__ is the submission's code as well
        text = "(its message cannot be read)"
    name = type(error).__name__
    return f"{name}: {text[:1000]}" if text else name


def _where(error: BaseException, root: Path) -> str:
    """` (file:line)` of the deepest line inside the submission, or nothing."""
    places = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    if isinstance(error, SyntaxError) and error.filename:
        places.append((error.filename, error.lineno))
    for filename, line in reversed(places):
        if relative := inside(filename, root):
            return f" ({relative}:{line})"
    return ""


def place_of(method: Callable[..., Any], root: Path) -> str:
    """` (file:line)` of a method's definition, or nothing where it is not plain Python."""
    code = getattr(inspect.unwrap(method), "__code__", None)
    relative = inside(code.co_filename, root) if code else None
    return f" ({relative}:{code.co_firstlineno})" if code and relative else ""


def inside(filename: str, root: Path) -> str | None:
    """A file of the submission by its name there; None for any other."""
    prefix = str(root) + os.sep
    return filename.removeprefix(prefix) if filename.startswith(prefix) else None
