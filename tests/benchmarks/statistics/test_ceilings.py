"""Ceilings from votes and from means with standard deviations."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest

from benchmarks.registry import BUILT_IN
from benchmarks.statistics.raters import mean_ceilings, votes_ceiling


def by_hand(a: int, b: int) -> float:
    """Each voter in turn against the majority of the others, one vote after the other."""
    votes = [1] * a + [-1] * b
    found = []
    for vote in votes:
        others = sum(votes) - vote
        found.append(0.5 if others == 0 else float(np.sign(others) == vote))
    return sum(found) / len(found)


@pytest.mark.parametrize("votes", list(itertools.product(range(6), repeat=2)))
def test_a_voter_is_compared_with_the_majority_of_the_others(votes: tuple[int, int]) -> None:
    found = votes_ceiling([votes])
    if sum(votes) < 2:
        assert math.isnan(found)
    else:
        assert found == pytest.approx(by_hand(*votes), abs=1e-12)


def test_a_comparison_with_one_vote_says_nothing() -> None:
    assert votes_ceiling([(1, 0), (3, 0), (0, 0)]) == 1.0


def test_means_with_deviations_tell_what_single_ratings_would() -> None:
    random = np.random.default_rng(3)
    truth = random.normal(size=20_000)
    ratings = truth[:, None] + random.normal(scale=1.5, size=(truth.size, 9))
    means, deviations = ratings.mean(axis=1), ratings.std(axis=1, ddof=1)
    one, perfect = mean_ceilings(means, deviations, 9)
    others = ratings[:, 1:].mean(axis=1)
    assert one == pytest.approx(np.corrcoef(ratings[:, 0], others)[0, 1], abs=0.02)
    assert perfect == pytest.approx(np.corrcoef(truth, means)[0, 1], abs=0.01)
    assert all(map(math.isnan, mean_ceilings(ratings[:, 0] * 0, deviations, 9)))
    with pytest.raises(ValueError, match="no others"):
        mean_ceilings(means, deviations, 1)


@pytest.mark.parametrize(("facet", "one"), [("align", 0.768), ("quality", 0.832)])
def test_one_rater_of_agiqa_3k(facet: str, one: float) -> None:
    table = pd.read_csv(BUILT_IN / "agiqa3k" / "data.csv")
    found, _ = mean_ceilings(table[f"mos_{facet}"], table[f"std_{facet}"], 21)
    assert found == pytest.approx(one, abs=5e-4)
