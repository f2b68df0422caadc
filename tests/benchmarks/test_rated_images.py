"""Rated images: their file, which are chosen among, and what is gained."""

from __future__ import annotations

import io
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from benchmarks.errors import PlatformError
from benchmarks.rated_images import MOST, RatedImages, RaterNumbers, ratings_path
from benchmarks.statistics.best_of_n import expected_gains, gains_between_raters

NAN = math.nan


def images(*numbers: int, raters: int = 2) -> RatedImages:
    """Prompts with so many images each, in turns; two prompts are a cluster."""
    rng = np.random.default_rng(len(numbers))
    of = [prompt for k in range(max(numbers)) for prompt, n in enumerate(numbers) if k < n]
    means = rng.standard_normal(len(of))
    return RatedImages(
        choices=[f"p{prompt}" for prompt in of],
        clusters=[f"c{prompt // 2}" for prompt in of],
        pair_ids=[f"i{k}" for k in range(len(of))],
        means=means,
        ratings=means[:, None] + rng.standard_normal((len(of), raters)),
    )


def test_a_file_gives_back_what_was_written_and_is_the_same_each_time() -> None:
    given = images(3, 2, 4)
    given.means[1] = given.ratings[0, 0] = NAN
    given = replace(given, n_outside=2)
    again = RatedImages.from_bytes(given.to_bytes())
    assert (again.choices, again.clusters, again.pair_ids) == (
        given.choices, given.clusters, given.pair_ids,
    )  # fmt: skip
    assert again.means == pytest.approx(given.means, nan_ok=True)
    assert again.ratings[0].tolist() == pytest.approx([given.ratings[0, 1], NAN], nan_ok=True)
    assert again.ratings[1:] == pytest.approx(given.ratings[1:])
    assert again.to_bytes() == given.to_bytes() and again.n_outside == 2
    assert ratings_path("toy", "r1") == "ratings/toy/r1.parquet"
    none = RatedImages([], [], [], np.empty(0), np.empty((0, 3)))
    assert RatedImages.from_bytes(none.to_bytes()).ratings.shape == (0, 0)


def test_a_file_with_other_columns_is_refused() -> None:
    buffer = io.BytesIO()
    pd.DataFrame({"pair_id": ["a"]}).to_parquet(buffer)
    with pytest.raises(PlatformError) as error:
        RatedImages.from_bytes(buffer.getvalue())
    assert error.value.code == "bad_ratings"


@pytest.mark.parametrize(
    ("numbers", "largest", "few"),
    [
        ((4, 4, 4), 4, 0),
        ((2, 5, 9), 5, 1),  # half of the prompts have five
        ((2, 2, 9, 9), 9, 2),
        ((2, 2, 2, 9), 2, 0),
        ((1, 1, 1, 3), 3, 0),  # nothing is chosen from one image
        ((40, 40), MOST, 0),
    ],
)
def test_sizes_reach_as_far_as_half_of_the_choices_do(
    numbers: tuple[int, ...], largest: int, few: int
) -> None:
    found = images(*numbers)
    assert found.sizes == tuple(range(1, largest + 1)) and found.n_few == few
    assert len(found.cluster_of) == sum(n > 1 for n in numbers) - few
    assert found.gains(found.means).shape == (len(found.cluster_of), largest)


def test_gains_are_those_of_each_prompt_in_mean_ratings_and_missing_scores_are_seen() -> None:
    found = images(3, 5, 3, 4)
    scores = np.random.default_rng(0).standard_normal(len(found.means))
    by_prompt = {
        prompt: [k for k, one in enumerate(found.choices) if one == prompt]
        for prompt in dict.fromkeys(found.choices)
    }
    kept = [lines for lines in by_prompt.values() if len(lines) >= 4]
    expected = [
        expected_gains(scores[[lines]], found.means[[lines]], found.sizes)[0] for lines in kept
    ]
    assert found.gains(scores) == pytest.approx(np.array(expected))
    variances = [found.means[lines].var(ddof=1) for lines in kept]
    assert found.spread == pytest.approx(math.sqrt(np.mean(variances)))
    assert [found.cluster_names[place] for place in found.cluster_of] == ["c0", "c1"]
    scores[by_prompt["p1"][0]] = NAN
    assert np.isnan(found.gains(scores)).all(axis=1).sum() == 1
    people = [gains_between_raters(found.ratings[[lines]], found.sizes)[0] for lines in kept]
    assert found.gains_of_people == pytest.approx(np.array(people))


def test_an_unrated_image_is_none_to_choose_and_one_image_no_choice() -> None:
    found = images(3, 3)
    found.means[found.choices.index("p0")] = NAN
    assert found.sizes == (1, 2, 3) and found.n_few == 1
    alone = images(1, 1)
    assert alone.sizes == () and alone.n_few == 0 and math.isnan(alone.spread)
    assert alone.gains(alone.means).shape == alone.gains_of_people.shape == (0, 0)


def test_raters_are_counted_where_every_image_of_a_choice_has_two() -> None:
    found = images(3, 3, 3, raters=5)
    assert found.rater_numbers == RaterNumbers(5, 5, 5) and RaterNumbers(5, 5, 5).choosing == 2
    places = {name: found.choices.index(name) for name in ("p0", "p1")}
    found.ratings[places["p0"], 1:] = NAN  # leaves its choice out
    found.ratings[places["p1"], 3:] = NAN
    assert replace(found).rater_numbers == RaterNumbers(3, 5, 5)
    assert images(3, raters=0).rater_numbers is images(1, raters=3).rater_numbers is None


def test_without_single_ratings_nobody_knows_what_people_gain() -> None:
    found = images(3, 3, raters=0)
    assert np.isnan(found.gains_of_people).all() and found.gains_of_people.shape == (2, 3)
