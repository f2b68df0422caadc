"""Elements: forms of labels, thresholds, missing scores, means over images, against plain computations."""

from __future__ import annotations

import hashlib
import itertools
import math
import shutil
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.arrays import FloatArray
from benchmarks.families.controls import run_controls
from benchmarks.families.element import MEASURES, WHOLE, ElementAnswers, ElementBenchmark
from benchmarks.rows import Measured, Row
from benchmarks.schema import ScoreTable
from benchmarks.statistics.detection import average_precision, expected_average_precision
from tests.benchmarks.families.cards import (
    RATED,
    answers_as,
    benchmark_of,
    board_of_rows,
    with_keys,
)
from tests.kit.refusals import refused

NAN = math.nan
COLUMNS = {
    "image": "image",
    "prompt": "p",
    "text": "p",
    "part": "part",
    "there": {"from": "there", "type": "float"},
}
Rows = Sequence[Mapping[str, Any]]


def benchmark(
    folder: Path, rows: Rows, element: Mapping[str, Any], columns: Any = None, **more: Any
) -> ElementBenchmark:
    """Rows with `image`, prompt `p`, `part` and `there`."""
    keys = {
        "family": "element",
        "gold": None,
        "headline": {"measure": "auroc", "facet": None},
        "element": {"element": "part", "label": "there", **element},
        **more,
    }
    return board_of_rows(folder, ElementBenchmark, rows, COLUMNS | dict(columns or {}), keys)


answers_of = partial(answers_as, ElementAnswers)


def measured(
    one: ElementBenchmark,
    elements: Sequence[float] | None,
    overall: Mapping[str, float] | None = None,
    n_resamples: int = 20,
) -> Measured:
    """`elements`: scores in the order of the parts."""
    answers = answers_of(one)
    index = pd.Index(answers.pair_ids, name="pair_id")
    table = pd.DataFrame({"m": pd.Series(overall or {}, dtype=float).reindex(index)}, index)
    given = {}
    if elements is not None:
        keys = answers.labels.keys[["pair_id", "element_id"]]
        given = {"m": keys.assign(score=list(elements))}
    return one.measure(ScoreTable(table, given), answers, one.plan(answers, n_resamples))


def values(
    one: ElementBenchmark,
    elements: Sequence[float] | None,
    overall: Mapping[str, float] | None = None,
) -> dict[str, Row]:
    """The rows over everything, by measure."""
    rows = measured(one, elements, overall).rows
    return {row.measure: row for row in rows if row.skill is None and row.split in (None, "all")}


def parts(n: int, seed: int, prompts: int = 6) -> list[dict[str, Any]]:
    """Parts with a label; each image has three."""
    random = np.random.default_rng(seed)
    return [
        {
            "image": f"i{k // 3}",
            "p": f"p{k // 3 % prompts}",
            "part": "abc"[k % 3],
            "there": int(random.random() < 0.4),
        }
        for k in range(n)
    ]


def plain(scores: Iterable[float], labels: Iterable[float], threshold: float) -> dict[str, float]:
    """All measures, one item after the other."""
    scores, labels = list(scores), list(labels)
    positive = [s for s, there in zip(scores, labels, strict=True) if there]
    negative = [s for s, there in zip(scores, labels, strict=True) if not there]
    won = [(p > n) + 0.5 * (p == n) for p, n in itertools.product(positive, negative)]
    precision = [
        sum(1 for other in positive if other >= one) / sum(1 for other in scores if other >= one)
        for one in positive
    ]
    tp = sum(s >= threshold for s in positive)
    tn = sum(s < threshold for s in negative)
    fp, fn, n = len(negative) - tn, len(positive) - tp, len(scores)
    expected = ((tp + fp) * (tp + fn) + (tn + fn) * (tn + fp)) / n**2
    return {
        "auroc": float(np.mean(won)) if won else NAN,
        "average_precision": float(np.mean(precision)) if precision else NAN,
        "accuracy": (tp + tn) / n,
        "balanced_accuracy": (
            (tp / len(positive) + tn / len(negative)) / 2 if positive and negative else NAN
        ),
        "f1": 2 * tp / (2 * tp + fp + fn) if tp + fp + fn else NAN,
        "kappa": ((tp + tn) / n - expected) / (1 - expected) if expected < 1 else NAN,
    }


