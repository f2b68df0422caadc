"""Finds where the source makes an error with a code, and what it says there."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
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


@dataclass(frozen=True)
class Maker:
    """Something that is called with a code.

    Attributes:
        whose: fault its errors are; empty: it depends.
        at: position of the code among the arguments; message and hint follow it.
    """

    whose: str
    at: int = 0


MAKERS: Mapping[str, Maker] = {
    **{name: Maker(whose) for name, whose in _BASES.items()},
    "Problem": Maker("yours"),
    "RefusedError": Maker("yours", 1),
    "not_found": Maker("yours"),
    "BusyError": Maker("the world's"),
    "VersionGoneError": Maker("the world's"),
    "StoreGoneError": Maker("the world's"),
    "StartUnansweredError": Maker("the world's"),
    "NoStoreError": Maker("ours"),
    "blamed": Maker(""),
}
"""Calls that name a code. Errors that name their own in their constructor are found by that."""


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
    for package in packages:
        for path in sorted((root / package).rglob("*.py")):
            yield from _in_module(ast.parse(path.read_text("utf-8")), str(path.relative_to(root)))


def _in_module(tree: ast.Module, module: str) -> Iterator[Found]:
    names = _constants(tree)
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        maker = MAKERS.get(_name(call.func))
        if maker is not None and not _is_definition_of_problem(call):
            yield from _made(call, maker, names, module)
    for cls in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
        whose = next((_BASES[_name(b)] for b in cls.bases if _name(b) in _BASES), None)
        if whose is not None:
            yield from _own_code(cls, whose, names, module)


def _own_code(
    cls: ast.ClassDef, whose: str, names: Mapping[str, str], module: str
) -> Iterator[Found]:
    """Of an error class that hands its own code on."""
    for call in (node for node in ast.walk(cls) if isinstance(node, ast.Call)):
        if ast.unparse(call.func) == "super().__init__" and _first_is_text(call):
            yield from _made(call, Maker(whose), names, module)


def _made(call: ast.Call, maker: Maker, names: Mapping[str, str], module: str) -> Iterator[Found]:
    given = {k.arg: k.value for k in call.keywords if k.arg}
    parts = dict(zip(("code", "message", "hint"), call.args[maker.at :], strict=False)) | given
    if "code" not in parts or isinstance(parts["code"], ast.Starred):
        parts.setdefault("code", ast.Constant(None))
    message, hint = (_text(parts.get(key), names) for key in ("message", "hint"))
    hint = hint or _text(given.get("remedy"), names)
    whose = NOTED if module.startswith(_NOTES) and maker is MAKERS["Problem"] else maker.whose
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


def _first_is_text(call: ast.Call) -> bool:
    return bool(call.args) and isinstance(call.args[0], ast.Constant)


def _is_definition_of_problem(call: ast.Call) -> bool:
    """`Problem(BaseModel)` in a class header is no call; nothing else is to be left out."""
    return not call.args and not call.keywords


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
