"""The state of the place of models: addresses that lead back, filters, what is not there."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import QueryParams

from leaderboard.models.reading import ModelReader
from leaderboard.store.memory import memory_store
from leaderboard.views.addresses import model_pair_address, prompt_address, seeds_address
from leaderboard.views.models import (
    MOST_NAMED,
    VIEWS,
    Choice,
    ModelsQuery,
    PlaceQuery,
    resolve,
    sets_in_order,
)
from leaderboard.web.page import Context
from tests.leaderboard.models.made_up_ratings import rated_set
from tests.leaderboard.views.model_track import (
    EMPTY,
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
    assert seeds_address(SET, skill="count") == f"./models?set={SET}&view=seeds&skill=count"


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
