"""Ratings of a card: lists, rows and means, nested means, and what a table must not hold."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.families.rating import RatingAnswers, RatingBenchmark
from tests.benchmarks.families.cards import answers_as, board_of_rows
from tests.kit.refusals import refused

NAN = math.nan
Rows = Sequence[Mapping[str, Any]]
LISTS = {"r": {"from": "r", "type": "list_float"}}
TEXTS = {"r": {"from": "r", "type": "list_str"}}
CELLS = {"r": {"from": "r", "type": "float", "optional": True}, "who": "who"}


def benchmark(
    folder: Path, rows: Rows, gold: Mapping[str, Any], columns: Mapping[str, Any], **more: Any
) -> RatingBenchmark:
    """Rows with an image `i` of a prompt `p`, rated on facet `mean` from 1 to 5."""
    named = {"image": "i", "prompt": "p", "text": "p"} | dict(columns)
    keys = {"gold": {"mean": {"mean": None, **gold}}, **more}
    return board_of_rows(folder, RatingBenchmark, rows, named, keys)


answers = partial(answers_as, RatingAnswers)


def listed(*lists: Sequence[Any]) -> Rows:
    return [{"i": f"i{k}", "p": f"p{k % 2}", "r": list(one)} for k, one in enumerate(lists)]


@pytest.mark.parametrize(
    ("gold", "means"),
    [
        ({}, [4.5, 2.5, NAN]),
        ({"aggregate": "median", "min_raters": 2}, [4.5, 2.5, NAN]),
        ({"min_raters": 3}, [NAN, NAN, NAN]),
        ({"outside": "drop"}, [4.5, 2.5, NAN]),
    ],
)
def test_images_are_chosen_by_ratings_within_the_scale_and_the_others_are_counted(
    tmp_path: Path, gold: Mapping[str, Any], means: Sequence[float]
) -> None:
    gold = {"ratings": "r", "outside": "keep"} | dict(gold)
    one = benchmark(tmp_path, listed([5, 41, 4], [2, 3], [0]), gold, LISTS)
    images = one.rated_images(answers(one))
    assert images.means == pytest.approx(means, nan_ok=True) and images.n_outside == 2
    assert images.ratings[0] == pytest.approx([5, NAN, 4], nan_ok=True)
    kept = answers(one).facets["mean"]
    assert kept.within is not None and kept.within.means == pytest.approx(means, nan_ok=True)


def test_lists_rows_and_means_say_the_same(tmp_path: Path) -> None:
    ratings = [[1, 2, 5], [4], [3, 3]]
    long = [
        {"i": f"i{k}", "p": f"p{k}", "r": one, "who": f"w{n}"}
        for k, of in enumerate(ratings)
        for n, one in enumerate(of)
    ]
    means = [
        {"i": f"i{k}", "p": f"p{k}", "m": np.mean(one), "s": np.std(one, ddof=1) if one[1:] else 0}
        for k, one in enumerate(ratings)
    ]
    numbers = {name: {"from": name, "type": "float"} for name in "ms"}
    forms: list[tuple[Rows, dict[str, Any], dict[str, Any]]] = [
        (listed(*ratings), {"ratings": "r"}, LISTS),
        (long[::-1], {"rating": "r", "rater": "who"}, CELLS),
        (long[::-1], {"rating": "r"}, CELLS),
        (means, {"mean": "m", "sd": "s", "n": 3}, numbers),
    ]
    for number, (rows, gold, columns) in enumerate(forms):
        found = answers(benchmark(tmp_path / str(number), rows, gold, columns))
        by_image = dict(zip(found.pair_ids, found.means["mean"], strict=True))
        assert by_image == pytest.approx({"i0": 8 / 3, "i1": 4.0, "i2": 3.0})
        rated = found.facets["mean"]
        assert sorted(np.isfinite(rated.ratings).sum(axis=1)) == (
            [0, 0, 0] if "mean" in gold else [1, 2, 3]
        )
        assert (rated.n_raters, rated.deviations.size) == ((3, 3) if "mean" in gold else (0, 0))


@pytest.mark.parametrize(
    ("gold", "means", "counted"),
    [
        ({"outside": "keep"}, [(5 + 41 + 4) / 3, 2.5, 3.0, NAN], {"ratings": 8}),
        ({"outside": "drop"}, [4.5, 2.5, 3.0, NAN], {"ratings": 7}),
        ({"outside": "keep", "aggregate": "median"}, [5.0, 2.5, 3.0, NAN], {"ratings": 8}),
        ({"outside": "keep", "unsure": [41, 2]}, [4.5, 3.0, 3.5, NAN], {"no answers": 3}),
        (
            {"outside": "keep", "min_raters": 3},
            [50 / 3, NAN, 3.0, NAN],
            {"pairs with too few ratings": 1},
        ),
        ({"outside": "keep", "round": 1}, [16.7, 2.5, 3.0, NAN], {"ratings": 8}),
    ],
)
def test_what_becomes_of_odd_ratings_and_how_many_make_one(
    tmp_path: Path, gold: dict[str, Any], means: list[float], counted: dict[str, int]
) -> None:
    rows = listed([5, 41, 4], [2, 3], [2, 3, 4], [])
    found = answers(benchmark(tmp_path, rows, {"ratings": "r", **gold}, LISTS))
    np.testing.assert_allclose(found.means["mean"], means, equal_nan=True)
    counts = found.counts()
    assert {f"mean: {what}": n for what, n in counted.items()}.items() <= counts.items()
    if "unsure" not in gold:
        assert counts["mean: ratings outside the scale"] == 1


def test_words_may_mean_no_answer(tmp_path: Path) -> None:
    rows = listed(["1", "Unsure"], ["4", "3"])
    found = answers(benchmark(tmp_path, rows, {"ratings": "r", "unsure": ["Unsure"]}, TEXTS))
    assert found.means["mean"].tolist() == [1.0, 3.5]
    assert found.counts()["mean: no answers"] == 1


def nested_rows() -> list[dict[str, Any]]:
    random = np.random.default_rng(3)
    return [
        {"i": f"i{k}", "p": "p", "who": f"w{rater}", "unit": unit, "r": int(random.integers(1, 6))}
        for k in range(5)
        for rater in range(int(random.integers(1, 4)))
        for unit in range(int(random.integers(1, 5)))
    ]


@pytest.mark.parametrize("lists", [False, True])
def test_nested_means_average_units_within_raters_first(tmp_path: Path, lists: bool) -> None:
    rows = nested_rows()
    rows[0]["r"] = None
    frame = pd.DataFrame(rows)
    expected = frame.groupby(["i", "who"])["r"].mean().groupby("i").mean()
    gold: dict[str, Any] = {"aggregate": ["unit", "who"], "rating": "r"}
    columns: dict[str, Any] = {**CELLS, "unit": "unit"}
    if lists:
        frame["r"] = frame["r"].fillna(-1)
        together = frame.groupby("i")[["who", "unit", "r"]].agg(list).reset_index()
        rows = [
            {str(name): one for name, one in row.items()} | {"p": "p"}
            for row in together.to_dict("records")
        ]
        gold |= {"rating": "", "ratings": "r", "unsure": [-1]}
        columns = {name: {"from": name, "type": "list_str"} for name in ("who", "unit")} | LISTS
    found = answers(benchmark(tmp_path, rows, gold, columns))
    by_image = dict(zip(found.pair_ids, found.means["mean"], strict=True))
    assert by_image == pytest.approx(expected.to_dict())
    raters = frame.groupby("i")["who"].nunique().max()
    assert found.facets["mean"].ratings.shape == (5, raters)


@pytest.mark.parametrize(
    ("rows", "gold", "columns", "says"),
    [
        (listed([1, 6]), {"ratings": "r"}, LISTS, ("6", "column r", "data row 1", "from 1 to 5")),
        (listed(["1"], ["x"]), {"ratings": "r"}, TEXTS, ("'x'", "data row 2")),
        (
            [{"i": "a", "p": "p", "r": 1, "who": "w"}] * 2,
            {"rating": "r", "rater": "who"},
            CELLS,
            ("'a'", "who 'w'", "data row 2"),
        ),
        (
            [{"i": "a", "p": "p", "r": [1, 2], "u": ["x"]}],
            {"ratings": "r", "aggregate": ["u", "v"]},
            {**LISTS, "u": {"from": "u", "type": "list_str"}, "v": {"const": "v"}},
            ("unlike lengths", "data row 1"),
        ),
    ],
)
def test_wrong_ratings_are_named(
    tmp_path: Path, rows: Rows, gold: dict[str, Any], columns: dict[str, Any], says: tuple[str, ...]
) -> None:
    with refused("data_malformed", *says):
        answers(benchmark(tmp_path, rows, gold, columns))


def test_a_mean_stands_once(tmp_path: Path) -> None:
    rows = [{"i": "a", "p": "p", "m": 1}, {"i": "a", "p": "p", "m": 2}]
    columns = {"m": {"from": "m", "type": "float"}}
    one = benchmark(tmp_path, rows, {"mean": "m"}, columns, items={"pair": "", "shared": True})
    with refused("data_malformed", "'a'", "twice", "data row 2"):
        answers(one)


def test_a_row_is_one_image(tmp_path: Path) -> None:
    rows = [{"i": ["a", "b"], "p": "p", "r": [1]}]
    columns = {**LISTS, "image": {"from": "i", "type": "list_str"}}
    one = benchmark(tmp_path, rows, {"ratings": "r"}, columns, items={"pair": "", "shared": True})
    with refused("data_malformed", "several images"):
        answers(one)
