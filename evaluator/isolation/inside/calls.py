"""Inside the box: importing, constructing and calling a scorer, with errors made for its author.

A dual encoder sees each image once per request and each text once per job; a scorer of texts sees
each image once with all that is asked about it; any other is asked pair by pair. Embeddings are
arrays of numpy, tensors of torch, or lists of lists; neither library is imported here: whoever
returned one of its arrays has imported it.

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
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
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
    (Capability.SCORE, ("score",)),
    (Capability.COMPARE, ("compare",)),
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
    if not any(callable(getattr(scorer, name, None)) for name in ("score", "compare")):
        place = _place_of_class(scorer, root)
        raise ScorerFailure(
            ErrorKind.IMPORT_FAILED, f"Class {class_name} has no method score or compare{place}"
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
    """What the scorer can do."""
    found = Capability(0)
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


def call_score_rows(
    scorer: Any, root: Path, images: list[Any], prompts: list[str], outputs: int
) -> list[float]:
    """So many floats per pair, one pair after the other; NaN where the scorer gave none."""
    with reporting(ErrorKind.SCORER_RAISED, root, "score"):
        returned = scorer.score(images, prompts)
        place = place_of(scorer.score, root)
        rows = as_list(returned, "score", place)
        if len(rows) != len(prompts):
            raise wrong_count("score", len(rows), len(prompts), "pairs", place)
        return [
            number
            for position, row in enumerate(rows)
            for number in _row(row, outputs, f"score for pair {position}", place)
        ]


def _row(row: Any, outputs: int, what: str, place: str) -> list[float]:
    if row is None:
        return [math.nan] * outputs
    listed = _unwrapped(row)
    if isinstance(listed, (list, tuple)):
        return numbers(listed, outputs, what, place, of="outputs")
    raise ScorerFailure(
        ErrorKind.WRONG_TYPE,
        f"{what} returned {article(row)}, not a row of {outputs} numbers, one for each of the "
        f"outputs that assay.toml names{place}",
    )


def call_compare(
    scorer: Any, root: Path, prompts: list[str], images_a: list[Any], images_b: list[Any]
) -> list[float]:
    """One margin per comparison, positive where the first image is better; NaN where there is none."""
    with reporting(ErrorKind.SCORER_RAISED, root, "compare"):
        returned = scorer.compare(prompts, images_a, images_b)
        return numbers(
            returned, len(prompts), "compare", place_of(scorer.compare, root), of="comparisons"
        )


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


Pairs = Sequence[tuple[int, str]]
"""Place of an image among those of the request, and a prompt."""


class ScoringPath:
    """Asks a scorer, and tells its author what is wrong with what comes back."""

    def __init__(self, scorer: Any, root: Path, texts: VectorCache | None = None) -> None:
        self._scorer = scorer
        self._root = root
        self._can = capabilities(scorer)
        self._texts = VectorCache() if texts is None else texts

    def prepared(self, images: list[Any]) -> list[Any]:
        """Images as the scorer's other methods take them."""
        if Capability.PREPARE not in self._can:
            return images
        with reporting(ErrorKind.SCORER_RAISED, self._root, "prepare"):
            return [self._scorer.prepare(image) for image in images]

    def scores(self, images: list[Any], pairs: Pairs) -> list[float]:
        """One float per pair; NaN where the scorer gave none."""
        if Capability.ENCODE in self._can:
            return self._by_vectors(images, pairs)
        if Capability.SCORE_TEXTS in self._can:
            return self._by_texts(images, pairs)
        each = [images[place] for place, _ in pairs]
        return call_score(self._scorer, self._root, each, [prompt for _, prompt in pairs])

    def rows(self, images: list[Any], pairs: Pairs, outputs: int) -> list[float]:
        """So many floats per pair, one pair after the other; by `score`, whatever else there is."""
        each = [images[place] for place, _ in pairs]
        prompts = [prompt for _, prompt in pairs]
        return call_score_rows(self._scorer, self._root, each, prompts, outputs)

    def margins(
        self, images: list[Any], comparisons: Sequence[tuple[int, int, str]]
    ) -> list[float]:
        """One margin per comparison; NaN where the scorer gave none."""
        return call_compare(
            self._scorer,
            self._root,
            [prompt for _, _, prompt in comparisons],
            [images[first] for first, _, _ in comparisons],
            [images[second] for _, second, _ in comparisons],
        )

    def element_scores(
        self, images: list[Any], items: Sequence[tuple[int, str, Sequence[str]]]
    ) -> list[float]:
        """One float per element of each item, one after the other."""
        return call_score_elements(
            self._scorer,
            self._root,
            [images[place] for place, _, _ in items],
            [prompt for _, prompt, _ in items],
            [list(elements) for _, _, elements in items],
        )

    def _by_vectors(self, images: list[Any], pairs: Pairs) -> list[float]:
        if not pairs:
            return []
        of_images = self._encoded("encode_images", images, "images")
        of_texts = self._text_vectors([prompt for _, prompt in pairs])
        with reporting(ErrorKind.SCORER_RAISED, self._root, "similarity"):
            returned = self._scorer.similarity(
                rows(of_images, [place for place, _ in pairs]), stacked(of_texts)
            )
            place = place_of(self._scorer.similarity, self._root)
            _refuse_a_table(returned, len(pairs), place)
            return numbers(returned, len(pairs), "similarity", place)

    def _text_vectors(self, prompts: Sequence[str]) -> list[Any]:
        """The vector of each prompt; what is not kept from earlier is encoded, each text once."""
        found = {prompt: self._texts.get(prompt) for prompt in prompts}
        missing = [prompt for prompt, row in found.items() if row is None]
        if missing:
            encoded = self._encoded("encode_texts", missing, "texts")
            for place, prompt in enumerate(missing):
                found[prompt] = own_row(encoded, place)
                self._texts.put(prompt, found[prompt])
        self._check_widths(list(found.values()))
        return [found[prompt] for prompt in prompts]

    def _encoded(self, name: str, items: list[Any], of: str) -> Any:
        method = getattr(self._scorer, name)
        with reporting(ErrorKind.SCORER_RAISED, self._root, name):
            place = place_of(method, self._root)
            return checked(method(items), len(items), name, of, place)

    def _check_widths(self, rows: Sequence[Any]) -> None:
        widths = sorted({width(row) for row in rows})
        if len(widths) > 1:
            place = place_of(self._scorer.encode_texts, self._root)
            raise ScorerFailure(
                ErrorKind.WRONG_TYPE,
                f"encode_texts returned vectors of {widths[0]} and of {widths[1]} numbers{place}",
            )

    def _by_texts(self, images: list[Any], pairs: Pairs) -> list[float]:
        asked: list[list[int]] = [[] for _ in images]
        for position, (image, _) in enumerate(pairs):
            asked[image].append(position)
        prompts = [[pairs[position][1] for position in row] for row in asked]
        with reporting(ErrorKind.SCORER_RAISED, self._root, "score_texts"):
            returned = self._scorer.score_texts(images, prompts)
            place = place_of(self._scorer.score_texts, self._root)
            rows = as_list(returned, "score_texts", place)
            if len(rows) != len(images):
                raise wrong_count("score_texts", len(rows), len(images), "images", place)
            scores = [0.0] * len(pairs)
            for number, (row, positions) in enumerate(zip(rows, asked, strict=True)):
                what = f"score_texts for image {number}"
                values = numbers(row, len(positions), what, place, of="prompts")
                for position, value in zip(positions, values, strict=True):
                    scores[position] = value
        return scores


