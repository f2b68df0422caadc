"""The CROC protocol: worked examples, its rules, and a slow implementation of its formulas."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.croc.answers import CrocAnswers, PromptPair, pair_id
from benchmarks.croc.contrasts import DIRECTIONS, compare
from benchmarks.croc.protocol import CELLS, FACETS, MEASURES, measure
from benchmarks.rows import Measured, Row
from benchmarks.schema import ScoreTable
from benchmarks.statistics.resampling import ResamplingPlan

NAN = float("nan")


def prompt_pair(name: str, n_original: int, n_contrast: int) -> PromptPair:
    return PromptPair(
        id=name,
        category=name.rpartition("_")[0],
        prompt="a",
        contrast="b",
        original_images=tuple(f"{name}-o{i}" for i in range(n_original)),
        contrast_images=tuple(f"{name}-c{i}" for i in range(n_contrast)),
    )


def answers_of(pairs: Iterable[PromptPair]) -> CrocAnswers:
    pairs = tuple(pairs)
    stems = [stem for pair in pairs for stem in (*pair.original_images, *pair.contrast_images)]
    ids = tuple(pair_id(stem, text) for stem in stems for text in ("orig", "contrast"))
    return CrocAnswers(ids, tuple(pair.id for pair in pairs), pairs)


def one_pair_scores(
    o_orig: list[float], o_contrast: list[float], c_orig: list[float], c_contrast: list[float]
) -> tuple[ScoreTable, CrocAnswers]:
    """Scores of a single prompt pair `x_1`: images O and C, each with both texts."""
    answers = answers_of([prompt_pair("x_1", len(o_orig), len(c_orig))])
    values = {}
    for group, originals, contrasts in (("o", o_orig, o_contrast), ("c", c_orig, c_contrast)):
        for i, (original, contrast) in enumerate(zip(originals, contrasts, strict=True)):
            values[f"x_1-{group}{i}|orig"] = original
            values[f"x_1-{group}{i}|contrast"] = contrast
    frame = pd.DataFrame({"m": values}, index=list(answers.pair_ids))
    return ScoreTable(frame), answers


def accuracies(scores: ScoreTable, answers: CrocAnswers) -> dict[str, float]:
    return {name: float(o.accuracy[0, 0]) for name, o in compare(scores, answers).items()}


def random_case(seed: int) -> tuple[ScoreTable, CrocAnswers, ResamplingPlan]:
    rng = np.random.default_rng(seed)
    sizes = {"shapes": 4, "counting": 2, "negation": 6}
    pairs = [
        prompt_pair(f"{category}_{k}", int(rng.integers(1, 4)), int(rng.integers(1, 4)))
        for category, n in sizes.items()
        for k in range(n)
    ]
    pairs += [prompt_pair("shapes_90", 2, 0), prompt_pair("counting_91", 0, 3)]
    answers = answers_of(pairs)
    values = rng.integers(0, 6, (len(answers.pair_ids), 3)).astype(float)
    values[rng.random(values.shape) < 0.05] = NAN
    frame = pd.DataFrame(values, index=list(answers.pair_ids), columns=["m0", "m1", "m2"])
    return ScoreTable(frame), answers, ResamplingPlan(answers.clusters, 7, 20)


def row_of(measured: Measured, **wanted: object) -> Row:
    defaults: dict[str, object] = {"metric": "m0", "skill": None, "variant": "paper"}
    found = [
        row
        for row in measured.rows
        if all(getattr(row, key) == value for key, value in {**defaults, **wanted}.items())
    ]
    assert len(found) == 1, found
    return found[0]


def slow_accuracy(
    scores: pd.Series, answers: CrocAnswers, direction: str, draws: dict[str, float] | None = None
) -> dict[str, float]:
    """Category means by the formulas of the paper, prompt pairs repeated as drawn."""

    def m(stem: str, text: str) -> float:
        return float(scores[f"{stem}|{text}"])

    by_category: dict[str, list[float]] = {}
    for pair in answers.prompt_pairs:
        o, c = pair.original_images, pair.contrast_images
        right = {
            "forward_text": [m(i, "orig") > m(i, "contrast") for i in o],
            "inverse_text": [m(i, "contrast") > m(i, "orig") for i in c],
            "forward_image": [m(i, "orig") > m(j, "orig") for i in o for j in c],
            "inverse_image": [m(i, "contrast") > m(j, "contrast") for i in c for j in o],
        }[direction]
        times = 1 if draws is None else int(draws[pair.id])
        if right:
            by_category.setdefault(pair.category, []).extend([float(np.mean(right))] * times)
    return {category: float(np.mean(v)) for category, v in by_category.items() if v}


def test_figure_7_image_based_forward_is_one_half() -> None:
    found = accuracies(*one_pair_scores([18.3, 16.8], [0, 0], [17.2, 18.2], [0, 0]))
    assert found["forward_image"] == 0.5


def test_figure_6_alignscore() -> None:
    found = accuracies(
        *one_pair_scores(
            o_orig=[13.9, 14.4, 14.1, 13.7, 12.8],
            o_contrast=[14.3, 14.7, 14.6, 14.6, 13.7],
            c_orig=[14.9, 15.2, 15.7, 13.9, 14.6],
            c_contrast=[12.7, 13.0, 13.9, 11.7, 12.5],
        )
    )
    assert found == {
        "forward_text": 0.0,
        "inverse_text": 0.0,
        "forward_image": pytest.approx(2 / 25),
        "inverse_image": pytest.approx(1 / 25),
    }


def test_a_tie_is_a_failure_in_every_direction() -> None:
    assert set(accuracies(*one_pair_scores([1], [1], [1], [1])).values()) == {0.0}


def test_a_missing_score_is_a_failure_and_is_counted() -> None:
    scores, answers = one_pair_scores([2, NAN], [1, 1], [0], [3])
    measured = measure(scores, answers, ResamplingPlan(answers.clusters, 1, 5), "b", "r")
    row = row_of(measured, metric="m", measure="accuracy", facet="forward_text")
    assert (row.value, row.n_items, row.n_missing) == (0.5, 2, 1)
    assert row.note.startswith("missing scores, whose comparisons count as failures: 1")
    summary = row_of(measured, metric="m", measure="scaled_accuracy", facet=None, variant="assay")
    assert summary.n_missing == 1


def test_a_lower_is_better_metric_is_turned_round() -> None:
    scores, answers = one_pair_scores([-2], [-1], [-1], [-2])
    turned = ScoreTable(scores.overall, directions={"m": -1})
    assert accuracies(scores, answers)["forward_text"] == 0.0
    assert set(accuracies(turned, answers).values()) == {1.0}


def test_a_prompt_pair_without_contrast_images_counts_in_forward_text_only() -> None:
    answers = answers_of([prompt_pair("x_1", 2, 0)])
    scores = ScoreTable(pd.DataFrame({"m": [2.0, 1.0, 2.0, 1.0]}, index=list(answers.pair_ids)))
    measured = measure(scores, answers, ResamplingPlan(answers.clusters, 1, 5), "b", "r")
    forward = row_of(measured, metric="m", measure="accuracy", facet="forward_text")
    image = row_of(measured, metric="m", measure="accuracy", facet="forward_image")
    assert (forward.value, forward.n_clusters) == (1.0, 1)
    assert np.isnan(image.value)
    assert (image.n_clusters, image.n_items) == (0, 0)
    assert image.note == "no prompt pair has the images this direction compares"


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_values_and_resamples_equal_the_slow_formulas(direction: str) -> None:
    scores, answers, plan = random_case(3)
    measured = measure(scores, answers, plan, "b", "r")
    for metric in scores.metrics:
        row = row_of(measured, metric=metric, measure="accuracy", facet=direction)
        column = scores.overall[metric]
        categories = slow_accuracy(column, answers, direction)
        assert row.value == pytest.approx(np.mean(list(categories.values())))
        for category, value in categories.items():
            part = row_of(
                measured, metric=metric, measure="accuracy", facet=direction, skill=category
            )
            assert part.value == pytest.approx(value)
        resamples = measured.resamples[measured.rows.index(row)]
        for b in range(plan.n_resamples):
            draws = dict(zip(plan.clusters, plan.counts[b], strict=True))
            drawn = slow_accuracy(column, answers, direction, draws)
            assert resamples[b] == pytest.approx(np.mean(list(drawn.values())), abs=1e-6)


def test_the_published_cell_is_the_scaled_mean_of_forward_and_inverse() -> None:
    scores, answers, plan = random_case(4)
    measured = measure(scores, answers, plan, "b", "r")
    for facet, (forward, inverse) in CELLS.items():
        cell = row_of(measured, measure="scaled_accuracy", facet=facet)
        parts = [slow_accuracy(scores.overall["m0"], answers, name) for name in (forward, inverse)]
        expected = {k: (2 * parts[0][k] - 1 + 2 * parts[1][k] - 1) / 2 for k in parts[0]}
        assert cell.value == pytest.approx(np.mean(list(expected.values())))
        for category, value in expected.items():
            part = row_of(measured, measure="scaled_accuracy", facet=facet, skill=category)
            assert part.value == pytest.approx(value)


def test_the_summary_is_the_mean_of_the_text_and_the_image_cell() -> None:
    scores, answers, plan = random_case(5)
    measured = measure(scores, answers, plan, "b", "r")
    rows = list(measured.rows)
    for skill in (None, "shapes", "counting", "negation"):
        text, image = (
            row_of(measured, measure="scaled_accuracy", facet=facet, skill=skill)
            for facet in ("text", "image")
        )
        summary = row_of(
            measured, measure="scaled_accuracy", facet=None, variant="assay", skill=skill
        )
        assert summary.value == pytest.approx((text.value + image.value) / 2)
        np.testing.assert_allclose(
            measured.resamples[rows.index(summary)],
            (measured.resamples[rows.index(text)] + measured.resamples[rows.index(image)]) / 2,
            atol=1e-6,
        )


def test_a_resample_without_a_category_averages_the_others() -> None:
    pairs = [prompt_pair("right_1", 1, 1), prompt_pair("wrong_1", 1, 1)]
    answers = answers_of(pairs)
    values = {pair: (2.0 if pair.endswith("orig") else 1.0) for pair in answers.pair_ids}
    values |= {pair: 0.0 for pair in answers.pair_ids if pair.startswith("wrong")}
    scores = ScoreTable(pd.DataFrame({"m0": values}, index=list(answers.pair_ids)))
    plan = ResamplingPlan(answers.clusters, 2, 40)
    measured = measure(scores, answers, plan, "b", "r")
    row = row_of(measured, measure="accuracy", facet="forward_text")
    only_right = plan.counts[:, 1] == 0
    only_wrong = plan.counts[:, 0] == 0
    assert only_right.any()
    expected = np.where(only_right, 1.0, np.where(only_wrong, 0.0, 0.5))
    np.testing.assert_array_equal(measured.resamples[measured.rows.index(row)], expected)


def test_cluster_values_average_to_the_category_value() -> None:
    scores, answers, plan = random_case(6)
    measured = measure(scores, answers, plan, "b", "r")
    row = row_of(measured, measure="accuracy", facet="inverse_image", skill="negation")
    behind = measured.clusters[measured.clusters["row"] == measured.rows.index(row)]
    assert len(behind) == row.n_clusters == 6
    assert behind["value"].mean() == pytest.approx(row.value)


def test_every_row_is_explained_and_carries_an_interval() -> None:
    scores, answers, plan = random_case(8)
    for row in measure(scores, answers, plan, "croc", "r1").rows:
        assert (row.benchmark, row.revision, row.split) == ("croc", "r1", None)
        assert row.measure in MEASURES
        assert row.facet is None or row.facet in FACETS
        assert row.ci_low <= row.ci_high


def test_long_and_short_prompts_are_also_measured_apart() -> None:
    short = [prompt_pair("a_1", 1, 1), prompt_pair("b_1", 1, 1)]
    long = replace(prompt_pair("a_2", 1, 1), prompt="x" * 281)
    answers = answers_of([*short, long])
    values = {pair: float(pair.startswith("a_2") and "orig" in pair) for pair in answers.pair_ids}
    scores = ScoreTable(pd.DataFrame({"m0": values}, index=list(answers.pair_ids)))
    measured = measure(scores, answers, ResamplingPlan(answers.clusters, 2, 40), "b", "r")

    def value(split: str | None, skill: str | None) -> float:
        facet = "forward_text"
        return row_of(measured, measure="accuracy", facet=facet, split=split, skill=skill).value

    assert (value("over_280", None), value("up_to_280", None)) == (1.0, 0.0)
    assert (value(None, "a"), value("over_280", "a"), value("up_to_280", "a")) == (0.5, 1.0, 0.0)
    assert not [row for row in measured.rows if row.split == "over_280" and row.skill == "b"]


def test_without_long_prompts_there_are_no_splits() -> None:
    scores, answers, plan = random_case(1)
    assert {row.split for row in measure(scores, answers, plan, "b", "r").rows} == {None}


@given(st.data())
def test_accuracies_equal_the_slow_formulas_on_anything(data: st.DataObject) -> None:
    sizes = data.draw(
        st.lists(
            st.tuples(st.sampled_from("ab"), st.integers(0, 3), st.integers(0, 3)),
            min_size=1,
            max_size=4,
        )
    )
    answers = answers_of(prompt_pair(f"{c}_{k}", o, n) for k, (c, o, n) in enumerate(sizes))
    score = st.sampled_from([0.0, 1.0, 2.0, NAN])
    n = len(answers.pair_ids)
    values = data.draw(st.lists(score, min_size=n, max_size=n))
    frame = pd.DataFrame({"m0": values}, index=list(answers.pair_ids), dtype=np.float64)
    measured = measure(ScoreTable(frame), answers, ResamplingPlan(answers.clusters, 1, 3), "b", "r")
    for direction in DIRECTIONS:
        expected = slow_accuracy(frame["m0"], answers, direction)
        row = row_of(measured, measure="accuracy", facet=direction)
        if expected:
            assert row.value == pytest.approx(np.mean(list(expected.values())))
        else:
            assert np.isnan(row.value)
            assert row.note


@pytest.mark.parametrize("score", [1.0, NAN])
def test_a_metric_that_says_the_same_or_nothing_is_never_right(score: float) -> None:
    _, answers, plan = random_case(2)
    frame = pd.DataFrame({"m0": score}, index=list(answers.pair_ids))
    measured = measure(ScoreTable(frame), answers, plan, "b", "r")
    for row in measured.rows:
        assert row.value == (0.0 if row.measure == "accuracy" else -1.0)
        assert (row.n_missing > 0) == np.isnan(score)


def test_a_category_without_the_images_compared_is_left_out_and_named() -> None:
    answers = answers_of(
        [prompt_pair("a_1", 2, 2), prompt_pair("a_2", 1, 2), prompt_pair("b_1", 2, 0)]
    )
    values = np.arange(len(answers.pair_ids), dtype=float)
    scores = ScoreTable(pd.DataFrame({"m": values}, index=list(answers.pair_ids)))
    plan = ResamplingPlan(answers.clusters, seed=1, n_resamples=20)
    rows = {
        (r.measure, r.facet, r.skill): r
        for r in measure(scores, answers, plan, "croc_hum", "r").rows
    }
    left_out = "categories left out for want of images to compare: b"
    assert left_out not in rows["accuracy", "forward_text", None].note
    for key in (("accuracy", "inverse_text", None), ("scaled_accuracy", "text", None)):
        assert left_out in rows[key].note
    assert rows["scaled_accuracy", "text", None].value == rows["scaled_accuracy", "text", "a"].value
    undefined = rows["scaled_accuracy", "text", "b"]
    assert np.isnan(undefined.value)
    assert undefined.note.startswith("undefined: no category has the images")


def test_where_all_prompts_are_long_there_is_no_row_for_short_ones() -> None:
    pairs = [replace(prompt_pair(name, 1, 1), prompt="x" * 281) for name in ("a_1", "b_1")]
    answers = answers_of(pairs)
    values = dict.fromkeys(answers.pair_ids, 0.5)
    scores = ScoreTable(pd.DataFrame({"m0": values}, index=list(answers.pair_ids)))
    rows = measure(scores, answers, ResamplingPlan(answers.clusters, 2, 40), "b", "r").rows
    assert {row.split for row in rows} == {None, "over_280"}
    whole = [replace(row, split=None) for row in rows if row.split == "over_280"]
    assert [row.to_json() for row in whole] == [row.to_json() for row in rows if not row.split]


def test_no_prompt_pairs_are_no_rows() -> None:
    nothing = ScoreTable(pd.DataFrame({"m0": pd.Series(dtype=float)}))
    assert measure(nothing, answers_of([]), ResamplingPlan((), 2, 40), "b", "r").rows == ()
