"""Groups of texts and images: rules, ties, missing scores, against plain computations."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import ArrayLike

from benchmarks.errors import SubmitterError
from benchmarks.families.controls import run_controls
from benchmarks.families.group import GroupAnswers, GroupBenchmark
from benchmarks.rows import Measured, Row
from benchmarks.schema import ScoreTable
from benchmarks.statistics.orders import chance_of_order
from tests.benchmarks.families.cards import answers_as, board_of_rows
from tests.kit.refusals import refused

NAN = math.nan
OWN = {
    "rules": [
        {"name": "graded", "all": ["c0i0 > c0i1", "c0i1 > c1i0"]},
        {"name": "diagonal", "all": ["c1i0 < c1i1"]},
    ]
}


def benchmark(folder: Path, group: Mapping[str, Any], n: int = 4, **more: Any) -> GroupBenchmark:
    """Groups 0..n-1 with texts `t<n>`, `u<n>` and images `x<n>`, `y<n>`; two groups a prompt."""
    rule = group.get("rule")
    texts: Any = "t" if rule == "image_choice" else ["t", "u"]
    images: Any = "x" if rule == "caption_choice" else ["x", "y"]
    items = {"pair": "id", "prompt": "p", "text": texts, "image": images, "skills": "k"}
    headline = {"measure": MAIN.get(str(rule), "graded"), "facet": None}
    columns = {key: key for key in ("id", "p", "t", "u", "x", "y", "s", "k")}
    keys = {
        "family": "group",
        "gold": None,
        "group": group,
        **more,
        "headline": headline | more.get("headline", {}),
        "items": items | more.get("items", {}),
    }
    rows = [
        {"id": f"g{k}", "p": f"p{k // 2}", "s": "vw"[k % 2], "k": "ab"[k // 2 % 2]}
        | {key: f"{key}{k}" for key in "tuxy"}
        for k in range(n)
    ]
    return board_of_rows(folder, GroupBenchmark, rows, columns, keys)


MAIN = {
    "winoground": "group_score",
    "vqa_pairs": "g_acc",
    "caption_choice": "accuracy",
    "image_choice": "accuracy",
}


answers_of = partial(answers_as, GroupAnswers)


def measured(
    one: GroupBenchmark, cells: ArrayLike, n_resamples: int = 20, **table: Any
) -> Measured:
    """`cells`: the scores of each group, text by text."""
    answers = answers_of(one)
    scores = np.empty(len(answers.pair_ids))
    scores[answers.lines] = np.array(cells)
    frame = pd.DataFrame({"m": scores}, list(answers.pair_ids))
    return one.measure(ScoreTable(frame, **table), answers, one.plan(answers, n_resamples))


def values(one: GroupBenchmark, cells: ArrayLike, **table: Any) -> dict[str, Row]:
    rows = measured(one, cells, **table).rows
    return {row.measure: row for row in rows if row.skill is None and row.split in (None, "all")}


def plain(rule: str, s: Sequence[float]) -> dict[str, float]:
    """Figures of one group by the words of the papers; s is c0i0, c0i1, c1i0, c1i1."""
    if rule == "winoground":
        text = s[0] > s[2] and s[3] > s[1]
        image = s[0] > s[1] and s[3] > s[2]
        return {"text_score": text, "image_score": image, "group_score": text and image}
    if rule == "vqa_pairs":
        right = [s[0] > 0.5, s[1] < 0.5, s[2] < 0.5, s[3] > 0.5]
        return {
            "acc": sum(right) / 4,
            "q_acc": ((right[0] and right[1]) + (right[2] and right[3])) / 2,
            "i_acc": ((right[0] and right[2]) + (right[1] and right[3])) / 2,
            "g_acc": all(right),
        }
    if rule == "own":
        return {"graded": s[0] > s[1] > s[2], "diagonal": s[3] > s[2]}
    return {"accuracy": s[0] > s[1]}


RULES = [
    *({"rule": rule} for rule in ("winoground", "vqa_pairs", "caption_choice", "image_choice")),
    OWN,
]


def size_of(group: Mapping[str, Any]) -> int:
    return 2 if str(group.get("rule")).endswith("choice") else 4


@pytest.mark.parametrize("group", RULES, ids=str)
def test_measures_are_those_of_a_plain_loop(tmp_path: Path, group: dict[str, Any]) -> None:
    random = np.random.default_rng(3)
    n = 40
    one = benchmark(tmp_path, group, n)
    cells = random.integers(0, 5, (n, size_of(group))) / 4  # Many equal scores.
    cells[5, 0] = cells[6, 1] = NAN
    found = measured(one, cells, 30)
    each = pd.DataFrame([plain(group.get("rule", "own"), row) for row in cells.tolist()])
    clusters = np.arange(n) // 2
    counts = one.plan(answers_of(one), 30).counts
    for row, drawn in zip(found.rows, found.resamples, strict=True):
        inside = np.array([row.skill in (None, "ab"[k // 2 % 2]) for k in range(n)])
        credit = each[row.measure].to_numpy(float)
        assert row.value == pytest.approx(credit[inside].mean()), row.measure
        assert row.n_clusters == len(set(clusters[inside]))
        weight = counts[:, clusters] * inside
        assert drawn == pytest.approx(weight @ credit / weight.sum(axis=1)), row.measure
    assert {row.skill for row in found.rows} == {None, "a", "b"}
    assert set(each) == set(one.card.measures)


@pytest.mark.parametrize("group", RULES, ids=str)
def test_chance_is_what_random_scores_reach(tmp_path: Path, group: dict[str, Any]) -> None:
    random = np.random.default_rng(7)
    one = benchmark(tmp_path, group, 400)
    answers = answers_of(one)
    table = pd.DataFrame(random.uniform(size=(len(answers.pair_ids), 40)), answers.pair_ids)
    table.columns = table.columns.astype(str)
    rows = one.measure(ScoreTable(table), answers, one.plan(answers, 0)).rows
    facts = one.facts(answers)["What needs no look at an image"].set_index("measure")
    for measure, info in one.card.measures.items():
        reached = [row.value for row in rows if row.measure == measure and row.skill is None]
        spread = float(np.std(reached)) / math.sqrt(len(reached))
        assert info.chance == pytest.approx(float(np.mean(reached)), abs=4 * spread), measure
        assert facts.loc[info.title, "random scores"] == info.chance
    assert one.chance(answers) == one.card.measures[one.card.headline.measure].chance


@pytest.mark.parametrize(
    ("rule", "chances"),
    [
        ("winoground", {"text_score": 1 / 4, "image_score": 1 / 4, "group_score": 1 / 6}),
        ("vqa_pairs", {"q_acc": 1 / 4, "i_acc": 1 / 4, "acc": 1 / 2, "g_acc": 1 / 16}),
        ("caption_choice", {"accuracy": 1 / 2}),
        ("image_choice", {"accuracy": 1 / 2}),
    ],
)
def test_chances_are_those_of_the_papers(
    tmp_path: Path, rule: str, chances: dict[str, float]
) -> None:
    found = benchmark(tmp_path, {"rule": rule}).card.measures
    assert {name: info.chance for name, info in found.items()} == pytest.approx(chances)


def test_the_chance_of_an_order_is_its_share_of_all_orders() -> None:
    random = np.random.default_rng(2)
    for _ in range(40):
        size = int(random.integers(2, 6))
        pairs = [
            (int(a), int(b)) for a, b in random.integers(0, size, (int(random.integers(6)), 2))
            if a != b
        ]  # fmt: skip
        held = [
            all(order[a] > order[b] for a, b in pairs)
            for order in itertools.permutations(range(size))
        ]
        assert chance_of_order(pairs) == pytest.approx(np.mean(held))


@pytest.mark.parametrize(
    ("missing", "value", "n_items", "note"),
    [
        ("wrong", 1 / 4, 4, "counted as wrong: 2"),
        ("drop", 1 / 2, 2, "left out: 2"),
        ("fail", NAN, 0, "withheld: groups without a score: 2"),
    ],
)
def test_a_group_without_a_score(
    tmp_path: Path, missing: str, value: float, n_items: int, note: str
) -> None:
    one = benchmark(tmp_path, {"rule": "winoground"}, evaluation={"missing": missing})
    right, wrong = [1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0]
    found = values(one, [right, wrong, [NAN, 0, 0, 1], [NAN, 0, NAN, 1]])
    row = found["group_score"]
    assert row.value == pytest.approx(value, nan_ok=True)
    assert (row.n_items, row.n_missing) == (n_items, 3)
    assert note in row.note
    without = values(one, [[NAN] * 4] * 4)["text_score"]
    assert without.value == pytest.approx(0.0 if missing == "wrong" else NAN, nan_ok=True)


def test_missing_answers_cost_only_the_questions_that_they_answer(tmp_path: Path) -> None:
    one = benchmark(tmp_path, {"rule": "vqa_pairs"}, 1, evaluation={"missing": "drop"})
    found = values(one, [[0.9, 0.1, 0.2, NAN]])
    counted = {name: (row.value, row.n_items) for name, row in found.items()}
    assert counted.pop("g_acc")[1] == 0
    assert counted == {"q_acc": (1, 1), "i_acc": (1, 1), "acc": (1, 3)}


def test_a_threshold_is_in_the_unit_and_direction_of_the_scores(tmp_path: Path) -> None:
    one = benchmark(tmp_path, {"rule": "vqa_pairs", "threshold": 2.0}, 1)
    assert values(one, [[3, 1, 1, 3]])["g_acc"].value == 1
    assert values(one, [[2, 1, 1, 3]])["acc"].value == 3 / 4
    reverse = values(one, [[1, 3, 3, 1]], directions={"m": -1})
    assert reverse["g_acc"].value == 1


@pytest.mark.parametrize("group", RULES, ids=str)
def test_controls_reach_chance_where_their_scores_are_equal(
    tmp_path: Path, group: dict[str, Any]
) -> None:
    one = benchmark(tmp_path, group)
    found = run_controls(one, answers_of(one), None, 0)
    assert found.half_credit
    for measure, info in one.card.measures.items():
        assert found.value("constant", measure=measure, variant="assay") == pytest.approx(
            info.chance
        )


def test_equal_scores_are_wrong_for_a_metric(tmp_path: Path) -> None:
    one = benchmark(tmp_path, {"rule": "winoground"})
    assert [row.value for row in values(one, [[0.5] * 4] * 4).values()] == [0, 0, 0]
    facts = one.facts(answers_of(one))["What needs no look at an image"]
    assert facts["equal scores"].tolist() == [0, 0, 0]


def test_some_equal_scores_are_ordered_at_random_for_a_control(tmp_path: Path) -> None:
    one = benchmark(tmp_path, {"rule": "winoground"}, 2).with_half_credit()
    # c0i0 is ahead, and c1i1 equal to both others: 1 of 3 orders has it ahead of both.
    found = values(one, [[2, 1, 1, 1], [1, 2, 2, 1]])
    assert found["group_score"].value == pytest.approx((1 / 3 + 0) / 2)
    assert found["text_score"].value == pytest.approx((1 / 2 + 0) / 2)


def test_neither_ids_nor_their_order_tell_what_is_right(tmp_path: Path) -> None:
    one = benchmark(tmp_path, {"rule": "winoground"}, 200)
    answers = answers_of(one)
    pairs = answers.items.pairs
    truth = pd.Series(one.gold_of_pairs(answers), list(answers.pair_ids))
    of_id = truth.groupby([name.rpartition("/")[2] for name in answers.pair_ids])
    assert set(of_id.groups) == {"c0i0", "c0i1", "c1i0", "c1i1"}
    assert of_id.mean().between(0.38, 0.62).all()
    assert truth.iloc[:400].mean() == pytest.approx(0.5, abs=0.1)
    belongs = pairs["text"].str[1:] == pairs["image"].str[1:]
    assert belongs.all()  # Of one group; of the four, two belong together.
    same = (pairs["text"].str[0] == "t") == (pairs["image"].str[0] == "x")
    assert (truth.to_numpy() == same.to_numpy()).all()


def test_images_without_names_are_one_for_all_texts(tmp_path: Path) -> None:
    one = benchmark(tmp_path / "1", {"rule": "winoground"}, 3, items={"image": ""})
    pairs = answers_of(one).items.pairs
    assert sorted(pairs["image"].unique()) == [f"g{k}/{side}" for k in range(3) for side in "ab"]
    assert pairs.groupby("image")["text"].nunique().eq(2).all()
    own = {"rules": [{"name": "own", "all": ["c0i0 > c0i2"]}]}
    one = benchmark(
        tmp_path / "2", own, 1, headline={"measure": "own"}, items={"text": "t", "image": ""}
    )
    assert len(answers_of(one).pair_ids) == 3


def test_a_cell_has_the_share_of_comparisons_that_it_should_win(tmp_path: Path) -> None:
    one = benchmark(tmp_path, OWN, 2)
    answers = answers_of(one)
    truth = one.gold_of_pairs(answers)[answers.lines]
    np.testing.assert_array_equal(truth, [[1, 0.5, 0, 1]] * 2)
    cases = one.cases(answers, None)
    assert cases["said"].value_counts().to_dict() == {
        "belong together": 4, "do not belong together": 2, "wins 50% of its comparisons": 2,
    }  # fmt: skip
    assert cases.groupby("case_id").size().tolist() == [4, 4]
    free = benchmark(tmp_path / "free", {"rules": OWN["rules"][1:]}, 1,
                     headline={"measure": "diagonal"})  # fmt: skip
    answers = answers_of(free)
    assert np.isnan(free.gold_of_pairs(answers)).sum() == 2
    assert len(free.cases(answers, None)) == 2


def test_there_is_nothing_to_generate_for_groups(tmp_path: Path) -> None:
    one = benchmark(tmp_path, {"rule": "winoground"})
    with refused("no_prompts"):
        one.prompts(None)
    assert one.texts(None) == {}
    assert answers_of(one).counts()["groups"] == 4


def test_splits_have_rows_of_their_own(tmp_path: Path) -> None:
    one = benchmark(
        tmp_path,
        {"rule": "image_choice"},
        headline={"split": "all"},
        items={"split": "s", "skills": ""},
    )
    rows = measured(one, [[1, 0], [0, 1], [1, 0], [0, 1]]).rows
    assert {row.split: row.value for row in rows} == {"all": 0.5, "v": 1, "w": 0}


@pytest.mark.parametrize(
    ("group", "items", "word"),
    [
        ({"rule": "winoground"}, {"image": "x"}, "two texts and two images"),
        ({"rule": "vqa_pairs"}, {"text": "t"}, "two texts and two images"),
        ({"rule": "caption_choice"}, {"text": "t"}, "several texts"),
        ({"rule": "image_choice"}, {"image": "x"}, "several images"),
        (OWN, {"text": "t"}, "c1i0"),
        ({"rules": [{"name": "own", "all": ["c0i0 > c0i1", "c0i1 > c0i0"]}]}, {}, "contradicts"),
        ({"rules": [{"name": "own", "all": ["c0i0 > c0i1"]}] * 2}, {}, "two rules"),
        ({"rule": "caption_choice"}, {"text": ["t"] * 18}, "more than 16"),
    ],
)
def test_a_rule_that_does_not_fit_its_rows_is_refused(
    tmp_path: Path, group: dict[str, Any], items: dict[str, Any], word: str
) -> None:
    measure = "own" if str(group).count("own") else MAIN.get(str(group.get("rule")), "graded")
    with pytest.raises(SubmitterError, match=word) as caught:
        benchmark(tmp_path, group, headline={"measure": measure}, items=items)
    assert caught.value.code == "invalid_benchmark"


@pytest.mark.parametrize(
    "group", [{"rules": "graded"}, {"rules": [{"all": 3}]}, {"rules": [3]}, {"rule": "none"}]
)
def test_a_group_of_another_form_is_refused(tmp_path: Path, group: Any) -> None:
    with refused("invalid_benchmark"):
        benchmark(tmp_path, group)


def test_a_group_that_is_incomplete_is_refused(tmp_path: Path) -> None:
    one = benchmark(tmp_path, {"rule": "caption_choice"})
    card = one.card.model_copy(update={"items": one.card.items.model_copy(update={"text": "t"})})
    folder = one.folder(None)
    short = GroupBenchmark(one.card, tmp_path)
    short.card = card
    with refused("data_malformed", "1 texts with images where a group has 2"):
        short.labelled(folder, short.items(folder))


def test_an_image_that_is_compared_with_itself_is_refused(tmp_path: Path) -> None:
    with refused("data_malformed", "with itself"):
        benchmark(tmp_path, {"rule": "image_choice"}, items={"image": ["x", "x"]}).answers(None)
