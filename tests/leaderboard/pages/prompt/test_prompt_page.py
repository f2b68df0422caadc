"""The page of one prompt: what every model drew of it, by score, and the way to the next."""

from __future__ import annotations

import math
import re
from html import unescape

import pytest

from benchmarks.prompt_sets.prompt_set import SetPrompt
from leaderboard.pages.models.tiles import MOST_SEEDS, Drawn, tiles
from leaderboard.pages.page import Context
from leaderboard.pages.prompt.prompt_page import answer
from leaderboard.pages.prompt.view import by_score
from tests.leaderboard.pages.models.made_up import (
    EMPTY,
    HOSTILE_ID,
    IDS,
    JUDGES,
    N_PROMPTS,
    context_of,
    entry,
    filled,
)
from tests.leaderboard.pages.models.test_models_page import UNESCAPED
from tests.leaderboard.pages.skills.skills_fixture import NASTY


@pytest.fixture(scope="module")
def context() -> Context:
    return context_of(filled())


def test_models_come_by_their_mean_score_and_those_without_one_last() -> None:
    nan = math.nan
    drawn = [Drawn(entry(k, f"M{k}"), (1, 2), scores) for k, scores in enumerate(
        [(0.2, 0.4), (nan, nan), (0.9, nan), (0.5, 0.5)])]  # fmt: skip
    assert [one.entry.model for one in by_score(drawn)] == ["M2", "M3", "M0", "M1"]


def test_images_have_alternative_texts_and_say_where_there_is_no_score_or_picture() -> None:
    prompt = SetPrompt(HOSTILE_ID, NASTY)
    seen = tiles(Drawn(entry(0, NASTY), (7, 8), (0.5, math.nan)), prompt)
    assert seen.count("<img src=") == 2 and 'loading="lazy"' in seen and "no score" in seen
    assert f"seed 7: {unescape('&lt;img')}" in unescape(seen)
    assert not any(one in seen for one in UNESCAPED)
    assert "not published" in tiles(Drawn(entry(4, "x"), (7,), (0.5,)), prompt)
    many = tuple(range(99))
    assert f"{99 - MOST_SEEDS} more seeds" in tiles(Drawn(entry(0, "x"), many, (0.1,) * 99), prompt)


@pytest.mark.slow
def test_a_prompt_shows_all_models_and_seeds_with_the_scores_of_one_metric(
    context: Context,
) -> None:
    page = answer(context, {"id": "p001", "judge": JUDGES[1]})
    assert page.count('class="as-tile"') == 4 * 3 + 2
    means = [float(m) for m in re.findall(r"mean <b>([0-9.]+)</b>", page)]
    assert len(means) == 5 and means == sorted(means, reverse=True)
    assert "VQAScore 1.0" in page and "prompts/p001?judge=" in page
    assert f"Prompt 2 of {N_PROMPTS}" in page and "id=p000" in page and "id=p002" in page


def test_the_neighbours_are_those_that_the_filters_keep(context: Context) -> None:
    page = answer(context, {"id": "p004", "skill": "count", "words": "box"})
    assert "skill=count&amp;words=box&amp;id=p003" in page
    assert "skill=count&amp;words=box&amp;id=p007" in page
    outside = answer(context, {"id": "p001", "skill": "count"})
    assert "not among those that the filters keep" in outside


def test_a_hostile_prompt_and_its_elements_are_shown_as_they_are(context: Context) -> None:
    page = answer(context, {"id": HOSTILE_ID})
    assert "a cup &lt;img" in page and 'aria-label="Elements"' in page and "(Counting)" in page
    assert not any(one in page for one in UNESCAPED)
    assert "v1/models/made_up_prompts/prompts/a%2Fb%3Fc%3D1%26d%23e%7Bf%7D?" in page


@pytest.mark.parametrize("params", [{"id": NASTY}, {"id": "x" * 999}, {"set": NASTY}])
def test_what_is_not_there_is_said_and_the_first_prompt_shown(
    context: Context, params: dict[str, str]
) -> None:
    page = answer(context, params)
    assert "There is no pr" in page and "p000" in page
    assert not any(one in page for one in UNESCAPED)


def test_nothing_to_show_is_said_in_words(context: Context) -> None:
    assert "No prompt to show" in answer(context, {"words": "nothing like it"})
    assert "No model has drawn" in answer(context, {"set": EMPTY})


def test_only_some_models_are_shown_where_the_link_names_them(context: Context) -> None:
    page = answer(context, {"id": "p001", "models": f"{IDS[0]},{IDS[1]}"})
    assert page.count('class="as-tile"') == 6
