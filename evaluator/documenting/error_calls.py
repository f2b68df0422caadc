"""Finds where the source makes an error with a code, and what it says there."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

NOTED = "noted"
"""Nobody's fault yet: what `/health` and `doctor` tell an operator."""
_NOTES = "leaderboard/service/"
HIDDEN = "…"
"""Stands for what only a running program knows."""

_BASES: Mapping[str, str] = {
    "SubmitterError": "yours",
    "TransientError": "the world's",
    "PlatformError": "ours",
}
_DEEPEST = 4
"""Classes from a base to what is derived from it, at most."""


@dataclass(frozen=True)
class Maker:
    """Something that is called with a code.

    Attributes:
        whose: fault its errors are; empty: it depends.
        at: position of the code among the arguments; message and hint follow it; None where it is
            called without a code, since it has one of its own.
    """

    whose: str
    at: int | None = 0


_PROBLEM = Maker("yours")
_OTHERS: Mapping[str, Maker] = {
    "Problem": _PROBLEM,
    "RefusedError": Maker("yours", 1),
    "not_found": Maker("yours"),
    "blamed": Maker(""),
}
"""Calls that name a code and are no plain error class; these are found in the source."""


@dataclass(frozen=True)
class Found:
    """One place that makes an error.

    Attributes:
        code: of it; None where only a running program knows it.
        whose: fault it is; empty where it depends.
        message: with `…` for what varies.
        hint: what to do, likewise.
        module: path of the file below the repository.
        line: in it.
        said: the expression of the code as it is written.
    """

    code: str | None
    whose: str
    message: str
    hint: str
    module: str
    line: int
    said: str


def errors_in(root: Path, packages: tuple[str, ...]) -> Iterator[Found]:
    """Every place of the packages' source that makes an error with a code.

    Args:
        root: folder that holds the packages.
        packages: names of folders in it.
    """
    paths = [path for package in packages for path in sorted((root / package).rglob("*.py"))]
    trees = {path: ast.parse(path.read_text("utf-8")) for path in paths}
    makers = {**_classes(trees.values()), **_OTHERS}
    for path, tree in trees.items():
        yield from _in_module(tree, str(path.relative_to(root)), makers)


def _classes(trees: Iterable[ast.Module]) -> dict[str, Maker]:
    """The error classes of the source, with those derived from derived ones.

    One that names its own code in its constructor is called without any.
    """
    classes = {
        node.name: node
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    whose = dict(_BASES)
    for _ in range(_DEEPEST):
        for name, cls in classes.items():
            fault = next((whose[_name(b)] for b in cls.bases if _name(b) in whose), None)
            if fault is not None:
                whose[name] = fault
    return {
        name: Maker(fault, None if name in classes and _names_its_code(classes[name]) else 0)
        for name, fault in whose.items()
    }


def _names_its_code(cls: ast.ClassDef) -> bool:
    return any(_hands_on_a_text(node) for node in ast.walk(cls))


def _hands_on_a_text(node: ast.AST) -> bool:
    """Whether it is `super().__init__("code", ...)`."""
    return (
        isinstance(node, ast.Call)
        and ast.unparse(node.func) == "super().__init__"
        and bool(node.args)
        and isinstance(node.args[0], ast.Constant)
    )


def _in_module(tree: ast.Module, module: str, makers: Mapping[str, Maker]) -> Iterator[Found]:
    names = _constants(tree)
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        maker = makers.get(_name(call.func))
        if maker is not None and maker.at is not None and (call.args or call.keywords):
            yield from _made(call, maker, names, module)
    for cls in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
        found = makers.get(cls.name)
        if found is not None and cls.name not in _BASES:
            yield from _own_code(cls, found.whose, names, module)


def _own_code(
    cls: ast.ClassDef, whose: str, names: Mapping[str, str], module: str
) -> Iterator[Found]:
    """Of an error class that hands its own code on."""
    for call in (node for node in ast.walk(cls) if isinstance(node, ast.Call)):
        if _hands_on_a_text(call):
            yield from _made(call, Maker(whose), names, module)


def _made(call: ast.Call, maker: Maker, names: Mapping[str, str], module: str) -> Iterator[Found]:
    given = {k.arg: k.value for k in call.keywords if k.arg}
    parts = dict(zip(("code", "message", "hint"), call.args[maker.at or 0 :], strict=False)) | given
    if "code" not in parts or isinstance(parts["code"], ast.Starred):
        parts.setdefault("code", ast.Constant(None))
    message, hint = (_text(parts.get(key), names) for key in ("message", "hint"))
    hint = hint or _text(given.get("remedy"), names)
    whose = NOTED if module.startswith(_NOTES) and maker is _PROBLEM else maker.whose
    said = ast.unparse(call.args[0]) if call.args else ""
    for code in _codes(parts["code"], names) or (None,):
        yield Found(code, whose, message, hint, module, call.lineno, said)


def _codes(node: ast.expr, names: Mapping[str, str]) -> tuple[str, ...]:
    if isinstance(node, ast.IfExp):
        return (*_codes(node.body, names), *_codes(node.orelse, names))
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return (node.value,)
    return (names[node.id],) if isinstance(node, ast.Name) and node.id in names else ()


def _text(node: ast.expr | None, names: Mapping[str, str]) -> str:
    """What an expression says, as far as the source tells; of two choices the first."""
    match node:
        case None:
            return ""
        case ast.Constant(value=value):
            return str(value)
        case ast.JoinedStr(values=values):
            return "".join(_text(value, names) for value in values)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _text(left, names) + _text(right, names)
        case ast.IfExp(body=chosen) | ast.FormattedValue(value=ast.Name() as chosen):
            return _text(chosen, names)
    return names.get(node.id, HIDDEN) if isinstance(node, ast.Name) else HIDDEN


def _constants(tree: ast.Module) -> dict[str, str]:
    """Names of the module, and of its functions, that stand for one text."""
    found: dict[str, set[str | None]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            value = node.value
            text = value.value if isinstance(value, ast.Constant) else None
            for target in targets:
                for name, one in _pairs(target, value, text):
                    found.setdefault(name, set()).add(one)
    return {
        name: text
        for name, texts in found.items()
        if len(texts) == 1 and isinstance(text := next(iter(texts)), str)
    }


def _pairs(
    target: ast.expr, value: ast.expr | None, text: object
) -> Iterator[tuple[str, str | None]]:
    if isinstance(target, ast.Name):
        yield target.id, text if isinstance(text, str) else None
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for one, its in zip(target.elts, value.elts, strict=False):
            yield from _pairs(one, its, its.value if isinstance(its, ast.Constant) else None)


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