def _refuse_a_table(returned: Any, wanted: int, place: str) -> None:
    shape = getattr(returned, "shape", None)
    if isinstance(shape, tuple) and len(shape) > 1:
        raise ScorerFailure(
            ErrorKind.WRONG_TYPE,
            f"similarity returned an array of shape {tuple(shape)}, not one number for each of "
            f"{wanted} rows, shape ({wanted},): row i of the images belongs to row i of the "
            f"texts{place}",
        )


_STACKABLE = {"numpy", "torch"}
_FLOAT_BYTES = 32  # of a Python float in a list, its place in the list included


class VectorCache:
    """The vectors of the texts asked last, so that each is encoded once while there is room."""

    def __init__(self, most_texts: int = 100_000, most_bytes: int = 1 << 30) -> None:
        self._most_texts = most_texts
        self._most_bytes = most_bytes
        self._bytes = 0
        self._rows: OrderedDict[str, Any] = OrderedDict()

    def __len__(self) -> int:
        return len(self._rows)

    def get(self, text: str) -> Any:
        """The vector of a text, or None."""
        row = self._rows.get(text)
        if row is not None:
            self._rows.move_to_end(text)
        return row

    def put(self, text: str, row: Any) -> None:
        """Keep a vector; the ones not asked for longest go."""
        if text in self._rows:
            self._bytes -= _bytes_of(self._rows.pop(text))
        self._rows[text] = row
        self._bytes += _bytes_of(row)
        while self._rows and (len(self._rows) > self._most_texts or self._bytes > self._most_bytes):
            _, oldest = self._rows.popitem(last=False)
            self._bytes -= _bytes_of(oldest)


def checked(returned: Any, wanted: int, what: str, of: str, place: str) -> Any:
    """Embeddings as a method returned them, if there is one row per item."""
    due = f"one vector for each of {wanted} {of}, shape ({wanted}, d)"
    if _library(returned) in _STACKABLE and hasattr(returned, "shape"):
        shape = tuple(returned.shape)
        if len(shape) == 2 and shape[0] == wanted:
            return returned
        kind = ErrorKind.WRONG_COUNT if len(shape) == 2 else ErrorKind.WRONG_TYPE
        raise ScorerFailure(kind, f"{what} returned an array of shape {shape}, not {due}{place}")
    if isinstance(returned, (list, tuple)):
        if len(returned) == wanted:
            return returned
        raise ScorerFailure(
            ErrorKind.WRONG_COUNT, f"{what} returned {len(returned)} vectors, not {due}{place}"
        )
    raise ScorerFailure(
        ErrorKind.WRONG_TYPE, f"{what} returned {article(returned)}, not {due}{place}"
    )


def rows(vectors: Any, places: Sequence[int]) -> Any:
    """These rows, of the same kind."""
    if isinstance(vectors, (list, tuple)):
        return [vectors[place] for place in places]
    return vectors[list(places)]


def own_row(vectors: Any, place: int) -> Any:
    """One row that does not keep the others in memory."""
    row = vectors[place]
    for name in ("copy", "clone"):  # of numpy, and of torch
        if callable(getattr(row, name, None)):
            return getattr(row, name)()
    return row


def stacked(found: Sequence[Any]) -> Any:
    """Rows as one array of their own kind."""
    library = _library(found[0])
    return sys.modules[library].stack(list(found)) if library in _STACKABLE else list(found)


def width(row: Any) -> int:
    """Numbers in one vector."""
    return len(row) if hasattr(row, "__len__") else 0


def _library(value: Any) -> str:
    return type(value).__module__.partition(".")[0]


def _bytes_of(row: Any) -> int:
    n_bytes = getattr(row, "nbytes", None)
    return n_bytes if isinstance(n_bytes, int) else _FLOAT_BYTES * width(row)