@pytest.mark.parametrize("seed", range(6))
def test_all_measures_against_a_plain_computation(tmp_path: Path, seed: int) -> None:
    rows = parts(36, seed)
    scores = np.random.default_rng(seed + 50).integers(0, 5, 36) / 4
    found = values(benchmark(tmp_path, rows, {"threshold": 0.5}), list(scores))
    assert set(found) == set(MEASURES)
    for measure, expected in plain(list(scores), [row["there"] for row in rows], 0.5).items():
        assert found[measure].value == pytest.approx(expected), measure
        assert (found[measure].n_items, found[measure].n_clusters) == (36, 6)


def test_a_resample_is_a_table_with_its_prompts_repeated(tmp_path: Path) -> None:
    rows = parts(36, 3)
    scores = np.random.default_rng(8).integers(0, 5, 36) / 4
    one = benchmark(tmp_path, rows, {"threshold": 0.5})
    answers = answers_of(one)
    found = measured(one, list(scores), n_resamples=6)
    prompts = [str(row["p"]) for row in rows]
    for draw, weights in enumerate(one.plan(answers, 6).counts):
        times = dict(zip(answers.clusters, weights.astype(int), strict=True))
        drawn = [k for k in range(36) for _ in range(times[prompts[k]])]
        expected = plain([scores[k] for k in drawn], [rows[k]["there"] for k in drawn], 0.5)
        for row, resamples in zip(found.rows, found.resamples, strict=True):
            assert resamples[draw] == pytest.approx(expected[row.measure], nan_ok=True)


FORMS: list[tuple[str, list[dict[str, Any]], dict[str, Any]]] = [
    ("shares", [{"there": x} for x in (1.0, 0.4, 0.5, 0.0)], {}),
    (
        "lists",
        [{"there": x} for x in ([1, 1], [1, 0, 0, 1, 0], [0, 1], [0])],
        {"there": {"from": "there", "type": "list_int"}},
    ),
    (
        "words",
        [{"there": x} for x in ("yes", "no", "yes", "no")],
        {"there": {"from": "there", "type": "bool"}},
    ),
]


@pytest.mark.parametrize("form", FORMS, ids=[form[0] for form in FORMS])
def test_every_form_of_labels_says_the_same(tmp_path: Path, form: Any) -> None:
    _, cells, columns = form
    rows = [{"image": f"i{k}", "p": "p", "part": "x"} | cell for k, cell in enumerate(cells)]
    found = answers_of(benchmark(tmp_path, rows, {}, columns))
    assert found.units.positive.tolist() == [True, False, True, False]


def test_rows_of_one_part_are_averaged_and_tell_how_far_raters_agree(tmp_path: Path) -> None:
    labels = {"a": [1, 1, 0], "b": [0, 0, 0], "c": [1, 0]}
    rows = [
        {"image": "i", "p": "p", "part": part, "there": one}
        for part, each in labels.items()
        for one in each
    ]
    one = benchmark(tmp_path, rows, {})
    found = answers_of(one)
    assert found.labels.share == pytest.approx([2 / 3, 0, 1 / 2])
    assert one.labels(found) == {"yes": 2, "no": 1}
    # A: two of three see one yes and one no beside them (yes); the third two yes. B: all agree.
    # C: yes beside no, no beside yes.
    a, c = (2 / 3, 0.0, 1 / 3), (0.0, 1 / 2, 1 / 2)
    accuracy = (a[0] + 1.0 + 0.0) / 3
    assert a[0] + c[0] == pytest.approx(2 / 3)
    people = one.facts(found)["How far people agree"].set_index("measure")["one rater"]
    assert people["accuracy"] == pytest.approx(accuracy)
    assert people["share of pairs of raters who agree"] == pytest.approx((2 + 6 + 0) / (6 + 6 + 2))
    ceiling = one.ceiling(found)
    assert ceiling is not None
    assert ceiling.value == pytest.approx(people["balanced_accuracy"])
    shares = benchmark(tmp_path / "s", [row | {"there": 0.7} for row in rows], {})
    assert shares.ceiling(answers_of(shares)) is None


