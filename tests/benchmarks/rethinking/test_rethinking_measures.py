"""The Re-Thinking measures of scored generations: by image, by prompt and over seeds."""

from __future__ import annotations

import itertools
import math
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from benchmarks.published import published
from benchmarks.rethinking.measures import (
    KEYS,
    MetricScores,
    UnitCounts,
    comparisons,
    comparisons_over_seeds,
    image_scores,
    model_scores,
    perturbations,
    perturbations_over_seeds,
    prompt_scores,
    read_generations,
    spread,
    stability,
    tabulate,
    unit_counts,
)
from benchmarks.statistics.concordance import (
    competition_ranks,
    order_signs,
    resampled_stability,
    seed_stability,
)
from benchmarks.statistics.paired import dominance, paired_many, paired_t, wilcoxon
from benchmarks.statistics.resampling import ResamplingPlan
from tests.kit.refusals import refused

NAN = math.nan


def table(scores: object, perturbed: object = None) -> MetricScores:
    """Scores (seeds, models, prompts) with made-up names."""
    values = np.asarray(scores, np.float64)
    seeds, models, prompts = values.shape
    changed = np.full(values.shape, NAN) if perturbed is None else np.asarray(perturbed, np.float64)
    return MetricScores(
        "vqascore",
        tuple("ABCDE"[:models]),
        tuple(f"s{i}" for i in range(seeds)),
        tuple(f"p{i}" for i in range(prompts)),
        values,
        changed,
    )


def plan(scores: MetricScores) -> ResamplingPlan:
    return ResamplingPlan(scores.prompts, seed=7, n_resamples=300)


def resamples(scores: MetricScores) -> UnitCounts:
    return unit_counts(scores, plan(scores))


def lines(**changes: list[str]) -> pd.DataFrame:
    """Two models, one seed, two prompts, one metric; columns may be replaced."""
    columns = {
        "metric": ["m"] * 4,
        "model": ["A", "A", "B", "B"],
        "seed": ["42"] * 4,
        "prompt_id": ["p", "q", "p", "q"],
        "score": ["0.5", "0.25", "1", ""],
    }
    return pd.DataFrame(columns | changes)


class TestReading:
    def test_lines_stand_in_any_order_and_each_metric_has_its_own_prompts_and_seeds(self) -> None:
        other = lines(metric=["n"] * 4, prompt_id=["r", "s", "r", "s"], seed=["1"] * 4)
        one, two = tabulate(pd.concat([lines().iloc[[0, 3, 1, 2]], other]))
        assert (one.models, one.seeds, one.prompts) == (("A", "B"), ("42",), ("p", "q"))
        np.testing.assert_array_equal(one.scores, [[[0.5, 0.25], [1.0, NAN]]])
        assert np.isnan(one.perturbed).all()
        assert (two.seeds, two.prompts) == (("1",), ("r", "s"))

    @pytest.mark.parametrize(
        ("frame", "code", "says"),
        [
            (lines().drop(columns=["seed"]), "missing_columns", ["seed"]),
            (lines().iloc[:0], "no_scores", []),
            (lines(model=["A", "A", "", "B"]), "empty_name", ["Line 4", "model"]),
            (lines(score=["1", "high", "1", "1"]), "bad_score", ["Line 3", "'high'"]),
            (lines(score=["1", "1", "1", "inf"]), "bad_score", ["Line 5", "'inf'"]),
            (lines(prompt_id=["p", "p", "p", "q"]), "duplicate_scores", ["line 3", "'m'"]),
            (lines(prompt_id=["p", "q", "p", "r"]), "different_prompts",
             ["'r'", "'A'", "'42'", "2 such"]),
            (lines(seed=["1", "1", "2", "2"]), "different_prompts", ["'B'", "'1'"]),
        ],
    )  # fmt: skip
    def test_a_wrong_table_is_refused(
        self, frame: pd.DataFrame, code: str, says: list[str]
    ) -> None:
        with refused(code, *says) as caught:
            tabulate(frame)
        assert caught.value.hint

    @pytest.mark.parametrize(
        ("header", "body", "code", "says"),
        [
            (",score,score", "m,A,1,p,0.5,0.7", "duplicate_columns", ["score"]),
            (",score", "m,A,1,p,0.5,0.7", "uneven_lines", ["6 cells", "5"]),
            (",score", "m,A,1,p,0.5\nm,B,1,p", "uneven_lines", ["line 3"]),
            (",score", "m,A,1,p,1\nm,B,1,p,1,1", "uneven_lines", ["line 3"]),
        ],
    )
    def test_a_column_twice_and_lines_of_another_length_are_refused(
        self, tmp_path: Path, header: str, body: str, code: str, says: list[str]
    ) -> None:
        path = tmp_path / "scores.csv"
        path.write_text(f"{','.join(KEYS)}{header}\n{body}\n", encoding="utf-8")
        with refused(code, *says):
            read_generations(path)

    def test_a_byte_order_mark_is_read_and_no_table_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "scores.csv"
        with refused("file_missing", "scores.csv"):
            read_generations(path)
        path.write_bytes(b"")
        with refused("unreadable_file"):
            read_generations(path)
        path.write_text(f"{','.join(KEYS)},score\nm,A,1,p,0.5\n", encoding="utf-8-sig")
        assert read_generations(path)[0].scores.item() == 0.5


