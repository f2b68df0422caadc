"""The page about seeds: ranks with each, whether the order holds, how much each model varies."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from benchmarks.rethinking.measures import MetricScores, stability
from benchmarks.statistics.resampling import ResamplingPlan
from leaderboard.pages.models.query import ModelsQuery
from leaderboard.pages.page import Context
from leaderboard.pages.seeds.bump import MOST_MODELS, Ranks, bump_chart, rank_table
from leaderboard.pages.seeds.seeds_page import answer
from leaderboard.pages.seeds.verdicts import verdict
from tests.leaderboard.pages.models.made_up import EMPTY, JUDGES, context_of, filled
from tests.leaderboard.pages.models.test_models_page import UNESCAPED
from tests.leaderboard.pages.skills.skills_fixture import NASTY


@pytest.fixture(scope="module")
def context() -> Context:
    return context_of(filled())


def shown(context: Context, **params: str) -> str:
    return answer(context, ModelsQuery.from_params(params))


RANKS: Ranks = {"a": [(1, 0.9), (2, 0.7)], "b": [(2, 0.8), (1, 0.8)], "c": [(None, math.nan), (3, 0.1)],
         "d": [(None, math.nan), (None, math.nan)]}  # fmt: skip


def test_lines_cross_where_ranks_change_and_a_gap_is_left_out() -> None:
    drawn = bump_chart(RANKS, {"a": NASTY}, ("Seed no. 1", "Seed no. 2"), "Ranks")
    lines = re.findall(r'<polyline points="([^"]+)"', drawn)
    heights = [[int(point.split(",")[1]) for point in line.split()] for line in lines]
    assert len(lines) == 3 and heights[0] == heights[1][::-1] and len(heights[2]) == 1
    assert not any(one in drawn for one in UNESCAPED)
    assert 'role="img"' in drawn and "rank 1, mean 0.900" in drawn


def test_a_chart_needs_two_seeds_and_is_cut_where_it_cannot_be_followed() -> None:
    assert bump_chart({"a": [(1, 0.9)]}, {}, ("Seed no. 1",), "Ranks") == ""
    assert bump_chart({"d": RANKS["d"]}, {}, ("1", "2"), "Ranks") == ""
    many: Ranks = {f"m{k}": [(k + 1, 0.5), (k + 1, 0.5)] for k in range(MOST_MODELS + 9)}
    assert bump_chart(many, {}, ("1", "2"), "Ranks").count("<polyline") == MOST_MODELS


def test_the_same_is_there_as_numbers() -> None:
    table = rank_table(RANKS, {}, ("Seed no. 1", "Seed no. 2"), "Ranks")
    assert re.findall(r'as-range">([^<]+)<', table) == ["1", "2", "2", "1", "—", "3", "—", "—"]


def test_every_metric_has_its_verdict(context: Context) -> None:
    page = shown(context)
    table = page.split('id="stability"')[1].split("</table>")[0]
    assert table.count("<tr>") == 4 and "stable" in table and "0 of 10" in table
    assert "Compared over 2 seeds" in table
    assert page.split('id="ranks"')[1].count("<polyline") == 5
    assert not any(one in page for one in UNESCAPED)


def test_swapped_pairs_are_named(context: Context) -> None:
    page = shown(context, judge=JUDGES[2])
    assert "not stable" in page.split('id="ranks"')[1]
    assert "is higher with 1 seed" in page


def test_each_model_varies_over_all_of_its_own_seeds(context: Context) -> None:
    part = shown(context).split('id="variation"')[1]
    assert part.count("as-seed-mean") == 4 * 3 + 2


def test_where_nothing_can_be_said_it_is_said(context: Context) -> None:
    assert "No submitted models yet" in shown(context, set=EMPTY)
    assert "Nothing left to compare" in shown(context, words="nothing like it")
    alone = shown(context_of(filled(1)))
    assert "cannot tell" in alone and "Fewer than two models" in alone


def test_where_no_two_models_differ_no_order_is_called_stable() -> None:
    def found(means: list[list[float]]) -> str:
        scores = np.array(means)[:, :, None].repeat(9, axis=2)
        prompts = tuple(f"p{i}" for i in range(9))
        table = MetricScores("m", ("a", "b"), ("1", "2"), prompts, scores, scores)
        return verdict(stability(table, ResamplingPlan(prompts, seed=7, n_resamples=50)))

    assert "no order" in found([[0.5, 0.5], [0.4, 0.4]])
    assert "stable" in found([[0.5, 0.4], [0.5, 0.4]])
    assert "not stable" in found([[0.5, 0.4], [0.4, 0.5]])