@pytest.mark.parametrize("elements", [True, False])
def test_a_pair_that_is_one_part_has_the_score_of_the_pair(tmp_path: Path, elements: bool) -> None:
    rows = [{"image": f"i{k}", "p": f"p{k}", "there": k % 2} for k in range(4)]
    one = benchmark(tmp_path, rows, {"element": ""}, {"part": {"const": "x"}})
    assert answers_of(one).labels.keys["element_id"].tolist() == [WHOLE] * 4
    scores = {"i0": 0.1, "i1": 0.9, "i2": 0.3, "i3": 0.2}
    found = values(one, list(scores.values()) if elements else None, scores)
    assert found["auroc"].value == 0.75


def test_without_element_scores_there_is_no_value_where_pairs_have_several(tmp_path: Path) -> None:
    one = benchmark(tmp_path, parts(6, 0), {})
    found = values(one, None, {"i0": 1.0, "i1": 2.0})
    assert all(math.isnan(row.value) and "element scores" in row.note for row in found.values())
    assert set(found) == set(MEASURES)


MISSING: list[tuple[str | None, float, float, int]] = [
    # Labels 1 0 1 0; scores 0.9 0.1 none none.
    (None, (1 + 1 + 0 + 0.5) / 4, 3 / 4, 4),
    ("absent", (1 + 1 + 0 + 0.5) / 4, 3 / 4, 4),
    ("wrong", (1 + 0 + 0 + 0) / 4, 2 / 4, 4),
    ("drop", 1.0, 1.0, 2),
    ("fail", NAN, NAN, 4),
]


@pytest.mark.parametrize(("missing", "auroc", "accuracy", "n_items"), MISSING)
def test_missing_scores(
    tmp_path: Path, missing: str | None, auroc: float, accuracy: float, n_items: int
) -> None:
    rows = [
        {"image": f"i{k}", "p": f"p{k}", "part": "x", "there": there}
        for k, there in enumerate((1, 0, 1, 0))
    ]
    evaluation = {"missing": missing} if missing else {}
    found = values(
        benchmark(tmp_path, rows, {"threshold": 0.5}, evaluation=evaluation), [0.9, 0.1, NAN, NAN]
    )
    assert found["auroc"].value == pytest.approx(auroc, nan_ok=True)
    assert found["accuracy"].value == pytest.approx(accuracy, nan_ok=True)
    assert {(row.n_items, row.n_missing) for row in found.values()} == {(n_items, 2)}
    assert "2" in found["auroc"].note


def test_up_to_one_missing_score_in_fifty_is_wrong_unless_the_card_says_otherwise(
    tmp_path: Path,
) -> None:
    """Else a metric that has a rank chooses the elements that it is ranked by."""
    rows = [{"image": f"i{k}", "p": f"p{k}", "part": "x", "there": k % 2} for k in range(60)]
    scores = [0.9 * (k % 2) for k in range(60)]
    scores[0] = NAN  # not there: absent would be right
    for missing, accuracy in ((None, 59 / 60), ("absent", 1.0)):
        evaluation = {"missing": missing} if missing else {}
        one = benchmark(tmp_path / str(missing), rows, {"threshold": 0.5}, evaluation=evaluation)
        assert values(one, scores)["accuracy"].value == pytest.approx(accuracy)


def test_scores_of_parts_without_a_label_are_counted(tmp_path: Path) -> None:
    rows = parts(6, 1)
    one = benchmark(tmp_path, rows, {"threshold": 0.5})
    answers = answers_of(one)
    keys = answers.labels.keys[["pair_id", "element_id"]].assign(score=0.7)
    more = pd.concat([keys, keys.tail(1).assign(element_id="unknown")], ignore_index=True)
    table = ScoreTable(pd.DataFrame({"m": 0.0}, list(answers.pair_ids)), {"m": more})
    rows_ = one.measure(table, answers, one.plan(answers, 0)).rows
    assert all("without a label, which are left out: 1" in row.note for row in rows_)