class TestRanks:
    def test_the_score_of_a_model_is_the_mean_over_its_scored_prompts(self) -> None:
        scores = table([[[1.0, 0.0, NAN], [0.2, 0.4, 0.9]]])
        a, b = model_scores(scores, plan(scores))
        assert (a.value, a.rank, a.n_prompts, a.n_missing) == (0.5, 1, 2, 1)
        assert (b.rank, b.n_prompts, b.n_missing) == (1, 3, 0)  # 0.5 as well: a shared rank
        assert a.ci_low < 0.5 < a.ci_high

    def test_a_model_without_any_score_has_no_rank_and_is_left_out_of_stability(self) -> None:
        scores = table([[[1.0, 2.0], [NAN, NAN], [3.0, 4.0]]] * 2)
        assert [s.rank for s in model_scores(scores, plan(scores))] == [2, None, 1] * 2
        found = stability(scores, plan(scores))
        assert (found.models, found.over_seeds.stable) == (("A", "C"), True)
        assert found.note.endswith(": B")

    def test_one_prompt_gives_a_ranking_but_no_interval(self) -> None:
        scores = table([[[1.0], [2.0]]] * 2)
        a, b, *_ = model_scores(scores, plan(scores))
        assert (a.value, b.rank) == (1.0, 1)
        found = stability(scores, plan(scores))
        assert found.over_seeds.stable is True
        assert np.isnan([a.ci_low, found.stable_share, found.kendall_w.low]).all()
        assert "one prompt" in found.note

    @pytest.mark.parametrize(
        ("scores", "reason"),
        [([[[1.0, 2.0], [3.0, 4.0]]], "one seed"), ([[[1.0, 2.0]]] * 2, "two models")],
    )
    def test_one_seed_or_model_gives_no_verdict(self, scores: object, reason: str) -> None:
        found = stability(table(scores), plan(table(scores)))
        assert found.over_seeds.stable is None
        assert math.isnan(found.stable_share)
        assert reason in found.note

    def test_an_order_is_stable_in_all_some_or_none_of_the_resamples(self) -> None:
        low, high = np.zeros(20), np.ones(20)
        noisy = np.random.default_rng(0).normal(0, 1, (3, 2, 50))
        cases = ([[low, high]] * 2, noisy, [[low, high], [high, low]])
        clear, hair, reversed_ = (stability(table(s), plan(table(s))).stable_share for s in cases)
        assert 1.0 == clear > hair > reversed_ == 0.0

    def test_intervals_say_how_far_the_choice_of_prompts_moves_the_measures(self) -> None:
        rng = np.random.default_rng(1)
        scores = table(rng.normal(0, 1, (3, 4, 80)) + np.array([0.0, 0.1, 0.2, 1.5])[:, None])
        found = stability(scores, plan(scores))
        for interval, low, high in (
            (found.identical_share, 0.0, 1.0),
            (found.tau_mean, -1.0, 1.0),
            (found.kendall_w, 0.0, 1.0),
            (found.swapped, 0.0, 6.0),
        ):
            assert low <= interval.low <= interval.high <= high
        assert found.kendall_w.low < found.over_seeds.concordance.w


