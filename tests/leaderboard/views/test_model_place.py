"""Views of the place of models: gallery, two models, one prompt, and what models are tested among."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from leaderboard.models.board_types import PromptDifference
from leaderboard.models.reading import ModelReader
from leaderboard.publication.reader import View
from leaderboard.views.model_place import (
    DECIDING,
    by_score,
    gallery_view,
    prompt_view,
    seeds_view,
    skills_view,
    telling,
    two_view,
)
from leaderboard.views.models import PER_PAGE, Choice, Drawn, PlaceQuery, models_in_order, resolve
from leaderboard.web.page import Context
from tests.leaderboard.views.model_track import (
    EMPTY,
    HOSTILE_ID,
    IDS,
    JUDGES,
    N_PROMPTS,
    context_of,
    entry,
    filled,
)
from tests.leaderboard.web.skills_fixture import NASTY

NAN = math.nan
Asked = tuple[Choice, PlaceQuery, ModelReader, View]


@pytest.fixture(scope="module")
def context() -> Context:
    return context_of(filled())


def asked(context: Context, **params: str) -> Asked:
    query, view = PlaceQuery.from_params(params), context.reader.view()
    assert context.models is not None
    choice = resolve(query.of, context.models, view)
    assert choice is not None
    return choice, query, context.models, view


# Whom models are tested among.


def test_a_choice_of_models_leaves_ranks_and_p_values_as_they_are_on_the_whole_board(
    context: Context,
) -> None:
    some = ",".join((IDS[1], IDS[2], IDS[4]))
    whole = skills_view(*asked(context)).board
    chosen = skills_view(*asked(context, models=some)).board
    alone = skills_view(*asked(context, models=some, alone="1")).board
    assert whole is not None and chosen is not None and alone is not None
    assert chosen.skills[None].standings == whole.skills[None].standings
    assert len(alone.skills[None].standings) == 3

    def p_values(**params: str) -> list[float]:
        report = two_view(*asked(context, a=IDS[1], b=IDS[2], **params)).report
        assert report is not None
        return [one.t_p_holm for one in report.tests]

    np.testing.assert_equal(p_values(models=some), p_values())
    asked_for = zip(p_values(models=some, alone="1"), p_values(), strict=True)
    assert any(a < b for a, b in asked_for)  # Fewer pairs to correct for.


# Gallery.


def test_the_gallery_has_for_each_skill_the_prompt_on_which_models_differ_most(
    context: Context,
) -> None:
    choice, query, reader, view = asked(context, view="gallery")
    found = gallery_view(choice, query, reader, view)
    assert found.by_skill and found.judge == JUDGES[0]
    assert [case.skill for case in found.cases] == [one for one in choice.skills if ":" not in one]
    of_skill = gallery_view(*asked(context, view="gallery", skill="count"))
    assert found.cases[0].prompt == of_skill.cases[0].prompt
    for case in found.cases:
        means = [one.mean for one in case.images]
        assert case.spread == pytest.approx(max(means) - min(means))
        assert [one.entry.submission_id for one in case.images] == list(IDS)


def test_of_one_skill_the_prompts_are_paged_by_how_much_models_differ(context: Context) -> None:
    first = gallery_view(*asked(context, view="gallery", skill="count"))
    last = gallery_view(*asked(context, view="gallery", skill="count", page="99"))
    assert (len(first.cases), first.pages, last.page) == (PER_PAGE, 3, 3)
    spreads = [case.spread for case in (*first.cases, *last.cases)]
    assert spreads == sorted(spreads, reverse=True)
    some = gallery_view(*asked(context, view="gallery", models=",".join(IDS[:2])))
    assert {len(case.images) for case in some.cases} == {2}
    assert gallery_view(*asked(context, set=EMPTY)).cases == ()
    assert gallery_view(*asked(context, words="nothing like it")).cases == ()


# Two models.


def test_the_prompts_that_decide_are_those_with_the_greatest_differences() -> None:
    values = [(0.9, 0.1), (0.8, 0.2), (0.5, 0.5), (0.4, 0.5), (0.1, 0.9), (NAN, 0.9)]
    found = [PromptDifference(f"p{k}", a, b, 0.1) for k, (a, b) in enumerate(values)]
    assert [[one.prompt_id for one in side] for side in telling(found)] == [
        ["p0", "p1"], ["p4", "p3"]
    ]  # fmt: skip
    assert max(len(side) for side in telling(found[:1] * 9)) == DECIDING


def test_what_decides_on_a_skill_are_prompts_of_that_skill_with_the_images_of_both(
    context: Context,
) -> None:
    found = two_view(*asked(context, view="two", skill="count", a=IDS[0], b=IDS[1]))
    cases = [case for side in found.deciding for case in side]
    assert len(cases) > DECIDING
    assert all("count" in case.prompt.skills or case.prompt.elements for case in cases)
    assert {tuple(one.entry.submission_id for one in case.images) for case in cases} == {IDS[:2]}
    assert found.matrix is not None and found.matrix.skill == "count"


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        ("", "", ""),
        (IDS[1], IDS[1], "itself"),
        (NASTY, IDS[1], "“<img"),
        (IDS[3], "gone", "“gone”"),
    ],
)
def test_the_first_two_or_another_take_the_place_of_who_cannot_be_compared(
    context: Context, a: str, b: str, words: str
) -> None:
    found = two_view(*asked(context, view="two", a=a, b=b))
    assert found.report is not None
    pair = [found.report.first.submission_id, found.report.second.submission_id]
    assert len(set(pair)) == 2 and set(pair) <= set(IDS)
    assert words in " ".join(found.remarks) and bool(found.remarks) is bool(words)
    if not words:
        assert pair == list(IDS[:2])


def test_where_there_are_no_two_models_there_is_no_report(context: Context) -> None:
    for params in ({"set": EMPTY}, {"words": "nothing like it"}):
        assert two_view(*asked(context, view="two", **params)).report is None
    assert two_view(*asked(context_of(filled(1)), view="two")).report is None


# One prompt.


def test_models_come_by_their_mean_score_and_those_without_one_last() -> None:
    scores = [(0.2, 0.4), (NAN, NAN), (0.9, NAN), (0.5, 0.5)]
    drawn = [Drawn(entry(k, f"M{k}"), (1, 2), of) for k, of in enumerate(scores)]
    assert [one.entry.model for one in by_score(drawn)] == ["M2", "M3", "M0", "M1"]


def test_a_prompt_has_the_images_of_all_models_and_its_neighbours_within_the_filters(
    context: Context,
) -> None:
    found = prompt_view(*asked(context, prompt="p004", skill="count", words="box"))
    assert (found.before, found.after) == ("p003", "p007") and len(found.images) == 5
    outside = prompt_view(*asked(context, prompt="p001", skill="count"))
    assert (outside.at, outside.before, outside.after) == (None, "", "")
    last = prompt_view(*asked(context, prompt=HOSTILE_ID))
    assert (last.at, last.after) == (N_PROMPTS, "") and last.prompt is not None
    some = prompt_view(*asked(context, prompt="p001", models=",".join(IDS[:2])))
    assert {one.entry.submission_id for one in some.images} == set(IDS[:2])


@pytest.mark.parametrize("prompt", [NASTY, "x" * 999])
def test_a_prompt_that_is_not_there_is_said_and_the_first_is_shown(
    context: Context, prompt: str
) -> None:
    found = prompt_view(*asked(context, prompt=prompt))
    assert len(found.remarks) == 1 and len(found.remarks[0]) < 160
    assert found.prompt is not None and found.prompt.prompt_id == "p000"
    assert prompt_view(*asked(context, words="nothing like it")).prompt is None


# Seeds.


def test_seeds_are_reported_by_every_metric_whichever_judges(context: Context) -> None:
    found = seeds_view(*_without_query(asked(context, view="seeds", judge=JUDGES[2])))
    assert found.report is not None and found.judge == JUDGES[2]
    assert {one.judge.entry_id for one in found.report.judges} == set(JUDGES)
    assert seeds_view(*_without_query(asked(context, set=EMPTY))).report is None
    assert seeds_view(*_without_query(asked(context, words="nothing like it"))).report is None


def _without_query(given: Asked) -> tuple[Choice, ModelReader, View]:
    choice, _, reader, view = given
    return choice, reader, view


def test_without_prompts_at_hand_there_is_no_board(context: Context) -> None:
    choice, query, reader, view = asked(context)
    found = skills_view(replace(choice, prompts=()), query, reader, view)
    assert found.board is None
    board = skills_view(choice, query, reader, view).board
    assert board is not None and models_in_order(board) == IDS
