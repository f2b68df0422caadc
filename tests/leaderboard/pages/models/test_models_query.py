"""What of the model track is looked at: links lead back to their view, and nothing in them is trusted."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import QueryParams

from leaderboard.models.entries import PATH, ModelTrack, track_bytes
from leaderboard.models.reading import ModelReader
from leaderboard.pages.models.query import MOST_NAMED, Choice, ModelsQuery, resolve, sets_in_order
from leaderboard.pages.reading import View
from leaderboard.store.interface import Store
from leaderboard.store.memory import memory_store
from tests.leaderboard.models.made_up_ratings import rated_set
from tests.leaderboard.pages.models.made_up import (
    EMPTY,
    IDS,
    JUDGES,
    N_PROMPTS,
    SET,
    context_of,
    entry,
    filled,
    reader_of,
)
from tests.leaderboard.pages.skills.skills_fixture import NASTY


@pytest.fixture(scope="module")
def store() -> Store:
    return filled()


@pytest.fixture(scope="module")
def reader(store: Store) -> ModelReader:
    return reader_of(store)


@pytest.fixture(scope="module")
def view(store: Store) -> View:
    return context_of(store).reader.view()


def chosen(reader: ModelReader, view: View, **params: str) -> Choice:
    found = resolve(ModelsQuery.from_params(params), reader, view)
    assert found is not None
    return found


@given(
    st.builds(
        ModelsQuery,
        *(st.text("ab c/?&=#é{}", max_size=8).map(str.strip) for _ in range(6)),
        st.lists(st.sampled_from(IDS), unique=True).map(tuple),
    )
)
def test_a_link_leads_back_to_its_view(query: ModelsQuery) -> None:
    given_ = parse_qs(urlsplit(query.to_link()).query)
    assert ModelsQuery.from_params({k: v[0] for k, v in given_.items()}) == query


def test_a_form_may_name_each_model_by_itself_and_a_link_all_in_one() -> None:
    form = QueryParams([("models", IDS[0]), ("models", IDS[2]), ("models", "")])
    link = QueryParams({"models": f"{IDS[0]},{IDS[2]}"})
    assert ModelsQuery.from_params(form).models == ModelsQuery.from_params(link).models
    many = QueryParams({"models": ",".join(f"m{k}" for k in range(999))})
    assert len(ModelsQuery.from_params(many).models) == MOST_NAMED


def test_without_a_query_the_first_set_that_models_drew_is_shown(
    reader: ModelReader, view: View
) -> None:
    found = chosen(reader, view)
    assert (found.card.name, len(found.entries), len(found.places)) == (SET, 5, N_PROMPTS)
    assert list(found.judges) == list(JUDGES) and found.n_seeds == 3 and not found.remarks
    assert chosen(reader, view, set=EMPTY).entries == ()


@pytest.mark.parametrize(
    ("rated", "expected"),
    [
        ((), ("real", "simulated", "empty", "further")),
        (("further",), ("real", "further", "simulated", "empty")),
        (("empty", "further"), ("empty", "real", "further", "simulated")),
    ],
)
def test_sets_with_models_or_ratings_come_first_and_of_these_the_simulated_ones_last(
    rated: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    store = memory_store()
    drawn = [entry(place, "Drawn").model_copy(update={"submission_id": f"drawn-{place}"})
             for place in range(2)]  # fmt: skip
    of = dict(zip(("simulated", "real"), drawn, strict=True))
    entries = {
        one.submission_id: one.model_copy(
            update={"images": one.images.model_copy(update={"prompt_set": name})}
        )
        for name, one in of.items()
    }
    content = track_bytes(ModelTrack(entries))
    store.public.commit({PATH: content}, parent=store.public.head(), message="publish")
    sets = {
        name: rated_set(name=name, simulated=name == "simulated")
        for name in ("empty", "simulated", "real", "further")
    }
    assert sets_in_order(ModelReader(store, sets, None), rated) == expected


def test_the_filters_keep_the_prompts_that_the_board_counts(
    reader: ModelReader, view: View
) -> None:
    counting = chosen(reader, view, skill="count", split="real", words="box")
    assert all(counting.prompts[k].split == "real" for k in counting.places)
    assert 0 < len(counting.places) < N_PROMPTS / 2
    assert counting.wanted.skills == ("count", "count:few", "count:many")
    assert chosen(reader, view, words="nothing like it").places == ()
    assert chosen(reader, view, seed="2").wanted.seed == 1


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("set", NASTY, "no prompt set"),
        ("skill", "x" * 400, "no skill"),
        ("split", "night", "no split"),
        ("judge", "nobody/knows", "no metric"),
        ("judge", "made-up-0003/ImageReward", "no metric"),
        ("models", "nobody", "no model"),
        ("seed", "0", "seed number"),
        ("seed", "99", "seed number"),
        ("seed", "٣", "seed number"),
    ],
)
def test_what_is_not_there_is_said_and_left_out(
    reader: ModelReader, view: View, name: str, value: str, said: str
) -> None:
    found = chosen(reader, view, **{name: value})
    assert len(found.remarks) == 1 and said in found.remarks[0]
    assert len(found.remarks[0]) < 160 and "\u202e" not in found.remarks[0]
    assert found.query == ModelsQuery(SET)


def test_an_installation_without_prompt_sets_has_nothing_to_choose(
    store: Store, view: View
) -> None:
    assert resolve(ModelsQuery(), ModelReader(store, {}, None), view) is None