class TestPerturbation:
    def test_mean_and_largest_change_leave_missing_scores_out(self) -> None:
        scores = table(
            [[[0.5, 0.5, 0.5, NAN], [0.1, 0.1, 0.1, 0.1]]],
            [[[0.6, 0.2, NAN, 0.5], [NAN] * 4]],
        )
        [found] = perturbations(scores, plan(scores))
        assert (found.model, found.n_units, found.n_missing) == ("A", 2, 2)
        assert (found.mean, found.largest) == pytest.approx((0.2, 0.3))
        assert found.ci_low <= found.mean <= found.ci_high
        nothing = table([[[NAN, NAN]]], [[[0.1, 0.2]]])  # no original is scored
        [found] = perturbations(nothing, plan(nothing))
        assert math.isnan(found.mean)
        assert (found.n_units, found.n_missing) == (0, 2)

    def test_over_seeds_by_image_and_by_prompt_by_hand(self) -> None:
        scores = np.array([[[0.0, 1.0, 2.0]], [[0.0, 1.0, 4.0]]])
        found = table(scores, scores + np.array([[[0.1, 0.2, -0.3]], [[0.3, -0.2, 0.5]]]))
        image, prompt = perturbations_over_seeds(found, resamples(found))
        assert (image.unit, image.n_units) == ("image", 6)
        assert (prompt.unit, prompt.n_units) == ("prompt", 3)
        assert image.mean == prompt.mean == pytest.approx(1.6 / 6)
        # By prompt the means over seeds are 0.2, 0.2 and 0.4.
        assert (image.largest, prompt.largest) == pytest.approx((0.5, 0.4))
        sd = np.array([0, 1, 2, 0, 1, 4]).std(ddof=1)
        for line in (image, prompt):
            assert line.spread == pytest.approx(sd)
            assert line.mean_of_spread == pytest.approx(line.mean / sd)
            assert line.largest_of_spread == pytest.approx(line.largest / sd)
            assert line.ci_low <= line.mean <= line.ci_high

    def test_seeds_without_perturbed_images_do_not_count(self) -> None:
        scores = np.random.default_rng(4).normal(size=(3, 2, 5))
        perturbed = np.full(scores.shape, NAN)
        perturbed[:2, 0] = scores[:2, 0] + 0.1
        perturbed[0, 1] = scores[0, 1]  # one seed only: nothing to put together
        perturbed[1, 0, 3] = NAN
        found = table(scores, perturbed)
        image, prompt = perturbations_over_seeds(found, resamples(found))
        assert (image.model, image.n_units, image.n_missing) == ("A", 9, 1)
        assert (prompt.n_units, prompt.n_missing) == (5, 0)
        assert len(perturbations(found, plan(found))) == 3

    def test_scores_that_are_all_equal_have_no_spread_to_compare_with(self) -> None:
        found = table(np.full((2, 1, 3), 0.1), np.full((2, 1, 3), 0.2))
        both = (
            *perturbations(found, plan(found)),
            *perturbations_over_seeds(found, resamples(found)),
        )
        for line in both:
            assert (line.spread, line.mean) == pytest.approx((0.0, 0.1))
            assert math.isnan(line.mean_of_spread)
        assert math.isnan(spread(np.array([1.0])))


WINS = np.where(np.arange(1000) % 2 == 0, 0.3, -0.2)
NOISE = np.random.default_rng(1).normal(0, 1, (2, 100))


class TestSignificance:
    @pytest.mark.parametrize(
        ("scores", "relation", "ratios"),
        [
            # A significant difference may come with ratios of one half.
            ([0.5 + WINS, np.full(1000, 0.5)], ">", (0.5, 0.5)),
            ([NOISE[0], NOISE[0] + 1 + NOISE[1] / 10], "<", (0.0, 1.0)),
            ([[0.3, 0.7, 0.1]] * 2, "=", (0.0, 0.0)),
        ],
    )
    def test_a_pair_of_models_has_a_relation_an_interval_and_ratios(
        self, scores: list[np.ndarray], relation: str, ratios: tuple[float, float]
    ) -> None:
        [found] = comparisons(table([scores]), plan(table([scores])))
        a, b = np.asarray(scores)
        assert (found.relation, found.r_ab, found.r_ba) == (relation, *ratios)
        assert found.difference == pytest.approx((a - b).mean())
        if relation == "=":
            assert (found.t, found.p_value, found.wilcoxon_p) == (0.0, 1.0, 1.0)
        else:
            assert found.p_value < 0.05
            assert found.ci_low < found.difference < found.ci_high

    def test_prompts_without_one_of_the_scores_are_left_out_and_counted(self) -> None:
        scores = table([[[1.0, 2.0, 4.0, NAN], [0.0, 0.0, NAN, 9.0]]])
        [found] = comparisons(scores, plan(scores))
        assert (found.n_units, found.n_missing, found.difference, found.r_ab) == (2, 2, 1.5, 1.0)

    def test_wilcoxons_p_at_nine_digits_gives_equal_differences_one_rank(self) -> None:
        steps = np.array([1, 1, 2, 2, 3, 3, 4, 4, 5, -1, -1, -2, -2, -3, -3] * 4)
        b = np.linspace(0.1, 0.9, steps.size)
        for a, moved in ((b + steps / 10, True), (b + NOISE[0][: steps.size], False)):
            scores = table([[a, b]])
            [found] = comparisons(scores, plan(scores))
            assert found.wilcoxon_p == pytest.approx(stats.wilcoxon(a - b).pvalue)
            assert (found.wilcoxon_p_rounded != found.wilcoxon_p) is moved
            if moved:
                exact = stats.wilcoxon(steps.astype(float), method="asymptotic")
                assert found.wilcoxon_p_rounded == pytest.approx(exact.pvalue)

    @pytest.mark.parametrize("n_prompts", [0, 1])
    def test_fewer_than_two_common_prompts_decide_nothing(self, n_prompts: int) -> None:
        a = np.where(np.arange(3) < n_prompts, 5.0, NAN)
        scores = table([[a, np.ones(3)]])
        [found] = comparisons(scores, plan(scores))
        assert found.relation == "="
        assert np.isnan([found.p_value, found.ci_low]).all()


