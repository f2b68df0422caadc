"""Inside the box: the cheapest of the ways in which a scorer can be asked.

A dual encoder sees each image once per request and each text once per job; a scorer of texts sees
each image once with all that is asked about it; any other is asked pair by pair.
Only the standard library: this file is also bound into the box.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import calls, vectors
from .frames import Capability, ErrorKind
from .reporting import ScorerFailure, place_of, reporting
from .returned import as_list, numbers, wrong_count

Pairs = Sequence[tuple[int, str]]
"""Place of an image among those of the request, and a prompt."""


class CheapestWay:
    """Asks a scorer, and tells its author what is wrong with what comes back.

    Args:
        scorer: constructed.
        root: folder of the submission.
        texts: vectors of texts that were encoded before.
    """

    def __init__(self, scorer: Any, root: Path, texts: vectors.VectorCache | None = None) -> None:
        self._scorer = scorer
        self._root = root
        self._can = calls.capabilities(scorer)
        self._texts = vectors.VectorCache() if texts is None else texts

    def prepared(self, images: list[Any]) -> list[Any]:
        """Images as the scorer's other methods take them.

        Raises:
            ScorerFailure: `SCORER_RAISED` or `OUT_OF_MEMORY`.
        """
        if Capability.PREPARE not in self._can:
            return images
        with reporting(ErrorKind.SCORER_RAISED, self._root, "prepare"):
            return [self._scorer.prepare(image) for image in images]

    def scores(self, images: list[Any], pairs: Pairs) -> list[float]:
        """One float per pair; NaN where the scorer gave none.

        Args:
            images: prepared, each once.
            pairs: what is asked about them.

        Raises:
            ScorerFailure: a call raised, or what it returned is not what is due.
        """
        if Capability.ENCODE in self._can:
            return self._by_vectors(images, pairs)
        if Capability.SCORE_TEXTS in self._can:
            return self._by_texts(images, pairs)
        each = [images[place] for place, _ in pairs]
        return calls.call_score(self._scorer, self._root, each, [prompt for _, prompt in pairs])

    def element_scores(
        self, images: list[Any], items: Sequence[tuple[int, str, Sequence[str]]]
    ) -> list[float]:
        """One float per element of each item, one after the other.

        Raises:
            ScorerFailure: the call raised, or what it returned is not one number per element.
        """
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
                vectors.rows(of_images, [place for place, _ in pairs]), vectors.stacked(of_texts)
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
                found[prompt] = vectors.own_row(encoded, place)
                self._texts.put(prompt, found[prompt])
        self._check_widths(list(found.values()))
        return [found[prompt] for prompt in prompts]

    def _encoded(self, name: str, items: list[Any], of: str) -> Any:
        method = getattr(self._scorer, name)
        with reporting(ErrorKind.SCORER_RAISED, self._root, name):
            place = place_of(method, self._root)
            return vectors.checked(method(items), len(items), name, of, place)

    def _check_widths(self, rows: Sequence[Any]) -> None:
        widths = sorted({vectors.width(row) for row in rows})
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
