"""Inside the box: the cheapest path by which a scorer can be asked, and the embeddings it needs.

A dual encoder sees each image once per request and each text once per job; a scorer of texts sees
each image once with all that is asked about it; any other is asked pair by pair. Embeddings are
arrays of numpy, tensors of torch, or lists of lists; neither library is imported here: whoever
returned one of its arrays has imported it.
Only the standard library: this file is also bound into the box.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import calls
from .calls import (
    ScorerFailure,
    article,
    as_list,
    numbers,
    place_of,
    reporting,
    wrong_count,
)
from .wire_protocol import Capability, ErrorKind

Pairs = Sequence[tuple[int, str]]
"""Place of an image among those of the request, and a prompt."""


class ScoringPath:
    """Asks a scorer, and tells its author what is wrong with what comes back."""

    def __init__(self, scorer: Any, root: Path, texts: VectorCache | None = None) -> None:
        self._scorer = scorer
        self._root = root
        self._can = calls.capabilities(scorer)
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
        return calls.call_score(self._scorer, self._root, each, [prompt for _, prompt in pairs])

    def element_scores(
        self, images: list[Any], items: Sequence[tuple[int, str, Sequence[str]]]
    ) -> list[float]:
        """One float per element of each item, one after the other."""
        return calls.call_score_elements(
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