@cache
def rejected(own_effects: float) -> dict[str, float]:
    """Share of 1,000 trials in which models of equal merit differ at 5 %, by test and unit."""
    hits = dict.fromkeys(("t image", "t prompt", "wilcoxon image", "wilcoxon prompt"), 0)
    for trial in range(1000):
        scores = table(equal_models(trial, own_effects))
        for unit, values in (("image", image_scores(scores)), ("prompt", prompt_scores(scores))):
            found = paired_many(values)
            hits[f"t {unit}"] += found.t_p[0, 1] < 0.05
            hits[f"wilcoxon {unit}"] += found.wilcoxon_p[0, 1] < 0.05
    return {name: n / 1000 for name, n in hits.items()}


def equal_models(trial: int, own_effects: float) -> np.ndarray:
    """Scores (4, 2, 40) of equal models; `own_effects`: what a prompt is worth to one alone."""
    rng = np.random.default_rng((2506, trial))
    suits = own_effects * rng.normal(size=(1, 2, 40))
    return rng.normal(size=(1, 1, 40)) + suits + rng.normal(0, 1, (4, 2, 40))


class TestWhichUnitToTrust:
    @pytest.mark.slow
    def test_where_prompts_suit_one_model_images_reject_too_often_and_prompts_do_not(self) -> None:
        found = rejected(own_effects=1.0)
        # By theory 0.21: the variance of a mean is (1 + 3 / 2) times what the images suggest.
        assert all(0.17 < found[f"{test} image"] < 0.26 for test in ("t", "wilcoxon"))
        # Three standard errors of a share of 5 % in 1,000 trials are 0.021.
        assert all(0.029 < found[f"{test} prompt"] < 0.071 for test in ("t", "wilcoxon"))

    @pytest.mark.slow
    def test_where_only_the_seed_differs_both_are_right_however_hard_the_prompts(self) -> None:
        assert all(0.029 < share < 0.071 for share in rejected(own_effects=0.0).values())

    @pytest.mark.slow
    def test_intervals_by_image_are_too_narrow_and_by_prompt_hold_zero_as_they_say(self) -> None:
        covered = {"image": 0, "prompt": 0}
        for trial in range(300):
            scores = table(equal_models(trial, 1.0))
            for comparison in comparisons_over_seeds(scores, resamples(scores)):
                covered[comparison.unit] += comparison.ci_low < 0 < comparison.ci_high
        assert covered["image"] / 300 < 0.83
        assert 0.9 < covered["prompt"] / 300 < 0.98


