"""Inside the box: importing, constructing and calling a scorer, with errors made for its author.

Friendliness only: nothing here protects the supervisor, which trusts no byte that leaves the box.
Only the standard library: this file is also bound into the box.
"""

from __future__ import annotations

import importlib
import inspect
import math
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    PathFinder,
    SourceFileLoader,
)
from importlib.util import module_from_spec
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from .wire_protocol import Capability, ErrorKind


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


def numbers(returned: Any, wanted: int, what: str, place: str, *, of: str = "pairs") -> list[float]:
    """What a method returned, as so many floats."""
    _refuse_dimensions(returned, what, place)
    values = as_list(returned, what, place)
    if len(values) != wanted:
        raise wrong_count(what, len(values), wanted, of, place)
    return [_number(value, i, what, place) for i, value in enumerate(values)]


def _refuse_dimensions(returned: Any, what: str, place: str) -> None:
    """An array or tensor with more than one dimension, as networks with one output give it."""
    shape = getattr(returned, "shape", None)
    if not isinstance(shape, tuple) or len(shape) < _TWO:
        return
    column = len(shape) == _TWO and shape[1] == 1
    raise ScorerFailure(
        ErrorKind.WRONG_TYPE,
        f"{what} returned {article(returned)} of shape ({', '.join(map(str, shape))}), not one with "
        f"one dimension{'; use `.squeeze(1)`' if column else ''}{place}",
    )


def as_list(returned: Any, what: str, place: str) -> list[Any]:
    """Lists and tuples as they are; arrays, series and tensors by their own `tolist`."""
    if isinstance(returned, (list, tuple)):
        return list(returned)
    if callable(getattr(returned, "tolist", None)):
        listed = returned.tolist()
        if isinstance(listed, list):
            return listed
    raise ScorerFailure(
        ErrorKind.WRONG_TYPE, f"{what} returned {article(returned)}, not a list of floats{place}"
    )


def _number(value: Any, position: int, what: str, place: str) -> float:
    if value is not None and not isinstance(value, (int, float)):
        value = _unwrapped(value)
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ScorerFailure(
            ErrorKind.WRONG_TYPE,
            f"{what} returned {article(value)} at position {position}, not a float{place}",
        )
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if math.isinf(number):
        raise ScorerFailure(
            ErrorKind.NOT_FINITE,
            f"{what} returned an infinite value at position {position}{place}",
        )
    return number


def _unwrapped(value: Any) -> Any:
    """A numpy or torch scalar as the Python number it holds; anything else as it is."""
    return value.tolist() if callable(getattr(value, "tolist", None)) else value


def wrong_count(what: str, got: int, wanted: int, of: str, place: str) -> ScorerFailure:
    """Said of a method that returned too little or too much."""
    return ScorerFailure(
        ErrorKind.WRONG_COUNT, f"{what} returned {got} values for {wanted} {of}{place}"
    )


def article(value: Any) -> str:
    """Name of a value's type, with its article."""
    name = type(value).__name__
    return f"{'an' if name[:1] in 'aeiouAEIOU' else 'a'} {name}"


_TWO = 2
OPTIONAL_KEYWORDS = ("device", "models", "weights")
_METHODS = (
    (Capability.SCORE_ELEMENTS, ("score_elements",)),
    (Capability.ENCODE, ("encode_images", "encode_texts", "similarity")),
    (Capability.SCORE_TEXTS, ("score_texts",)),
    (Capability.PREPARE, ("prepare",)),
)


