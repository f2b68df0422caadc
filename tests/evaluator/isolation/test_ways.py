"""The cheapest way to ask a scorer: the same scores whichever it is, and clear errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.isolation.inside import calls
from evaluator.isolation.inside.calls import Pairs, ScorerFailure, ScoringPath, VectorCache
from evaluator.isolation.inside.wire_protocol import Capability, ErrorKind

ROOT = Path(__file__).parent
PAIRS = st.lists(st.tuples(st.integers(0, 3), st.sampled_from("abcdef")), max_size=12)
IMAGES = [3, 5, 7, 11]
Make = Callable[[Any], Any]


class PairByPair:
    """Images are numbers here, and texts letters."""

    def __init__(self) -> None:
        self.pairs = 0

    def score(self, images: Sequence[float], prompts: Sequence[str]) -> list[float]:
        self.pairs += len(prompts)
        return [float(i * ord(p)) for i, p in zip(images, prompts, strict=True)]


class Shares(PairByPair):
    def __init__(self) -> None:
        super().__init__()
        self.images = 0

    def score_texts(
        self, images: Sequence[float], prompts: Sequence[Sequence[str]]
    ) -> list[list[float]]:
        self.images += len(images)
        return [[float(i * ord(p)) for p in row] for i, row in zip(images, prompts, strict=True)]


class Encodes(Shares):
    """As numpy, torch, or lists, by what `make` makes."""

    def __init__(self, make: Make = np.array) -> None:
        super().__init__()
        self.make = make
        self.encoded_images = 0
        self.encoded_texts: list[str] = []

    def encode_images(self, images: Sequence[float]) -> Any:
        self.encoded_images += len(images)
        return self.make([[float(i), 0.0] for i in images])

    def encode_texts(self, prompts: Sequence[str]) -> Any:
        self.encoded_texts += prompts
        return self.make([[float(ord(p)), 1.0] for p in prompts])

    def similarity(self, image_vectors: Any, text_vectors: Any) -> Any:
        assert type(image_vectors) is type(text_vectors) is type(self.make([[0.0]]))
        if isinstance(image_vectors, list):
            return [i[0] * t[0] for i, t in zip(image_vectors, text_vectors, strict=True)]
        return (image_vectors * text_vectors).sum(1)


class Prepares(Encodes):
    """Given images as text, prepares them as numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.prepared = 0

    def prepare(self, image: str) -> float:
        self.prepared += 1
        return float(image)

    def compare(self, prompts: Any, images_a: Any, images_b: Any) -> list[float]:
        return [a - b for a, b in zip(images_a, images_b, strict=True)]

    def score_elements(self, images: Any, prompts: Any, elements: Any) -> list[list[float]]:
        return [[i * len(e) for e in row] for i, row in zip(images, elements, strict=True)]


def ask(scorer: Any, pairs: Pairs, images: Sequence[Any] = IMAGES) -> list[float]:
    way = ScoringPath(scorer, ROOT)
    return way.scores(way.prepared(list(images)), pairs)


@given(PAIRS)
def test_whichever_way_is_taken_a_pair_gets_the_same_score(pairs: list[tuple[int, str]]) -> None:
    import torch

    expected = ask(PairByPair(), pairs)
    assert ask(Shares(), pairs) == expected
    for make in (np.array, torch.tensor, list):
        assert ask(Encodes(make), pairs) == expected
    assert ask(Prepares(), pairs, [str(image) for image in IMAGES]) == expected


def test_two_images_are_compared_as_they_were_prepared() -> None:
    way = ScoringPath(Prepares(), ROOT)
    images = way.prepared(["3", "5"])
    assert way.margins(images, [(0, 1, "a"), (1, 0, "a")]) == [-2.0, 2.0]
    short = type("Short", (), {"compare": lambda *_: [1.0]})()
    with pytest.raises(calls.ScorerFailure) as caught:
        ScoringPath(short, ROOT).margins(images, [(0, 1, "a"), (1, 0, "a")])
    assert caught.value.kind is ErrorKind.WRONG_COUNT


def test_what_a_scorer_can_do_is_found_by_its_methods() -> None:
    assert calls.capabilities(PairByPair()) == Capability.SCORE
    assert calls.capabilities(Shares()) == Capability.SCORE | Capability.SCORE_TEXTS
    assert Capability.ENCODE in calls.capabilities(Encodes())
    assert calls.capabilities(Prepares()) == sum(Capability, Capability(0))
    half = Encodes()
    half.similarity = None  # type: ignore[assignment, method-assign]
    assert Capability.ENCODE not in calls.capabilities(half)


def test_an_encoder_sees_each_image_once_a_request_and_each_text_once_a_job() -> None:
    scorer = Encodes()
    way = ScoringPath(scorer, ROOT)
    way.scores([3, 5], [(0, "a"), (0, "b"), (1, "a")])
    way.scores([7], [(0, "b"), (0, "c"), (0, "a")])
    assert scorer.encoded_images == 3
    assert scorer.encoded_texts == ["a", "b", "c"]
    assert scorer.pairs == scorer.images == 0


def test_a_scorer_of_texts_sees_each_image_once() -> None:
    scorer = Shares()
    ask(scorer, [(0, "a"), (1, "a"), (0, "b")], IMAGES[:2])
    assert (scorer.images, scorer.pairs) == (2, 0)