class TestComparisonsOverSeeds:
    def test_both_units_stand_side_by_side_for_every_pair(self) -> None:
        scores = table(np.random.default_rng(0).normal(size=(3, 3, 8)))
        found = comparisons_over_seeds(scores, resamples(scores))
        assert [(c.model_a, c.model_b, c.unit, c.n_units, c.seed) for c in found] == [
            (*pair, unit, n, None)
            for pair in ("AB", "AC", "BC")
            for unit, n in (("image", 24), ("prompt", 8))
        ]

    def test_they_are_the_tests_of_the_images_and_of_the_means_over_seeds(self) -> None:
        scores = table(np.random.default_rng(1).integers(0, 6, (3, 2, 30)).astype(float))
        image, prompt = comparisons_over_seeds(scores, resamples(scores))
        one, other = scores.scores.swapaxes(0, 1)
        samples = {
            image: (one.ravel(), other.ravel()),
            prompt: (one.mean(axis=0), other.mean(axis=0)),
        }
        for found, (a, b) in samples.items():
            t, w = paired_t(a, b), wilcoxon(a, b)
            assert (found.t, found.p_value) == pytest.approx((t.statistic, t.p_value))
            assert (found.wilcoxon_w, found.wilcoxon_p) == pytest.approx((w.statistic, w.p_value))
            assert (found.r_ab, found.r_ba) == dominance(a, b)
            assert found.effect == pytest.approx((a - b).mean() / (a - b).std(ddof=1))
            assert found.ci_low < found.difference < found.ci_high
            assert found.effect_low < found.effect < found.effect_high
        assert image.difference == pytest.approx(prompt.difference)

    def test_a_prompt_that_lacks_a_score_with_some_seed_is_left_out_as_a_prompt_only(self) -> None:
        values = np.ones((2, 2, 4))
        values[:, 1] = 0.0
        values[1, 0, 2] = NAN
        found = comparisons_over_seeds(table(values), resamples(table(values)))
        assert [(c.n_units, c.n_missing) for c in found] == [(7, 1), (3, 1)]


def test_images_are_in_the_order_of_their_resamples_and_drawn_one_by_one() -> None:
    scores = table(np.arange(12.0).reshape(2, 2, 3))
    counts = resamples(scores)
    assert (counts.prompts.shape, counts.images.shape) == ((300, 3), (300, 6))
    assert (counts.images.sum(axis=1) == 6).all()
    assert (counts.images[:, :3] != counts.images[:, 3:]).any()  # not prompt by prompt
    one_seed = table(np.ones((1, 2, 3)))
    np.testing.assert_array_equal(resamples(one_seed).images, resamples(one_seed).prompts)
    np.testing.assert_array_equal(image_scores(scores)[:, 0], [0, 1, 2, 6, 7, 8])
    np.testing.assert_array_equal(prompt_scores(scores)[:, 1], [6, 7, 8])


@pytest.mark.paper
def test_tifa160_ratings_of_two_models_differ_by_the_published_test(assay_data: Path) -> None:
    """Human means of TIFA160, Stable Diffusion 1.5 against 2.1, by our reading of the file."""
    file = assay_data / "tifa160" / "human_annotations_with_scores.json"
    frame = pd.read_json(file, orient="index").rename(
        columns={"text_id": "prompt_id", "human_avg": "score"}
    )
    frame["model"] = frame.index.str.extract(r"(stable_diffusion_v(?:1_5|2_1))$")[0].to_numpy()
    frame = frame.dropna(subset="model").assign(metric="human", seed="0")
    [scores] = tabulate(frame[[*KEYS, "score"]])
    [found] = comparisons(scores, plan(scores), level=0.001)
    assert (found.n_units, found.relation) == (160, "=")
    sign = 1 if found.model_a.endswith("1_5") else -1
    assert sign * found.t == pytest.approx(-2.8578, abs=5e-5)
    assert found.wilcoxon_w == 1432.5
    assert (found.p_value, found.wilcoxon_p) == pytest.approx((4.84e-3, 5.24e-3), abs=5e-6)
    assert sorted([round(found.r_ab, 4), round(found.r_ba, 4)]) == [0.2188, 0.3563]


MODELS = ("SD3", "SD-XL", "PixArt-Sigma", "SD-1.5")
SEEDS = ("seed 42", "seed 3407", "seed 5096")


def printed(metric: str) -> np.ndarray:
    """Shape (seeds, models), the scores of Re-Thinking's Table 1."""
    cells = {
        (cell.facet, cell.model): cell.value
        for cell in published()
        if (cell.paper, cell.table) == ("rethinking", "Table 1")
        and (cell.metric, cell.measure) == (metric, "model_score")
    }
    return np.array([[cells[seed, model] for model in MODELS] for seed in SEEDS])


@pytest.mark.parametrize(
    ("metric", "stable", "swapped"),
    [("vqascore", True, 0), ("clipscore", False, 1), ("dsgscore", False, 1)],
)
def test_of_table_1_only_vqascore_is_stable(metric: str, stable: bool, swapped: int) -> None:
    found = seed_stability(printed(metric))
    assert (found.stable, found.swapped, found.n_model_pairs) == (stable, swapped, 6)
    assert (found.concordance.w == 1.0) is stable


