"""Two models against each other: tests, the matrix of all, and the prompts that decide."""

from __future__ import annotations

import math
import re
from html import unescape

import numpy as np
import pytest

from leaderboard.models.board_types import PairMatrix, PairTest, PromptDifference
from leaderboard.pages.model_pair.deciding import SHOWN, telling
from leaderboard.pages.model_pair.matrix import MOST_MODELS, model_matrix
from leaderboard.pages.model_pair.model_pair_page import answer
from leaderboard.pages.model_pair.query import PairQuery
from leaderboard.pages.model_pair.tests_table import dominance_bar, p_shown, signed, told_apart
from leaderboard.pages.models.query import ModelsQuery
from leaderboard.pages.page import Context
from leaderboard.store.interface import Store
from tests.leaderboard.pages.models.made_up import (
    EMPTY,
    IDS,
    JUDGES,
    SET,
    context_of,
    entry,
    filled,
)
from tests.leaderboard.pages.models.test_models_page import UNESCAPED
from tests.leaderboard.pages.skills.skills_fixture import NASTY


@pytest.fixture(scope="module")
def store() -> Store:
    return filled()


@pytest.fixture(scope="module")
def context(store: Store) -> Context:
    return context_of(store)


def shown(context: Context, a: str = "", b: str = "", **params: str) -> str:
    return answer(context, PairQuery.from_params({"a": a, "b": b, **params}))


def made_test(**more: float) -> PairTest:
    given = {"difference": 0.1, "ci_low": 0.05, "ci_high": 0.15, "t": 3.0, "t_p": 0.001,
             "t_p_holm": 0.01, "wilcoxon_w": 12.0, "wilcoxon_p": 0.002, "dominance": 0.7,
             "dominance_back": 0.2, **more}  # fmt: skip
    return PairTest(JUDGES[0], None, 40, 1, **given)


def test_shares_are_drawn_as_one_bar_and_told_in_words() -> None:
    bar = dominance_bar(made_test(), "A", NASTY)
    assert re.findall(r'as-tally-(\w+)" x="([0-9.]+)%" width="([0-9.]+)%', bar) == [
        ("a", "0.00", "70.00"), ("tie", "70.00", "10.00"), ("b", "80.00", "20.00"),
    ]  # fmt: skip
    assert "A is better on 70 %" in bar and not any(one in bar for one in UNESCAPED)
    assert dominance_bar(made_test(dominance=math.nan), "A", "B") == "—"


def test_signs_and_p_values_are_told_plainly() -> None:
    assert (signed(0.1), signed(-0.1), signed(0.0), signed(1e-9)) == (
        "+0.100",
        "−0.100",
        "0.000",
        "0.000",
    )
    assert p_shown(math.nan) == "—" and p_shown(0.04) == ".040" and p_shown(1e-9) == "&lt;.001"
    assert told_apart(made_test()) and not told_apart(made_test(t_p_holm=math.nan))


def test_the_prompts_that_decide_are_those_with_the_greatest_differences() -> None:
    nan = math.nan
    values = [(0.9, 0.1), (0.8, 0.2), (0.5, 0.5), (0.4, 0.5), (0.1, 0.9), (nan, 0.9)]
    found = [PromptDifference(f"p{k}", a, b, 0.1) for k, (a, b) in enumerate(values)]
    first, second = telling(found)
    assert [one.prompt_id for one in first] == ["p0", "p1"]
    assert [one.prompt_id for one in second] == ["p4", "p3"]
    assert max(len(side) for side in telling(found[:1] * 9)) == SHOWN


def matrix(n: int) -> PairMatrix:
    dominance = np.full((n, n), 0.6)
    dominance[np.tril_indices(n)] = 0.3
    p = np.full((n, n), 0.001)
    p[0, n - 1] = p[n - 1, 0] = np.nan
    np.fill_diagonal(p, np.nan)
    ids = tuple(f"drawn-{k:05d}" for k in range(n))
    return PairMatrix(JUDGES[0], None, ids, dominance, np.full((n, n), 0.1), p, p)


