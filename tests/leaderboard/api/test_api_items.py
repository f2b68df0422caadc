"""`/v1/items` and `/v1/skills` answer what their pages list, and refuse what those do not show."""

from __future__ import annotations

import re
from itertools import count

import pytest

from leaderboard.pages.skills.found import found_for
from leaderboard.pages.skills.query import SkillsQuery, resolve
from leaderboard.pages.skills.view import list_view
from leaderboard.store.memory import memory_store
from tests.leaderboard.api.asking import Asking, asking
from tests.leaderboard.pages.items.looked_at import LACKS, NOISY, RIGHT, entry_id
from tests.leaderboard.pages.synthetic import fill

A = entry_id(NOISY)
ITEMS = "/v1/items?benchmark=ratings"


@pytest.fixture(scope="module")
def api() -> Asking:
    return asking()


@pytest.mark.parametrize(
    "state",
    [
        {"a": A}, {"a": A, "b": entry_id(RIGHT)}, {"a": A, "split": "real"},
        {"a": A, "show": "all", "skill": "spatial"}, {"a": entry_id(LACKS)},
    ],
)  # fmt: skip
def test_the_items_are_those_of_all_pages_in_order(api: Asking, state: dict[str, str]) -> None:
    told = api.table("&".join([ITEMS, *(f"{name}={value}" for name, value in state.items())]))
    listed = [row["case_id"] for row in told["rows"]]
    shown: list[str] = []
    for page in count(1):
        html = api.items_page(benchmark="ratings", page=str(page), **state)
        shown += dict.fromkeys(re.findall(r"[?&;]case=([^&\"]+)", html))
        if len(shown) >= len(listed) or page > len(listed):
            break
    assert shown == listed
    assert told["about"]["a"] == state["a"] and told["about"]["simulated"]


def test_the_page_offers_exactly_its_own_items(api: Asking) -> None:
    html = api.items_page(benchmark="ratings", a=A, split="real", page="1")
    address = re.search(r'href="\./(v1/items\?[^"]+format=json)"', html)
    assert address
    told = api.table("/" + address[1].replace("&amp;", "&"))
    assert {row["split"] for row in told["rows"]} == {"real"}
    assert (told["about"]["split"], told["about"]["show"]) == ("real", "failures")


def test_one_case_is_answered_by_itself(api: Asking) -> None:
    case = api.rows(f"{ITEMS}&a={A}")[0]
    assert api.rows(f"{ITEMS}&a={A}&case={case['case_id']}") == [case]
    assert case["a_share"] < 1


@pytest.mark.parametrize(
    "query",
    [
        "benchmark=nothing", "a=nothing", f"a={A}&b={A}", "skill=nothing", "split=nothing",
        "show=nothing", "show=disagreements", "case=nothing",
    ],
)  # fmt: skip
def test_what_the_browser_would_remark_on_is_refused(api: Asking, query: str) -> None:
    address = ITEMS.replace("benchmark=ratings", query) if "benchmark" in query else ITEMS
    assert api.refused(f"{address}&{query}", 400) == "bad_query"


def test_a_benchmark_without_published_cases_has_no_items() -> None:
    assert asking(fill(memory_store())).refused(ITEMS, 404) == "no_cases"


def test_the_skills_are_those_of_the_list_on_the_page(api: Asking) -> None:
    known = api.table("/v1/skills?ratings=simulated")
    assert not known["rows"]
    skill = next(iter(known["about"]["known"]))
    query = f"skill={skill}&ratings=simulated"
    told = api.table(f"/v1/skills?{query}")
    view = api.source.reader.view()
    choice = resolve(SkillsQuery(skill=skill, ratings="simulated"), view.boards)
    found = found_for(choice, api.source.skills.of(view, choice.parts))
    assert [row["entry_id"] for row in told["rows"]] == [o.entry.entry_id for o in found.placed]
    assert told["rows"] and told["about"]["skills"] == [skill]
    offered = query.replace("&", "&amp;")
    assert f'href="./v1/skills?{offered}&amp;format=csv"' in list_view(choice, found)
    assert api.refused("/v1/skills?skill=nothing-such", 400) == "bad_query"
    assert api.refused(f"/v1/skills?{query}&w=nothing:1", 400) == "bad_query"