def test_table_1_by_hand() -> None:
    """DSGScore, ranks 1 3 2 4, 1 3 2 4, 1 2 3 4: sums 3, 8, 7, 12; S = 41; W = 12 S / 540."""
    found = seed_stability(printed("dsgscore"))
    pairs = [(p.first, p.second, p.swapped, p.tau) for p in found.pairs]
    third = pytest.approx(2 / 3)
    assert pairs == [(0, 1, 0, 1.0), (0, 2, 1, third), (1, 2, 1, third)]
    assert (found.identical_share, found.tau_mean) == pytest.approx((1 / 3, 7 / 9))
    assert (found.tau_min, found.concordance.w) == pytest.approx((2 / 3, 12 * 41 / 540), abs=1e-15)
    assert found.concordance.exact


def test_equal_scores_share_the_better_rank_and_a_tie_is_no_swap() -> None:
    assert competition_ranks([3.0, 5.0, 5.0, 1.0]).tolist() == [3, 1, 1, 4]
    found = seed_stability([[2.0, 1.0], [1.0, 1.0]])
    assert (found.stable, found.swapped) == (False, 0)
    assert math.isnan(found.pairs[0].tau)  # one seed ties all models
    assert seed_stability([[2.0, 1.0, 1.0], [5.0, 3.0, 3.0]]).stable is True


def test_swapped_pairs_are_named_with_the_seeds_on_either_side() -> None:
    found = seed_stability([[3.0, 2.0, 1.0], [3.0, 1.0, 2.0], [3.0, 2.0, 2.0], [1.0, 2.0, 0.0]])
    swaps = [(s.first, s.second, s.first_higher, s.second_higher, s.tied) for s in found.swaps]
    assert swaps == [(0, 1, 3, 1, 0), (1, 2, 2, 1, 1)]
    assert found.swapped == 2


@pytest.mark.parametrize("scores", [[[1.0, 2.0]], [[1.0], [2.0]], np.empty((2, 0))])
def test_one_seed_or_one_model_leaves_nothing_to_compare(scores: object) -> None:
    found = seed_stability(np.asarray(scores))
    assert found.stable is None
    assert math.isnan(found.concordance.w)


@pytest.mark.parametrize("scores", [[1.0, 2.0], [[1.0, math.nan]], [[math.inf, 1.0]]])
def test_anything_but_a_table_of_finite_scores_is_refused(scores: object) -> None:
    with pytest.raises(ValueError, match="finite scores"):
        seed_stability(np.asarray(scores))


sizes = st.tuples(st.integers(1, 4), st.integers(1, 5))


@pytest.mark.slow
@given(arrays(np.float64, sizes, elements=st.integers(0, 4).map(float)))
def test_ranks_stability_and_swaps_are_what_one_counts_by_hand(table: np.ndarray) -> None:
    ranks = [[1 + int((row > value).sum()) for value in row] for row in table]
    assert [competition_ranks(row).tolist() for row in table] == ranks
    found = seed_stability(table)
    assert found.stable in (None, all(row == ranks[0] for row in ranks))
    swapped = 0
    for i, j in itertools.combinations(range(table.shape[1]), 2):
        swapped += {1.0, -1.0} <= {np.sign(row[i] - row[j]) for row in table}
    assert found.swapped == swapped
    assert order_signs(table).shape == (table.shape[0], found.n_model_pairs)


@pytest.mark.slow
@given(arrays(np.float64, (4, 3, 4), elements=st.integers(0, 3).map(float)))
@settings(deadline=None)
def test_every_resample_is_the_comparison_of_its_scores(scores: np.ndarray) -> None:
    found = resampled_stability(scores)
    for b, table in enumerate(scores):
        one = seed_stability(table)
        assert (found.stable[b], found.swapped[b]) == (one.stable, one.swapped)
        shares = (found.identical_share[b], found.tau_mean[b], found.kendall_w[b])
        expected = (one.identical_share, one.tau_mean, one.concordance.w)
        assert shares == pytest.approx(expected, nan_ok=True)


def test_a_resample_without_a_score_of_some_model_is_undefined() -> None:
    scores = np.ones((2, 2, 3)) * [1.0, 2.0, 3.0]
    scores[1, 0, 2] = math.nan
    found = resampled_stability(scores)
    values = (found.stable, found.identical_share, found.tau_mean, found.swapped, found.kendall_w)
    assert [np.isfinite(value).tolist() for value in values] == [[True, False]] * 5
    assert found.kendall_w[0] == 1.0
