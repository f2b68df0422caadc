"""Protocol of CROC_syn: worked examples, and a slow implementation of its rules."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.croc.measures import DIRECTIONS, scale
from benchmarks.croc.protocol import FACETS
from benchmarks.croc_syn.load import MODES, CrocSynAnswers
from benchmarks.croc_syn.measures import MEASURES, Grouping, outcomes_of
from benchmarks.croc_syn.protocol import measure
from benchmarks.rows import ONE_CLUSTER
from benchmarks.schema import ScoreTable
from benchmarks.statistics.resampling import ResamplingPlan
from tests.benchmarks.checks import row_of
from tests.benchmarks.croc_syn.syn_tree import (
    EP,
    EV,
    FILES,
    PV,
    benchmark,
    line,
    load,
    same_everywhere,
    slow_accuracies,
    slow_groups,
    slow_outcome,
    table_of,
    write,
)

NAN = float("nan")
SHAPE = "subject_property|||Flora|||Organic"
BRIEF = "subject_property|||Flora|||Brief"


def one_group(
    o_orig: list[float], o_contrast: list[float], c_orig: list[float], c_contrast: list[float]
) -> dict[str, float]:
    """Outcome of each direction for a single group: images O and C, each with both texts."""
    sides = [np.array([o_orig, o_contrast]).T, np.array([c_orig, c_contrast]).T]
    values = np.stack(sides)[None]
    grouping = Grouping.of(np.array([0]))
    return {d: float(outcomes_of(values, d, grouping).right[0]) for d in DIRECTIONS}


def random_case(folder: Path, seed: int) -> tuple[ScoreTable, CrocSynAnswers]:
    """All modes, properties, lengths and files, with ties and gaps; one prompt stands twice."""
    rng = np.random.default_rng(seed)
    lines = {
        models: [
            line(PV, ["a", "b" * 300, "c", "a"]),
            line(SHAPE, ["a", "b"]),
            line(BRIEF, ["a"]),
            line(EV, [f"{k}" for k in range(rng.integers(1, 5))]),
            line(EP, ["x", "", "z"]),
        ]
        for models in FILES
    }
    answers = load(write(folder, lines), n_images=3)
    shape = (len(answers.pair_ids),)
    values = [rng.integers(0, 5, shape).astype(float) for _ in range(2)]
    values[1][rng.random(shape) < 0.4] = NAN
    return table_of(answers, m0=values[0], m1=values[1]), answers


ZERO = [0.0, 0.0]


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        (  # Figure 6 (AlignScore): 14.4 < 14.7; 13.9 < 15.7; 14.4 < 15.7; 13.9 < 14.7
            (
                [13.9, 14.4, 14.1, 13.7, 12.8],
                [14.3, 14.7, 14.6, 14.6, 13.7],
                [14.9, 15.2, 15.7, 13.9, 14.6],
                [12.7, 13.0, 13.9, 11.7, 12.5],
            ),
            dict.fromkeys(DIRECTIONS, 0.0),
        ),
        # By text the best image counts, and of equally good ones the first.
        (([2, 3], [9, 1], ZERO, ZERO), {"forward_text": 1.0}),
        (([3, 3], [9, 1], ZERO, ZERO), {"forward_text": 0.0}),
        (([3, 3], [1, 9], ZERO, ZERO), {"forward_text": 1.0}),
        ((ZERO, ZERO, [1, 9], [3, 3]), {"inverse_text": 1.0}),
        # By image the best of either side meet.
        (([1, 5], ZERO, [4, 4], ZERO), {"forward_image": 1.0}),
        (([1, 5], ZERO, [5, 4], ZERO), {"forward_image": 0.0}),
        ((ZERO, [6, 2], ZERO, [1, 7]), {"inverse_image": 1.0}),
        # Missing scores of the matching side are passed over; without any the group is left out.
        (([NAN, 3], [9, 1], [2, 2], [5, 5]), {"forward_text": 1.0, "forward_image": 1.0}),
        (
            ([NAN, NAN], [1, 1], ZERO, [2, 2]),
            dict(zip(DIRECTIONS, (NAN, 1.0, NAN, 1.0), strict=True)),
        ),
        # A missing score on the other side is a failure.
        (([3, 2], [NAN, 1], [NAN, NAN], ZERO), {"forward_text": 0.0, "forward_image": 0.0}),
        (([3, 2], ZERO, [NAN, 1], ZERO), {"forward_image": 1.0}),
    ],
)
def test_directions_of_one_group(
    scores: tuple[list[float], ...], expected: dict[str, float]
) -> None:
    found = one_group(*scores)
    assert {d: found[d] for d in expected} == pytest.approx(expected, nan_ok=True)


def test_rows_with_the_same_text_make_one_group_with_all_their_images() -> None:
    values = np.zeros((3, 2, 1, 2))
    values[:, 0, 0, 0] = [1.0, 7.0, 2.0]  # matching scores of rows 0 and 2 (group 0), and of row 1
    values[:, 0, 0, 1] = [9.0, 0.0, 1.0]
    grouping = Grouping.of(np.array([0, 1, 0]))
    np.testing.assert_array_equal(outcomes_of(values, "forward_text", grouping).right, [1.0, 1.0])
    values[2, 0, 0, 0] = 1.0  # equally good: the earlier row counts
    np.testing.assert_array_equal(outcomes_of(values, "forward_text", grouping).right, [0.0, 1.0])


@settings(deadline=None)
@given(st.data())
def test_outcomes_equal_the_slow_rules_on_anything(data: st.DataObject) -> None:
    n_rows, k = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 3))
    groups = data.draw(st.lists(st.integers(0, 2), min_size=n_rows, max_size=n_rows))
    score = st.sampled_from([0.0, 1.0, 2.0, NAN])
    n = n_rows * k * 4
    values = np.array(data.draw(st.lists(score, min_size=n, max_size=n))).reshape(n_rows, 2, k, 2)
    prompts = [line(PV, [f"text {g}" for g in groups])]
    with tempfile.TemporaryDirectory() as name:
        folder = write(Path(name), {("flux", "ds"): prompts})
        answers = load(folder, n_images=k)
        scores = table_of(answers, m0=values).overall["m0"]
        slow = slow_groups(scores, folder)
    order = np.array([list(slow).index(("flux", "ds", PV, f"text {g}")) for g in groups])
    np.testing.assert_array_equal(answers.prompts["group"], order)
    for direction in DIRECTIONS:
        found = outcomes_of(values, direction, Grouping.of(order)).right
        expected = [slow_outcome(images, direction) for images in slow.values()]
        assert [None if math.isnan(f) else f for f in found] == expected


@pytest.mark.parametrize("metric", ["m0", "m1"])
def test_cells_equal_the_slow_implementation(tmp_path: Path, metric: str) -> None:
    scores, answers = random_case(tmp_path, 1)
    measured = benchmark(3).evaluate(scores, answers, 20)
    slow = slow_accuracies(scores.overall[metric], tmp_path)
    assert len(slow) == 24
    for direction in DIRECTIONS:
        chance = 5 / 6 if "text" in direction else 0.5
        cells = []
        for mode in MODES:
            one = {"metric": metric, "facet": direction}
            by_model = [slow[direction, mode, name] for name in ("ds", "qwen")]
            for name, value in zip(("ds", "qwen"), by_model, strict=True):
                row = row_of(measured, measure="accuracy", split=f"{mode}:{name}", **one)
                assert row.value == pytest.approx(value)
            accuracy = row_of(measured, measure="accuracy", split=mode, **one).value
            assert accuracy == pytest.approx(np.mean(by_model))
            scaled = row_of(measured, measure="scaled_accuracy", split=mode, **one).value
            assert scaled == pytest.approx(scale(float(np.mean(by_model)), chance))
            cells.append(scaled)
        total = {"metric": metric, "measure": "scaled_accuracy", "variant": "assay", "split": None}
        assert row_of(measured, facet=direction, **total).value == pytest.approx(np.mean(cells))


def test_summaries_are_means_of_the_cells(tmp_path: Path) -> None:
    scores, answers = random_case(tmp_path, 2)
    measured = benchmark(3).evaluate(scores, answers, 20)
    one = {"metric": "m0", "measure": "scaled_accuracy"}
    cells = {
        mode: [row_of(measured, split=mode, facet=d, **one).value for d in DIRECTIONS]
        for mode in MODES
    }
    total = {**one, "variant": "assay", "facet": None}
    found = row_of(measured, split=None, **total).value
    assert found == pytest.approx(np.mean(list(cells.values())))
    for mode in MODES:
        assert row_of(measured, split=mode, **total).value == pytest.approx(np.mean(cells[mode]))


def test_resamples_equal_the_cell_on_the_drawn_clusters(tmp_path: Path) -> None:
    scores, answers = random_case(tmp_path, 3)
    plan = ResamplingPlan(answers.clusters, 5, 12)
    measured = measure(scores, answers, plan, "b", "r")
    slow = slow_groups(scores.overall["m1"], tmp_path)
    first = answers.prompts.drop_duplicates("group")
    cluster = dict(zip(slow, first["cluster"], strict=True))
    wanted = {"metric": "m1", "measure": "accuracy", "facet": "inverse_text"}
    row = row_of(measured, split="subject_property:ds", **wanted)
    for b in range(plan.n_resamples):
        drawn = [
            (slow_outcome(images, "inverse_text"), plan.counts[b, cluster[key]])
            for key, images in slow.items()
            if key[1] == "ds" and key[2].startswith("subject_property")
        ]
        kept = [(right, times) for right, times in drawn if right is not None]
        total = sum(times for _, times in kept)
        expected = sum(r * times for r, times in kept) / total if total else NAN
        found = measured.resamples[measured.rows.index(row), b]
        assert found == pytest.approx(expected, abs=1e-6, nan_ok=True)
    behind = measured.clusters[measured.clusters["row"] == measured.rows.index(row)]
    assert len(behind) == row.n_clusters


def test_properties_are_image_based_forward_and_inverse_averaged(tmp_path: Path) -> None:
    scores, answers = random_case(tmp_path, 4)
    measured = benchmark(3).evaluate(scores, answers, 20)
    slow = slow_groups(scores.overall["m0"], tmp_path)

    def expected(property_: str, what: str, chance: float, *, long: bool | None = None) -> float:
        scaled = []
        for direction in (f"forward_{what}", f"inverse_{what}"):
            means = []
            for model in ("ds", "qwen"):
                outcomes = [
                    slow_outcome(images, direction)
                    for key, images in slow.items()
                    if key[1] == model
                    and key[2].split("|||")[0] == "subject_property"
                    and property_ in key[2]
                    and (long is None or (len(key[3]) > 280) == long)
                ]
                means.append(np.mean([o for o in outcomes if o is not None]))
            scaled.append(scale(float(np.mean(means)), chance))
        return float(np.mean(scaled))

    one = {"metric": "m0", "measure": "scaled_accuracy", "split": "subject_property"}
    for skill, name in (("Color", "Red"), ("Shape", "Organic"), (None, "")):
        image = row_of(measured, skill=skill, facet="image", **one)
        assert image.value == pytest.approx(expected(name, "image", 0.5))
        text = row_of(measured, skill=skill, facet="text", variant="assay", **one)
        assert text.value == pytest.approx(expected(name, "text", 5 / 6))
    lengths = {"over_280": True, "up_to_280": False}
    for length, long in lengths.items():
        split = {**one, "split": f"subject_property:{length}"}
        row = row_of(measured, skill="Color", facet="image", **split)
        assert row.value == pytest.approx(expected("Red", "image", 0.5, long=long))
    assert not [r for r in measured.rows if r.skill not in {None, "Color", "Shape"}]


def test_exact_chance_depends_on_the_number_of_images(tmp_path: Path) -> None:
    write(tmp_path, same_everywhere(line(PV, ["a", "b", "c", "d"])))
    for k in (1, 5):
        answers = load(tmp_path, n_images=k)
        values = np.random.default_rng(7).random(len(answers.pair_ids))
        measured = benchmark(k).evaluate(table_of(answers, m0=values), answers, 5)
        one = {"facet": "forward_text", "split": "subject_property"}
        accuracy = row_of(measured, measure="accuracy", **one).value
        exact = row_of(measured, measure="scaled_accuracy", variant="exact_chance", **one).value
        paper = row_of(measured, measure="scaled_accuracy", **one).value
        assert exact == pytest.approx(scale(accuracy, k / (k + 1)))
        assert (exact == pytest.approx(paper)) == (k == 5)


def test_a_guess_reaches_the_chance_levels(tmp_path: Path) -> None:
    texts = [f"prompt {k}" for k in range(1500)]
    answers = load(write(tmp_path, same_everywhere(line(EP, texts))))
    values = np.random.default_rng(11).random(len(answers.pair_ids))
    measured = benchmark().evaluate(table_of(answers, m0=values), answers, 5)
    for direction in DIRECTIONS:
        row = row_of(measured, measure="accuracy", facet=direction, split="entity_placement")
        expected = 5 / 6 if "text" in direction else 0.5
        assert row.value == pytest.approx(expected, abs=0.03)
        assert (row.n_items, row.n_clusters, row.n_missing) == (6000, 1500, 0)


@pytest.mark.parametrize("score", [1.0, NAN])
def test_a_metric_that_says_the_same_or_nothing(tmp_path: Path, score: float) -> None:
    _, answers = random_case(tmp_path, 5)
    scores = table_of(answers, m0=np.full(len(answers.pair_ids), score))
    for row in benchmark(3).evaluate(scores, answers, 5).rows:
        if math.isnan(score):  # nothing is left to compare
            assert math.isnan(row.value)
            assert (row.n_items, row.n_clusters) == (0, 0)
            assert row.n_missing > 0
            assert "undefined: no matching image" in row.note
            assert "left out" in row.note
        else:
            assert row.value == (0.0 if row.measure == "accuracy" else -1.0)
            assert row.note == (ONE_CLUSTER if row.n_clusters == 1 else "")


def test_half_the_scores_missing_still_makes_rows_that_say_so(tmp_path: Path) -> None:
    scores, answers = random_case(tmp_path, 6)
    values = scores.overall["m0"].to_numpy().copy()
    values[::2] = NAN  # every score with the original text
    measured = benchmark(3).evaluate(table_of(answers, m0=values), answers, 5)
    one = {"measure": "accuracy", "split": "entity_placement"}
    forward = row_of(measured, facet="forward_text", **one)
    assert math.isnan(forward.value)
    inverse = row_of(measured, facet="inverse_text", **one)
    assert (inverse.value, inverse.n_missing, inverse.n_items) == (0.0, 24, 8)
    total = row_of(measured, measure="scaled_accuracy", variant="assay", facet=None, split=None)
    assert math.isnan(total.value)
    assert total.n_missing == len(answers.pair_ids) / 2


def test_one_prompt_by_one_text_model_is_a_result_with_a_note(tmp_path: Path) -> None:
    answers = load(write(tmp_path, {("flux", "ds"): [line(PV, ["a"])]}), n_images=1)
    values = np.array([2.0, 1.0, 1.0, 2.0])
    measured = benchmark(1).evaluate(table_of(answers, m0=values), answers, 5)
    row = row_of(
        measured, measure="scaled_accuracy", facet="forward_text", split="subject_property"
    )
    assert (row.value, row.n_items, row.n_clusters) == (1.0, 1, 1)
    assert row.note.startswith("no such prompts by qwen: the other's alone; ")
    absent = row_of(measured, measure="accuracy", facet="forward_text", split="entity_variation")
    assert math.isnan(absent.value)
    assert absent.note == "no such prompts in this set"
    total = {"measure": "scaled_accuracy", "variant": "assay", "facet": None, "split": None}
    assert row_of(measured, **total).value == 1.0


def test_a_lower_is_better_metric_is_turned_round_and_any_order_of_rows_is_read(
    tmp_path: Path,
) -> None:
    scores, answers = random_case(tmp_path, 8)
    plan = benchmark(3).plan(answers, 5)
    turned = ScoreTable(-scores.overall.iloc[::-1], directions={"m0": -1, "m1": -1})
    found = measure(turned, answers, plan, "b", "r").rows
    assert repr(found) == repr(measure(scores, answers, plan, "b", "r").rows)
    with pytest.raises(KeyError):
        benchmark(3).evaluate(ScoreTable(scores.overall.iloc[1:]), answers, 5)


def test_every_row_is_explained_and_those_with_values_carry_an_interval(tmp_path: Path) -> None:
    scores, answers = random_case(tmp_path, 10)
    measured = benchmark(3).evaluate(scores, answers, 50)
    keys = [(r.metric, r.measure, r.split, r.skill, r.variant, r.facet) for r in measured.rows]
    assert len(keys) == len(set(keys))
    headline = benchmark().card.headline
    assert sum(map(headline.matches, measured.rows)) == len(scores.metrics)
    for row in measured.rows:
        assert (row.benchmark, row.revision) == ("croc_syn", "supplied")
        assert row.measure in MEASURES
        assert row.facet is None or row.facet in FACETS
        assert math.isnan(row.value) or row.n_clusters == 1 or row.ci_low <= row.ci_high
