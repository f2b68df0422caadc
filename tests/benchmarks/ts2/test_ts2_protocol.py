"""The TS2 protocol on graphs small enough to compute by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from random import Random

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.rows import Measured, Row
from benchmarks.schema import ScoreTable
from benchmarks.statistics.resampling import ResamplingPlan
from benchmarks.ts2.answers import Ts2Answers
from benchmarks.ts2.graph_measures import KEYS, Graph, MeasureKey
from benchmarks.ts2.measures import MEASURES
from benchmarks.ts2.protocol import graph_values, measure
from benchmarks_perf.ts2_protocol import plain_evaluation, random_answers, random_scores

NAN = math.nan
Node = tuple[str, int]
"""Label of a node and how many images it holds."""


def values_of(labels: Sequence[str], scores: Sequence[float]) -> dict[MeasureKey, float]:
    """Every measure of one metric on one graph; the level is the label's number."""
    levels = np.array([int(label.rstrip("abcdef")) for label in labels])
    found = Graph(levels, labels).measures(np.array(scores, dtype=float)[:, None])
    return {key: float(found[key][0]) for key in KEYS}


def answers_of(
    graphs: Mapping[str, tuple[str, str, Sequence[str]]], not_in_paper: Sequence[str] = ()
) -> Ts2Answers:
    """Graphs given as id to (split, skill, labels)."""
    rows = [
        (f"{graph}-{image}", graph, label, int(label.rstrip("abcdef")), split, skill)
        for graph, (split, skill, labels) in graphs.items()
        for image, label in enumerate(labels)
    ]
    names = ["pair_id", "graph", "label", "level", "split", "skill"]
    nodes = pd.DataFrame(rows, columns=names)
    return Ts2Answers(tuple(nodes["pair_id"]), tuple(graphs), nodes, frozenset(not_in_paper))


def rows_of(
    answers: Ts2Answers, scores: Mapping[str, Sequence[float]], **more: Mapping
) -> tuple[Measured, dict[tuple, Row]]:
    table = ScoreTable(pd.DataFrame(scores, index=list(answers.pair_ids), dtype=float), **more)
    plan = ResamplingPlan(answers.clusters, seed=1, n_resamples=50)
    measured = measure(table, answers, plan, "toy", "r1")
    keyed = {(r.metric, r.split, r.skill, r.measure, r.variant): r for r in measured.rows}
    assert len(keyed) == len(measured.rows)
    return measured, keyed


# One graph


def test_scores_that_fall_with_every_error_are_perfect() -> None:
    found = values_of(["0", "1a", "2a"], [3.0, 2.0, 1.0])
    assert found["rank", "equation"] == pytest.approx(1.0)
    assert found["rank_midrank", "equation"] == pytest.approx(1.0)
    assert found["rank", "paper"] == pytest.approx(1.0)
    assert found["sep", "paper"] == found["sep", "equation"] == 1.0
    assert found["delta", "paper"] == found["delta", "equation"] == 1.0


def test_scores_that_rise_with_every_error_are_perfectly_wrong_but_separate() -> None:
    found = values_of(["0", "1a", "2a"], [1.0, 2.0, 3.0])
    assert found["rank", "paper"] == found["rank", "equation"] == pytest.approx(-1.0)
    assert found["sep", "paper"] == found["sep", "equation"] == 1.0
    assert found["delta", "paper"] == found["delta", "equation"] == -1.0


def test_the_worked_example_of_section_6_4_is_perfect_with_average_ranks_only() -> None:
    found = values_of(["0", "1a", "1a", "2a"], [1.0, 0.5, 0.5, 0.0])
    assert found["rank_midrank", "equation"] == pytest.approx(1.0)
    # Eq. 1: ranks of the errors 0 1 1 3, of the scores 3 1 1 0.
    assert found["rank", "equation"] == pytest.approx(17 / 19)


def test_the_root_enters_a_walk_of_the_paper_twice() -> None:
    # The sample is 0, 0, 1, 2 with scores 2, 2, 3, 1; centred ranks of the errors are
    # -1 -1 .5 1.5 and of the scores 0 0 1.5 -1.5.
    found = values_of(["0", "1a", "2a"], [2.0, 3.0, 1.0])
    assert found["rank", "paper"] == pytest.approx(1.5 / math.sqrt(4.5 * 4.5))
    assert found["rank_midrank", "equation"] == pytest.approx(0.5)


def test_two_roots_make_four_pairs_of_roots() -> None:
    # Root pairs aa, ab, ba, bb with root means 4, 3, 3, 2, each with two root images.
    found = values_of(["0a", "0b", "1"], [4.0, 2.0, 1.0])
    assert found["delta", "paper"] == pytest.approx((3 + 2 + 2 + 1) / 4)
    assert found["delta", "equation"] == pytest.approx((3 + 1) / 2)