def test_an_image_is_prepared_once_for_all_methods() -> None:
    scorer = Prepares()
    way = ScoringPath(scorer, ROOT)
    images = way.prepared(["3", "5"])
    assert way.scores(images, [(0, "a"), (1, "b")]) == [3.0 * 97, 5.0 * 98]
    assert way.element_scores(images, [(1, "a", ["x", "yy"])]) == [5.0, 10.0]
    assert scorer.prepared == 2


def test_texts_that_do_not_fit_are_encoded_again_and_scored_the_same() -> None:
    scorer = Encodes()
    way = ScoringPath(scorer, ROOT, VectorCache(most_texts=2))
    pairs = [(0, letter) for letter in "abcabc"]
    assert way.scores([3], pairs) == ask(PairByPair(), pairs, [3])
    assert way.scores([3], pairs) == ask(PairByPair(), pairs, [3])
    assert scorer.encoded_texts == list("abca")  # b and c were asked last


def test_kept_vectors_stay_within_their_memory() -> None:
    cache = VectorCache(most_bytes=100)
    table = np.zeros((50, 5))
    for n in range(50):
        cache.put(str(n), table[n].copy())
        cache.put(str(n), table[n].copy())
    assert len(cache) == 2
    assert cache.get("0") is None
    assert cache.get("49") is not None


def _torch_zeros(*shape: int) -> Any:
    import torch

    return torch.zeros(*shape)


@pytest.mark.parametrize(
    ("method", "returned", "kind", "said"),
    [
        ("encode_images", lambda: np.zeros(4), ErrorKind.WRONG_TYPE, r"of shape \(4,\), not one vector"),
        ("encode_images", lambda: np.zeros((3, 4)), ErrorKind.WRONG_COUNT, r"shape \(2, d\) \(test"),
        ("encode_texts", lambda: _torch_zeros(1, 4), ErrorKind.WRONG_COUNT, r"each of 2 texts"),
        ("encode_texts", lambda: [[1.0]], ErrorKind.WRONG_COUNT, "returned 1 vectors"),
        ("encode_texts", lambda: "ab", ErrorKind.WRONG_TYPE, "encode_texts returned a str"),
        ("encode_texts", lambda: [[1.0], [1.0, 2.0]], ErrorKind.WRONG_TYPE, "of 1 and of 2 numbers"),
        ("similarity", lambda: np.zeros((2, 2)), ErrorKind.WRONG_TYPE, r"array of shape \(2, 2\)"),
        ("similarity", lambda: [1.0], ErrorKind.WRONG_COUNT, "similarity returned 1 values"),
        ("similarity", lambda: [1.0, np.inf], ErrorKind.NOT_FINITE, "at position 1"),
        ("similarity", lambda: 1 / 0, ErrorKind.SCORER_RAISED, r"similarity raised Zero.*\(test"),
        ("encode_images", lambda: 1 / 0, ErrorKind.SCORER_RAISED, "encode_images raised Zero"),
    ],
)  # fmt: skip
def test_what_an_encoder_may_not_return_is_told_by_method_and_place(
    method: str, returned: Callable[[], Any], kind: ErrorKind, said: str
) -> None:
    scorer = Encodes()
    setattr(scorer, method, lambda *_: returned())
    with pytest.raises(ScorerFailure, match=said) as caught:
        ask(scorer, [(0, "a"), (1, "b")], IMAGES[:2])
    assert caught.value.kind == kind
    assert method in caught.value.text


@pytest.mark.parametrize(
    ("returned", "kind", "said"),
    [
        (lambda: [[1.0]], ErrorKind.WRONG_COUNT, "score_texts returned 1 values for 2 images"),
        (lambda: [[1.0], []], ErrorKind.WRONG_COUNT, "score_texts for image 1 returned 0 values"),
        (lambda: [1.0, 2.0], ErrorKind.WRONG_TYPE, "score_texts for image 0 returned a float"),
        (lambda: 1 / 0, ErrorKind.SCORER_RAISED, "score_texts raised ZeroDivisionError"),
    ],
)
def test_what_score_texts_may_not_return_is_told(
    returned: Callable[[], Any], kind: ErrorKind, said: str
) -> None:
    scorer = Shares()
    scorer.score_texts = lambda *_: returned()  # type: ignore[method-assign]
    with pytest.raises(ScorerFailure, match=said) as caught:
        ask(scorer, [(0, "a"), (1, "b")], IMAGES[:2])
    assert caught.value.kind == kind


def test_an_image_that_cannot_be_prepared_is_told() -> None:
    with pytest.raises(ScorerFailure, match="prepare raised ValueError"):
        ask(Prepares(), [(0, "a")], ["no number"])


def test_no_score_may_come_any_way() -> None:
    shares, encodes = Shares(), Encodes()
    shares.score_texts = lambda *_: [[None]]  # type: ignore[method-assign]
    encodes.similarity = lambda *_: np.array([np.nan])  # type: ignore[method-assign]
    assert np.isnan(ask(shares, [(0, "a")], [1])).all()
    assert np.isnan(ask(encodes, [(0, "a")], [1])).all()
