"""The place of models: its addresses, what is not there, and what each view prints."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import QueryParams

from leaderboard.models.board_types import PromptDifference
from leaderboard.models.reading import ModelReader
from leaderboard.views.addresses import model_pair_address, prompt_address
from leaderboard.views.models import (
    MOST_NAMED,
    PER_PAGE,
    VIEWS,
    Choice,
    Drawn,
    ModelsQuery,
    PlaceQuery,
    models_in_order,
    resolve,
    sets_in_order,
)
from leaderboard.web.model_place import DECIDING, by_score, part_of, telling
from leaderboard.web.page import Context
from tests.kit.store import memory_store
from tests.leaderboard.models.made_up_ratings import rated_set
from tests.leaderboard.views.model_track import (
    EMPTY,
    HOSTILE_ID,
    IDS,
    JUDGES,
    N_PROMPTS,
    SET,
    context_of,
    entry,
    filled,
    keep_models,
)
from tests.leaderboard.web.skills_fixture import NASTY

WORDS = st.text("ab c/?&=#é{}", max_size=8).map(str.strip)


@pytest.fixture(scope="module")
def context() -> Context:
    return context_of(filled())


def choice_of(context: Context, **params: str) -> Choice:
    assert context.models is not None
    found = resolve(ModelsQuery.from_params(params), context.models, context.reader.view())
    assert found is not None
    return found


@given(
    st.builds(
        ModelsQuery,
        *(WORDS for _ in range(6)),
        st.lists(st.sampled_from(IDS), unique=True).map(tuple),
    ),
    st.sampled_from(VIEWS),
    st.tuples(WORDS, WORDS, WORDS, WORDS),
    st.integers(1, 99),
    st.booleans(),
)
def test_a_link_leads_back_to_its_view(
    of: ModelsQuery, view: str, own: tuple[str, ...], page: int, alone: bool
) -> None:
    query = PlaceQuery(of, view, *own, page=page, alone=alone and bool(of.models))  # type: ignore[arg-type, misc]
    params = parse_qs(urlsplit(query.to_link()).query)
    assert PlaceQuery.from_params({k: v[0] for k, v in params.items()}) == query


def test_another_view_keeps_the_models_and_leaves_what_only_one_view_knows() -> None:
    query = PlaceQuery(ModelsQuery(SET, skill="count"), "two", a=IDS[0], b=IDS[1])
    assert query.to_view("seeds") == f"./models?set={SET}&view=seeds&skill=count"
    assert query.to_link(skill="", a="x").endswith(f"set={SET}&view=two&a=x&b={IDS[1]}")
    assert PlaceQuery.from_params({"view": "nowhere", "alone": "1"}) == PlaceQuery()
    assert PlaceQuery().query == "" and PlaceQuery().to_link() == "./models"


def test_addresses_of_pages_before_are_views_of_the_place() -> None:
    assert model_pair_address(SET, "a", "b") == f"./models?set={SET}&view=two&a=a&b=b"
    assert prompt_address(SET, "p 1", judge="m/x") == (
        f"./models?set={SET}&view=prompt&judge=m/x&prompt=p+1"
    )


def test_a_form_may_name_each_model_by_itself_and_a_link_all_in_one() -> None:
    form = QueryParams([("models", IDS[0]), ("models", IDS[2]), ("models", "")])
    link = QueryParams({"models": f"{IDS[0]},{IDS[2]}"})
    assert ModelsQuery.from_params(form).models == ModelsQuery.from_params(link).models
    many = QueryParams({"models": ",".join(f"m{k}" for k in range(999))})
    assert len(ModelsQuery.from_params(many).models) == MOST_NAMED


def test_filters_keep_the_prompts_that_the_board_counts(context: Context) -> None:
    found = choice_of(context)
    assert (found.card.name, len(found.entries), len(found.places)) == (SET, 5, N_PROMPTS)
    assert list(found.judges) == list(JUDGES) and found.n_seeds == 3 and not found.remarks
    assert choice_of(context, set=EMPTY).entries == ()
    some = choice_of(context, skill="count", split="real", words="box")
    assert {some.prompts[k].split for k in some.places} == {"real"}
    assert 0 < len(some.places) < N_PROMPTS / 2
    assert some.board_query.skills == ("count", "count:few", "count:many")
    assert choice_of(context, words="nothing like it").places == ()
    assert choice_of(context, seed="2").board_query.seed == 1
    none = ModelReader(memory_store(), {}, None)
    assert resolve(ModelsQuery(), none, context.reader.view()) is None


@pytest.mark.parametrize(
    ("rated", "expected"),
    [((), ("real", "simulated", "empty", "further")),
     (("further",), ("real", "further", "simulated", "empty")),
     (("empty", "further"), ("empty", "real", "further", "simulated"))],
)  # fmt: skip
def test_sets_with_models_or_ratings_come_first_simulated_ones_last_of_these(
    rated: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    entries = []
    for place, name in enumerate(("simulated", "real")):
        one = entry(place, "Model")
        images = one.images.model_copy(update={"prompt_set": name})
        entries.append(one.model_copy(update={"images": images}))
    sets = {
        name: rated_set(name=name, simulated=name == "simulated")
        for name in ("empty", "simulated", "real", "further")
    }
    reader = ModelReader(keep_models(memory_store(), *entries), sets, None)
    assert sets_in_order(reader, rated) == expected


@pytest.mark.parametrize(
    ("name", "value"),
    [("set", NASTY), ("skill", "x" * 400), ("split", "night"), ("judge", "nobody/knows"),
     ("judge", "made-up-0003/ImageReward"), ("models", "nobody"), ("seed", "0"), ("seed", "99"),
     ("seed", "٣")],
)  # fmt: skip
def test_what_is_not_there_is_said_and_left_out(context: Context, name: str, value: str) -> None:
    found = choice_of(context, **{name: value})
    (remark,) = found.remarks
    kind = {"judge": "metric", "models": "model", "set": "prompt set"}.get(name, name)
    assert kind in remark and len(remark) < 160 and "\u202e" not in remark
    assert found.query == ModelsQuery(SET)


NAN = math.nan
NOTHING = "nothing like it"  # Words of no prompt


def part(context: Context, **params: str) -> dict[str, Any]:
    query = PlaceQuery.from_params(params)
    return part_of(choice_of(context, **params), query)


# Whom models are tested among.


def test_a_choice_of_models_leaves_ranks_and_p_values_as_they_are_on_the_whole_board(
    context: Context,
) -> None:
    some = ",".join((IDS[1], IDS[2], IDS[4]))
    whole, chosen, alone = (
        part(context, **params)["board"].skills[None].standings
        for params in ({}, {"models": some}, {"models": some, "alone": "1"})
    )
    assert chosen == whole and len(alone) == 3

    def p_values(**params: str) -> list[float]:
        report = part(context, view="two", a=IDS[1], b=IDS[2], **params)["report"]
        return [one.t_p_holm for one in report.tests]

    np.testing.assert_equal(p_values(models=some), p_values())
    asked_for = zip(p_values(models=some, alone="1"), p_values(), strict=True)
    assert any(a < b for a, b in asked_for)  # Fewer pairs to correct for.


# Gallery.


def prompts_of(found: dict[str, Any]) -> list[str]:
    return [case["prompt"].prompt_id for case in found["cases"]]


def test_the_gallery_has_for_each_skill_the_prompt_on_which_models_differ_most(
    context: Context,
) -> None:
    choice = choice_of(context)
    found = part(context, view="gallery")
    assert found["by_skill"] and found["judge"] == JUDGES[0]
    skills = [choice.card.skills.get(one, one) for one in choice.skills if ":" not in one]
    assert [case["skill"] for case in found["cases"]] == skills
    assert prompts_of(found)[0] == prompts_of(part(context, view="gallery", skill="count"))[0]
    for case in found["cases"]:
        assert [tile.href.partition("id=")[2].partition("&")[0] for tile in case["tiles"]] == [*IDS]


def test_of_one_skill_the_prompts_are_paged_by_how_much_models_differ(context: Context) -> None:
    first = part(context, view="gallery", skill="count")
    last = part(context, view="gallery", skill="count", page="99")
    assert (len(first["cases"]), first["pages"], last["page"]) == (PER_PAGE, 4, 4)
    choice = choice_of(context)
    ids = [one.prompt_id for one in choice.prompts]
    means = [
        [drawn.mean for drawn in choice.drawn_at(ids.index(ident))]
        for ident in prompts_of(first) + prompts_of(last)
    ]
    spreads = [max(of) - min(of) for of in means]
    assert spreads == sorted(spreads, reverse=True)
    some = part(context, view="gallery", models=",".join(IDS[:2]))
    assert {len(case["tiles"]) for case in some["cases"]} == {2}
    for nothing in ({"set": EMPTY}, {"words": NOTHING}):
        assert part(context, view="gallery", **nothing)["cases"] == []


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
    found = part(context, view="two", skill="count", a=IDS[0], b=IDS[1])
    cases = [case for _, side in found["deciding"] for case in side]
    assert len(cases) > DECIDING
    assert all("count" in case["prompt"].skills or case["prompt"].elements for case in cases)
    two = [found["report"].first.title, found["report"].second.title]
    for case in cases:
        assert [*dict.fromkeys(tile.model.partition(",")[0] for tile in case["tiles"])] == two
    assert found["matrix"] is not None


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
    found = part(context, view="two", a=a, b=b)
    pair = [found["report"].first.submission_id, found["report"].second.submission_id]
    assert len(set(pair)) == 2 and set(pair) <= set(IDS)
    assert words in " ".join(found["remarks"]) and bool(found["remarks"]) is bool(words)
    if not words:
        assert pair == list(IDS[:2])


def test_where_there_are_no_two_models_there_is_no_report(context: Context) -> None:
    for params in ({"set": EMPTY}, {"words": NOTHING}):
        assert part(context, view="two", **params)["report"] is None
    assert part(context_of(filled(1)), view="two")["report"] is None


# One prompt.


def test_models_come_by_their_mean_score_and_those_without_one_last() -> None:
    scores = [(0.2, 0.4), (NAN, NAN), (0.9, NAN), (0.5, 0.5)]
    drawn = [Drawn(entry(k, f"M{k}"), (1, 2), of) for k, of in enumerate(scores)]
    assert [one.entry.model for one in by_score(drawn)] == ["M2", "M3", "M0", "M1"]


def test_a_prompt_has_the_images_of_all_models_and_its_neighbours_within_the_filters(
    context: Context,
) -> None:
    found = part(context, view="prompt", prompt="p004", skill="count", words="box")
    assert (found["before"], found["after"]) == ("p003", "p007")
    assert len(found["models_images"]) == 5
    outside = part(context, view="prompt", prompt="p001", skill="count")
    assert (outside["at"], outside["before"], outside["after"]) == (None, "", "")
    last = part(context, view="prompt", prompt=HOSTILE_ID)
    assert (last["at"], last["after"], last["prompt"].prompt_id) == (N_PROMPTS, "", HOSTILE_ID)
    some = part(context, view="prompt", prompt="p001", models=",".join(IDS[:2]))
    assert {one["entry"].submission_id for one in some["models_images"]} == set(IDS[:2])


@pytest.mark.parametrize("prompt", [NASTY, "x" * 999])
def test_a_prompt_that_is_not_there_is_said_and_the_first_is_shown(
    context: Context, prompt: str
) -> None:
    found = part(context, view="prompt", prompt=prompt)
    assert len(found["remarks"]) == 1 and len(found["remarks"][0]) < 160
    assert found["prompt"].prompt_id == "p000"
    assert part(context, view="prompt", words=NOTHING)["prompt"] is None


# Seeds.


def test_seeds_are_reported_by_every_metric_whichever_judges(context: Context) -> None:
    found = part(context, view="seeds", judge=JUDGES[2])
    assert found["own"].judge.entry_id == JUDGES[2]
    assert {one.judge.entry_id for one in found["report"].judges} == set(JUDGES)
    for nothing in ({"set": EMPTY}, {"words": NOTHING}):
        assert part(context, view="seeds", **nothing)["report"] is None


def test_without_prompts_at_hand_there_is_no_board(context: Context) -> None:
    choice = choice_of(context)
    assert part_of(replace(choice, prompts=()), PlaceQuery())["board"] is None
    assert models_in_order(part_of(choice, PlaceQuery())["board"]) == IDS
