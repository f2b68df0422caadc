"""Code that a family's scores come from: its modules, and a digest that tells when they change."""

from __future__ import annotations

import ast
import hashlib
import io
import tokenize
from functools import cache
from pathlib import Path

from benchmarks.errors import PlatformError

_ROOT = Path(__file__).parents[2]
_FAMILIES = "evaluator.scorers.families"
_IMAGES = "evaluator.scoring.images"
_OF_SCORES = (
    f"{_FAMILIES}.",
    "evaluator.scorers.models.",
    "evaluator.scorers.questions.",
    "evaluator.scorers.answering",
    "benchmarks.accumulation.",
)
"""Modules that decide a score; what finds, loads and lists metrics is left out."""


@cache
def code_digest(family: str) -> str:
    """SHA-256 of a family's code, in hex: comments, docstrings and empty lines do not count.

    Raises:
        PlatformError: `bad_scorer_row`: there is no such family.
    """
    whole = hashlib.sha256()
    for name, content in sorted(modules_of(family).items()):
        whole.update(f"{name}\0{statements(content)}\0".encode())
    return whole.hexdigest()


def modules_of(family: str) -> dict[str, str]:
    """Source by name of the modules that a family's scores come from; none of them is imported."""
    found: dict[str, str] = {}
    waiting = [f"{_FAMILIES}.{family}", _IMAGES]
    while waiting:
        name = waiting.pop()
        place = _place(name)
        if name in found or place is None:
            continue
        found[name] = place.read_text(encoding="utf-8")
        waiting += (name for name in _imports(found[name]) if name.startswith(_OF_SCORES))
    if f"{_FAMILIES}.{family}" not in found:
        raise PlatformError("bad_scorer_row", f"There is no family {family!r}.")
    return found


def _place(name: str) -> Path | None:
    """A module's file; None where a name is of something in a module."""
    place = _ROOT.joinpath(*name.split("."))
    files = (place.with_suffix(".py"), place / "__init__.py")
    return next((file for file in files if file.is_file()), None)


# Families share modules, and each would be parsed anew for each of them.
@cache
def _imports(source: str) -> tuple[str, ...]:
    """Names that may be those of imported modules."""
    names: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module:
            names += (node.module, *(f"{node.module}.{alias.name}" for alias in node.names))
        elif isinstance(node, ast.Import):
            names += (alias.name for alias in node.names)
    return tuple(names)


@cache
def statements(source: str) -> str:
    """A module without comments, docstrings and empty lines: equal for every version of Python."""
    lines = source.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            last = node.end_lineno or node.lineno
            lines[node.lineno - 1 : last] = [""] * (last - node.lineno + 1)
    return "\n".join(line.rstrip() for line in lines if line.strip())
