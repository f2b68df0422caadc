"""Error codes of the source: where it makes an error with a code, and what it says there."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from evaluator.isolation.failures import HINTS as OF_SCORERS
from evaluator.submission.generations.extraction import HINTS as OF_GENERATIONS
from leaderboard.ledger.private_records import BANNED

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
    """Something that is called with a code."""

    whose: str  # fault its errors are; empty: it depends
    # position of the code among the arguments; message and hint follow it; None where it is called
    # without a code, since it has one of its own
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
    """One place that makes an error."""

    code: str | None  # of it; None where only a running program knows it
    whose: str  # fault it is; empty where it depends
    message: str  # with `…` for what varies
    hint: str  # what to do, likewise
    module: str  # path of the file below the repository
    line: int  # in it
    said: str  # the expression of the code as it is written


def errors_in(root: Path, packages: tuple[str, ...]) -> Iterator[Found]:
    """Every place of the packages' source that makes an error with a code."""
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


PACKAGES = ("benchmarks", "leaderboard", "evaluator")
_NAMED_BY = "evaluator/hub/faults.py"
_AT_HUB = "benchmarks/sources/remote.py"

VARYING: Mapping[tuple[str, str], Mapping[str, str]] = {
    (_NAMED_BY, "wording.code"): dict.fromkeys(
        ("checkpoint_missing", "model_missing", "repository_missing"), ""
    ),
    (_AT_HUB, "*text"): {
        "offline": "Unset HF_HUB_OFFLINE.",
        "gated_repository": "Accept the terms on the page of the repository, and set HF_TOKEN.",
        "unknown_repository": "Look whether its page exists; set HF_TOKEN if it is not public.",
        "disabled_repository": "See the page of the repository.",
        "unknown_revision": "Compare the benchmark's card and pins.json with its history.",
        "not_in_repository": "The benchmark's card names the expected file.",
    },
    ("evaluator/commands/compare.py", "f'unknown_{name}'"): {
        f"unknown_{name}": "Choose one of those that are listed."
        for name in ("variant", "split", "facet")
    },
    ("evaluator/isolation/failures.py", "str(code)"): {
        str(code): hint for code, hint in OF_SCORERS.items()
    },
    ("evaluator/scorers/questions/table.py", "f'duplicate_{value}s'"): {
        "duplicate_answers": "Keep one answer to each question about an image.",
        "duplicate_scores": "Keep one score of each image and prompt.",
    },
    ("evaluator/submission/generations/extraction.py", "problem.kind"): OF_GENERATIONS,
    ("evaluator/worker/claims.py", "BANNED"): {BANNED: "Ask the operator."},
}
"""Place and expression to the codes that it stands for, each with what to do."""

PASSED_ON = frozenset({"error", "error.code", "only.code", "HTTPStatus.NOT_FOUND"})
"""Expressions for the code of an error that was made elsewhere."""
_FINDINGS = frozenset(
    {
        ("evaluator/submission/generations/checking.py", "kind"),
        ("evaluator/submission/generations/checking.py", "kind"),
    }
)
"""What becomes an error in `generations/extraction.py`."""


@dataclass(frozen=True)
class ErrorCode:
    """One code."""

    code: str  # stable identifier
    # fault it is, of each place that uses it: `yours`, `ours`, `the world's`
    whose: tuple[str, ...]
    # messages, with `…` for what varies; without any where only its name is fixed
    says: tuple[str, ...]
    remedies: tuple[str, ...]  # what to do, likewise
    modules: tuple[str, ...]  # files that make it


def error_codes(root: Path) -> list[ErrorCode]:
    """All of them, by name."""
    by_code: dict[str, list[Found]] = {}
    for found in _all(errors_in(root, PACKAGES)):
        by_code.setdefault(found.code or "", []).append(found)
    return [_joined(code, by_code[code]) for code in sorted(by_code)]


def _all(places: Iterable[Found]) -> Iterator[Found]:
    for place in places:
        if place.code is not None:
            yield place
            continue
        key = (place.module, place.said)
        if key not in VARYING and key not in _FINDINGS and place.said not in PASSED_ON:
            raise ValueError(
                f"{place.module}, line {place.line}: nobody can tell which codes "
                f"{place.said} stands for. "
                "Write the code as text, or declare it in tools/reference/errors.py.",
            )
        for code, hint in VARYING.get(key, {}).items():
            yield Found(code, place.whose, "", hint, place.module, place.line, place.said)


def _joined(code: str, found: list[Found]) -> ErrorCode:
    def each(values: Iterable[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(v for v in values if v.strip(HIDDEN + " .")))

    return ErrorCode(
        code,
        each(one.whose for one in found) or ("yours",),
        each(one.message for one in found),
        each(one.hint for one in found),
        each(one.module for one in found),
    )