def test_longer_walks_weigh_more_in_the_paper_and_alike_in_the_equations() -> None:
    # Node 1a has one image (walk size 2 + 1), node 1b three (walk size 2 + 3).
    found = values_of(["0", "1a", "1b", "1b", "1b"], [1.0, 0.0, 2.0, 2.0, 2.0])
    assert found["delta", "paper"] == pytest.approx((3 * 1 + 5 * -1) / 8)
    assert found["delta", "equation"] == pytest.approx(0.0)


def test_separation_of_the_paper_compares_all_levels_and_of_the_equations_neighbours() -> None:
    # KS of levels 0-1: 1/2, 1-2: 1/2, 0-2: 1.
    found = values_of(["0", "0", "1", "1", "2", "2"], [4.0, 3.0, 3.0, 2.0, 2.0, 1.0])
    assert found["sep", "paper"] == pytest.approx((0.5 + 0.5 + 1.0) / 3)
    assert found["sep", "equation"] == pytest.approx(0.5)


def test_a_missing_level_makes_its_neighbours_adjacent() -> None:
    found = values_of(["0", "2a", "3a"], [5.0, 3.0, 2.0])
    assert found["delta", "equation"] == found["delta", "paper"] == pytest.approx(1.5)


def test_a_graph_with_one_level_counts_as_zero() -> None:
    assert set(values_of(["0", "0", "0"], [1.0, 2.0, 3.0]).values()) == {0.0}


def test_constant_scores_count_as_zero() -> None:
    assert set(values_of(["0", "1a", "1b", "2"], [0.1] * 4).values()) == {0.0}


def test_nodes_of_one_level_are_alternatives_and_never_pooled() -> None:
    # Pooled, level 1 would overlap level 0; as alternatives one walk is perfect, one inverted.
    found = values_of(["0", "1a", "1b"], [2.0, 1.0, 3.0])
    assert found["rank", "equation"] == pytest.approx(0.0)
    assert found["sep", "equation"] == 1.0


# Missing scores


def test_an_image_without_score_counts_as_if_it_were_not_in_the_graph() -> None:
    labels = ["0", "0", "1a", "1b", "1b", "2"]
    scores = [5.0, 4.0, 3.0, NAN, 4.5, 1.0]
    kept = [i for i, score in enumerate(scores) if not math.isnan(score)]
    without = values_of([labels[i] for i in kept], [scores[i] for i in kept])
    assert values_of(labels, scores) == pytest.approx(without, abs=1e-15)


def test_a_node_without_any_score_is_skipped_in_the_walks_through_it() -> None:
    found = values_of(["0", "1a", "2a"], [5.0, NAN, 1.0])
    assert found["delta", "equation"] == found["delta", "paper"] == pytest.approx(4.0)
    assert found["rank", "paper"] == pytest.approx(1.0)


def test_a_graph_without_any_score_is_undefined() -> None:
    assert all(math.isnan(value) for value in values_of(["0", "1"], [NAN, NAN]).values())


def test_a_single_score_is_no_walk_for_the_rank_of_the_paper() -> None:
    found = values_of(["0", "1", "2"], [NAN, 3.0, NAN])
    assert math.isnan(found["rank", "paper"])
    assert found["sep", "paper"] == found["delta", "paper"] == found["rank", "equation"] == 0.0


def test_missing_scores_of_one_metric_do_not_touch_another() -> None:
    labels, levels = ["0", "1a", "1b", "2"], np.array([0, 1, 1, 2])
    complete = np.array([4.0, 3.0, 3.5, 1.0])
    holed = np.where([False, True, False, False], NAN, complete)
    both = Graph(levels, labels).measures(np.stack([holed, complete], axis=1))
    for key in KEYS:
        assert both[key][1] == pytest.approx(values_of(labels, complete.tolist())[key])
        assert both[key][0] == pytest.approx(values_of(labels, holed.tolist())[key])


# Rows


TOY = {
    "a": ("easy", "count", ["0", "1", "2"]),
    "b": ("easy", "colour", ["0", "1"]),
    "c": ("hard", "count", ["0", "1"]),
}
TOY_SCORES = [3.0, 2.0, 1.0, 2.0, 1.0, 1.0, 2.0]


def test_rows_cover_all_splits_and_skills_in_both_variants() -> None:
    _, rows = rows_of(answers_of(TOY), {"m": TOY_SCORES})
    parts = {("all", None), ("easy", None), ("hard", None), ("all", "count"), ("all", "colour")}
    assert {key[1:3] for key in rows} == parts
    assert {key[3:] for key in rows} == set(KEYS)
    assert {row.measure for row in rows.values()} == set(MEASURES)
    assert {(row.benchmark, row.revision, row.metric) for row in rows.values()} == {
        ("toy", "r1", "m")
    }


