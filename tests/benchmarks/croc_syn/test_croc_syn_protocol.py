"""Protocol of CROC_syn: worked examples, and a slow implementation of its rules."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count, product, takewhile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.croc.measures import DIRECTIONS, scale
from benchmarks.croc.protocol import FACETS
from benchmarks.croc_syn.load import MODES, CrocSynAnswers
from benchmarks.croc_syn.measures import MEASURES, Grouping, outcomes_of
from benchmarks.croc_syn.protocol import measure
from benchmarks.rows import ONE_CLUSTER, Measured
from benchmarks.schema import ScoreTable
from benchmarks.statistics.resampling import ResamplingPlan
from tests.benchmarks.checks import row_of
from tests.benchmarks.croc_syn.syn_tree import (
    EP,
    EV,
    FILES,
    PROMPTS,
    PV,
    benchmark,
    line,
    load,
    same_everywhere,
    table_of,
    write,
)

NAN = float("nan")
SHAPE = "subject_property|||Flora|||Organic"
BRIEF = "subject_property|||Flora|||Brief"
TEXT_MODELS = ("ds", "qwen")
SCALED = {"measure": "scaled_accuracy"}
TOTAL = SCALED | {"variant": "assay", "facet": None, "split": None}
Key = tuple[str, str, str, str]
"""Image model, text model, prompt id, original text."""
Images = list[tuple[str, float, float]]
"""Side of each image of a group, and its scores for the original and the contrast."""


def slow_groups(scores: pd.Series, folder: Path) -> dict[Key, Images]:
    """The images of each group, read from the files anew."""
    groups: dict[Key, Images] = {}
    for models in FILES:
        for record in map(json.loads, (folder / PROMPTS.format(*models)).read_text().splitlines()):
            texts = zip(record["prompts"], record["contrast_prompts"], strict=True)
            name = record["prompt_id"].replace("|||", "_____")
            for number, (prompt, contrast) in enumerate(texts):
                for word, side in (("prompt", "prompts"), ("contrast", "contrast_prompts")):
                    stem = f"{'/'.join(models)}/{side}/{name}_{word}_{number}_image_"
                    numbers = takewhile(lambda k, stem=stem: f"{stem}{k}|orig" in scores, count())
                    images = [
                        (word, scores[f"{stem}{k}|orig"], scores[f"{stem}{k}|contrast"])
                        for k in (numbers if prompt and contrast else ())
                    ]
                    if images:
                        groups.setdefault((*models, record["prompt_id"], prompt), []).extend(images)
    return groups


def slow_outcome(images: Images, direction: str) -> float | None:
    """1 or 0 by the rules of the paper; None where the group is left out."""
    own, text = ("prompt", 1) if "forward" in direction else ("contrast", 2)
    mine = [image for image in images if image[0] == own and not math.isnan(image[text])]
    if not mine:
        return None
    best = max(mine, key=lambda image: image[text])  # the first of equally good ones
    if direction.endswith("text"):
        return float(best[text] > best[3 - text])
    theirs = [i[text] for i in images if i[0] != own and not math.isnan(i[text])]
    return float(bool(theirs) and best[text] > max(theirs))


def slow_accuracy(
    groups: dict[Key, Images], direction: str, chosen: Callable[[Key], bool]
) -> float:
    """Of the chosen groups: the mean over text models."""
    means = []
    for model in TEXT_MODELS:
        of_model = [i for key, i in groups.items() if key[1] == model and chosen(key)]
        outcomes = [slow_outcome(images, direction) for images in of_model]
        means.append(np.mean([o for o in outcomes if o is not None]))
    return float(np.mean(means))


def chance_of(direction: str) -> float:
    return 5 / 6 if "text" in direction else 0.5


@dataclass
class Case:
    """All modes, properties, lengths and files, with ties and (m1) gaps; a prompt stands twice."""

    folder: Path
    answers: CrocSynAnswers
    scores: ScoreTable
    measured: Measured

    def groups(self, metric: str) -> dict[Key, Images]:
        return slow_groups(self.scores.overall[metric], self.folder)


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    rng = np.random.default_rng(1)
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
    folder = write(tmp_path_factory.mktemp("syn"), lines)
    answers = load(folder, n_images=3)
    n = len(answers.pair_ids)
    whole, holed = (rng.integers(0, 5, n).astype(float) for _ in range(2))
    holed[rng.random(n) < 0.4] = NAN
    scores = table_of(answers, m0=whole, m1=holed)
    return Case(folder, answers, scores, benchmark(3).evaluate(scores, answers, 50))


def one_group(
    o_orig: list[float], o_contrast: list[float], c_orig: list[float], c_contrast: list[float]
) -> dict[str, float]:
    """Outcome of each direction for a single group: images O and C, each with both texts."""
    sides = [np.array([o_orig, o_contrast]).T, np.array([c_orig, c_contrast]).T]
    grouping = Grouping.of(np.array([0]))
    return {d: outcomes_of(np.stack(sides)[None], d, grouping).right.item() for d in DIRECTIONS}


ZERO = [0.0, 0.0]
FIGURE_6 = (  # AlignScore: 14.4 < 14.7; 13.9 < 15.7; 14.4 < 15.7; 13.9 < 14.7
    [13.9, 14.4, 14.1, 13.7, 12.8],
    [14.3, 14.7, 14.6, 14.6, 13.7],
    [14.9, 15.2, 15.7, 13.9, 14.6],
    [12.7, 13.0, 13.9, 11.7, 12.5],
)


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        (FIGURE_6, dict.fromkeys(DIRECTIONS, 0.0)),
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
        (([NAN, NAN], [1, 1], ZERO, [2, 2]), {"forward_text": NAN, "inverse_text": 1.0,
                                              "forward_image": NAN, "inverse_image": 1.0}),
        # A missing score on the other side is a failure.
        (([3, 2], [NAN, 1], [NAN, NAN], ZERO), {"forward_text": 0.0, "forward_image": 0.0}),
        (([3, 2], ZERO, [NAN, 1], ZERO), {"forward_image": 1.0}),
    ],
)  # fmt: skip
def test_directions_of_one_group(
    scores: tuple[list[float], ...], expected: dict[str, float]
) -> None:
    found = one_group(*scores)
    assert {d: found[d] for d in expected} == pytest.approx(expected, nan_ok=True)


@settings(deadline=None)
@given(st.data())
def test_outcomes_equal_the_slow_rules_on_anything(data: st.DataObject) -> None:
    n_rows, k = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 3))
    groups = data.draw(st.lists(st.integers(0, 2), min_size=n_rows, max_size=n_rows))
    score = st.sampled_from([0.0, 1.0, 2.0, NAN])
    n = n_rows * k * 4
    values = np.array(data.draw(st.lists(score, min_size=n, max_size=n))).reshape(n_rows, 2, k, 2)
    with tempfile.TemporaryDirectory() as name:
        prompts = {("flux", "ds"): [line(PV, [f"text {g}" for g in groups])]}
        folder = write(Path(name), prompts)
        answers = load(folder, n_images=k)
        slow = slow_groups(table_of(answers, m0=values).overall["m0"], folder)
    order = np.array([list(slow).index(("flux", "ds", PV, f"text {g}")) for g in groups])
    np.testing.assert_array_equal(answers.prompts["group"], order)
    for direction in DIRECTIONS:
        found = outcomes_of(values, direction, Grouping.of(order)).right
        expected = [slow_outcome(images, direction) for images in slow.values()]
        assert [None if math.isnan(f) else f for f in found] == expected


@pytest.mark.parametrize("metric", ["m0", "m1"])
def test_cells_equal_the_slow_implementation_and_summaries_are_their_means(
    case: Case, metric: str
) -> None:
    groups, one = case.groups(metric), {"metric": metric}

    def value(**wanted: object) -> float:
        return row_of(case.measured, **one, **wanted).value

    cells = {}
    for direction, mode in product(DIRECTIONS, MODES):
        where = {"facet": direction, "measure": "accuracy"}
        by_model = [value(**where, split=f"{mode}:{model}") for model in TEXT_MODELS]
        slow = slow_accuracy(groups, direction, lambda key, m=mode: key[2].startswith(m))
        accuracy = value(**where, split=mode)
        assert accuracy == pytest.approx(np.mean(by_model)) == pytest.approx(slow)
        cells[direction, mode] = scale(accuracy, chance_of(direction))
        found = value(**SCALED, facet=direction, split=mode)
        assert found == pytest.approx(cells[direction, mode])
    assert value(**TOTAL) == pytest.approx(np.mean(list(cells.values())))
    for d in DIRECTIONS:
        expected = np.mean([cells[d, mode] for mode in MODES])
        assert value(**TOTAL | {"facet": d}) == pytest.approx(expected)
    for mode in MODES:
        expected = np.mean([cells[d, mode] for d in DIRECTIONS])
        assert value(**TOTAL | {"split": mode}) == pytest.approx(expected)


def test_resamples_equal_the_cell_on_the_drawn_clusters(case: Case) -> None:
    plan = ResamplingPlan(case.answers.clusters, 5, 12)
    measured = measure(case.scores, case.answers, plan, "b", "r")
    slow = case.groups("m1")
    first = case.answers.prompts.drop_duplicates("group")
    clusters = dict(zip(slow, first["cluster"], strict=True))
    outcomes = [
        (slow_outcome(images, "inverse_text"), clusters[key])
        for key, images in slow.items()
        if key[1] == "ds" and key[2].startswith("subject_property")
    ]
    right, cluster = np.array([(o, c) for o, c in outcomes if o is not None]).T
    where = {"metric": "m1", "measure": "accuracy", "facet": "inverse_text"}
    row = row_of(measured, split="subject_property:ds", **where)
    for b, found in enumerate(measured.resamples[measured.rows.index(row)]):
        times = plan.counts[b, cluster.astype(int)]
        expected = right @ times / times.sum() if times.sum() else NAN
        assert found == pytest.approx(expected, abs=1e-6, nan_ok=True)
    behind = measured.clusters[measured.clusters["row"] == measured.rows.index(row)]
    assert len(behind) == row.n_clusters


def test_properties_and_lengths_are_means_of_forward_and_inverse(case: Case) -> None:
    groups = case.groups("m0")
    lengths = {"": (0, 1000), ":over_280": (281, 1000), ":up_to_280": (0, 280)}
    one = SCALED | {"metric": "m0"}
    for skill, name, length, facet, variant in (
        *(
            (skill, name, "", facet, variant)
            for skill, name in (("Color", "Red"), ("Shape", "Organic"), (None, ""))
            for facet, variant in (("image", "paper"), ("text", "assay"))
        ),
        ("Color", "Red", ":over_280", "image", "paper"),
        ("Color", "Red", ":up_to_280", "image", "paper"),
    ):
        low, high = lengths[length]

        def chosen(key: Key, name: str = name, low: int = low, high: int = high) -> bool:
            of_property = key[2].startswith("subject_property") and name in key[2]
            return of_property and low <= len(key[3]) <= high

        slow = [slow_accuracy(groups, f"{way}_{facet}", chosen) for way in ("forward", "inverse")]
        split = f"subject_property{length}"
        found = row_of(case.measured, skill=skill, facet=facet, variant=variant, split=split, **one)
        assert found.value == pytest.approx(np.mean([scale(a, chance_of(facet)) for a in slow]))
    assert {row.skill for row in case.measured.rows} == {None, "Color", "Shape"}


def test_exact_chance_depends_on_the_number_of_images(tmp_path: Path) -> None:
    write(tmp_path, same_everywhere(line(PV, ["a", "b", "c", "d"])))
    for k in (1, 5):
        answers = load(tmp_path, n_images=k)
        values = np.random.default_rng(7).random(len(answers.pair_ids))
        measured = benchmark(k).evaluate(table_of(answers, m0=values), answers, 5)
        one = {"facet": "forward_text", "split": "subject_property"}
        accuracy = row_of(measured, measure="accuracy", **one).value
        exact = row_of(measured, **SCALED, variant="exact_chance", **one).value
        paper = row_of(measured, **SCALED, **one).value
        assert exact == pytest.approx(scale(accuracy, k / (k + 1)))
        assert (exact == pytest.approx(paper)) == (k == 5)


@pytest.mark.parametrize("score", [1.0, NAN])
def test_a_metric_that_says_the_same_or_nothing(case: Case, score: float) -> None:
    scores = table_of(case.answers, m0=np.full(len(case.answers.pair_ids), score))
    for row in benchmark(3).evaluate(scores, case.answers, 5).rows:
        if math.isnan(score):  # nothing is left to compare
            assert math.isnan(row.value)
            assert (row.n_items, row.n_clusters) == (0, 0)
            assert row.n_missing > 0
            assert "undefined" in row.note
            assert "left out" in row.note
        else:
            assert row.value == (0.0 if row.measure == "accuracy" else -1.0)
            assert row.note == (ONE_CLUSTER if row.n_clusters == 1 else "")


def test_half_the_scores_missing_still_makes_rows_that_say_so(case: Case) -> None:
    values = case.scores.overall["m0"].to_numpy().copy()
    values[::2] = NAN  # every score with the original text
    measured = benchmark(3).evaluate(table_of(case.answers, m0=values), case.answers, 5)
    one = {"measure": "accuracy", "split": "entity_placement"}
    assert math.isnan(row_of(measured, facet="forward_text", **one).value)
    inverse = row_of(measured, facet="inverse_text", **one)
    assert (inverse.value, inverse.n_missing, inverse.n_items) == (0.0, 24, 8)
    total = row_of(measured, **TOTAL)
    assert math.isnan(total.value)
    assert total.n_missing == len(case.answers.pair_ids) / 2


def test_one_prompt_by_one_text_model_is_a_result_with_a_note(tmp_path: Path) -> None:
    answers = load(write(tmp_path, {("flux", "ds"): [line(PV, ["a"])]}), n_images=1)
    scores = table_of(answers, m0=np.array([2.0, 1.0, 1.0, 2.0]))
    measured = benchmark(1).evaluate(scores, answers, 5)
    row = row_of(measured, **SCALED, facet="forward_text", split="subject_property")
    assert (row.value, row.n_items, row.n_clusters) == (1.0, 1, 1)
    assert "by qwen" in row.note
    absent = row_of(measured, measure="accuracy", facet="forward_text", split="entity_variation")
    assert math.isnan(absent.value)
    assert absent.note.startswith("no such")
    assert row_of(measured, **TOTAL).value == 1.0


def test_a_lower_is_better_metric_is_turned_round_and_any_order_of_rows_is_read(
    case: Case,
) -> None:
    scores, plan = case.scores, benchmark(3).plan(case.answers, 5)
    turned = ScoreTable(-scores.overall.iloc[::-1], directions={"m0": -1, "m1": -1})
    found, expected = (measure(s, case.answers, plan, "b", "r").rows for s in (turned, scores))
    assert repr(found) == repr(expected)
    with pytest.raises(KeyError):
        benchmark(3).evaluate(ScoreTable(scores.overall.iloc[1:]), case.answers, 5)


def test_every_row_is_explained_and_those_with_values_carry_an_interval(case: Case) -> None:
    rows = case.measured.rows
    keys = {(r.metric, r.measure, r.split, r.skill, r.variant, r.facet) for r in rows}
    assert len(keys) == len(rows)
    assert sum(map(benchmark().card.headline.matches, rows)) == len(case.scores.metrics)
    for row in rows:
        assert (row.benchmark, row.revision) == ("croc_syn", "supplied")
        assert row.measure in MEASURES
        assert row.facet is None or row.facet in FACETS
        assert math.isnan(row.value) or row.n_clusters == 1 or row.ci_low <= row.ci_high
