"""Which cases are listed in what order, and what they add up to."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from benchmarks.cases import SCHEMA
from leaderboard.pages.items.cases import CaseSet, Standing
from leaderboard.pages.items.choosing import difference, listed, summary
from leaderboard.pages.items.table import table_of
from leaderboard.pages.items.tiles import Came, case_shown
from leaderboard.tables import to_csv
from tests.benchmarks.checks import agreement
from tests.leaderboard.pages.items.looked_at import (
    LACKS,
    NOISY,
    RIGHT,
    TURNED,
    case_set,
    entry_id,
    scores_of,
)


@pytest.fixture(scope="module")
def cases() -> CaseSet:
    return case_set()


def standing(cases: CaseSet, place: int) -> Standing:
    return Standing.of(entry_id(place), cases, scores_of(cases.frame, place).to_numpy())


def everything(cases: CaseSet) -> np.ndarray:
    return np.ones(cases.size, bool)


def test_failures_are_the_cases_with_a_mistake_worst_first(cases: CaseSet) -> None:
    noisy = standing(cases, NOISY)
    order = listed("failures", cases, (noisy,), everything(cases))
    shares = noisy.share[order]
    assert list(shares) == sorted(shares)
    assert set(order) == set(np.flatnonzero(noisy.share < 1))
    assert not listed("failures", cases, (standing(cases, RIGHT),), everything(cases)).size


def test_cases_without_scores_are_failures_too_and_come_last(cases: CaseSet) -> None:
    lacks = standing(cases, LACKS)
    order = listed("failures", cases, (lacks,), everything(cases))
    assert len(order) == cases.size - 2, "the first two cases have all scores, and are right"
    assert np.isnan(lacks.share[order]).all()


def test_disagreements_come_with_the_greatest_difference_first(cases: CaseSet) -> None:
    noisy, right = standing(cases, NOISY), standing(cases, RIGHT)
    order = listed("disagreements", cases, (noisy, right), everything(cases))
    gaps = np.abs(noisy.share - right.share)[order]
    assert list(gaps) == sorted(gaps, reverse=True)
    assert gaps.min() > 0
    assert not listed("disagreements", cases, (right, right), everything(cases)).size


def test_only_cases_with_the_skill_and_the_split_are_listed(cases: CaseSet) -> None:
    chosen = cases.within("counting", "real")
    order = listed("all", cases, (), chosen)
    assert list(order) == sorted(order)
    assert {cases.skills[case] for case in order} == {("counting",)}
    assert {cases.splits[case] for case in order} == {("real",)}
    assert 0 < len(order) < cases.size


def test_a_summary_pools_the_comparisons_of_all_its_cases(cases: CaseSet) -> None:
    noisy = standing(cases, NOISY)
    found = summary(cases, noisy, everything(cases))
    mine = agreement(cases.frame, scores_of(cases.frame, NOISY))
    assert found.right.value == pytest.approx(mine["n_right"].sum() / mine["n_compared"].sum())
    assert found.right.low < found.right.value < found.right.high
    assert found.bins.sum() == found.n_cases == cases.size
    assert found.n_all_right == (mine["share"] == 1).sum()


def test_missing_scores_are_counted(cases: CaseSet) -> None:
    found = summary(cases, standing(cases, LACKS), everything(cases))
    assert found.n_missing == 120 - 8
    assert found.right.value == 1.0


def test_too_few_clusters_have_no_interval(cases: CaseSet) -> None:
    few = np.arange(cases.size) < 5
    found = summary(cases, standing(cases, NOISY), few).right
    assert np.isfinite(found.value)
    assert np.isnan(found.low)
    assert np.isnan(found.high)


def test_a_difference_is_paired_over_the_same_resamples(cases: CaseSet) -> None:
    noisy, right = standing(cases, NOISY), standing(cases, RIGHT)
    found = difference(cases, noisy, right, everything(cases))
    alone = summary(cases, noisy, everything(cases)).right
    assert found.value == pytest.approx(alone.value - 1.0)
    assert (found.low, found.high) == pytest.approx((alone.low - 1.0, alone.high - 1.0))
    same = difference(cases, noisy, noisy, everything(cases))
    assert (same.value, same.low, same.high) == (0.0, 0.0, 0.0)


def test_an_image_tells_how_its_own_comparisons_came_out(cases: CaseSet) -> None:
    shown = case_shown(cases, 0, (standing(cases, TURNED), standing(cases, RIGHT)))
    assert [tile.number for tile in shown.tiles] == [1, 2, 3, 4]
    assert [tile.pairs[0].said for tile in shown.tiles] == [
        "5.0 of 5", "4.0 of 5", "2.5 of 5", "1.0 of 5",
    ]  # fmt: skip
    for tile in shown.tiles:
        turned, right = tile.pairs[0].scored
        assert (turned.came, right.came) == (Came(0, 3, 0), Came(3, 0, 0))
    assert [one.came for one in shown.verdicts] == [Came(0, 6, 0), Came(6, 0, 0)]


def test_the_gravest_mistake_is_where_people_are_most_sure(cases: CaseSet) -> None:
    mistake = case_shown(cases, 0, (standing(cases, TURNED),)).mistake
    assert mistake is not None
    assert mistake.above[:3] == (4, 0, "1.0 of 5")
    assert mistake.below[:3] == (1, 0, "5.0 of 5")
    assert case_shown(cases, 0, (standing(cases, RIGHT),)).mistake is None


def contrast(n: int) -> CaseSet:
    """One contrast pair of prompts with n images on either side."""
    rows = [
        ("x", "x", "", "", f"{side}{k}|{text}", f"{side}{k}", text, float(side == text), "said")
        for side in ("p", "q")
        for k in range(n)
        for text in ("p", "q")
    ]
    return case_set(pd.DataFrame(rows, columns=SCHEMA.names))


def test_of_many_images_those_are_shown_that_are_misjudged_most() -> None:
    cases = contrast(8)
    score = cases.frame["expected"].to_numpy().copy()
    wrong = (cases.frame["image_id"] == "q5").to_numpy()
    score[wrong] = 1 - score[wrong]
    standing_ = Standing.of("e", cases, score)
    shown = case_shown(cases, 0, (standing_,), most=4)
    assert (shown.n_images, len(shown.tiles)) == (16, 4)
    (tile,) = (tile for tile in shown.tiles if tile.image_id == "q5")
    assert [pair.prompt for pair in tile.pairs] == [0, 1]
    assert shown.mistake is not None
    assert {shown.mistake.above[0], shown.mistake.below[0]} <= {t.number for t in shown.tiles}


def test_the_table_has_every_listed_case_with_raw_values(cases: CaseSet) -> None:
    noisy, right = standing(cases, NOISY), standing(cases, RIGHT)
    order = listed("disagreements", cases, (noisy, right), everything(cases))
    table = table_of(cases, (noisy, right), order)
    assert [row["case_id"] for row in table.rows] == [
        cases.comparisons.case_ids[case] for case in order
    ]
    assert table.rows[0]["a_share"] == noisy.share[order[0]]
    assert {row["b_share"] for row in table.rows} == {1.0}
    assert table.about["a"] == entry_id(NOISY)
    assert to_csv(table).count("\n") == len(order) + 1
