"""Preferences: forms of labels, ties, thresholds, missing scores, against plain computations."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pytest

from benchmarks.errors import SubmitterError
from benchmarks.families.comparisons import BAD, TIE, A, B
from benchmarks.families.preference import MEASURES, PreferenceAnswers, PreferenceBenchmark
from benchmarks.rows import Measured, Row
from benchmarks.schema import BETWEEN_TEXTS, ScoreTable
from tests.benchmarks.families.cards import answers_as, board_of_rows
from tests.kit.refusals import refused

NAN = math.nan
LABEL = {"label": "label", "values": {"a": "x", "b": "y", "tie": "t", "bad": "0"}}


def benchmark(
    folder: Path,
    rows: Sequence[Mapping[str, Any]],
    preference: Mapping[str, Any],
    columns: Mapping[str, Any] | None = None,
    items: Mapping[str, Any] | None = None,
    **more: Any,
) -> PreferenceBenchmark:
    """Rows with images `x` and `y` of a prompt `p`, or a list of images `images`."""
    images: Any = "images" if "ranks" in preference else ["x", "y"]
    named = {"prompt": "p", "text": "p"} | (
        {"images": {"from": "images", "type": "list_str"}}
        if "ranks" in preference
        else {"x": "x", "y": "y"}
    )
    keys = {
        "family": "preference",
        "kind": "preference",
        "gold": None,
        "headline": {"measure": "accuracy", "facet": None},
        "items": {"pair": "", "shared": True, "image": images} | dict(items or {}),
        "preference": preference,
        **more,
    }
    return board_of_rows(folder, PreferenceBenchmark, rows, named | dict(columns or {}), keys)


answers_of = partial(answers_as, PreferenceAnswers)


def measured(
    one: PreferenceBenchmark,
    scores: Mapping[str, float],
    n_resamples: int = 20,
    direction: Literal[1, -1] = 1,
) -> tuple[PreferenceAnswers, Measured]:
    answers = answers_of(one)
    table = pd.DataFrame({"m": pd.Series(scores, dtype=float)}).loc[list(answers.pair_ids)]
    given = ScoreTable(table, directions={"m": direction})
    return answers, one.measure(given, answers, one.plan(answers, n_resamples))


def values(
    one: PreferenceBenchmark, scores: Mapping[str, float], direction: Literal[1, -1] = 1
) -> dict[str, Row]:
    """The rows over all comparisons, by measure."""
    rows = measured(one, scores, direction=direction)[1].rows
    return {row.measure: row for row in rows if row.skill is None and row.split in (None, "all")}


def labelled(labels: str) -> list[dict[str, Any]]:
    """A row for each letter; its images are `x0`, `y0` and so on."""
    return [
        {"p": f"p{k}", "x": f"x{k}", "y": f"y{k}", "label": one} for k, one in enumerate(labels)
    ]


def scored(*pairs: tuple[float, float]) -> dict[str, float]:
    return {
        f"{side}{k}": one for k, xy in enumerate(pairs) for side, one in zip("xy", xy, strict=True)
    }


COLUMN = {"label": "label"}
RIGHT, WRONG, EQUAL = (1.0, 0.0), (0.0, 1.0), (0.5, 0.5)


@pytest.mark.parametrize(
    ("human_ties", "metric_ties", "expected"),
    [
        # Labels x x x t t; the metric is right, wrong, equal, apart, equal.
        ("drop", {"metric_ties": "wrong"}, 1 / 3),
        ("drop", {"metric_ties": "half"}, 1.5 / 3),
        ("half", {"metric_ties": "wrong"}, (1 + 0 + 0 + 0.5 + 1) / 5),
        ("half", {"metric_ties": "half"}, (1 + 0 + 0.5 + 0.5 + 1) / 5),
        ("class", {"metric_ties": "wrong"}, (1 + 0 + 0 + 0 + 1) / 5),
        ("class", {"metric_ties": "half"}, (1 + 0 + 0.5 + 0 + 1) / 5),
        ("drop", {"metric_ties": "threshold", "threshold": 2.0}, 0.0),
        ("half", {"metric_ties": "threshold", "threshold": 2.0}, (1.5 + 2) / 5),
        ("class", {"metric_ties": "threshold", "threshold": 2.0}, 2 / 5),
        ("class", {"metric_ties": "threshold", "threshold": 0.9}, 2 / 5),
    ],
)
def test_ties_of_people_and_of_a_metric(
    tmp_path: Path, human_ties: str, metric_ties: dict[str, Any], expected: float
) -> None:
    one = benchmark(
        tmp_path, labelled("xxxtt"), {**LABEL, "human_ties": human_ties, **metric_ties}, COLUMN
    )
    found = values(one, scored(RIGHT, WRONG, EQUAL, RIGHT, EQUAL))
    assert found["accuracy"].value == pytest.approx(expected)
    assert found["accuracy"].n_items == (3 if human_ties == "drop" else 5)


Form = tuple[str, dict[str, Any], dict[str, Any], list[dict[str, Any]]]
FORMS: list[Form] = [
    ("label", LABEL, COLUMN, [{"label": one} for one in "xyt0"]),
    (
        "votes",
        {"votes": ["u", "v"]},
        {"u": {"from": "u", "type": "int"}, "v": {"from": "v", "type": "int"}},
        [{"u": 3, "v": 1}, {"u": 0, "v": 2}, {"u": 2, "v": 2}, {"u": 0, "v": 0}],
    ),
    (
        "weights",
        {"weights": ["u", "v"]},
        {"u": {"from": "u", "type": "float"}, "v": {"from": "v", "type": "float"}},
        [{"u": 1, "v": 0}, {"u": 0.4, "v": 0.6}, {"u": 0.5, "v": 0.5}, {"u": 0.0, "v": 0.0}],
    ),
]


@pytest.mark.parametrize("sides", ["hash", "given"])
@pytest.mark.parametrize("form", FORMS, ids=[one[0] for one in FORMS])
def test_every_form_of_labels_says_the_same(tmp_path: Path, form: Form, sides: str) -> None:
    name, preference, columns, cells = form
    rows = [row | cell for row, cell in zip(labelled("...."), cells, strict=True)]
    rows = rows[:3] if name == "votes" else rows  # Nobody voted on the last one.
    one = benchmark(tmp_path, rows, {**preference, "sides": sides}, columns)
    answers, _ = measured(one, scored(RIGHT, RIGHT, RIGHT, RIGHT))
    said = answers.compared
    better = {
        answers.pair_ids[a if gold == A else b]
        for a, b, gold in zip(said.a, said.b, said.gold, strict=True)
        if abs(gold) == 1
    }
    assert better == {"x0", "y1"}
    assert set(said.gold[~said.decided].tolist()) == ({TIE, BAD} if name == "label" else {TIE})
    assert values(one, scored(RIGHT, RIGHT, RIGHT, RIGHT))["accuracy"].value == 0.5


def test_a_fixed_winner_is_found_wherever_it_is_shown(tmp_path: Path) -> None:
    one = benchmark(tmp_path, labelled("." * 12), {"winner": "a"})
    answers, _ = measured(one, scored(*[RIGHT] * 12))
    assert set(answers.compared.gold.tolist()) == {A, B}
    assert values(one, scored(*[RIGHT] * 12))["accuracy"].value == 1.0


@pytest.mark.parametrize("shared", [True, False])
def test_neither_order_nor_ids_tell_where_an_image_was_released(
    tmp_path: Path, shared: bool
) -> None:
    rows = [{"p": f"p{k}", "x": f"x{k}", "y": f"y{k}"} for k in range(300)]
    one = benchmark(tmp_path, rows, {"winner": "a"}, items={"shared": shared})
    answers, _ = measured(one, dict.fromkeys(one.answers(None).pair_ids, 0.0))
    pairs = answers.items.pairs
    first = pairs.drop_duplicates("prompt_id")["image"].str[0] == "x"
    assert 0.4 < first.mean() < 0.6
    if not shared:
        suffix = pairs.loc[pairs["image"].str[0] == "x", "pair_id"].str[-1]
        assert 0.4 < (suffix == "a").mean() < 0.6


def test_what_people_tie_is_never_inverted_whatever_is_missing(tmp_path: Path) -> None:
    rows = [{"p": "p", "images": ["a", "b", "c"], "ranks": [1, 1, 2]}]
    one = benchmark(tmp_path, rows, {"ranks": "ranks"}, RANKS)
    found = values(one, {"a": NAN, "b": 2.0, "c": 1.0})["inversions"]
    # Tied by people, without a score, right.
    assert found.value == pytest.approx((1 + 0 + 1) / 3)


RANKED: list[dict[str, Any]] = [
    {"p": "p0", "images": ["i0", "i1", "i2"], "ranks": [1, 2, 3]},
    {"p": "p1", "images": ["i3", "i4", "i5", "i6"], "ranks": [2, 1, 2, 4]},
    {"p": "p0", "images": ["i7", "i8"], "ranks": [1, 1]},
]
RANKS = {"ranks": {"from": "ranks", "type": "list_int"}}


def plain_lists(scores: Mapping[str, float]) -> dict[str, float]:
    """Measures of lists, pair by pair."""
    right, pairs, kept, macro, regrets = 0.0, 0, [], [], []
    for row in RANKED:
        ranks = [float(one) for one in row["ranks"]]
        given = [scores[name] for name in row["images"]]
        credit, inverted, n = [], 0.0, len(ranks)
        for i, j in itertools.combinations(range(n), 2):
            if ranks[i] == ranks[j]:
                continue
            better, worse = (i, j) if ranks[i] < ranks[j] else (j, i)
            credit.append(float(given[better] > given[worse]))
            inverted += 0.0 if given[better] > given[worse] else 1.0
            inverted -= 0.5 * (given[better] == given[worse])
        kept.append(1 - inverted / (n * (n - 1) / 2))
        right, pairs = right + sum(credit), pairs + len(credit)
        macro += [float(np.mean(credit))] if credit else []
        best = [k for k in range(n) if given[k] == np.nanmax(given)]
        if min(ranks) < max(ranks):
            lost = np.mean([ranks[k] for k in best]) - min(ranks)
            regrets.append(float(lost / (max(ranks) - min(ranks))))
    return {
        "accuracy": right / pairs,
        "accuracy_macro": float(np.mean(macro)),
        "inversions": float(np.mean(kept)),
        "regret": float(np.mean(regrets)),
    }


@pytest.mark.parametrize("seed", range(8))
def test_lists_against_a_plain_computation(tmp_path: Path, seed: int) -> None:
    random = np.random.default_rng(seed)
    scores = {f"i{k}": float(one) for k, one in enumerate(random.integers(0, 4, 9))}
    one = benchmark(tmp_path, RANKED, {"ranks": "ranks"}, RANKS)
    found = values(one, scores)
    for measure, expected in plain_lists(scores).items():
        assert found[measure].value == pytest.approx(expected), measure
    assert found["accuracy"].n_items == 8
    assert found["inversions"].n_items == 3
    assert found["inversions"].n_clusters == 2


def test_an_image_without_a_score_is_never_chosen_and_loses(tmp_path: Path) -> None:
    one = benchmark(tmp_path, RANKED, {"ranks": "ranks"}, RANKS)
    scores = {f"i{k}": 0.0 for k in range(9)} | {"i0": NAN, "i1": 2.0, "i2": 1.0, "i4": 5.0}
    found = values(one, scores)
    assert found["accuracy"].value == pytest.approx((1 + 3) / 8)
    assert found["regret"].value == pytest.approx((0.5 + 0.0) / 2)
    assert {row.n_missing for row in found.values()} == {1}
    assert "counted as wrong: 2" in found["accuracy"].note
    assert "never chosen: 1" in found["regret"].note


def compared(
    one: PreferenceBenchmark, scores: Mapping[str, float], lines: Sequence[tuple[str, str, float]]
) -> dict[str, Row]:
    """Rows by measure of a metric that compares."""
    answers = one.answers(None)
    overall = pd.DataFrame({"m": [scores.get(pair, NAN) for pair in answers.pair_ids]},
                           index=pd.Index(answers.pair_ids, name="pair_id"))  # fmt: skip
    margins = pd.DataFrame(lines, columns=["pair_id", "other_id", "margin"])
    found = one.evaluate(ScoreTable(overall, margins={"m": margins}), answers, 0)
    return {row.measure: row for row in found.rows if row.split is None and row.skill is None}


def in_both_orders(*lines: tuple[str, str, float]) -> list[tuple[str, str, float]]:
    """Margins that say the same in the other order."""
    return [one for a, b, margin in lines for one in ((a, b, margin), (b, a, -margin))]


def test_a_metric_that_compares_is_measured_by_what_it_said_of_each_pair(tmp_path: Path) -> None:
    """A circle, which no scores can say: every pair of the list is right but one, which is tied."""
    rows = [{"p": "p", "images": ["a", "b", "c"], "ranks": [1, 2, 3]}]
    one = benchmark(tmp_path, rows, {"ranks": "ranks"}, RANKS)
    a, b, c = "a", "b", "c"
    lines = [(a, b, 2.0), (b, a, -1.0), (b, c, 0.5), (c, b, -0.5), (a, c, 1.0), (c, a, 1.0)]
    found = compared(one, {a: 0.0, b: 0.0, c: 0.0}, lines)
    assert found["accuracy"].value == pytest.approx(2 / 3)
    assert found["accuracy_half"].value == pytest.approx(2.5 / 3)
    turned = compared(one, {a: 0.0, b: 0.0, c: 0.0}, [(y, x, -m) for x, y, m in lines])
    assert {name: row.value for name, row in turned.items()} == pytest.approx(
        {name: row.value for name, row in found.items()}, nan_ok=True
    )


@pytest.mark.parametrize("other", [[("b", "a", NAN)], []], ids=["without an answer", "not there"])
def test_what_one_order_alone_says_is_missing(
    tmp_path: Path, other: list[tuple[str, str, float]]
) -> None:
    """A judge that prefers the first place, and fails in the other order, knows nothing."""
    rows = [{"p": "p", "images": ["a", "b"], "ranks": [1, 2]}]
    one = benchmark(tmp_path, rows, {"ranks": "ranks"}, RANKS)
    found = compared(one, {"a": 1.0, "b": -1.0}, [("a", "b", 1.0), *other])
    assert (found["accuracy"].value, found["accuracy"].n_missing) == (0.0, 2)
    assert found["accuracy_half"].value == 0.5
    assert "counted as wrong: 1" in found["accuracy"].note


def test_a_pair_that_was_not_compared_has_the_difference_of_strengths(tmp_path: Path) -> None:
    rows = [{"p": "p", "images": ["a", "b", "c"], "ranks": [1, 2, 3]}]
    one = benchmark(tmp_path, rows, {"ranks": "ranks"}, RANKS)
    a, b, c = "a", "b", "c"
    found = compared(one, {a: 1.0, b: 0.0, c: -1.0}, in_both_orders((a, b, -1.0), (b, c, NAN)))
    assert found["accuracy"].value == pytest.approx(1 / 3)


def test_what_was_not_answered_is_missing_whatever_other_answers_say(tmp_path: Path) -> None:
    rows = [{"p": "p", "images": ["a", "b", "c"], "ranks": [1, 2, 3]}]
    lines = in_both_orders(("a", "b", 1.0), ("b", "c", 1.0), ("a", "c", NAN))
    found = {
        missing: compared(
            benchmark(tmp_path / missing, rows, {"ranks": "ranks"}, RANKS,
                      evaluation={"missing": missing}),
            {"a": 1.0, "b": 0.0, "c": -1.0}, lines,
        )["accuracy"]
        for missing in ("wrong", "drop", "fail")
    }  # fmt: skip
    assert [row.n_missing for row in found.values()] == [2, 2, 2]
    assert [row.value for row in found.values()] == pytest.approx([2 / 3, 1.0, NAN], nan_ok=True)


def test_four_labels_need_scores(tmp_path: Path) -> None:
    verdict = {"label": "label", "values": LABEL["values"], "good": 1.0}
    one = benchmark(tmp_path, labelled("xy"), verdict, {"label": "label"})
    found = compared(one, {}, [("x0", "y0", 1.0)])
    assert found["exact_match"].note == BETWEEN_TEXTS
    assert math.isnan(found["exact_match"].value)


@pytest.mark.parametrize(
    ("missing", "expected", "n_items"),
    [("wrong", 1 / 3, 3), ("drop", 1 / 2, 2), ("fail", NAN, 0)],
)
def test_missing_scores(tmp_path: Path, missing: str, expected: float, n_items: int) -> None:
    rules = {**LABEL, "metric_ties": "half"}
    one = benchmark(tmp_path, labelled("xxx"), rules, COLUMN, evaluation={"missing": missing})
    found = values(one, scored(RIGHT, WRONG, (1.0, NAN)))
    assert found["accuracy"].value == pytest.approx(expected, nan_ok=True)
    assert found["accuracy"].n_items == n_items
    assert found["accuracy"].n_missing == 1
    assert found["accuracy"].note
    if missing != "fail":
        assert found["accuracy_strict"].value == pytest.approx(1 / 3)
        assert found["accuracy_half"].value == pytest.approx(1.5 / 3)


def test_verdicts_written_as_scores_match_four_labels(tmp_path: Path) -> None:
    pairs = {
        "x": (1.0, 0.0),
        "y": (0.0, 1.0),
        "t": (1.0, 1.0),
        "0": (0.0, 0.0),
        "?": (NAN, NAN),
        "!": (-1.0, -1.0),
    }
    said, verdicts = "xyt0xyt0x0t", "xyt0yxt0?!!"
    one = benchmark(tmp_path, labelled(said), {**LABEL, "good": 1.0}, COLUMN)
    found = values(one, scored(*[pairs[letter] for letter in verdicts]))["exact_match"]
    assert found.value == pytest.approx(
        sum(a == b for a, b in zip(said, verdicts, strict=True)) / len(said)
    )
    assert (found.n_items, found.n_missing) == (len(said), 2)
    assert "without a verdict, counted as wrong: 3" in found.note
    nothing = values(one, scored(*[pairs["!"] for _ in said]))["exact_match"]
    assert (nothing.value, nothing.n_missing) == (0.0, 2 * len(said))


@pytest.mark.parametrize("shift", [-20.0, -3.0, 0.0, 5.0])
@pytest.mark.parametrize("direction", [1, -1])
def test_a_tie_of_scores_is_a_tie_wherever_it_lies(
    tmp_path: Path, shift: float, direction: Literal[1, -1]
) -> None:
    """Only a column of nothing but verdicts can say by -1 and -1 that there is none."""
    one = benchmark(
        tmp_path, labelled("xyxy"), {**LABEL, "good": 1.0, "metric_ties": "half"}, COLUMN
    )
    pairs = [(2.0, 0.0), (1.0, 1.0), (2.0, 0.0), (0.0, 0.0)]
    given = scored(*[(direction * (a + shift), direction * (b + shift)) for a, b in pairs])
    found = values(one, given, direction)["accuracy"]
    assert found.value == pytest.approx((1 + 0.5 + 1 + 0.5) / 4)
    assert (found.n_missing, found.note) == (0, "")


def test_votes_weigh_and_few_votes_and_small_gaps_are_left_out(tmp_path: Path) -> None:
    votes = [(5, 1), (1, 2), (1, 0), (2, 2)]
    rows = [row | {"u": u, "v": v} for row, (u, v) in zip(labelled("...."), votes, strict=True)]
    columns = {k: {"from": k, "type": "int"} for k in "uv"}
    one = benchmark(tmp_path, rows, {"votes": ["u", "v"], "min_votes": 2, "min_gap": 0.5}, columns)
    scores = scored(RIGHT, RIGHT, RIGHT, EQUAL)
    found = values(one, scores)
    assert found["accuracy"].value == 1.0
    assert found["accuracy_all"].value == 0.5
    assert found["vote_accuracy"].value == pytest.approx((5 + 1 + 2) / (6 + 3 + 4))
    assert one.answers(None).counts()["comparisons left out for want of votes"] == 1
    by_gap = benchmark(tmp_path / "gap", rows, {"votes": ["u", "v"], "weight": "gap"}, columns)
    gaps = [4 / 6, 1 / 3, 1.0]
    expected = (gaps[0] + gaps[2]) / sum(gaps)
    assert values(by_gap, scores)["accuracy"].value == pytest.approx(expected)


def plain_auc(positive: Sequence[float], negative: Sequence[float]) -> float:
    won = [(p > n) + 0.5 * (p == n) for p in positive for n in negative]
    return float(np.mean(won))


@pytest.mark.parametrize("seed", range(4))
def test_areas_under_the_curve_against_all_pairs(tmp_path: Path, seed: int) -> None:
    random = np.random.default_rng(seed)
    letters = "".join(random.choice(list("xyt"), 30))
    scores = {f"{side}{k}": float(random.integers(0, 6)) for side in "xy" for k in range(30)}
    found = values(benchmark(tmp_path, labelled(letters), LABEL, COLUMN), scores)
    margins = np.array([scores[f"x{k}"] - scores[f"y{k}"] for k in range(30)])
    gold = np.array([{"x": 1, "y": -1, "t": 0}[one] for one in letters])
    better = list((margins * gold)[gold != 0])
    assert found["auc"].value == pytest.approx(plain_auc(better, [-one for one in better]))
    apart = plain_auc(list(abs(margins[gold != 0])), list(abs(margins[gold == 0])))
    assert found["auc_ties"].value == pytest.approx(apart)


def repeated(
    one: PreferenceBenchmark, scores: Mapping[str, float], rows: list[dict[str, Any]], folder: Path
) -> None:
    """Every resample equals the measures of a table with its prompts so many times over."""
    answers, found = measured(one, scores, n_resamples=4)
    counts = one.plan(answers, 4).counts
    for draw, weights in enumerate(counts):
        times = dict(zip(answers.clusters, weights.astype(int), strict=True))
        drawn = [row | {"p": f"{row['p']}"} for row in rows for _ in range(times[str(row["p"])])]
        again = type(one)(one.card.model_copy(), folder)
        again.home = folder / str(draw)
        again.home.mkdir(parents=True)
        (again.home / "labels.json").write_text(json.dumps(drawn))
        _, expected = measured(again, scores)
        value = {(row.measure, row.skill): row.value for row in expected.rows}
        for row, resamples in zip(found.rows, found.resamples, strict=True):
            drawn_value = value.get((row.measure, row.skill), NAN)
            assert resamples[draw] == pytest.approx(drawn_value, nan_ok=True), row.measure


@pytest.mark.parametrize("average", ["micro", "macro"])
@pytest.mark.parametrize("missing", ["wrong", "drop"])
def test_a_resample_is_a_table_with_its_prompts_repeated(
    tmp_path: Path, average: str, missing: str
) -> None:
    random = np.random.default_rng(5)
    rows = [
        row | {"p": f"p{k % 5}", "skill": "uv"[k % 2]}
        for k, row in enumerate(labelled("".join(random.choice(list("xyt0"), 24))))
    ]
    scores = {f"{side}{k}": float(random.integers(0, 5)) for side in "xy" for k in range(24)}
    scores["x3"] = NAN
    one = benchmark(
        tmp_path, rows, {**LABEL, "good": 3.0, "average": average, "metric_ties": "half"},
        {**COLUMN, "skill": "skill"}, evaluation={"missing": missing}, items={"skills": "skill"},
    )  # fmt: skip
    if average == "macro":
        answers, found = measured(one, scores, n_resamples=50)
        counts = one.plan(answers, 50).counts
        macro = next(k for k, row in enumerate(found.rows) if row.measure == "accuracy")
        of_prompt = [
            values(
                benchmark(
                    tmp_path / p, [row for row in rows if row["p"] == p],
                    {**LABEL, "metric_ties": "half"}, COLUMN, evaluation={"missing": missing},
                ),
                scores,
            )["accuracy"].value
            for p in answers.clusters
        ]  # fmt: skip
        expected = counts @ np.array(of_prompt) / counts.sum(axis=1)
        assert found.resamples[macro] == pytest.approx(expected)
        assert found.rows[macro].value == pytest.approx(float(np.mean(of_prompt)))
        return
    one.card.measures.pop("accuracy_macro")  # There a prompt drawn twice is two prompts.
    repeated(one, scores, rows, tmp_path / "again")


@pytest.mark.parametrize("on", ["score", "softmax"])
def test_a_threshold_is_found_on_another_split(tmp_path: Path, on: str) -> None:
    random = np.random.default_rng(7)
    letters = "".join(random.choice(list("xyt"), 200))
    rows = [row | {"split": "vt"[k % 2]} for k, row in enumerate(labelled(letters))]
    scores = {f"{side}{k}": float(random.normal()) for side in "xy" for k in range(200)}
    for k, letter in enumerate(letters):
        scores[f"{letter if letter != 't' else 'x'}{k}"] += 1.0 if letter != "t" else 0.0
    grid = [k / 10 for k in range(11)]
    one = benchmark(
        tmp_path, rows,
        {
            **LABEL, "human_ties": "half", "metric_ties": "threshold",
            "threshold": {"grid": grid, "calibrate": "v", "on": on},
        },
        {**COLUMN, "split": "split"}, items={"split": "split"},
    )  # fmt: skip

    def plain(split: str, limit: float) -> float:
        found = []
        for row in rows:
            if row["split"] != split:
                continue
            x, y = scores[row["x"]], scores[row["y"]]
            p = np.exp([x, y]) / np.exp([x, y]).sum() if on == "softmax" else np.array([x, y])
            verdict = "t" if abs(p[0] - p[1]) <= limit else "x" if x > y else "y"
            both = {verdict, row["label"]}
            found.append(1.0 if len(both) == 1 else 0.5 if "t" in both else 0.0)
        return float(np.mean(found))

    best = max(grid, key=lambda limit: plain("v", limit))
    found = values(one, scores)["accuracy"]
    assert found.value == pytest.approx(plain("t", best))
    assert found.n_items == 100
    assert f"{best:g}" in found.note
    # Random scores are never as close as the least threshold: a decided one is right half of the
    # times, a tie half right.
    assert one.chance(measured(one, scores)[0]) == pytest.approx(0.5)


def test_a_threshold_needs_the_split_that_it_is_found_on(tmp_path: Path) -> None:
    threshold = {"metric_ties": "threshold", "threshold": {"grid": [0.0], "calibrate": "v"}}
    with refused("invalid_benchmark", "items.split"):
        benchmark(tmp_path, labelled("xy"), LABEL | threshold, COLUMN)


def test_rows_that_compare_no_two_images_are_refused(tmp_path: Path) -> None:
    with refused("data_malformed", "do not compare two images"):
        benchmark(tmp_path, labelled("xy"), LABEL, COLUMN, {"image": "x"}).answers(None)


def test_where_people_decided_nothing_there_is_no_accuracy(tmp_path: Path) -> None:
    found = values(benchmark(tmp_path, labelled("tt"), LABEL, COLUMN), scored(RIGHT, WRONG))
    assert math.isnan(found["accuracy"].value) and found["accuracy"].n_items == 0


def test_a_card_without_texts_has_none(tmp_path: Path) -> None:
    one = benchmark(tmp_path, labelled("xy"), LABEL, COLUMN, {"text": ""})
    assert one.texts(None) == {}


SIMULATED = [
    (LABEL, COLUMN, [row | {"label": one} for row, one in
                     zip(labelled("." * 40), "xxxyxyyxtt" * 4, strict=True)]),
    ({**LABEL, "human_ties": "half", "metric_ties": "half"}, COLUMN,
     labelled("xxxyxyyxtt" * 4)),
    ({**LABEL, "human_ties": "class", "average": "macro"}, COLUMN, labelled("xxxyxyyx0t" * 4)),
    ({"ranks": "ranks"}, RANKS, RANKED),
]  # fmt: skip


@pytest.mark.first_quick
@pytest.mark.parametrize(("preference", "columns", "rows"), SIMULATED)
def test_chance_is_what_random_scores_reach(
    tmp_path: Path, preference: Any, columns: Any, rows: Any
) -> None:
    one = benchmark(tmp_path, rows, preference, columns)
    answers = answers_of(one)
    random = np.random.default_rng(11)
    table = pd.DataFrame(random.normal(size=(len(answers.pair_ids), 100)), answers.pair_ids)
    table.columns = table.columns.astype(str)
    found = one.measure(ScoreTable(table), answers, one.plan(answers, 0)).rows
    fact = one.facts(answers)["What needs no look at an image"].set_index("measure")
    for measure, info in one.card.measures.items():
        of = [row.value for row in found if row.measure == measure]
        expected = fact.loc[info.title, "random scores"]
        spread = np.std(of) / math.sqrt(len(of))
        assert np.mean(of) == pytest.approx(expected, abs=float(4 * spread + 1e-9)), measure
    assert one.chance(answers) == fact.loc[MEASURES["accuracy"].title, "random scores"]


def test_pairs_have_the_share_that_they_won(tmp_path: Path) -> None:
    rows = [*labelled("xt"), {"p": "p0", "x": "x0", "y": "z", "label": "y"}]
    one = benchmark(tmp_path, rows, LABEL, COLUMN)
    answers = answers_of(one)
    won = dict(zip(answers.pair_ids, one.gold_of_pairs(answers), strict=True))
    assert won == {"x0": 0.5, "y0": 0.0, "x1": 0.5, "y1": 0.5, "z": 1.0}
    assert (
        one.labels(answers) == {"a": 1, "b": 1, "tie": 1} or sum(one.labels(answers).values()) == 3
    )


def test_cases_hold_what_people_expect(tmp_path: Path) -> None:
    one = benchmark(tmp_path, labelled("xyt"), LABEL, COLUMN)
    answers = answers_of(one)
    found = one.cases(answers, None)
    assert found is not None
    expected = dict(zip(found["pair_id"], found["expected"], strict=True))
    assert expected == {"x0": 1, "y0": 0, "x1": 0, "y1": 1, "x2": 0.5, "y2": 0.5}
    assert found.groupby("case_id").size().tolist() == [2, 2, 2]
    ranked = benchmark(tmp_path / "r", RANKED, {"ranks": "ranks"}, RANKS)
    answers = answers_of(ranked)
    found = ranked.cases(answers, None)
    assert found is not None
    said = dict(zip(found["pair_id"], found["said"], strict=True))
    assert said["i6"] == "rank 4"


@pytest.mark.parametrize(
    ("rows", "preference", "columns", "word"),
    [
        (labelled("xq"), LABEL, COLUMN, "'q'"),
        (
            [row | {"u": -1.0, "v": 2.0} for row in labelled(".")],
            {"votes": ["u", "v"]},
            {k: {"from": k, "type": "float"} for k in "uv"},
            "-1.0",
        ),
        ([RANKED[0] | {"ranks": [1, 2]}], {"ranks": "ranks"}, RANKS, "2 ranks for 3 images"),
    ],
)
def test_labels_that_say_nothing_are_refused(
    tmp_path: Path, rows: Any, preference: Any, columns: Any, word: str
) -> None:
    with refused("data_malformed", word):
        benchmark(tmp_path, rows, preference, columns).answers(None)


@pytest.mark.parametrize(
    "measure", ["regret", "vote_accuracy", "exact_match", "accuracy_all", "accuracy_micro"]
)
def test_a_measure_that_the_labels_do_not_allow_is_refused(tmp_path: Path, measure: str) -> None:
    with pytest.raises(SubmitterError, match=f"{measure} needs"):
        benchmark(
            tmp_path, labelled("x"), LABEL, COLUMN,
            evaluation={"measures": ["accuracy", measure]},
        )  # fmt: skip
