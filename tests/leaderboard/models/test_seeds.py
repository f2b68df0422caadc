"""Models over their seeds, and whether their order holds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.statistics.seeds import seed_stability
from leaderboard.models.board_types import BoardQuery
from leaderboard.models.seeds import seed_report
from tests.leaderboard.models.made_up_models import World, prompt_set, prompts_of, trusting

VQA = "vqa/vqa"
QUERY = BoardQuery("drawn")


def world(n: int = 40) -> World:
    return World(prompt_set(prompts_of(n)), trusting(VQA))


def test_far_models_are_stable_and_near_ones_are_not() -> None:
    rng = np.random.default_rng(1)
    far, near = world(), world()
    for i in range(4):
        noise = 0.1 * rng.standard_normal((3, 40))
        far.add(f"m{i}", {VQA: i + noise})
        near.add(f"m{i}", {VQA: noise})
    one = seed_report(far.reader, far.view, QUERY).judges[0].stability
    other = seed_report(near.reader, near.view, QUERY).judges[0].stability
    assert one is not None and other is not None
    assert one.over_seeds.stable and one.over_seeds.tau_mean == 1.0
    assert not other.over_seeds.stable and other.over_seeds.swapped > 0


def test_the_kth_seed_of_each_model_is_compared_and_one_seed_is_none() -> None:
    rng = np.random.default_rng(2)
    made = world()
    scores = [rng.uniform(size=(n, 40)) for n in (2, 3, 1)]
    ids = [made.add(name, {VQA: of}) for name, of in zip("abc", scores, strict=True)]
    report = seed_report(made.reader, made.view, QUERY)
    (judge,) = report.judges
    assert judge.stability is not None and judge.stability.models == tuple(ids[:2])
    expected = seed_stability(np.array([[of[k].mean() for of in scores[:2]] for k in range(2)]))
    assert judge.stability.over_seeds == expected
    assert "1 model has more" in judge.note
    assert report.one_seed == (ids[2],)
    assert len(judge.scores) == 4


def test_variation_is_of_all_seeds_of_a_model() -> None:
    rng = np.random.default_rng(3)
    made = world()
    scores = rng.uniform(size=(4, 40))
    made.add("a", {VQA: scores})
    (one,) = seed_report(made.reader, made.view, QUERY).judges[0].variation
    assert one.means == pytest.approx(tuple(scores.mean(axis=1)))
    assert one.spread == pytest.approx(scores.mean(axis=1).std(ddof=1))
    assert one.within == pytest.approx(math.sqrt(scores.var(axis=0, ddof=1).mean()))
    assert one.between == pytest.approx(scores.mean(axis=0).std(ddof=1))


def test_alone_or_without_prompts_there_is_nothing_to_compare() -> None:
    made = world()
    made.add("a", {VQA: np.random.default_rng(4).uniform(size=(2, 40))})
    assert seed_report(made.reader, made.view, QUERY).judges[0].stability is None
    nothing = seed_report(made.reader, made.view, BoardQuery("drawn", words="unicorn"))
    assert nothing.n_prompts == 0 and nothing.judges[0].stability is None
    assert math.isnan(nothing.judges[0].variation[0].spread)


def test_a_skill_takes_its_prompts_only() -> None:
    made = world()
    scores = np.random.default_rng(5).uniform(size=(2, 40))
    made.add("a", {VQA: scores})
    report = seed_report(made.reader, made.view, BoardQuery("drawn", skills=("color",)))
    assert report.n_prompts == 20
    assert report.judges[0].variation[0].means == pytest.approx(tuple(scores[:, 1::2].mean(axis=1)))
