"""Of entries that were taken off and of benchmarks that withhold answers no item is told.

Their files may lie in the public store all the same: the cases of a benchmark that published its
answers once, the scores of what is hidden now. The page and the API read neither.
"""

from __future__ import annotations

import io
from urllib.parse import quote

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from benchmarks.cases import cases_path, image_cases, of_five, write_cases
from benchmarks.schema import ScoreTable
from benchmarks.stored_scores import write_stored
from leaderboard.pages.items.items_page import Items
from leaderboard.pages.items.query import ItemsQuery
from leaderboard.pages.page import Context
from leaderboard.store.interface import Store
from tests.leaderboard.api.asking import Asking, asking
from tests.leaderboard.house import ADA, BOB, CARDS, CLOSED, OLGA, OPEN, House
from tests.leaderboard.pages.synthetic import NOW, StubDesk

SEEN, SECRET, KEPT_BACK = "seenmetric", "secretmetric", "secretlyprivate"
N = 12


def cases_of(benchmark: str) -> pd.DataFrame:
    ratings = np.tile([1.0, 2.0, 4.0], N // 3)
    prompts = [f"{benchmark}case{k // 3}" for k in range(N)]
    return image_cases(
        [f"{benchmark}pair{k}" for k in range(N)], prompts, ratings, of_five(ratings),
        texts={name: f"{benchmark}words {name}" for name in prompts},
    )  # fmt: skip


def with_items(house: House, ids: dict[str, str]) -> None:
    """Put cases of both benchmarks and scores of all but the private into the public store."""
    files: dict[str, bytes] = {}
    for card in (OPEN, CLOSED):
        cases = cases_of(card.name)
        files[cases_path(card.name, card.revision)] = write_cases(cases)
        for place, name in enumerate((SEEN, SECRET)):
            # In no order of people's, each a number that is found wherever it is printed.
            score = np.arange(N) * (0.5 - place) + 7000.25 + 100 * place
            table = pd.DataFrame({name: score}, index=pd.Index(cases["pair_id"], name="pair_id"))
            files[f"results/{ids[name]}/{card.name}.scores.parquet"] = write_stored(
                ScoreTable(table), submission_id=ids[name], benchmark=card.name,
                revision=card.revision,
            )  # fmt: skip
    public = house.store.public
    public.commit(files, parent=public.head(), message="items")


@pytest.fixture
def house() -> tuple[House, dict[str, str]]:
    made = House()
    ids = {
        SEEN: made.done(BOB, SEEN),
        SECRET: made.done(ADA, SECRET),
        KEPT_BACK: made.done(ADA, KEPT_BACK, private=True),
    }
    with_items(made, ids)
    return made, ids


def page(api: Asking, **state: str) -> str:
    source = api.source
    context = Context(
        source.reader, source.store.live, StubDesk(), source.cards, lambda: NOW, source.store
    )
    return Items(context).answer(ItemsQuery.from_params(state))


def told(api: Asking, **state: str) -> str:
    """Everything that the API, in each of its forms, and the page tell."""
    query = "&".join(f"{name}={quote(value)}" for name, value in state.items())
    found = page(api, **state)
    for kind in ("json", "csv", "parquet"):
        answer = api.client.get(f"/v1/items?{query}&format={kind}")
        if answer.status_code == 200 and kind == "parquet":
            table = pq.read_table(io.BytesIO(answer.content))
            found += f"{table.to_pylist()} {table.schema.metadata}"
        else:
            found += answer.text
    return found


def every_state(
    entry: str, benchmark: str = "open", case: str = "opencase1"
) -> list[dict[str, str]]:
    states: list[dict[str, str]] = [
        {}, {"a": entry}, {"b": entry}, {"a": entry, "show": "all"}, {"case": case},
        {"a": entry, "case": case}, {"b": entry, "show": "disagreements"},
    ]  # fmt: skip
    return [{"benchmark": benchmark, **state} for state in states]


def asked_for(text: str, entry: str) -> str:
    """What is said apart from repeating the id that was asked for."""
    return text.replace(entry, "").replace(quote(entry), "").replace(quote(entry, safe=""), "")


TAKEN_OFF = {
    "hidden": lambda house, one: house.acts.hide(one, OLGA, "It is a copy."),
    "withdrawn": lambda house, one: house.acts.withdraw(one, ADA),
    "banned and hidden": lambda house, one: (
        house.acts.ban(ADA.key, OLGA, "Sent miners."), house.acts.hide(one, OLGA, "A miner."),
    ),
}  # fmt: skip


@pytest.mark.parametrize("how", TAKEN_OFF)
def test_what_was_taken_off_has_no_items_any_more(
    house: tuple[House, dict[str, str]], how: str
) -> None:
    made, ids = house
    api, entry = asking(made.store, CARDS), f"{ids[SECRET]}/{SECRET}"
    before = told(api, benchmark="open", a=entry, show="all")
    assert SECRET in before and ("7100" in before or "7099" in before)  # It is there, and kept.
    TAKEN_OFF[how](made, ids[SECRET])
    seen = ""
    for state in every_state(entry):
        text = told(api, **state)
        said = asked_for(text, entry)
        assert SECRET not in said and ids[SECRET] not in said, state
        assert "7100" not in said and "7099" not in said and "709" not in said, state
        seen += said
    assert SEEN in seen and "opencase1" in seen


def test_what_is_private_is_as_what_was_never_there(house: tuple[House, dict[str, str]]) -> None:
    made, ids = house
    api = asking(made.store, CARDS)
    entry, never = f"{ids[KEPT_BACK]}/{KEPT_BACK}", "never-was/there"
    for state, other in zip(every_state(entry), every_state(never), strict=True):
        text, same = told(api, **state), told(api, **other)
        assert asked_for(text, entry) == asked_for(same, never)
        assert KEPT_BACK not in asked_for(text, entry)


def closed_in(where: str, store: Store) -> Asking:
    """An API for which a benchmark withholds its answers in one of the two cards."""
    public = {**CARDS, "closed": CLOSED.model_copy(update={"answers_public": True})}
    if where == "the snapshot":
        return asking(store, public)
    api = asking(store, CARDS)
    # What was published before the card of this server was changed.
    api.source.reader.view().boards["closed"].card = public["closed"]
    return api


@pytest.mark.parametrize("where", ["the snapshot", "this server"])
def test_withheld_answers_are_told_by_neither_card(
    house: tuple[House, dict[str, str]], where: str
) -> None:
    made, ids = house
    api = closed_in(where, made.store)
    entry = f"{ids[SEEN]}/{SEEN}"
    for state in every_state(entry, "closed", "closedcase1"):
        text = told(api, **state)
        assert "closedwords" not in text and "closedpair" not in text, state
        assert "closedcase" not in text.replace("closedcase1", ""), state
        assert "700" not in asked_for(text, entry), state
        assert "answers_withheld" in text


def test_where_both_cards_publish_answers_the_same_question_is_answered(
    house: tuple[House, dict[str, str]],
) -> None:
    made, ids = house
    api = asking(made.store, CARDS)
    text = told(api, benchmark="open", a=f"{ids[SEEN]}/{SEEN}", show="all")
    assert "openwords" in text and "opencase1" in text and "700" in text


def test_reading_with_a_card_that_withholds_answers_gives_no_cases(
    house: tuple[House, dict[str, str]],
) -> None:
    api = asking(house[0].store, CARDS)
    assert api.source.items.cases(OPEN) is not None
    assert api.source.items.cases(CLOSED) is None
    # Of a revision that was published before the answers were withheld.
    assert api.source.items.cases(OPEN.model_copy(update={"answers_public": False})) is None