@pytest.mark.parametrize("mean", ["am", "gm"])
def test_images_are_counted_by_the_mean_of_their_parts(tmp_path: Path, mean: str) -> None:
    rows = [row | {"there": int(k % 5 > 0)} for k, row in enumerate(parts(36, 4))]
    scores = np.random.default_rng(2).uniform(0.01, 1, 36)
    one = benchmark(tmp_path, rows, {"of": "prompts", "mean": mean, "threshold": 0.4})
    average = np.exp(np.log(scores).reshape(-1, 3).mean(axis=1)) if mean == "gm" else (
        scores.reshape(-1, 3).mean(axis=1)
    )  # fmt: skip
    there = [all(row["there"] for row in rows[k : k + 3]) for k in range(0, 36, 3)]
    found = values(one, list(scores))
    for measure, expected in plain(list(average), there, 0.4).items():
        assert found[measure].value == pytest.approx(expected, nan_ok=True), measure
    # An image that lacks the score of a part has none; without element scores its own counts.
    assert values(one, [NAN, *scores[1:]])["auroc"].n_missing == 1
    overall = {f"i{k}": one for k, one in enumerate(average)}
    assert values(one, None, overall)["auroc"].value == pytest.approx(found["auroc"].value)
    if mean == "gm":
        negative = values(one, [-0.1, *scores[1:]])["auroc"]
        assert math.isnan(negative.value)
        assert "geometric" in negative.note


@pytest.mark.slow
def test_a_threshold_is_found_on_another_split(tmp_path: Path) -> None:
    random = np.random.default_rng(7)
    rows: list[dict[str, Any]] = [
        {"image": f"i{k}", "p": f"p{k}", "part": "x", "there": int(random.random() < 0.5),
         "split": "vt"[k % 2]}
        for k in range(200)
    ]  # fmt: skip
    scores = [row["there"] + random.normal() for row in rows]
    one = benchmark(
        tmp_path, rows, {"threshold": {"search": 0.01, "on": "v"}}, {"split": "split"},
        items={"split": "split"},
    )  # fmt: skip
    found = values(one, scores)
    of = {
        split: [(s, row["there"]) for s, row in zip(scores, rows, strict=True)
                if row["split"] == split]
        for split in "vt"
    }  # fmt: skip
    own, labels = zip(*of["v"], strict=True)
    tried = np.unique(np.quantile(own, np.linspace(0, 1, 101), method="higher"))
    for measure in ("accuracy", "balanced_accuracy", "f1", "kappa"):
        best = max(tried, key=lambda t, m=measure: plain(own, labels, t)[m])  # type: ignore[misc]
        expected = plain([s for s, _ in of["t"]], [there for _, there in of["t"]], best)[measure]
        assert found[measure].value == pytest.approx(expected), measure
        assert f"threshold {best:.4g}" in found[measure].note
    assert {row.n_items for row in found.values()} == {100}
    assert [row.split for row in measured(one, scores).rows if row.measure == "auroc"] == [
        "all", "t",
    ]  # fmt: skip


def held_out(
    scores: FloatArray, labels: Sequence[int], prompts: Sequence[str], measure: str
) -> float:
    """Each part of the prompts is cut at the threshold that is best on the others."""
    names = sorted(set(prompts), key=lambda name: hashlib.sha256(name.encode()).digest())
    fold = {name: k % 5 for k, name in enumerate(names)}
    of = np.array([fold[name] for name in prompts])
    tried = np.unique(np.quantile(scores, np.linspace(0, 1, 101), method="higher"))
    moved, there = np.empty(len(scores)), np.array(labels)
    for k in range(5):
        others = of != k
        best = max(
            tried,
            key=lambda t: np.nan_to_num(plain(scores[others], there[others], t)[measure], nan=-2.0),
        )
        moved[of == k] = (scores[of == k] >= best).astype(float)
    return plain(list(moved), labels, 1.0)[measure]


@pytest.mark.first_quick
@pytest.mark.parametrize("measure", ["accuracy", "balanced_accuracy", "f1", "kappa"])
def test_each_part_of_the_prompts_is_cut_at_the_threshold_of_the_others(
    tmp_path: Path, measure: str
) -> None:
    random = np.random.default_rng(9)
    rows: list[dict[str, Any]] = [
        {"image": f"i{k}", "p": f"p{k % 10}", "part": "x", "there": int(random.random() < 0.4)}
        for k in range(60)
    ]
    labels = [row["there"] for row in rows]
    scores = random.normal(size=60).round(1) + labels
    one = benchmark(tmp_path, rows, {})
    prompts = [str(row["p"]) for row in rows]
    found = values(one, list(scores))[measure]
    assert found.value == pytest.approx(held_out(scores, labels, prompts, measure))
    assert "threshold" in found.note


