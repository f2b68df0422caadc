"""`/v1/items` and `/v1/skills` answer what their pages list, and refuse what those do not show."""

from __future__ import annotations

import re

import pytest

from leaderboard.pages.items.items_page import Items
from leaderboard.pages.items.query import ItemsQuery
from leaderboard.pages.page import Context
from leaderboard.pages.skills.found import found_for
from leaderboard.pages.skills.query import SkillsQuery, resolve
from leaderboard.pages.skills.view import list_view
from leaderboard.store.memory import memory_store
from tests.leaderboard.api.asking import Asking, asking
from tests.leaderboard.pages.items.looked_at import LACKS, NOISY, RIGHT, entry_id, filled
from tests.leaderboard.pages.synthetic import NOW, StubDesk, cards, fill

NOISY_ID, RIGHT_ID = entry_id(NOISY), entry_id(RIGHT)


@pytest.fixture(scope="module")
def api() -> Asking:
    return asking()


def page_of(api: Asking, **state: str) -> str:
    source = api.source
    context = Context(
        source.reader, source.store.live, StubDesk(), source.cards, lambda: NOW, source.store
    )
    return Items(context).answer(ItemsQuery.from_params({"benchmark": "ratings", **state}))


@pytest.mark.parametrize(
    "state",
    [
        {"a": NOISY_ID}, {"a": NOISY_ID, "b": RIGHT_ID}, {"a": NOISY_ID, "split": "real"},
        {"a": NOISY_ID, "show": "all", "skill": "spatial"}, {"a": entry_id(LACKS)},
    ],
)  # fmt: skip
def test_the_items_are_those_of_all_pages_of_the_browser_in_their_order(
    api: Asking, state: dict[str, str]
) -> None:
    query = "&".join(f"{name}={value}" for name, value in state.items())
    told = api.table(f"/v1/items?benchmark=ratings&{query}")
    listed = [row["case_id"] for row in told["rows"]]
    shown: list[str] = []
    page = 1
    while len(shown) < len(listed):
        found = re.findall(r"[?&;]case=([^&\"]+)", page_of(api, page=str(page), **state))
        assert found, "the page lists fewer"
        shown += list(dict.fromkeys(found))
        page += 1
    assert shown == listed
    assert told["about"]["a"] == state["a"] and told["about"]["simulated"]


def test_the_page_offers_exactly_its_own_items(api: Asking) -> None:
    html = page_of(api, a=NOISY_ID, split="real", page="1")
    address = re.search(r'href="\./(v1/items\?[^"]+format=json)"', html)
    assert address
    told = api.table("/" + address[1].replace("&amp;", "&"))
    assert all(row["split"] == "real" for row in told["rows"]) and told["rows"]
    assert told["about"]["split"] == "real" and told["about"]["show"] == "failures"


def test_one_case_is_answered_by_itself(api: Asking) -> None:
    case = api.table(f"/v1/items?benchmark=ratings&a={NOISY_ID}")["rows"][0]
    rows = api.table(f"/v1/items?benchmark=ratings&a={NOISY_ID}&case={case['case_id']}")["rows"]
    assert rows == [case] and case["a_share"] < 1


@pytest.mark.parametrize(
    "query",
    [
        "benchmark=nothing", "a=nothing", f"a={NOISY_ID}&b={NOISY_ID}", "skill=nothing",
        "split=nothing", "show=nothing", "show=disagreements", "case=nothing",
    ],
)  # fmt: skip
def test_what_the_browser_would_remark_on_is_refused(api: Asking, query: str) -> None:
    whole = query if query.startswith("benchmark") else f"benchmark=ratings&{query}"
    assert api.refused(f"/v1/items?{whole}", 400) == "bad_query"


@pytest.mark.parametrize("side", ["published", "here"])
def test_nothing_of_withheld_items_is_answered(side: str) -> None:
    shown = cards()
    shown["ratings"] = shown["ratings"].model_copy(update={"answers_public": False})
    api = asking(filled(), shown)
    if side == "here":  # What was read before the card here was changed.
        api.source.reader.view().boards["ratings"].card = cards()["ratings"]
    for kind in ("json", "csv", "parquet"):
        address = f"/v1/items?benchmark=ratings&format={kind}"
        assert api.refused(address, 404) == "answers_withheld"


def test_a_benchmark_without_published_cases_has_no_items() -> None:
    api = asking(fill(memory_store()))
    assert api.refused("/v1/items?benchmark=ratings", 404) == "no_cases"


def test_the_skills_are_those_of_the_list_on_the_page(api: Asking) -> None:
    simulated = "ratings=simulated"
    known = api.table(f"/v1/skills?{simulated}")
    assert not known["rows"] and known["about"]["known"]
    skill = next(iter(known["about"]["known"]))
    told = api.table(f"/v1/skills?skill={skill}&{simulated}")
    view = api.source.reader.view()
    choice = resolve(SkillsQuery(skill=skill, ratings="simulated"), view.boards)
    found = found_for(choice, api.source.skills.of(view, choice.parts))
    assert [row["entry_id"] for row in told["rows"]] == [o.entry.entry_id for o in found.placed]
    assert told["rows"] and told["about"]["skills"] == [skill]
    assert f'href="./v1/skills?skill={skill}&amp;{simulated}&amp;format=csv"' in list_view(
        choice, found
    )
    assert api.refused("/v1/skills?skill=nothing-such", 400) == "bad_query"
    assert api.refused(f"/v1/skills?skill={skill}&{simulated}&w=nothing:1", 400) == "bad_query"
