"""The Re-Thinking measures of a set of scored generations."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from benchmarks.errors import SubmitterError
from benchmarks.rethinking.command import report
from benchmarks.rethinking.measures import (
    KEYS,
    MetricScores,
    comparisons,
    model_scores,
    perturbations,
    read_generations,
    stability,
    tabulate,
)
from benchmarks.rethinking.perturbation import plus_one
from benchmarks.statistics.multiplicity import holm
from benchmarks.statistics.resampling import ResamplingPlan


def table(scores: object, perturbed: object = None) -> MetricScores:
    """Scores (seeds, models, prompts) with made-up names."""
    values = np.asarray(scores, np.float64)
    n_seeds, n_models, n_prompts = values.shape
    return MetricScores(
        "vqascore",
        tuple("ABCDE"[:n_models]),
        tuple(map(str, range(n_seeds))),
        tuple(f"p{i}" for i in range(n_prompts)),
        values,
        np.full(values.shape, np.nan) if perturbed is None else np.asarray(perturbed, np.float64),
    )


def plan(scores: MetricScores, n_resamples: int = 200) -> ResamplingPlan:
    return ResamplingPlan(scores.prompts, seed=7, n_resamples=n_resamples)


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
    def test_an_empty_score_is_missing_and_lines_may_stand_in_any_order(self) -> None:
        shuffled = lines().iloc[[0, 3, 1, 2]]
        [found] = tabulate(shuffled)
        assert (found.models, found.seeds, found.prompts) == (("A", "B"), ("42",), ("p", "q"))
        np.testing.assert_array_equal(found.scores, [[[0.5, 0.25], [1.0, np.nan]]])
        assert np.isnan(found.perturbed).all()

    def test_each_metric_has_its_own_prompts_and_seeds(self) -> None:
        other = lines(metric=["n"] * 4, prompt_id=["r", "s", "r", "s"], seed=["1"] * 4)
        one, two = tabulate(pd.concat([lines(), other]))
        assert (one.prompts, two.prompts) == (("p", "q"), ("r", "s"))

    @pytest.mark.parametrize(
        ("frame", "code", "message"),
        [
            (lines().drop(columns=["seed"]), "missing_columns", "lacks the columns seed"),
            (lines().iloc[:0], "no_scores", "no scores"),
            (lines(model=["A", "A", "", "B"]), "empty_name", "Line 4 has no model"),
            (lines(score=["1", "high", "1", "1"]), "bad_score", "Line 3: score 'high'"),
            (lines(score=["1", "1", "1", "inf"]), "bad_score", "Line 5: score 'inf'"),
            (lines(prompt_id=["p", "p", "p", "q"]), "duplicate_scores", "line 3: metric 'm'"),
            (
                lines(prompt_id=["p", "q", "p", "r"]),
                "different_prompts",
                "no line for prompt 'r' of model 'A' with seed '42' (2 such lines",
            ),
            (lines(seed=["1", "1", "2", "2"]), "different_prompts", "model 'B' with seed '1'"),
        ],
    )
    def test_a_table_that_cannot_be_used_says_what_is_wrong_and_where(
        self, frame: pd.DataFrame, code: str, message: str
    ) -> None:
        with pytest.raises(SubmitterError) as caught:
            tabulate(frame)
        assert caught.value.code == code
        assert message in caught.value.message
        assert caught.value.hint

    def test_a_file_that_is_not_there_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(SubmitterError, match=r"no file .*scores\.csv"):
            read_generations(tmp_path / "scores.csv")

    @pytest.mark.parametrize(
        ("text", "code", "message"),
        [
            (f"{','.join(KEYS)},score,score\nm,A,1,p,0.5,0.7\n", "duplicate_columns", "score"),
            (
                f"{','.join(KEYS)},score\nm,A,1,p,0.5,0.7\n",
                "uneven_lines",
                "has 6 cells, the header 5",
            ),
            (f"{','.join(KEYS)},score\nm,A,1,p,0.5\nm,B,1,p\n", "uneven_lines", "Line 3"),
            (f"{','.join(KEYS)},score\nm,A,1,p,1\nm,B,1,p,1,1\n", "uneven_lines", "Line 3"),
        ],
    )
    def test_a_column_twice_and_lines_of_another_length_are_refused(
        self, tmp_path: Path, text: str, code: str, message: str
    ) -> None:
        path = tmp_path / "scores.csv"
        path.write_text(text, encoding="utf-8")
        with pytest.raises(SubmitterError) as caught:
            read_generations(path)
        assert caught.value.code == code
        assert message in caught.value.message

    def test_a_file_that_starts_with_a_byte_order_mark_is_read(self, tmp_path: Path) -> None:
        path = tmp_path / "scores.csv"
        path.write_text(f"{','.join(KEYS)},score\nm,A,1,p,0.5\n", encoding="utf-8-sig")
        assert read_generations(path)[0].scores.item() == 0.5

    def test_a_file_that_is_no_table_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "scores.csv"
        path.write_bytes(b"")
        with pytest.raises(SubmitterError) as caught:
            read_generations(path)
        assert caught.value.code == "file_unreadable"


class TestRanks:
    def test_the_score_of_a_model_is_the_mean_over_its_scored_prompts(self) -> None:
        scores = table([[[1.0, 0.0, np.nan], [0.2, 0.4, 0.9]]])
        a, b = model_scores(scores, plan(scores))
        assert (a.value, a.rank, a.n_prompts, a.n_missing) == (0.5, 1, 2, 1)
        assert (b.rank, b.n_prompts, b.n_missing) == (1, 3, 0)  # 0.5 as well: a shared rank
        assert a.ci_low < 0.5 < a.ci_high

    def test_a_model_without_any_score_has_no_rank_and_is_left_out_of_stability(self) -> None:
        scores = table([[[1.0, 2.0], [np.nan, np.nan], [3.0, 4.0]]] * 2)
        found = model_scores(scores, plan(scores))
        assert [s.rank for s in found] == [2, None, 1] * 2
        over_seeds = stability(scores, plan(scores))
        assert over_seeds.models == ("A", "C")
        assert over_seeds.over_seeds.stable is True
        assert "left out, no score with some seed: B" in over_seeds.note

    def test_one_prompt_has_a_score_but_no_interval(self) -> None:
        scores = table([[[1.0], [2.0]]])
        [a, b] = model_scores(scores, plan(scores))
        assert (a.value, b.rank) == (1.0, 1)
        assert math.isnan(a.ci_low)

    @pytest.mark.parametrize(
        ("scores", "reason"),
        [([[[1.0, 2.0], [3.0, 4.0]]], "one seed"), ([[[1.0, 2.0]]] * 2, "fewer than two models")],
    )
    def test_without_two_seeds_and_models_there_is_no_verdict(
        self, scores: object, reason: str
    ) -> None:
        found = stability(table(scores), plan(table(scores)))
        assert found.over_seeds.stable is None
        assert math.isnan(found.stable_share)
        assert found.note == f"nothing to compare: {reason}"

    def test_a_clear_order_is_stable_in_every_resample_and_a_reversed_one_in_none(self) -> None:
        low, high = np.zeros(20), np.ones(20)
        same, reverse = table([[low, high]] * 2), table([[low, high], [high, low]])
        assert stability(same, plan(same)).stable_share == 1.0
        assert stability(reverse, plan(reverse)).stable_share == 0.0

    def test_an_order_by_a_hair_is_stable_in_some_resamples_only(self) -> None:
        rng = np.random.default_rng(0)
        noisy = rng.normal(0, 1, (3, 2, 50))
        found = stability(table(noisy), plan(table(noisy)))
        assert 0.0 < found.stable_share < 1.0

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

    def test_one_prompt_gives_a_ranking_but_no_interval(self) -> None:
        scores = table([[[1.0], [2.0]]] * 2)
        found = stability(scores, plan(scores))
        assert found.over_seeds.stable is True
        assert math.isnan(found.stable_share)
        assert math.isnan(found.kendall_w.low)
        assert found.note == "no intervals: one prompt"


class TestPerturbation:
    def test_every_channel_below_255_grows_by_one(self) -> None:
        image = np.array([[[0, 1, 254], [255, 128, 255]]], np.uint8)
        changed = plus_one(image)
        assert changed.tolist() == [[[1, 2, 255], [255, 129, 255]]]
        assert changed.dtype == np.uint8
        assert image[0, 0, 0] == 0  # the original is left alone

    @given(arrays(np.uint8, st.tuples(st.integers(0, 4), st.integers(0, 4), st.just(3))))
    def test_it_is_the_rule_of_the_paper_for_any_image(self, image: np.ndarray) -> None:
        expected = [v if v == 255 else v + 1 for v in image.ravel().tolist()]
        assert plus_one(image).ravel().tolist() == expected

    def test_an_image_that_is_not_8_bit_is_refused(self) -> None:
        with pytest.raises(ValueError, match="float64"):
            plus_one(np.zeros((2, 2, 3)))  # type: ignore[arg-type]

    def test_mean_and_largest_change_leave_missing_scores_out(self) -> None:
        scores = table(
            [[[0.5, 0.5, 0.5, np.nan], [0.1, 0.1, 0.1, 0.1]]],
            [[[0.6, 0.2, np.nan, 0.5], [np.nan] * 4]],
        )
        [found] = perturbations(scores, plan(scores))
        assert (found.model, found.n_units, found.n_missing) == ("A", 2, 2)
        assert found.mean == pytest.approx(0.2)
        assert found.largest == pytest.approx(0.3)
        assert found.ci_low <= found.mean <= found.ci_high

    def test_perturbed_images_of_which_no_original_is_scored_give_no_change(self) -> None:
        scores = table([[[np.nan, np.nan]]], [[[0.1, 0.2]]])
        [found] = perturbations(scores, plan(scores))
        assert math.isnan(found.mean)
        assert (found.n_units, found.n_missing) == (0, 2)


class TestSignificance:
    def test_a_significant_difference_may_come_with_ratios_of_one_half(self) -> None:
        wins = np.where(np.arange(1000) % 2 == 0, 0.3, -0.2)
        scores = table([[0.5 + wins, np.full(1000, 0.5)]])
        [found] = comparisons(scores, plan(scores))
        assert found.relation == ">"
        assert found.p_value < 0.05
        assert (found.r_ab, found.r_ba) == (0.5, 0.5)
        assert found.difference == pytest.approx(0.05)
        assert 0 < found.ci_low < 0.05 < found.ci_high

    def test_equal_scores_throughout_are_no_difference(self) -> None:
        scores = table([[[0.3, 0.7, 0.1]] * 2])
        [found] = comparisons(scores, plan(scores))
        assert (found.relation, found.t, found.p_value, found.wilcoxon_p) == ("=", 0.0, 1.0, 1.0)
        assert (found.r_ab, found.r_ba, found.difference) == (0.0, 0.0, 0.0)

    def test_prompts_without_one_of_the_scores_are_left_out_and_counted(self) -> None:
        scores = table([[[1.0, 2.0, 4.0, np.nan], [0.0, 0.0, np.nan, 9.0]]])
        [found] = comparisons(scores, plan(scores))
        assert (found.n_units, found.n_missing) == (2, 2)
        assert (found.difference, found.r_ab) == (1.5, 1.0)

    @pytest.mark.parametrize("n_prompts", [0, 1])
    def test_fewer_than_two_common_prompts_decide_nothing(self, n_prompts: int) -> None:
        a, b = np.full(3, np.nan), np.ones(3)
        a[:n_prompts] = 5.0
        scores = table([[a, b]])
        [found] = comparisons(scores, plan(scores))
        assert found.relation == "="
        assert math.isnan(found.p_value)
        assert math.isnan(found.ci_low)

    def test_one_model_has_nothing_to_be_compared_with(self) -> None:
        scores = table([[[1.0, 2.0]]])
        assert comparisons(scores, plan(scores)) == ()

    def test_the_worse_model_first_reads_as_less(self) -> None:
        rng = np.random.default_rng(1)
        a = rng.normal(0, 1, 100)
        scores = table([[a, a + 1 + rng.normal(0, 0.1, 100)]])
        [found] = comparisons(scores, plan(scores))
        assert (found.relation, found.r_ba) == ("<", 1.0)

    def test_holm_corrects_for_the_pairs_of_one_metric_and_seed(self) -> None:
        assert holm([0.01, 0.04, 0.03]).tolist() == pytest.approx([0.03, 0.06, 0.06])
        corrected = holm([0.5, math.nan, 0.9])
        assert corrected[[0, 2]].tolist() == [1.0, 1.0]
        assert math.isnan(corrected[1])

    @given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
    def test_holm_lies_between_the_p_value_and_bonferroni(self, values: list[float]) -> None:
        corrected = holm(values)
        assert (corrected >= np.array(values)).all()
        assert (corrected <= np.minimum(1.0, len(values) * np.array(values))).all()


def test_the_report_is_json_without_nan() -> None:
    scores = table([[[1.0], [2.0]]])
    plain = report([scores], 20).to_json()
    assert plain["stability"][0]["over_seeds"]["stable"] is None
    assert plain["scores"][0]["ci_low"] is None
    assert plain["comparisons"][0]["p_value"] is None
    assert plain["perturbation"] == []


@pytest.mark.paper
def test_tifa160_ratings_of_two_models_differ_by_the_published_test(assay_data: Path) -> None:
    """Human means of TIFA160, Stable Diffusion 1.5 against 2.1, by our reading of the file."""
    frame = pd.read_json(
        assay_data / "tifa160" / "human_annotations_with_scores.json", orient="index"
    )
    model = frame.index.str.extract(r"(stable_diffusion_v1_5|stable_diffusion_v2_1)$")[0]
    chosen = frame.assign(model=model.to_numpy()).dropna(subset="model")
    [scores] = tabulate(
        pd.DataFrame(
            {
                "metric": "human",
                "model": chosen["model"],
                "seed": "0",
                "prompt_id": chosen["text_id"],
                "score": chosen["human_avg"],
            }
        )
    )
    [found] = comparisons(scores, plan(scores), level=0.001)
    assert found.n_units == 160
    sign = 1 if found.model_a.endswith("1_5") else -1
    assert sign * found.t == pytest.approx(-2.8578, abs=5e-5)
    assert found.p_value == pytest.approx(4.84e-3, abs=5e-6)
    assert found.wilcoxon_w == 1432.5
    assert found.wilcoxon_p == pytest.approx(5.24e-3, abs=5e-6)
    assert sorted([round(found.r_ab, 4), round(found.r_ba, 4)]) == [0.2188, 0.3563]
    assert found.relation == "="
