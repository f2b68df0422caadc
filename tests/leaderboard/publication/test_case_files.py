"""What is published beside the boards: the cases of a benchmark, and the hash of scores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.cases import cases_path, image_cases, read_cases
from benchmarks.rated_images import RatedImages, ratings_path
from benchmarks.schema import Answers
from leaderboard.publication.item_scores import CaseFiles
from leaderboard.publication.results import scores_sha256
from tests.kit.store import memory_store
from tests.kit.toy import PAIRS, Toy


class Looked(Toy):
    """The toy with cases."""

    def __init__(self, *, public: bool = True, none: bool = False) -> None:
        self.card = Toy.card.model_copy(update={"answers_public": public})
        self.none = none
        self.made = 0

    def cases(self, answers: Any, data: Path | None) -> pd.DataFrame | None:
        assert isinstance(answers, Answers)
        self.made += 1
        if self.none:
            return None
        expected = np.arange(len(PAIRS), dtype=np.float64)
        return image_cases(PAIRS, ["p"] * 3, expected, ["said"] * 3, texts={"p": "a pixel"})


def test_a_store_without_cases_gets_them_once_also_where_a_commit_loses_its_race() -> None:
    public, toy, path = memory_store().public, Looked(), cases_path("toy", "1")
    files = CaseFiles({"toy": toy}, None)
    found = files.missing(public, ["toy", "toy"])
    assert list(found) == [path]
    assert read_cases(found[path])["pair_id"].tolist() == list(PAIRS)
    assert (files.missing(public, ["toy"]), toy.made) == (found, 1)
    public.commit(found, parent=public.head(), message="cases")
    assert files.missing(public, ["toy"]) == {}
    assert CaseFiles({"toy": Looked()}, None).missing(public, ["toy"]) == {}


@pytest.mark.parametrize(("public", "n_images"), [(False, 3), (True, 3), (True, 1)])
def test_rated_images_are_published_where_answers_are_public_and_there_is_a_choice(
    public: bool, n_images: int
) -> None:
    class Rated(Looked):
        def rated_images(self, answers: Any) -> RatedImages:
            means = np.arange(n_images, dtype=np.float64)
            names = ["p"] * n_images
            return RatedImages(names, names, PAIRS[:n_images], means, means[:, None])

    files = CaseFiles({"toy": Rated(public=public, none=True)}, None)
    found = files.missing(memory_store().public, ["toy"])
    assert list(found) == ([ratings_path("toy", "1")] if public and n_images > 1 else [])
    for content in found.values():
        assert RatedImages.from_bytes(content).pair_ids == list(PAIRS)


@pytest.mark.parametrize(("public", "made"), [(False, 0), (True, 1)])
def test_withheld_answers_and_no_cases_have_no_file(public: bool, made: int) -> None:
    toy = Looked(public=public, none=True)
    assert CaseFiles({"toy": toy}, None).missing(memory_store().public, ["toy"]) == {}
    assert toy.made == made


def _of(**scores: float) -> str:
    return scores_sha256(pd.Series(scores, dtype="float64"))


NAN = float("nan")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 0.1, "b": 0.2}, {"b": 0.2, "a": 0.1}),
        ({"a": NAN}, {"a": NAN}),
        # Beyond six digits.
        *(({"a": x}, {"a": y}) for x, y in ((0.1234564, 0.1234561), (1e30, 1.0000001e30))),
        ({"a": 0.0}, {"a": -0.0}),
    ],
)
def test_scores_that_are_the_same_have_the_same_hash(one: Any, other: Any) -> None:
    assert _of(**one) == _of(**other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 0.1, "b": 0.2}, {"a": 0.2, "b": 0.1}),
        ({"a": 0.1}, {"b": 0.1}),
        ({"a": NAN}, {"a": 0.0}),
        ({"a": NAN}, {}),
        # Within six digits.
        *(({"a": x}, {"a": y}) for x, y in ((0.123456, 0.123457), (1e-9, 2e-9), (1.0, -1.0))),
        # Ids cannot run into each other.
        ({"a:1.00000e+00\n1:b": 2.0}, {"a": 1.0, "b": 2.0}),
    ],
)
def test_scores_that_differ_have_another_hash(one: Any, other: Any) -> None:
    assert _of(**one) != _of(**other)