def test_the_matrix_has_shares_above_and_p_values_below_the_diagonal() -> None:
    entries = {f"drawn-{k:05d}": entry(k, NASTY) for k in range(3)}
    drawn = model_matrix(matrix(3), entries, ModelsQuery(SET, skill="count"))
    assert drawn.count("60\u00a0%*") == 2 and drawn.count("60\u00a0%</a>") == 1
    assert drawn.count(".001*") == 2 and drawn.count("as-self") == 3
    assert "skill=count&amp;a=drawn-00000&amp;b=drawn-00001" in drawn
    assert not any(one in drawn for one in UNESCAPED)
    assert model_matrix(matrix(1), entries, ModelsQuery(SET)) == ""


def test_a_matrix_that_cannot_be_read_is_cut() -> None:
    n = MOST_MODELS + 5
    entries = {f"drawn-{k:05d}": entry(k, f"M{k}") for k in range(n)}
    drawn = model_matrix(matrix(n), entries, ModelsQuery(SET))
    assert drawn.count("<tr>") == MOST_MODELS + 1 and "5 more models" in drawn


def test_two_models_that_trusted_metrics_order_in_opposite_ways_get_both_verdicts(
    context: Context,
) -> None:
    page = shown(context, IDS[0], IDS[1], skill="count")
    said = page.split('class="as-verdict">')[1].split("</p>")[0]
    assert "By BLIP2-ITM 1.1 <b>Aurora XL 0.1</b> is better" in said
    assert "By VQAScore 1.0 <b>Brush 3</b> is better" in said
    assert "All models: Counting" in page and "For the curious" not in said


def test_each_side_has_its_prompts_with_both_models_images(context: Context) -> None:
    page = shown(context, IDS[0], IDS[1], skill="count")
    part = page.split('id="deciding"')[1]
    assert part.count("For <a") == 2 and "./prompt?set=made_up_prompts&amp;id=" in part
    cards = part.split("<article")[1:]
    assert len(cards) > SHOWN and all(card.count("as-who-drew") == 2 for card in cards)
    ids = [unescape(one) for one in re.findall(r"<h4><a[^>]*>([^<]+)</a>", part)]
    prompts = (
        {one.prompt_id: one for one in context.models.prompts(SET) or ()} if context.models else {}
    )
    counting = [one for one in ids if "count" in prompts[one].skills or prompts[one].elements]
    assert counting == ids


def test_without_names_the_first_two_of_the_board_are_compared(context: Context) -> None:
    page = shown(context)
    assert f'value="{IDS[0]}" selected' in page and f'value="{IDS[1]}" selected' in page
    assert not any(one in page for one in UNESCAPED)


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [(IDS[1], IDS[1], "not held against itself"), (NASTY, IDS[1], "no model “&lt;img"),
     (IDS[3], "gone", "no model “gone”")],
)  # fmt: skip
def test_another_model_takes_the_place_of_one_that_cannot_be_compared(
    context: Context, a: str, b: str, said: str
) -> None:
    page = shown(context, a, b)
    assert said in page and 'id="tests"' in page


def test_swapping_turns_the_signs(context: Context) -> None:
    there, back = (shown(context, *pair) for pair in ((IDS[0], IDS[1]), (IDS[1], IDS[0])))
    one = re.search(r'data-label="Difference"><b>\+([0-9.]+)', there)
    other = re.search(r'data-label="Difference"><b>−([0-9.]+)', back)
    assert one and other and one[1] == other[1]
    assert f"a={IDS[1]}&amp;b={IDS[0]}" in there


def test_where_there_are_no_two_models_it_is_said(context: Context) -> None:
    assert "No submitted models yet" in shown(context, set=EMPTY)
    assert "One model only" in shown(context_of(filled(1)))
    assert "Nothing left to compare" in shown(context, words="nothing like it")
    assert "No metric that earned trust here" in shown(context, skill="lang")


def test_downloads_are_within_the_models_that_are_compared(context: Context) -> None:
    named = f"{IDS[0]},{IDS[1]},{IDS[2]}"
    page = shown(context, IDS[0], IDS[1], models=named)
    address = re.search(r'href="(\./v1/models/[^"]*/pairs\?[^"]*)"', page)
    assert address is not None and f"models={named}" in unescape(address[1])
