"""Models on a slice: means, intervals, tests, what metrics say together, and rated models.

Figures of the released data were recomputed with scipy: TIFA160 from the authors' file of ratings
and scores, GenAI-Bench from its ratings."""

from __future__ import annotations

import json
import math
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from benchmarks.evalmuse.load import EvalMuseAnswers
from benchmarks.model_boards import (
    COMPARED_BY,
    TITLES,
    Consensus,
    RatedModels,
    SliceScores,
    Tests,
    combine_tests,
    compared,
    consensus,
    estimates,
    holm_over_metrics,
    ordering_record,
    rated_models,
    ratings_by_gold,
    readers,
    tiers_down,
)
from benchmarks.schema import Answers
from benchmarks.statistics.better_or_tied import MIN_PROMPTS, least_prompts
from benchmarks.statistics.multiplicity import holm
from benchmarks.statistics.paired import t_statistics
from benchmarks.statistics.resampling import ResamplingPlan
from benchmarks.tifa160.protocol import HUMAN, TIFA160

of_prompts = SliceScores.of_prompts


def between(metrics: list[SliceScores]) -> Tests:
    n_models = metrics[0].sums.shape[1] if metrics else 0
    return combine_tests([t_statistics(one.by_prompt) for one in metrics], n_models)


def counts_of(n: int, seed: int = 1, draws: int = 1000) -> np.ndarray:
    return ResamplingPlan(tuple(map(str, range(n))), seed, draws).counts