class _FromSource(SourceFileLoader):
    """Always compiles the source: a shipped `.pyc` could hold other code than what is read."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def import_scorer(root: Path, entry_point: str) -> type:
    """Import `module:Class` from the submission; other imports find its folder last of all."""
    module_name, _, class_name = entry_point.partition(":")
    _read_submission_from_source(root)
    with reporting(ErrorKind.IMPORT_FAILED, root, f"Importing {module_name}"):
        module = _import_from(root, module_name)
    scorer = getattr(module, class_name, None)
    if not isinstance(scorer, type):
        raise ScorerFailure(
            ErrorKind.IMPORT_FAILED, f"Module {module_name} has no class {class_name}"
        )
    if not callable(getattr(scorer, "score", None)):
        place = _place_of_class(scorer, root)
        raise ScorerFailure(
            ErrorKind.IMPORT_FAILED, f"Class {class_name} has no method score{place}"
        )
    return scorer


def construct(
    scorer: type,
    root: Path,
    *,
    device: str,
    weights: str | None,
    models: Mapping[str, str] | None = None,
) -> Any:
    """Make the scorer, with whichever of `device`, `weights`, `models` its constructor names."""
    offered: dict[str, Any] = {"device": device, "models": dict(models or {})}
    if weights is not None:
        path = root / weights
        if not path.is_file():
            raise ScorerFailure(ErrorKind.INIT_FAILED, f"The weights file {weights} is not there")
        offered["weights"] = str(path)
    with reporting(ErrorKind.INIT_FAILED, root, f"Constructing {scorer.__name__}"):
        return scorer(**_accepted_keywords(scorer, offered))


def capabilities(scorer: Any) -> Capability:
    """What the scorer can do beyond `score`."""
    found = Capability.SCORE
    for capability, names in _METHODS:
        if all(callable(getattr(scorer, name, None)) for name in names):
            found |= capability
    return found


def call_score(scorer: Any, root: Path, images: list[Any], prompts: list[str]) -> list[float]:
    """One float per pair; NaN where the scorer gave none."""
    with reporting(ErrorKind.SCORER_RAISED, root, "score"):
        returned = scorer.score(images, prompts)
        place = place_of(scorer.score, root)
        return numbers(returned, len(prompts), "score", f"{place}")


def call_score_elements(
    scorer: Any, root: Path, images: list[Any], prompts: list[str], elements: list[list[str]]
) -> list[float]:
    """One float per element of each item, one after the other."""
    with reporting(ErrorKind.SCORER_RAISED, root, "score_elements"):
        returned = scorer.score_elements(images, prompts, elements)
        place = place_of(scorer.score_elements, root)
        rows = as_list(returned, "score_elements", place)
        if len(rows) != len(elements):
            raise wrong_count("score_elements", len(rows), len(elements), "items", place)
        flat: list[float] = []
        for position, (row, wanted) in enumerate(zip(rows, elements, strict=True)):
            what = f"score_elements for item {position}"
            flat += numbers(row, len(wanted), what, place, of="elements")
        return flat


def _read_submission_from_source(root: Path) -> None:
    loaders = [(ExtensionFileLoader, EXTENSION_SUFFIXES), (_FromSource, SOURCE_SUFFIXES)]

    def finder(path: str) -> FileFinder:
        if Path(path) != root and root not in Path(path).parents:
            raise ImportError
        return FileFinder(path, *loaders)

    sys.path_hooks.insert(0, finder)
    sys.path.append(str(root))


def _import_from(root: Path, name: str) -> ModuleType:
    """Import by name, the first part from the submission even where a library is called alike."""
    top = name.partition(".")[0]
    spec = PathFinder.find_spec(top, [str(root)])
    if spec is None or spec.loader is None:
        raise ScorerFailure(ErrorKind.IMPORT_FAILED, f"The submission has no file {top}.py")
    module = module_from_spec(spec)
    sys.modules[top] = module
    spec.loader.exec_module(module)
    return importlib.import_module(name)


def _accepted_keywords(scorer: type, offered: dict[str, Any]) -> dict[str, Any]:
    """Only what is named: a `**kwargs` may belong to a base class that refuses unknown ones."""
    parameters = inspect.signature(scorer).parameters.values()
    positional_only = {p.name for p in parameters if p.kind is p.POSITIONAL_ONLY}
    named = {p.name for p in parameters} - positional_only
    needed = {
        p.name
        for p in parameters
        if p.default is p.empty and p.kind not in {p.VAR_POSITIONAL, p.VAR_KEYWORD}
    }
    if missing := sorted(needed - (set(offered) - positional_only)):
        known = ", ".join(OPTIONAL_KEYWORDS)
        raise ScorerFailure(
            ErrorKind.INIT_FAILED,
            f"The constructor of {scorer.__name__} needs {', '.join(missing)}; "
            f"only the keywords {known} are given, weights where the manifest names a file",
        )
    return {name: value for name, value in offered.items() if name in named}


def _place_of_class(scorer: type, root: Path) -> str:
    try:
        _, line = inspect.getsourcelines(scorer)
        relative = inside(inspect.getfile(scorer), root)
    except (OSError, TypeError):
        return ""
    return f" ({relative}:{line})" if relative else ""
