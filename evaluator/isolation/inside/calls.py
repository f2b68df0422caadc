"""Inside the box: importing, constructing and calling a scorer, with errors made for its author.

Friendliness only: nothing here protects the supervisor, which trusts no byte that leaves the box.
Only the standard library: this file is also bound into the box.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Mapping
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

from .frames import Capability, ErrorKind
from .reporting import ScorerFailure, inside, place_of, reporting
from .returned import as_list, numbers, wrong_count

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
    """Import `module:Class` from the submission; other imports find its folder last of all.

    Raises:
        ScorerFailure: `IMPORT_FAILED`, with the line of the submission where there is one.
    """
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
    """Make the scorer, with whichever of `device`, `weights`, `models` its constructor names.

    Args:
        scorer: the class.
        root: folder of the submission.
        device: where it is to compute.
        weights: a file of the submission, or None.
        models: repository of the Hub to the folder that holds its files.

    Raises:
        ScorerFailure: `INIT_FAILED` or `OUT_OF_MEMORY`.
    """
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
    """One float per pair; NaN where the scorer gave none.

    Raises:
        ScorerFailure: the call raised, or what it returned is not one number per pair.
    """
    with reporting(ErrorKind.SCORER_RAISED, root, "score"):
        returned = scorer.score(images, prompts)
        place = place_of(scorer.score, root)
        return numbers(returned, len(prompts), "score", f"{place}")


def call_score_elements(
    scorer: Any, root: Path, images: list[Any], prompts: list[str], elements: list[list[str]]
) -> list[float]:
    """One float per element of each item, one after the other.

    Raises:
        ScorerFailure: the call raised, or what it returned is not one number per element.
    """
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