def elements(seed: int, n: int, n_models: int) -> SliceScores:
    """One to five elements a prompt; prompts with more of them are harder."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 6, n)
    prompts = np.repeat(np.arange(n), sizes)
    hard = 0.1 * rng.standard_normal(n) - 0.05 * sizes
    scores = 0.7 + hard[prompts, None] + 0.2 * rng.standard_normal((len(prompts), n_models))
    return SliceScores.of_elements(scores, prompts, n)


def test_values_of_prompts_are_taken_as_they_are() -> None:
    values = np.random.default_rng(1).uniform(size=(30, 4))
    values[3, 1] = np.nan
    scores = of_prompts(values)
    assert scores.means == pytest.approx(np.nanmean(values, axis=0))
    np.testing.assert_array_equal(scores.by_prompt, values)
    counts = counts_of(30)
    expected = counts @ np.nan_to_num(values[:, 1]) / (counts @ np.isfinite(values[:, 1]))
    np.testing.assert_allclose(scores.resampled(counts)[1], expected)


def test_elements_weigh_alike_and_pseudo_values_average_to_their_ratio() -> None:
    by_hand = np.array([[1.0], [1.0], [0.0], [np.nan]])
    scores = SliceScores.of_elements(by_hand, np.array([0, 0, 1, 1]), 3)
    assert scores.means.item() == pytest.approx(2 / 3)
    assert scores.n_prompts.item() == 2
    assert np.isnan(scores.by_prompt[2, 0])
    many = elements(3, 300, 2)
    np.testing.assert_allclose(np.nanmean(many.by_prompt, axis=0), many.means)
    # A test of a ratio agrees with the spread of its resamples.
    one, other = many.resampled(counts_of(300, draws=4000))
    error = np.diff(many.by_prompt, axis=1).std(ddof=1) / np.sqrt(300)
    assert (one - other).std() == pytest.approx(error, rel=0.05)


@pytest.mark.parametrize("of_elements", [False, True])
def test_intervals_cover_the_true_mean_as_often_as_they_say(of_elements: bool) -> None:
    rng = np.random.default_rng(4)
    n, n_models, truth = 40, 8, 0.5
    covered = []
    for trial in range(60):
        if of_elements:
            prompts = np.repeat(np.arange(n), rng.integers(1, 5, n))
            effect = 0.2 * rng.standard_normal((n, n_models))
            noise = 0.2 * rng.standard_normal((len(prompts), n_models))
            scores = SliceScores.of_elements(truth + effect[prompts] + noise, prompts, n)
        else:
            scores = of_prompts(truth + rng.exponential(1.0, (n, n_models)) - 1.0)
        found = estimates(scores, counts_of(n, seed=trial, draws=500))
        covered.append((found.ci_low <= truth) & (truth <= found.ci_high))
    assert 0.90 < np.mean(covered) < 0.985


def test_a_single_prompt_has_no_interval_and_no_model_no_error() -> None:
    scores = of_prompts(np.array([[0.5, np.nan]]))
    found = estimates(scores, counts_of(1))
    assert np.isnan([*found.ci_low, found.means[1]]).all()
    tests = between([scores])
    assert np.isnan(tests.p).all()
    assert not tests.relations().any()
    nothing = of_prompts(np.empty((5, 0)))
    assert estimates(nothing, counts_of(5)).means.shape == (0,)
    assert between([nothing]).relations().shape == (1, 0, 0)
    assert between([]).relations().shape == (0, 0, 0)


def test_tests_are_paired_and_corrected_over_pairs_and_metrics() -> None:
    rng = np.random.default_rng(5)
    values = [rng.standard_normal((50, 3)) + 0.3 * np.arange(3) for _ in range(2)]
    tests = between([of_prompts(one) for one in values])
    pairs = [(0, 1), (0, 2), (1, 2)]
    plain = [stats.ttest_rel(one[:, a], one[:, b]).pvalue for one in values for a, b in pairs]
    for found, expected in ((tests.p, plain), (tests.corrected, list(holm(plain)))):
        assert [found[j, a, b] for j in range(2) for a, b in pairs] == pytest.approx(expected)
    assert (tests.relations() == -tests.relations().swapaxes(1, 2)).all()
    np.testing.assert_array_equal(tests.corrected, holm_over_metrics(tests.p))


def test_equal_models_are_told_apart_no_more_often_than_the_level() -> None:
    rng = np.random.default_rng(6)
    wrong = 0
    for _ in range(300):
        values = rng.standard_normal((30, 1)) + 0.5 * rng.standard_normal((30, 6))
        wrong += bool(between([of_prompts(values)]).relations().any())
    assert wrong <= 26  # binomial(300, 0.05) exceeds this once in a hundred times


@pytest.mark.parametrize("unit", [1e-170, 1e170, 1.0, 1e3])
def test_no_test_depends_on_the_unit_of_a_score(unit: float) -> None:
    """Squares of these numbers are beyond what doubles hold."""
    values = np.random.default_rng(8).normal(1.0, 0.2, (40, 3))
    scores = of_prompts(values * unit)
    np.testing.assert_allclose(compared(scores).p, compared(of_prompts(values)).p, rtol=1e-9)
    np.testing.assert_allclose(compared(scores).t, t_statistics(values).t, rtol=1e-9)
    assert math.frexp(scores.unit)[0] == 0.5  # a power of two: no digit of a score is lost
    np.testing.assert_array_equal(scores.in_range * scores.unit, scores.by_prompt)


@pytest.mark.parametrize("values", [np.zeros((5, 2)), np.full((5, 2), np.nan), np.empty((5, 0))])
def test_scores_that_are_all_nothing_have_the_unit_one(values: np.ndarray) -> None:
    assert of_prompts(values).unit == 1.0


@pytest.mark.parametrize("of_elements", [False, True])
def test_some_of_the_models_keep_their_numbers(of_elements: bool) -> None:
    values = np.random.default_rng(9).random((25, 5))
    whole = elements(9, 25, 5) if of_elements else of_prompts(values)
    places = np.array([3, 0])
    some = whole.of_models(places)
    assert some.plain == whole.plain
    np.testing.assert_allclose(some.means, whole.means[places], rtol=1e-14)
    np.testing.assert_allclose(some.by_prompt, whole.by_prompt[:, places], rtol=1e-13)
    counts = counts_of(25)
    np.testing.assert_allclose(some.resampled(counts), whole.resampled(counts)[places])


def test_models_that_share_too_few_prompts_are_not_tested() -> None:
    least = least_prompts(3)
    values = np.random.default_rng(10).normal(size=(2 * least, 3))
    values[:, 2] += 1.0
    values[least:, 1] = np.nan
    enough = compared(of_prompts(values)).p
    values[least - 1, 1] = np.nan
    few = compared(of_prompts(values)).p
    assert np.isnan(few).tolist() == [[True, True, False], [True] * 3, [False, True, True]]
    assert np.isfinite(enough[np.triu_indices(3, 1)]).all()
    values[MIN_PROMPTS - 1 :, 2] = values[MIN_PROMPTS - 1 :, 0]  # on the others both are equal
    assert np.isnan(compared(of_prompts(values)).p[0, 2])


@pytest.mark.parametrize("n_models", [1, 2, 10, 100])
def test_so_many_prompts_show_a_failure_of_one_in_ten_in_every_model(n_models: int) -> None:
    n = least_prompts(n_models)
    assert n_models * 0.9**n <= 0.05
    assert n == MIN_PROMPTS or n_models * 0.9 ** (n - 1) > 0.05


def test_a_difference_has_to_stand_with_a_failure_that_did_not_happen() -> None:
    rng = np.random.default_rng(11)
    values = rng.normal([0.0, 0.6], 1.0, (80, 2))
    d = values[:, 0] - values[:, 1]
    with_failure = np.append(d, -np.sign(d.sum()) * np.abs(d).max())
    t = stats.ttest_1samp(with_failure, 0.0).pvalue
    p = compared(of_prompts(values)).p[0, 1]
    assert stats.ttest_1samp(d, 0.0).pvalue < t <= p < 3 * t + 1e-3
    steady = np.full((80, 1), 0.9) + rng.normal(0, 0.01, (80, 1))
    never_failed = np.hstack([steady, steady + 0.1 + rng.normal(0, 0.01, (80, 1))])
    assert compared(of_prompts(never_failed)).p[0, 1] < 0.01


@pytest.mark.slow
@pytest.mark.parametrize("n_prompts", [36, 40, 51, 100])
def test_steady_and_risky_models_of_one_mean_are_ordered_on_few_boards(n_prompts: int) -> None:
    rng = np.random.default_rng(12)
    n_models = 10 if n_prompts > 40 else 2
    steady, wrong = np.arange(n_models) % 2 == 0, 0
    for _ in range(300):
        failed = rng.random((n_prompts, n_models)) < 0.1
        values = np.where(steady, 0.9, ~failed) + rng.normal(0, 0.02, failed.shape)
        tests = combine_tests([compared(of_prompts(values))], n_models)
        wrong += bool(tests.relations().any())
    assert wrong <= 26


PEOPLE = np.random.default_rng(1).uniform(1, 5, (40, 3))


@pytest.mark.parametrize(
    ("people", "scores", "expected"),
    [  # Pairs of models, those with the relation of the ratings, those reversed.
        (PEOPLE + np.arange(3), PEOPLE + np.arange(3), (3, 3, 0)),
        (PEOPLE + 4 * np.arange(3), -PEOPLE - 4 * np.arange(3), (3, 0, 3)),
        # A pair that nobody rated does not count; one without scores is wrong.
        (np.where(np.arange(3) < 2, PEOPLE, np.nan), np.full((40, 3), np.nan), (1, 0, 0)),
    ],
)
def test_orders_of_models_against_people(
    people: np.ndarray, scores: np.ndarray, expected: object
) -> None:
    record = ordering_record(people, scores, "abc")
    assert (len(record.pairs), record.right, record.reversed) == expected
    if np.isnan(scores).all():
        assert (record.pairs[0].metric, record.pairs[0].n_prompts) == (None, 0)
    with pytest.raises(ValueError, match="models"):
        ordering_record(people, scores[:, :2], "ab")


@st.composite
def relations(draw: st.DrawFn) -> np.ndarray:
    """Relations of up to three metrics between up to seven models, any at all."""
    n_metrics, n_models = draw(st.integers(0, 3)), draw(st.integers(0, 7))
    found = draw(hnp.arrays(np.int64, (n_metrics, n_models, n_models), elements=st.integers(-1, 1)))
    upper = np.triu(found, 1)
    return np.asarray(upper - upper.swapaxes(1, 2))


def agreed(found: np.ndarray) -> Consensus:
    return consensus(found, np.zeros(found.shape[1]))


@given(relations())
def test_tiers_hold_models_that_are_not_told_apart(found: np.ndarray) -> None:
    one = agreed(found)
    told = one.better | one.better.T
    assert not (one.better & one.better.T).any()
    assert (one.disputed == one.disputed.T).all()
    assert not (one.better & one.disputed).any()
    assert not (told & (one.tiers[:, None] == one.tiers)).any()
    assert sorted(set(one.tiers)) == list(range(1, one.tiers.max(initial=0) + 1))
    assert (np.diff(one.tiers[one.order]) >= 0).all()
    assert not agreed(found[:1]).disputed.any()  # one metric disputes nothing


@pytest.mark.slow
@given(relations())
def test_rank_ranges_count_the_better_and_the_worse(found: np.ndarray) -> None:
    one = agreed(found)
    n = found.shape[1]
    assert (one.rank_low == 1 + one.better.sum(axis=0)).all()
    assert (one.rank_high == n - one.better.sum(axis=1)).all()
    assert ((one.rank_low >= 1) & (one.rank_low <= one.rank_high) & (one.rank_high <= n)).all()


@given(relations(), st.integers(0, 99))
def test_order_of_models_and_repeated_metrics_have_no_say(found: np.ndarray, seed: int) -> None:
    n = found.shape[1]
    lead = np.arange(n, dtype=float)[::-1] / 7
    shuffled = np.random.default_rng(seed).permutation(n)
    one = consensus(found, lead)
    other = consensus(found[:, shuffled][:, :, shuffled], lead[shuffled])
    assert (one.rank_low[shuffled] == other.rank_low).all()
    assert (one.tiers[shuffled] == other.tiers).all()
    assert (shuffled[other.order] == one.order).all()
    twice = consensus(np.concatenate([found, found[:1]]), lead)
    for name in ("better", "disputed", "order", "tiers"):
        np.testing.assert_array_equal(getattr(one, name), getattr(twice, name))


@given(hnp.arrays(np.float64, st.integers(1, 8), elements=st.floats(-5, 5, width=16)))
def test_without_circles_nobody_stands_below_a_model_it_is_better_than(quality: np.ndarray) -> None:
    # Better by more than one: transitive in no way that rank ranges alone would keep.
    found = np.sign(np.round(quality[:, None] - quality))[None].astype(np.int64)
    one = consensus(found, -quality)
    place = np.argsort(one.order)
    a, b = np.nonzero(one.better)
    assert (place[a] < place[b]).all()


@pytest.mark.parametrize(
    ("wins", "lead", "order", "tiers"),
    [
        # a beats b alone; c and d beat a alone: b has fewer that are better than a has.
        ([(0, 1), (2, 0), (3, 0)], [0.0] * 4, [2, 3, 0, 1], [2, 3, 1, 1]),
        # Better than each other in a circle: all are shown, by their lead.
        ([(0, 1), (1, 2), (2, 0)], [0.1, 0.3, 0.2], [1, 2, 0], None),
    ],
)
def test_relations_that_are_not_transitive(
    wins: list[tuple[int, int]], lead: list[float], order: list[int], tiers: list[int] | None
) -> None:
    found = np.zeros((1, len(lead), len(lead)), np.int64)
    for better, worse in wins:
        found[0, better, worse], found[0, worse, better] = 1, -1
    one = consensus(found, np.array(lead))
    assert one.order.tolist() == order
    assert tiers is None or one.tiers.tolist() == tiers


def test_tiers_leave_out_who_is_not_in_the_order() -> None:
    told = np.zeros((3, 3), bool)
    told[0, 2] = told[2, 0] = True
    assert list(tiers_down(told, np.array([2, 0]))) == [2, 0, 1]


def rated(pair_ids: list[str], labels: list[float], prompt: str = "") -> RatedModels | None:
    prompts = [prompt or one.rpartition("/")[2].partition(".")[0] for one in pair_ids]
    images = pd.DataFrame(
        {"pair_id": pair_ids, "prompt_id": prompts, "split": "real", "label": labels}
    )
    elements = pd.DataFrame({"pair_id": [], "element_id": [], "skill": [], "label": []})
    clusters = tuple(dict.fromkeys(prompts))
    return rated_models(EvalMuseAnswers(tuple(pair_ids), clusters, images, elements))


def test_ratings_are_laid_out_by_prompt_and_model_and_scores_likewise() -> None:
    found = rated(["A/1.png", "B/1.png", "A/2.png"], [3.0, 4.0, 5.0])
    assert found is not None
    assert (found.models, found.prompts) == (("A", "B"), ("1", "2"))
    np.testing.assert_array_equal(found.people, [[3.0, 4.0], [5.0, np.nan]])
    scores = found.arranged({"B/1.png": 0.25, "A/2.png": 0.5})
    np.testing.assert_array_equal(scores, [[np.nan, 0.25], [0.5, np.nan]])


def test_ratings_and_scores_of_several_images_of_a_model_are_averaged() -> None:
    paths = ["SDXL-Turbo/1.png", "SDXL-Turbo/2.png", "Dreamina_v2.0Pro/3.png", "loose.png"]
    found = rated(paths, [1.0, 2.0, 5.0, 3.0], prompt="p")
    assert found is not None
    assert found.models == ("SDXL-Turbo", "Dreamina_v2.0Pro")
    assert found.people.tolist() == [[1.5, 5.0]]
    assert found.arranged({"SDXL-Turbo/2.png": 4.0})[0, 0] == 4.0


def test_images_of_one_model_or_of_none_and_other_answers_compare_nothing() -> None:
    assert rated(["A/1.png", "A/2.png"], [3.0, 4.0]) is None
    assert rated(["1.png", "2.png"], [3.0, 4.0]) is None
    assert rated_models(Answers(("a",), ("a",))) is None


@pytest.mark.paper
def test_tifa160_was_rated_twice_and_goes_by_its_paper(assay_data: Path) -> None:
    answers = TIFA160.answers(assay_data)
    found = ratings_by_gold(answers)
    assert list(found) == ["dsg_likert", "human_avg"]
    held_against = rated_models(answers)
    assert held_against is not None
    np.testing.assert_array_equal(held_against.people, found[COMPARED_BY].people)
    for one in found.values():
        assert {skill: len(prompts) for skill, prompts in one.skills.items()} == {
            "coco": 84, "partiprompt": 51, "paintskill": 15, "drawbench": 10,
        }  # fmt: skip


@cache
def released(name: str, assay_data: Path) -> RatedModels:
    found = readers()[name](assay_data)
    assert found is not None
    return found


@pytest.mark.first_quick
@pytest.mark.paper
@pytest.mark.parametrize("name", ["genai_1600", "genai_527", "tifa160"])
def test_released_models_have_the_names_of_their_papers(name: str, assay_data: Path) -> None:
    assert set(released(name, assay_data).models) <= set(TITLES)
    assert "evalmuse" in readers()


MINI, VQ = "mini_dalle", "vq_diffusion"
V1_1, V1_5, V2_1 = (f"stable_diffusion_{version}" for version in ("v1_1", "v1_5", "v2_1"))
WORSE = {
    "human_avg": {(MINI, V1_5), (MINI, V2_1), (VQ, V1_5), (VQ, V2_1), (V1_1, V1_5), (V1_1, V2_1)},
    "tifa_mplug-large": {(VQ, V2_1), (V1_1, V2_1), (V1_5, V2_1)},
    "clipscore_vitb32": {(MINI, V2_1), (VQ, V2_1), (V1_1, V2_1), (V1_5, V2_1)},
}
"""TIFA160, specification of the protocols, 7.2: the first is significantly worse; all others `=`."""


@pytest.mark.paper
@pytest.mark.parametrize(
    ("metric", "right"), [("human_avg", 10), ("tifa_mplug-large", 5), ("clipscore_vitb32", 6)]
)
def test_relations_of_models_on_tifa160(assay_data: Path, metric: str, right: int) -> None:
    models = released("tifa160", assay_data)
    items = json.loads((assay_data / HUMAN).read_bytes())
    scores = models.arranged({pair: float(item[metric]) for pair, item in items.items()})
    record = ordering_record(models.people, scores, models.models)
    assert (len(record.pairs), record.right, record.reversed) == (10, right, 0)
    for found, name in (("metric", metric), ("people", "human_avg")):
        ordered = {
            (p.first, p.second) if getattr(p, found) == -1 else (p.second, p.first)
            for p in record.pairs
            if getattr(p, found)
        }
        assert ordered == WORSE[name]


@pytest.mark.paper
def test_people_tell_the_models_of_genai_bench_apart(assay_data: Path) -> None:
    models = released("genai_1600", assay_data)
    assert models.people.shape == (1600, 6)

    def told(level: float, *pair: str) -> bool:
        record = ordering_record(models.people, models.people, models.models, level=level)
        assert len(record.pairs) == record.right == 15
        [people] = [p.people for p in record.pairs if {p.first, p.second} == set(pair)]
        return people != 0

    assert not told(0.001, "SDXL_Turbo", "SDXL_Base")  # p = 1.648e-3
    assert told(0.05, "SDXL_Turbo", "SDXL_Base")
    assert told(0.001, "SDXL_Base", "DeepFloyd_I_XL_v1")  # p = 8.712e-4
    assert told(0.001, "Midjourney_6", "DALLE_3")  # p = 6.364e-13
    means = dict(zip(models.models, models.people.mean(axis=0), strict=True))
    assert (means["DALLE_3"], means["SDXL_2_1"]) == pytest.approx((3.8196, 3.0227), abs=5e-5)