def test_a_value_is_the_plain_mean_over_the_graphs_of_a_part() -> None:
    _, rows = rows_of(answers_of(TOY), {"m": TOY_SCORES})
    value = {key[1:3]: row.value for key, row in rows.items() if key[3:] == ("rank", "equation")}
    assert value == pytest.approx(
        {
            ("all", None): 1 / 3,
            ("easy", None): 1.0,
            ("hard", None): -1.0,
            ("all", "count"): 0.0,
            ("all", "colour"): 1.0,
        }
    )


def test_delta_is_in_standard_deviations_over_all_images_in_every_part() -> None:
    _, rows = rows_of(answers_of(TOY), {"m": TOY_SCORES})
    sigma = float(np.std(TOY_SCORES, ddof=1))
    assert rows["m", "easy", None, "delta", "paper"].value == pytest.approx(1 / sigma)
    assert rows["m", "hard", None, "delta", "equation"].value == pytest.approx(-1 / sigma)


def test_mended_cells_are_left_out_of_sigma_in_the_paper_variant_only() -> None:
    answers = answers_of(TOY)
    _, rows = rows_of(answers, {"m": TOY_SCORES}, repaired={"m": frozenset({"a-0"})})
    paper, equation = (float(np.std(part, ddof=1)) for part in (TOY_SCORES[1:], TOY_SCORES))
    assert rows["m", "easy", None, "delta", "paper"].value == pytest.approx(1 / paper)
    assert rows["m", "easy", None, "delta", "equation"].value == pytest.approx(1 / equation)


def test_graphs_the_paper_never_evaluates_count_in_the_equation_variant_only() -> None:
    _, rows = rows_of(answers_of(TOY, not_in_paper="c"), {"m": TOY_SCORES})
    assert rows["m", "all", None, "rank", "paper"].value == pytest.approx(1.0)
    assert rows["m", "all", None, "rank", "paper"].n_clusters == 2
    assert rows["m", "all", None, "rank", "equation"].n_clusters == 3
    hard = rows["m", "hard", None, "rank", "paper"]
    assert math.isnan(hard.value)
    assert hard.n_clusters == 0
    assert "none of these graphs" in hard.note


def test_a_metric_whose_lower_scores_are_better_is_turned_round() -> None:
    negated = [-score for score in TOY_SCORES]
    _, rows = rows_of(answers_of(TOY), {"up": TOY_SCORES, "down": negated}, directions={"down": -1})
    for (metric, *rest), row in rows.items():
        if metric == "up":
            assert row.value == rows[("down", *rest)].value


def test_rows_count_items_graphs_and_missing_scores() -> None:
    scores = [3.0, NAN, 1.0, NAN, NAN, 1.0, 2.0]
    _, rows = rows_of(answers_of(TOY), {"m": scores})
    row = rows["m", "all", None, "rank", "paper"]
    assert (row.n_items, row.n_clusters, row.n_missing) == (4, 2, 3)
    assert row.note == "1 of 3 graphs left out for want of scores."


def test_a_metric_without_scores_has_undefined_rows_that_say_so() -> None:
    measured, rows = rows_of(answers_of(TOY), {"m": [NAN] * 7, "n": TOY_SCORES})
    for key, row in rows.items():
        if key[0] == "m":
            assert math.isnan(row.value)
            assert math.isnan(row.ci_low)
            assert row.note == "Undefined: the metric gave no score here."
    assert all(measured.rows[int(index)].metric == "n" for index in measured.clusters["row"])


def test_delta_of_constant_scores_is_undefined_and_says_so() -> None:
    _, rows = rows_of(answers_of(TOY), {"m": [0.1] * 7})
    assert math.isnan(rows["m", "all", None, "delta", "paper"].value)
    assert "too few different scores" in rows["m", "all", None, "delta", "paper"].note
    assert rows["m", "all", None, "rank", "paper"].value == 0.0


def test_a_part_with_one_graph_has_no_interval() -> None:
    _, rows = rows_of(answers_of(TOY), {"m": TOY_SCORES})
    row = rows["m", "hard", None, "rank", "paper"]
    assert row.value == -1.0
    assert math.isnan(row.ci_low)
    assert "no interval" in row.note


