"""The modules of the project, as their sources tell."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.conftest import REPOSITORY

PACKAGES = ("benchmarks", "leaderboard", "evaluator", "supply", "tools")
"""What is kept in order, beside `app.py`: what is delivered, and what makers run."""


def modules_of(*names: str) -> Iterator[Path]:
    """Every module of packages, `app` among them, by their path in the repository."""
    for name in names:
        single = Path(f"{name}.py")
        if (REPOSITORY / single).is_file():
            yield single
        for file in sorted((REPOSITORY / name).rglob("*.py")):
            yield file.relative_to(REPOSITORY)


@cache
def source(module: Path) -> str:
    """The text of a module."""
    return (REPOSITORY / module).read_text(encoding="utf-8")


@cache
def parsed(module: Path) -> ast.Module:
    """The syntax of a module."""
    return ast.parse(source(module))


def functions_around(module: Path, kind: type[ast.AST]) -> Iterator[tuple[str, ast.AST]]:
    """Nodes of a kind with the qualified name of what they stand in; empty for the module."""

    def below(node: ast.AST, name: str) -> Iterator[tuple[str, ast.AST]]:
        for child in ast.iter_child_nodes(node):
            inner = name
            if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                inner = f"{name}.{child.name}".removeprefix(".")
            if isinstance(child, kind):
                yield name, child
            yield from below(child, inner)

    yield from below(parsed(module), "")