def test_thresholds_are_found_anew_in_each_resample(tmp_path: Path) -> None:
    random = np.random.default_rng(4)
    rows: list[dict[str, Any]] = [
        {"image": f"i{k}", "p": f"p{k % 10}", "part": "x", "there": int(random.random() < 0.4)}
        for k in range(60)
    ]
    scores = random.integers(0, 6, size=60) + np.array([row["there"] for row in rows])
    one = benchmark(tmp_path, rows, {})
    answers = answers_of(one)
    found = measured(one, list(scores), n_resamples=8)
    place = next(k for k, row in enumerate(found.rows) if row.measure == "accuracy")
    names = sorted(answers.clusters, key=lambda name: hashlib.sha256(name.encode()).digest())
    fold = {name: k % 5 for k, name in enumerate(names)}
    for draw, weights in enumerate(one.plan(answers, 8).counts):
        times = dict(zip(answers.clusters, weights.astype(int), strict=True))
        drawn = [k for k, row in enumerate(rows) for _ in range(times[row["p"]])]
        right = 0
        for k in range(5):
            own = [i for i in drawn if fold[rows[i]["p"]] == k]
            others = [i for i in drawn if fold[rows[i]["p"]] != k]

            def hits(those: list[int], limit: float) -> int:
                return sum((scores[i] >= limit) == bool(rows[i]["there"]) for i in those)

            best = max(sorted(set(scores)), key=lambda t, o=others: hits(o, t))  # type: ignore[misc]
            right += hits(own, best)
        assert found.resamples[place][draw] == pytest.approx(right / len(drawn))


def test_one_prompt_alone_has_no_threshold(tmp_path: Path) -> None:
    one = benchmark(tmp_path, parts(12, 2, prompts=1), {})
    found = values(one, list(np.arange(12.0)))
    assert math.isnan(found["accuracy"].value)
    assert "no other prompts" in found["accuracy"].note
    assert not math.isnan(found["auroc"].value)


def test_a_metric_that_says_the_same_of_everything_knows_nothing(tmp_path: Path) -> None:
    rows = parts(30, 2, prompts=10)
    found = values(benchmark(tmp_path, rows, {}), [0.5] * 30)
    assert found["auroc"].value == 0.5
    assert found["balanced_accuracy"].value == 0.5
    assert values(benchmark(tmp_path / "n", rows, {}), [NAN] * 30)["auroc"].value == 0.5


@pytest.mark.parametrize("factor", [1.0, 1e-3, 1e3])
def test_no_measure_depends_on_the_unit_or_the_direction_of_a_score(
    tmp_path: Path, factor: float
) -> None:
    rows = parts(60, 2, prompts=10)
    scores = np.random.default_rng(1).normal(size=60)
    one = benchmark(tmp_path, rows, {})
    answers = answers_of(one)
    keys = answers.labels.keys[["pair_id", "element_id"]]
    overall = pd.DataFrame({"m": 0.0, "n": 0.0}, list(answers.pair_ids))
    table = ScoreTable(
        overall,
        {"m": keys.assign(score=scores), "n": keys.assign(score=-factor * scores)},
        {"n": -1},
    )
    rows_ = one.measure(table, answers, one.plan(answers, 5)).rows
    by_metric = [[row.value for row in rows_ if row.metric == name] for name in "mn"]
    assert by_metric[0] == pytest.approx(by_metric[1])


def test_a_given_threshold_of_a_metric_that_falls_is_its_own(tmp_path: Path) -> None:
    rows = [{"image": f"i{k}", "p": "p", "there": k % 2} for k in range(4)]
    one = benchmark(tmp_path, rows, {"element": "", "threshold": 0.5}, {"part": {"const": "x"}})
    answers = answers_of(one)
    overall = pd.DataFrame({"m": [0.9, 0.5, 0.6, 0.1]}, list(answers.pair_ids))
    table = ScoreTable(overall, directions={"m": -1})
    found = {
        row.measure: row.value for row in one.measure(table, answers, one.plan(answers, 0)).rows
    }
    assert found["accuracy"] == 1.0