def test_resamples_are_means_over_the_drawn_graphs_with_sigma_held_fixed() -> None:
    measured, _ = rows_of(answers_of(TOY), {"m": TOY_SCORES})
    counts = ResamplingPlan(tuple(TOY), seed=1, n_resamples=50).counts
    for index, row in enumerate(measured.rows):
        if (row.split, row.skill) != ("all", None):
            continue
        behind = measured.clusters[measured.clusters["row"] == index]
        assert behind["cluster"].tolist() == list(TOY)
        assert behind["value"].mean() == pytest.approx(row.value)
        expected = counts @ behind["value"].to_numpy() / counts.sum(axis=1)
        np.testing.assert_allclose(measured.resamples[index], expected, atol=1e-6)
        assert row.ci_low <= row.value <= row.ci_high


def test_a_table_without_metrics_gives_no_rows() -> None:
    measured, _ = rows_of(answers_of(TOY), {})
    assert measured.rows == ()


# Against a plain evaluation, and properties


@pytest.mark.filterwarnings("ignore::RuntimeWarning:scipy")
@pytest.mark.parametrize("missing", [0.0, 0.1, 0.5])
def test_every_graph_agrees_with_a_walk_by_walk_evaluation(missing: float) -> None:
    rng = np.random.default_rng(round(missing * 10))
    answers = random_answers(rng, n_graphs=20)
    table = random_scores(rng, answers, n_metrics=2)
    overall = table.overall.mask(rng.random(table.overall.shape) < missing)
    found = graph_values(ScoreTable(overall), answers)
    for column, metric in enumerate(overall.columns):
        expected = plain_evaluation(overall[metric].to_numpy(), answers)
        for key in KEYS:
            np.testing.assert_allclose(found.values[key][:, column], expected[key], atol=1e-12)


LABELS = st.lists(
    st.sampled_from(["0a", "0b", "1a", "1b", "2a", "2b", "3a"]), min_size=2, max_size=12
)


@st.composite
def scored_graphs(draw: st.DrawFn) -> tuple[list[str], list[float]]:
    labels = draw(LABELS)
    scores = draw(
        st.lists(st.integers(-4, 4).map(float), min_size=len(labels), max_size=len(labels))
    )
    return labels, scores


def approx_equal(left: float, right: float) -> bool:
    return left == pytest.approx(right, abs=1e-12, nan_ok=True)


@settings(deadline=None)
@given(scored_graphs())
def test_rank_and_separation_do_not_change_under_a_rising_transform(
    graph: tuple[list[str], list[float]],
) -> None:
    labels, scores = graph
    before, after = values_of(labels, scores), values_of(labels, [math.exp(s) for s in scores])
    assert all(approx_equal(before[key], after[key]) for key in KEYS if key[0] != "delta")


@settings(deadline=None)
@given(scored_graphs())
def test_negated_scores_negate_midrank_rank_and_delta_and_keep_separation(
    graph: tuple[list[str], list[float]],
) -> None:
    labels, scores = graph
    before, after = values_of(labels, scores), values_of(labels, [-s for s in scores])
    for key in (("rank", "paper"), ("rank_midrank", "equation"), ("delta", "paper")):
        assert approx_equal(before[key], -after[key])
    for key in (("sep", "paper"), ("sep", "equation")):
        assert approx_equal(before[key], after[key])


def test_the_lower_ranks_of_the_equation_are_not_symmetric_under_negation() -> None:
    labels = ["0", "1", "1", "2"]
    assert values_of(labels, [2.0, 1.0, 1.0, 0.0])["rank", "equation"] == pytest.approx(17 / 19)
    assert values_of(labels, [-2.0, -1.0, -1.0, 0.0])["rank", "equation"] == pytest.approx(-1)


@settings(deadline=None)
@given(scored_graphs(), st.randoms(use_true_random=False))
def test_the_order_of_the_images_does_not_matter(
    graph: tuple[list[str], list[float]], random: Random
) -> None:
    order = list(range(len(graph[0])))
    random.shuffle(order)
    before = values_of(*graph)
    after = values_of([graph[0][i] for i in order], [graph[1][i] for i in order])
    assert all(approx_equal(before[key], after[key]) for key in KEYS)


@settings(deadline=None)
@given(scored_graphs())
def test_values_stay_in_their_range(graph: tuple[list[str], list[float]]) -> None:
    for (name, _), value in values_of(*graph).items():
        info = MEASURES[name]
        assert info.low is None or value >= info.low - 1e-12
        assert info.high is None or value <= info.high + 1e-12


def test_images_and_graphs_are_counted_in_all_and_by_split() -> None:
    answers = answers_of(
        {"1": ("synth", "", ["0", "1a"]), "2": ("real", "", ["0", "1a", "2b"]),
         "3": ("synth", "", ["0", "1", "1"])}
    )  # fmt: skip
    assert answers.counts() == {
        "images": 8,
        "graphs": 3,
        "synth: graphs": 2,
        "synth: images": 5,
        "real: graphs": 1,
        "real: images": 3,
    }
