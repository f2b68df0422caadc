"""What the packages mean others to use, as text: `python -m tests.house.public_api` writes it.

The list is kept in `public_api.txt`. Where it changes, somebody's benchmark, metric, store or script
may have to change as well, so the change belongs into CHANGELOG.md.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.house.modules import parsed

PUBLIC = (
    "benchmarks/schema.py", "benchmarks/rows.py", "benchmarks/errors.py",
    "benchmarks/measures/__init__.py", "benchmarks/statistics/resampling.py",
    "benchmarks/prompt_sets/prompt_set.py", "evaluator/metric.py", "evaluator/scoring/contract.py",
    "evaluator/manifest.py", "evaluator/submission/manifest.py", "leaderboard/records.py",
    "leaderboard/store/interface.py",
)  # fmt: skip
"""Contracts: of benchmarks, measures, prompt sets, scorers, submissions, records and stores."""
FILE = Path(__file__).with_name("public_api.txt")
COMMAND = "python -m tests.house.public_api"
_HEAD = f"# Written by `{COMMAND}` from the sources; see CONTRIBUTING.md.\n"
_LONGEST = 60
Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def listing() -> str:
    """The whole list."""
    return _HEAD + "".join(
        f"\n{name}\n" + "".join(f"  {line}\n" for line in lines_of(parsed(Path(name))))
        for name in PUBLIC
    )


def lines_of(module: ast.Module) -> Iterator[str]:
    """A line for each public name, and for each part of a class below it."""
    for node in module.body:
        match node:
            case ast.ClassDef(name=name) if not name.startswith("_"):
                bases = ", ".join(ast.unparse(one) for one in (*node.bases, *node.keywords))
                yield f"class {name}({bases})" if bases else f"class {name}"
                yield from (f"  {line}" for line in _members(node))
            case _:
                yield from _member(node)


def undocumented(module: ast.Module) -> Iterator[str]:
    """Public classes, functions, methods and properties without a word of their own."""
    if not ast.get_docstring(module):
        yield "the module"
    for node in module.body:
        for name, one in _documented(node):
            if not ast.get_docstring(one):
                yield name


def _documented(node: ast.stmt) -> Iterator[tuple[str, Documented]]:
    if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return
    if node.name.startswith("_"):
        return
    yield node.name, node
    for inner in node.body if isinstance(node, ast.ClassDef) else ():
        yield from ((f"{node.name}.{name}", one) for name, one in _documented(inner))


def _members(node: ast.ClassDef) -> Iterator[str]:
    for inner in node.body:
        yield from _member(inner)


def _member(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            if not name.startswith("_"):
                marks = [ast.unparse(one) for one in node.decorator_list]
                shown = "".join(f"@{mark} " for mark in marks if not mark.startswith("field_"))
                returned = f" -> {ast.unparse(node.returns)}" if node.returns else ""
                yield f"{shown}def {name}({ast.unparse(node.args)}){returned}"
        case ast.AnnAssign(target=ast.Name(name)) if not name.startswith("_"):
            value = f" = {_short(node.value)}" if node.value else ""
            yield f"{name}: {ast.unparse(node.annotation)}{value}"
        case ast.Assign(targets=[ast.Name(name)]) if not name.startswith("_"):
            yield f"{name} = {_short(node.value)}"


def _short(value: ast.expr) -> str:
    """What stands there, where it is no table."""
    text = ast.unparse(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST].rstrip()} ..."


if __name__ == "__main__":
    FILE.write_text(listing(), encoding="utf-8")