def test_skills_have_rows_of_their_own(tmp_path: Path) -> None:
    rows = [row | {"skill": row["part"]} for row in parts(36, 5)]
    one = benchmark(
        tmp_path, rows, {"threshold": 0.5}, {"skill": "skill"}, items={"skills": "skill"}
    )
    scores = np.random.default_rng(3).integers(0, 5, 36) / 4
    found = {row.skill: row for row in measured(one, list(scores)).rows if row.measure == "f1"}
    assert list(found) == [None, "a", "b", "c"]
    labels = [row["there"] for row in rows]
    expected = plain(list(scores[1::3]), labels[1::3], 0.5)
    assert found["b"].value == pytest.approx(expected["f1"], nan_ok=True)
    assert found["b"].n_items == 12


CHANCE = ["auroc", "average_precision", "balanced_accuracy", "kappa"]


@pytest.mark.slow
def test_chance_is_what_random_scores_reach(tmp_path: Path) -> None:
    random = np.random.default_rng(11)
    rows = [
        {"image": f"i{k}", "p": f"p{k}", "part": "x", "there": int(k % 10 < 3)} for k in range(300)
    ]
    one = benchmark(tmp_path, rows, {})
    answers = answers_of(one)
    fact = one.facts(answers)["What needs no look at an image"].set_index("measure")
    draws = [values(one, list(random.normal(size=300))) for _ in range(150)]
    for measure in CHANCE:
        of = [draw[measure].value for draw in draws]
        expected = fact.loc[MEASURES[measure].title, "knowing nothing"]
        assert np.mean(of) == pytest.approx(expected, abs=float(4 * np.std(of) / math.sqrt(150))), (
            measure
        )
    assert expected_average_precision(300, 90) == pytest.approx(
        fact.loc["Average precision", "knowing nothing"]
    )
    # Of accuracy and F1 the best is to say the same always; random scores come close to it.
    for measure, expected in (("accuracy", 0.7), ("f1", 0.6 / 1.3)):
        assert fact.loc[MEASURES[measure].title, "knowing nothing"] == pytest.approx(expected)
        of = [draw[measure].value for draw in draws]
        assert expected - 0.05 < np.mean(of) <= expected + 0.01, measure
    assert fact.loc["F1", "always no"] == 0.0
    for measure, expected in (("auroc", 0.5), ("accuracy", 0.7)):
        other = benchmark(tmp_path / measure, rows, {}, headline={"measure": measure})
        assert other.chance(answers_of(other)) == pytest.approx(expected)


@pytest.mark.parametrize(("n", "n_positive"), [(1, 1), (7, 3), (30, 29), (12, 0)])
def test_expected_average_precision_is_the_mean_over_all_orders(n: int, n_positive: int) -> None:

    random = np.random.default_rng(n)
    positive, once = np.arange(n) < n_positive, np.ones((1, n))
    found = [
        average_precision(random.permutation(n).astype(np.float64), positive, np.arange(n), once)[0]
        for _ in range(500)
    ]
    expected = expected_average_precision(n, n_positive)
    spread = np.std(found) / math.sqrt(500)
    assert np.mean(found) == pytest.approx(expected, abs=float(4 * spread + 1e-9), nan_ok=True)


def test_controls_give_every_part_the_score_of_its_pair(tmp_path: Path) -> None:
    rows = [row | {"model": f"m{int(str(row['image'])[1:]) % 2}"} for row in parts(36, 6)]
    one = benchmark(tmp_path, rows, {}, {"model": "model"}, items={"model": "model"})
    found = run_controls(one, answers_of(one), None, 20)
    assert found.value("model_identity", measure="auroc") == pytest.approx(
        1 - found.value("-model_identity", measure="auroc")
    )
    assert not found.half_credit


