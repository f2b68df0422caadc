"""Protocol of CROC: worked examples, its rules, its scale, and a slow implementation."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.croc.load import CrocAnswers, PromptPair, pair_id
from benchmarks.croc.measures import DIRECTIONS, LONG, SHORT, compare, length_split, scale
from benchmarks.croc.protocol import CELLS, FACETS, MEASURES, measure
from benchmarks.rows import Measured
from benchmarks.schema import ScoreTable
from benchmarks.statistics.resampling import ResamplingPlan
from tests.benchmarks.checks import row_of

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


def rows_of(values: object, answers: CrocAnswers, seed: int = 2, n_resamples: int = 40) -> Measured:
    frame = pd.DataFrame({"m0": values}, index=list(answers.pair_ids), dtype=np.float64)
    plan = ResamplingPlan(answers.clusters, seed, n_resamples)
    return measure(ScoreTable(frame), answers, plan, "b", "r")


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


FIGURE_6 = (
    [13.9, 14.4, 14.1, 13.7, 12.8],
    [14.3, 14.7, 14.6, 14.6, 13.7],
    [14.9, 15.2, 15.7, 13.9, 14.6],
    [12.7, 13.0, 13.9, 11.7, 12.5],
)


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        (FIGURE_6, (0.0, 0.0, 2 / 25, 1 / 25)),  # AlignScore
        (([18.3, 16.8], [0, 0], [17.2, 18.2], [0, 0]), (1.0, 0.0, 0.5, 0.0)),  # Figure 7
        (([1], [1], [1], [1]), (0.0,) * 4),  # a tie is a failure
    ],
)
def test_directions_of_one_pair(
    scores: tuple[list[float], ...], expected: tuple[float, ...]
) -> None:
    table, answers = one_pair_scores(*scores)
    found = compare(table, answers).values()
    assert [o.accuracy.item() for o in found] == pytest.approx(expected)


def test_a_lower_is_better_metric_is_turned_round() -> None:
    scores, answers = one_pair_scores([-2], [-1], [-1], [-2])
    turned = ScoreTable(scores.overall, directions={"m": -1})
    for table, expected in ((scores, 0.0), (turned, 1.0)):
        assert {o.accuracy.item() for o in compare(table, answers).values()} == {expected}


def test_a_missing_score_is_a_failure_and_is_counted() -> None:
    scores, answers = one_pair_scores([2, NAN], [1, 1], [0], [3])
    measured = rows_of(scores.overall["m"], answers)
    row = row_of(measured, measure="accuracy", facet="forward_text")
    assert (row.value, row.n_items, row.n_missing) == (0.5, 2, 1)
    assert "failures: 1" in row.note
    summary = row_of(measured, measure="scaled_accuracy", facet=None, variant="assay")
    assert summary.n_missing == 1


def test_values_and_resamples_equal_the_slow_formulas() -> None:
    scores, answers, plan = random_case(3)
    measured = measure(scores, answers, plan, "b", "r")
    for metric, direction in product(scores.metrics, DIRECTIONS):
        wanted = {"metric": metric, "measure": "accuracy", "facet": direction}
        row = row_of(measured, **wanted)
        column = scores.overall[metric]
        categories = slow_accuracy(column, answers, direction)
        assert row.value == pytest.approx(np.mean(list(categories.values())))
        for category, value in categories.items():
            assert row_of(measured, skill=category, **wanted).value == pytest.approx(value)
        for b, found in enumerate(measured.resamples[measured.rows.index(row)]):
            draws = dict(zip(plan.clusters, plan.counts[b], strict=True))
            drawn = slow_accuracy(column, answers, direction, draws)
            assert found == pytest.approx(np.mean(list(drawn.values())), abs=1e-6)
    one = {"metric": "m0", "measure": "scaled_accuracy"}
    for facet, directions in CELLS.items():
        first, second = (slow_accuracy(scores.overall["m0"], answers, d) for d in directions)
        expected = {k: first[k] + second[k] - 1 for k in first}
        cell = row_of(measured, facet=facet, **one)
        assert cell.value == pytest.approx(np.mean(list(expected.values())))
        for category, value in expected.items():
            found = row_of(measured, facet=facet, skill=category, **one).value
            assert found == pytest.approx(value)
    for skill in (None, "shapes", "counting", "negation"):
        cells = [row_of(measured, facet=f, skill=skill, **one) for f in ("text", "image")]
        summary = row_of(measured, facet=None, variant="assay", skill=skill, **one)
        assert summary.value == pytest.approx(np.mean([cell.value for cell in cells]))
        drawn, *parts = (measured.resamples[measured.rows.index(row)] for row in (summary, *cells))
        np.testing.assert_allclose(drawn, np.mean(parts, axis=0), atol=1e-6)


def test_every_row_is_explained_and_carries_an_interval_and_its_clusters() -> None:
    scores, answers, plan = random_case(8)
    measured = measure(scores, answers, plan, "croc", "r1")
    for row in measured.rows:
        assert (row.benchmark, row.revision, row.split) == ("croc", "r1", None)
        assert row.measure in MEASURES
        assert row.facet is None or row.facet in FACETS
        assert row.ci_low <= row.ci_high
    wanted = {"metric": "m0", "measure": "accuracy", "facet": "inverse_image"}
    row = row_of(measured, skill="negation", **wanted)
    behind = measured.clusters[measured.clusters["row"] == measured.rows.index(row)]
    assert len(behind) == row.n_clusters == 6
    assert behind["value"].mean() == pytest.approx(row.value)


def test_long_and_short_prompts_are_also_measured_apart() -> None:
    short = [prompt_pair("a_1", 1, 1), prompt_pair("b_1", 1, 1)]
    long = replace(prompt_pair("a_2", 1, 1), prompt="x" * 281)
    answers = answers_of([*short, long])
    right = [float(pair.startswith("a_2") and "orig" in pair) for pair in answers.pair_ids]
    measured = rows_of(right, answers)

    def value(split: str | None, skill: str | None) -> float:
        wanted = {"measure": "accuracy", "facet": "forward_text", "split": split, "skill": skill}
        return row_of(measured, **wanted).value

    assert (value("over_280", None), value("up_to_280", None)) == (1.0, 0.0)
    assert (value(None, "a"), value("over_280", "a"), value("up_to_280", "a")) == (0.5, 1.0, 0.0)
    assert not [row for row in measured.rows if row.split == "over_280" and row.skill == "b"]


def test_where_all_prompts_are_long_there_is_no_row_for_short_ones() -> None:
    pairs = [replace(prompt_pair(name, 1, 1), prompt="x" * 281) for name in ("a_1", "b_1")]
    rows = rows_of(0.5, answers_of(pairs)).rows
    assert {row.split for row in rows} == {None, "over_280"}
    whole = [replace(row, split=None) for row in rows if row.split == "over_280"]
    assert [row.to_json() for row in whole] == [row.to_json() for row in rows if not row.split]


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
    measured = rows_of(values, answers, 1, 3)
    column = pd.Series(values, list(answers.pair_ids), dtype=float)
    for direction in DIRECTIONS:
        expected = slow_accuracy(column, answers, direction)
        row = row_of(measured, measure="accuracy", facet=direction)
        if expected:
            assert row.value == pytest.approx(np.mean(list(expected.values())))
        else:
            assert np.isnan(row.value)
            assert row.note


@pytest.mark.parametrize("score", [1.0, NAN])
def test_a_metric_that_says_the_same_or_nothing_is_never_right(score: float) -> None:
    for row in rows_of(score, random_case(2)[1]).rows:
        assert row.value == (0.0 if row.measure == "accuracy" else -1.0)
        assert (row.n_missing > 0) == np.isnan(score)


def test_a_category_without_the_images_compared_is_left_out_and_named() -> None:
    answers = answers_of(
        [prompt_pair("a_1", 2, 2), prompt_pair("a_2", 1, 2), prompt_pair("b_1", 2, 0)]
    )
    measured = rows_of(np.arange(len(answers.pair_ids), dtype=float), answers)
    rows = {(r.measure, r.facet, r.skill): r for r in measured.rows}
    left_out = "images to compare: b"
    assert left_out not in rows["accuracy", "forward_text", None].note
    for key in (("accuracy", "inverse_text", None), ("scaled_accuracy", "text", None)):
        assert left_out in rows[key].note
    assert rows["scaled_accuracy", "text", None].value == rows["scaled_accuracy", "text", "a"].value
    undefined = rows["scaled_accuracy", "text", "b"]
    assert np.isnan(undefined.value)
    assert undefined.note.startswith("undefined")


def test_no_prompt_pairs_are_no_rows() -> None:
    assert rows_of(pd.Series(dtype=float), answers_of([])).rows == ()


@pytest.mark.parametrize(
    ("accuracy", "scaled"),
    [
        *((0.0, -1.0), (0.4, -0.52), (5 / 6, 0.0), (0.9, 0.4), (1.0, 1.0)),
        # CROC Table 1, forward text-based: printed values and the accuracies they stand for.
        *((0.8418, 0.051), (0.9172, 0.503), (0.5792, -0.305), (0.9942, 0.965)),
    ],
)
def test_text_based_accuracies_have_zero_at_five_sixths(accuracy: float, scaled: float) -> None:
    assert round(float(scale(accuracy, 5 / 6)), 3) == scaled


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0.01, 0.99))
def test_scaling_never_turns_the_order_round(a: float, b: float, chance: float) -> None:
    low, high = sorted((a, b))
    assert -1.0 <= scale(low, chance) <= scale(high, chance) <= 1.0
    assert scale(a, 0.5) == 2.0 * a - 1.0
    np.testing.assert_array_equal(
        scale(np.array([[0.0, NAN], [0.5, 1.0]]), 0.5), [[-1, NAN], [0, 1]]
    )


@pytest.mark.parametrize("chance", [0.0, 1.0, -0.1, NAN])
def test_a_guess_that_is_always_or_never_right_has_no_scale(chance: float) -> None:
    with pytest.raises(ValueError, match="between"):
        scale(0.5, chance)


def test_a_prompt_of_280_characters_is_short_and_one_more_makes_it_long() -> None:
    assert (length_split("x" * 280), length_split("x" * 281)) == (SHORT, LONG)
    assert length_split("é" * 280) == SHORT  # characters, not bytes
