"""An author's file with an existing metric class: where it belongs, and what it needs beside it."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from benchmarks.errors import SubmitterError

MAX_BYTES = 1 << 20


@dataclass(frozen=True)
class Remark:
    """Something of the file that its author has to see to.

    Attributes:
        line: in the file.
        message: what, in a sentence.
    """

    line: int
    message: str


@dataclass(frozen=True)
class ClassFile:
    """A file with a metric class, as its author wrote it.

    Attributes:
        path: of the author's machine.
        content: its bytes.
        class_name: of the metric.
        deep: whether it imports from the package above its own.
        remarks: what a run lacks.
        models: of the Hub that it loads by name.
    """

    path: Path
    content: bytes
    class_name: str
    deep: bool
    remarks: tuple[Remark, ...]
    models: tuple[str, ...]


def read_class(place: str, provided: frozenset[str], taken: frozenset[str]) -> ClassFile:
    """Read `path.py:Class`; the class may be left out where there is one only.

    Args:
        place: as it was given.
        provided: modules that are written beside it.
        taken: names of files that it may not have.

    Raises:
        SubmitterError: `file_missing`, `file_unreadable`, `bad_source` (not Python), `no_class`, `bad_file_name`.
    """
    written, _, name = place.rpartition(":")
    path, name = (Path(written), name) if name.isidentifier() and written else (Path(place), "")
    content, tree = _parsed(path)
    if not path.stem.isidentifier() or path.suffix != ".py" or path.stem in taken:
        raise SubmitterError(
            "bad_file_name",
            f"{path.name} cannot be imported under that name beside {', '.join(sorted(taken))}.",
            "Give it a plain name, for example my_metric.py.",
        )
    imports = list(_imports(tree))
    loads = dict.fromkeys(_loaded_models(tree))
    return ClassFile(
        path,
        content,
        _chosen_class(tree, name, path),
        deep=any(level > 1 for level, _, _ in imports),
        remarks=tuple(_lacking(imports, provided)),
        models=tuple(loads),
    )


def _parsed(path: Path) -> tuple[bytes, ast.Module]:
    try:
        if not path.is_file():
            raise SubmitterError("file_missing", f"There is no file {path}.", "Check the path.")
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise SubmitterError(
            "file_unreadable",
            f"{path} cannot be read: {error.strerror or error}.",
            "Choose another.",
        ) from error
    if len(content) > MAX_BYTES:
        raise SubmitterError(
            "bad_source",
            f"{path} has more than {MAX_BYTES} bytes.",
            "Keep the class in a file of its own.",
        )
    try:
        return content, ast.parse(content, filename=str(path))
    except SyntaxError as error:
        message = f"{path}:{error.lineno}: {error.msg}."
        raise SubmitterError("bad_source", message, "Mend that line.") from error
    except (ValueError, RecursionError) as error:
        raise SubmitterError("bad_source", f"{path} is no Python: {error}.") from error


def _chosen_class(tree: ast.Module, name: str, path: Path) -> str:
    there = [node.name for node in tree.body if isinstance(node, ast.ClassDef)]
    if name in there or (not name and len(there) == 1):
        return name or there[0]
    listed = ", ".join(there) or "none"
    if name:
        raise SubmitterError(
            "no_class", f"{path} has no class {name}; it has {listed}.", "Name one of these."
        )
    if not there:
        raise SubmitterError("no_class", f"{path} has no class.", "Name the file that has it.")
    raise SubmitterError(
        "no_class", f"{path} has {len(there)} classes.", f"Write {path}:CLASS, one of {listed}."
    )


def _imports(tree: ast.Module) -> Iterator[tuple[int, str, int]]:
    """Level, module and line of each import, inside functions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((0, alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.level, node.module or "", node.lineno


def _lacking(imports: list[tuple[int, str, int]], provided: frozenset[str]) -> Iterator[Remark]:
    ours = {name.partition(".")[0] for name in provided}
    for level, module, line in imports:
        top = module.partition(".")[0]
        if level:
            known = module in {"", "base"}
        elif top in ours:
            known = module in provided
        else:
            known = top in sys.stdlib_module_names or _is_installed(top)
        if not known:
            said = "." * level + module
            yield Remark(line, f"imports {said}, which is neither installed nor written beside it")


def _is_installed(top: str) -> bool:
    try:
        return find_spec(top) is not None
    except (ImportError, ValueError):  # a broken package, or a module without a spec
        return False


def _loaded_models(tree: ast.Module) -> Iterator[str]:
    """Literal names in `from_pretrained("owner/name")`."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        if node.func.attr == "from_pretrained" and node.args:
            first = node.args[0]
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield first.value