def test_cases_and_counts_tell_what_is_there(tmp_path: Path) -> None:
    rows = [row | {"skill": row["part"]} for row in parts(12, 5)]
    one = benchmark(tmp_path, rows, {}, {"skill": "skill"}, items={"skills": "skill"})
    answers = answers_of(one)
    cases = one.cases(answers, None)
    assert cases is not None
    assert cases["expected"].tolist() == pytest.approx(one.gold_of_pairs(answers).tolist())
    assert cases["skills"].tolist()[0] == "a;b;c"
    assert answers.counts()["elements"] == 12
    of_prompts = benchmark(tmp_path / "p", rows, {"of": "prompts"})
    assert answers_of(of_prompts).counts()["images or elements"] == 4
    silent = benchmark(tmp_path / "s", rows, {}, items={"text": ""})
    assert silent.cases(answers_of(silent), None) is None


def test_a_scorer_is_asked_about_the_parts_of_each_text(tmp_path: Path) -> None:
    rows = [row | {"asked": f"is there {row['part']}?"} for row in parts(12, 5, prompts=2)]
    folder = tmp_path / "images"
    folder.mkdir(parents=True)
    for k in range(4):
        (folder / f"i{k}").write_bytes(b"image")
    files = [
        {**RATED["files"][0], "path": "labels.json"},
        {"path": "images", "role": "images", "folder": True, "beside": True, "supplied": "See."},
    ]
    keys: dict[str, Any] = {"images": {"source": "folder", "path": "images"}, "files": files}
    one = benchmark(tmp_path, rows, {"element_text": "asked"}, {"asked": "asked"}, **keys)
    found = one.questions(None)
    assert len(found.pairs) == 4
    assert len(found.elements) == 2
    for elements in found.elements.values():
        assert [(e.element_id, e.text) for e in elements] == [
            (part, f"is there {part}?") for part in "abc"
        ]
    plain_card = benchmark(tmp_path / "q", rows, {}, **keys)
    shutil.copytree(folder, tmp_path / "q" / "images")
    assert plain_card.questions(None).elements == {}


LABELS: list[tuple[str, Any, Any, tuple[str, ...]]] = [
    ("above one", [1, 2], {}, ("from 0 to 1", "data row 2")),
    (
        "nobody",
        [1, ""],
        {"there": {"from": "there", "type": "float", "optional": True}},
        ("no label", "data row 2"),
    ),
]


@pytest.mark.parametrize("case", LABELS, ids=[case[0] for case in LABELS])
def test_labels_that_say_nothing_are_refused(tmp_path: Path, case: Any) -> None:
    _, labels, columns, says = case
    rows = [{"image": f"i{k}", "p": "p", "part": "x", "there": one} for k, one in enumerate(labels)]
    with refused("data_malformed", *says):
        benchmark(tmp_path, rows, {}, columns).answers(None)


def test_a_part_is_in_one_image(tmp_path: Path) -> None:
    rows = [{"image": "a", "other": "b", "p": "p", "part": "x", "there": 1}]
    with refused("data_malformed", "several images"):
        benchmark(
            tmp_path, rows, {}, {"other": "other"}, items={"pair": "", "image": ["image", "other"]}
        ).answers(None)


@pytest.mark.parametrize(
    ("keys", "word"),
    [
        ({"element": {"label": "none"}}, "'none'"),
        ({"element": {"threshold": {"search": 0.01, "on": "v"}}}, "items.split"),
        ({"element": {"threshold": {"search": 0.9, "on": "v"}}}, "threshold"),
        ({"element": {"cut": 2.0}}, "element.cut"),
        (
            {"element": {"threshold": {"search": 0.01, "on": "v"}}, "headline": {"split": "v"}},
            "evaluated",
        ),
    ],
)
def test_a_card_that_cannot_be_measured_is_refused(
    tmp_path: Path, keys: dict[str, Any], word: str
) -> None:
    with refused("invalid_benchmark", word):
        benchmark(tmp_path, parts(3, 0), keys.pop("element"), **keys)


def test_only_elements_can_be_absent(tmp_path: Path) -> None:
    card = with_keys(RATED, {"evaluation": {"missing": "absent"}})
    with refused("invalid_benchmark", "absent"):
        benchmark_of(tmp_path, card, labels_csv="")
