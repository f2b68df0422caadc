"""The API answers what the pages show for the same query, with the very same figures."""

from __future__ import annotations

import hashlib
import io
import math
import re
from collections import defaultdict
from html import unescape
from itertools import count
from typing import Any
from urllib.parse import quote

import pandas as pd
import pyarrow.parquet as pq
import pytest

from leaderboard.api.schemas import LONGEST_QUERY
from leaderboard.api.tables.boards import published_pairs
from leaderboard.rendering import escaped
from leaderboard.tables import to_csv
from leaderboard.views.benchmark_board import (
    ranking_of,
    ranking_with_tests,
    ranks_among,
    skill_heat,
)
from leaderboard.views.board_tables import board_table, pairs, pairs_table
from leaderboard.views.boards import MOST_COLUMNS, Arrangement, BoardQuery, columns_of, values_of
from leaderboard.views.compare_query import CompareQuery
from leaderboard.views.comparison import COLUMNS, comparison_page, opponents
from leaderboard.views.index import index_table, resolve_index
from leaderboard.views.metrics import MetricsQuery
from leaderboard.views.skills import SkillsQuery, found_for, resolve
from leaderboard.views.submissions import Moment, queue_of
from leaderboard.web.benchmark_tab import board_html
from leaderboard.web.metrics_tab import metrics_tab
from tests.kit.boards import METRICS, NOW, cards, site_of
from tests.kit.governed import ADA, CARDS, House
from tests.kit.store import memory_store
from tests.leaderboard.api.asking import OPERATIONS, Asking, asking
from tests.leaderboard.views.example_fixture import LACKS, NOISY, RIGHT, entry_id
from tests.leaderboard.web import index_fixture
from tests.leaderboard.web.moved_fixture import BEFORE, fill_moved

BOARD = "/v1/boards/ratings"
FURTHER = "plcc~paper,srcc~assay@counting,cost:seconds"


@pytest.fixture(scope="module")
def api() -> Asking:
    return asking()


@pytest.fixture(scope="module")
def emptied() -> House:
    house = House()
    for name in [house.done(name="one"), house.done(name="two")]:
        house.acts.withdraw(name, ADA)
    return house


def csv_of(api: Asking, address: str) -> str:
    answer = api.client.get(f"{address}{'&' if '?' in address else '?'}format=csv")
    assert answer.status_code == 200, answer.text
    return answer.text


def parquet_of(api: Asking, address: str) -> Any:
    mark = "&" if "?" in address else "?"
    return pq.read_table(io.BytesIO(api.client.get(f"{address}{mark}format=parquet").content))


# Boards


@pytest.mark.parametrize(
    "query",
    [
        "", "measure=accuracy~paper", "skill=counting", "kind=scores", "search=clip,tifa",
        "skill=counting,colour&measure=accuracy~assay", "skill=counting&skill=colour",
        "untrained=1&search=clip", "search=nobody-is-called-so", "search=clip,tifa&within=1",
        "within=1",
    ],
)  # fmt: skip
def test_a_board_is_the_one_that_its_page_offers(api: Asking, query: str) -> None:
    view = api.source.reader.view()
    choice = api.choice(f"?benchmark=ratings&{query.replace('&skill=', ',')}")
    kept = choice.filters.kept(choice.entry_ids(), view.entries, choice.board.card)
    found = ranking_of(choice, view)
    places = None if kept is None else ranks_among(found.shown)
    table = board_table(found.shown, view.entries, choice.board, places=places)
    assert csv_of(api, f"{BOARD}?{query}") == to_csv(table)
    tests = pairs(ranking_with_tests(choice, view), None, None if choice.filters.within else kept)
    assert csv_of(api, f"{BOARD}/pairs?{query}") == to_csv(pairs_table(tests, view.entries))
    told = api.table(f"{BOARD}/pairs?{query}")["about"]
    assert told["n_tests"] == (found.basis.n_pairs if found.shown else 0)
    assert told["filters"].get("within") == ("1" if choice.filters.within else None)


@pytest.mark.parametrize("query", ["", "search=tifa,dsg", "search=tifa,dsg&within=1"])
def test_the_values_by_skill_are_those_of_the_heatmap(api: Asking, query: str) -> None:
    heat = skill_heat(api.choice(f"?benchmark=ratings&{query}"), api.source.reader.view())
    assert heat is not None
    shown = {
        (entry_id, column.skill): (cell.value, column.may_be_best(cell))
        for column in heat.columns
        for entry_id, cell in column.cells.items()
        if cell.value is not None and entry_id in heat.entry_ids
    }
    rows = [row for row in api.rows(f"{BOARD}/skills?{query}") if row["value"] is not None]
    assert len(shown) > (0 if query else 30)
    assert shown == {
        (row["entry_id"], row["skill"]): (row["value"], row["maybe_best"]) for row in rows
    }


def laid_out(api: Asking, query: str) -> tuple[list[str], list[dict[str, Any]]]:
    """The metrics in the order of the page's table, and the rows of the API that it offers."""
    choice = api.choice(f"?benchmark=ratings&{query}")
    page = board_html(choice, api.source.reader.view())
    places = {e: page.find(f'data-go="open {escaped(e)}"') for e in choice.entry_ids()}
    on_page = sorted((e for e, place in places.items() if place > 0), key=lambda e: places[e])
    linked = re.search(r'href="\./(v1/boards/ratings\?[^"]*format=json)"', page)
    assert linked is not None
    return on_page, api.rows(f"/{unescape(linked[1])}")


@pytest.mark.parametrize("sort", ["", "plcc~paper", "-plcc~paper", "srcc~assay@counting",
                                  "cost:seconds", "-cost:seconds"])  # fmt: skip
@pytest.mark.parametrize(
    "more", ["", "&kind=metric", "&search=clip,tifa", "&pin=made-up-0003/PickScore"]
)
def test_a_download_has_columns_and_order_of_its_page(api: Asking, sort: str, more: str) -> None:
    query = f"columns={FURTHER}{more}" + (f"&sort={sort}" if sort else "")
    on_page, rows = laid_out(api, query)
    pinned = [e for e in on_page if "pin=" in more and e.endswith("/PickScore")]
    assert on_page[: len(pinned)] == pinned  # For the eye: the data have no pins.
    order = [row["entry_id"] for row in rows]
    assert [e for e in order if e not in pinned] == on_page[len(pinned) :]
    view, board = api.source.reader.view(), api.choice(f"?benchmark=ratings&{query}").board
    columns = [values_of(board, one, view.entries) for one in columns_of(board, FURTHER.split(","))]
    names = []
    for values in columns:
        key = values.column.key
        names += [key] if key.startswith("cost:") else [key, f"{key}.ci_low", f"{key}.ci_high"]
        for row in rows:
            assert row[key] == values.of(row["entry_id"])
            cell = values.cells.get(row["entry_id"])
            if cell is not None:
                assert (row[f"{key}.ci_low"], row[f"{key}.ci_high"]) == (cell.ci_low, cell.ci_high)
    assert list(rows[0])[-7:] == names


def test_as_many_columns_as_a_page_may_have_fit_into_the_address_of_its_data() -> None:
    longest = ["accuracy~as_printed~held_out~direction@" + "x" * 40 for _ in range(MOST_COLUMNS)]
    query = BoardQuery("ratings", arranged=Arrangement(columns=tuple(longest)))
    assert len(query.to_query()) < LONGEST_QUERY


def test_every_row_says_whether_its_scores_were_computed_here(api: Asking) -> None:
    kinds = {e.entry_id: e.kind.value for e in api.source.reader.view().entries.values()}
    assert set(kinds.values()) == {"metric", "scores"}
    for part in ("", "/skills"):
        assert all(row["kind"] == kinds[row["entry_id"]] for row in api.rows(f"{BOARD}{part}"))
    for address in (f"{BOARD}/pairs", "/v1/compare?benchmark=ratings"):
        for row in api.rows(address):
            told = (row["kind_a"], row["kind_b"])
            assert told == (kinds[row["entry_a"]], kinds[row["entry_b"]])


def test_every_token_of_a_benchmark_chooses_the_measure_it_names(api: Asking) -> None:
    rows = api.rows("/v1/benchmarks/graphs")
    assert len(rows) == 9
    assert sum(row["headline"] for row in rows) == 1
    for row in rows:
        about = api.table(f"/v1/boards/graphs?measure={row['token']}")["about"]
        assert (about["measure"], about["measure_title"]) == (row["token"], row["title"])


def test_the_published_tests_of_a_headline_are_those_that_would_be_made() -> None:
    made = House()
    for place in range(6):
        ident = made.send(name=f"metric{place}")
        made.claim(ident)
        made.finish(ident, 0.3 + 0.1 * place)
    api = asking(made.store, CARDS)
    view, choice = api.source.reader.view(), api.choice("?benchmark=open")
    ranked = view.orders.ranked(choice.board.card, choice.slices())
    made_now, stored = pairs(ranked, None), published_pairs(made.store.public, choice)
    assert len(stored) == len(made_now) == 15
    for one, other in zip(stored, made_now, strict=True):
        assert one.difference == pytest.approx(other.difference)
        assert one._replace(difference=0.0) == other._replace(difference=0.0)
    path = "boards/open.pairs.parquet"
    for content in (b"no table", made.store.public.read("snapshot.parquet"), None):
        public = made.store.public
        public.commit({path: content}, parent=public.head(), message="tests")
        assert published_pairs(public, choice) == ()


# Comparisons, the index, entries, the queue and the ledger


def test_a_comparison_has_the_rows_of_its_page(api: Asking) -> None:
    view = api.source.reader.view()
    pair = opponents(CompareQuery(benchmark="ratings"), view)
    assert pair.a is not None
    assert pair.b is not None
    on_page = comparison_page(pair.choice, pair.a, pair.b, view)
    rows = api.rows("/v1/compare?benchmark=ratings")
    of_page = (on_page.chosen, *on_page.skills, *on_page.measures)
    assert [row["shown_as"] for row in rows] == ["chosen", *["skill"] * 5, *["measure"] * 2]
    for row, right in zip(rows, of_page, strict=True):
        assert set(row) == set(COLUMNS)
        known = {name: _plain(value) for name, value in right.to_json().items() if name in row}
        assert {name: row[name] for name in known} == known
    ids = [row["entry_id"] for row in api.rows(BOARD)[:4]]
    query = "&".join(f"{name}={one}" for name, one in zip("abcd", ids, strict=True))
    rows = api.rows(f"/v1/compare?benchmark=ratings&{query}")
    assert len([row for row in rows if row["shown_as"] == "chosen"]) == 6  # Of four, each two.


@pytest.mark.first_quick
@pytest.mark.parametrize(
    "query", ["", "w=rated:2,scaled:1&order=borda", "order=name", "order=rated"]
)
def test_the_index_is_the_one_of_the_page_under_the_same_weights(query: str) -> None:
    api = asking(index_fixture.fill(memory_store()), index_fixture.cards())
    view = api.source.reader.view()
    base = api.source.prepared.of(view)
    first, second = list(base.boards)[:2]
    query = query.replace("rated", first).replace("scaled", second)
    params = dict(part.split("=") for part in query.split("&") if part)
    choice = resolve_index(params.get("w", ""), base.boards, base.left_out, params.get("order", ""))
    assert not choice.remarks
    of_api = csv_of(api, f"/v1/index?{query}")
    assert of_api == to_csv(index_table(base, choice, view.entries))
    assert of_api.count("\n") > 5


def test_what_moved_is_told_from_one_edition_to_another() -> None:
    api = asking(fill_moved(memory_store()), cards())
    found = api.table(f"/v1/moved?from={BEFORE}&skill=counting")
    assert [found["about"][name] for name in ("from", "skill", "earlier")] == [
        BEFORE, "counting", [BEFORE],
    ]  # fmt: skip
    assert found["rows"]
    assert api.refused("/v1/moved?from=nothing", 400) == "bad_query"
    assert api.refused("/v1/moved?since=nothing", 400) == "unknown_parameter"


def test_benchmarks_and_entries_lead_to_everything_that_is_published(api: Asking) -> None:
    view = api.source.reader.view()
    benchmarks = {row["name"]: row["n_entries"] for row in api.rows("/v1/benchmarks")}
    assert (list(benchmarks), benchmarks["unused"]) == (list(view.boards), 0)
    assert [api.rows(f"/v1/boards/unused{part}") for part in ("", "/pairs", "/skills")] == [[]] * 3
    assert {row["entry_id"] for row in api.rows("/v1/entries?per_page=1000")} == set(view.entries)
    for one in view.entries:
        entry = api.table(f"/v1/entries/{quote(one, safe='')}")["about"]["entry"]
        assert (entry["entry_id"], entry["metric"]) == (one, view.entries[one].metric)
    first, key = one, ("measure", "variant", "split", "skill")
    values = {
        (row["benchmark"], *(row[name] for name in key)): row["value"]
        for row in api.rows(f"/v1/entries/{quote(first, safe='')}")
    }
    published = {
        (name, *(getattr(cell, one) for one in key)): cell.value
        for name, board in view.boards.items()
        for skill in (None, *board.skills())
        for selector in board.selectors(skill)
        for cell in board.cells(selector, skill)
        if cell.entry_id == first
    }
    assert values == published != {}


def test_the_queue_is_listed_in_the_order_of_the_page(api: Asking) -> None:
    rows = api.rows("/v1/queue")
    states = [row["state"] for row in rows]
    assert states == ["scoring", "queued", "rejected", "failed", "published"]
    moment = Moment(api.source.store.live.pulses(), NOW)
    shown_ = queue_of(api.source.reader.statuses(), moment)
    of_page = [row.own.submission_id for group in shown_.groups for row in group.rows]
    assert [row["submission_id"] for row in rows] == of_page
    assert (rows[1]["place"], rows[1]["of"]) == (1, 1)
    assert [row["state"] for row in api.rows("/v1/queue?state=failed")] == ["failed"]


def test_the_ledger_can_be_verified_from_what_is_answered(api: Asking) -> None:
    found = api.table("/v1/ledger?per_page=1000")
    raw = api.client.get("/v1/ledger.jsonl").content.splitlines()
    assert hashlib.sha256(raw[-1]).hexdigest() == found["about"]["head"]
    assert len(raw) == found["about"]["found"] == len(found["rows"]) > 10
    newest, before = found["rows"][:2]
    assert newest["before"] == hashlib.sha256(raw[-2]).hexdigest()
    assert newest["n"] == before["n"] + 1
    some = api.rows(f"/v1/ledger?subject={newest['subject']}")
    assert {row["subject"] for row in some} == {newest["subject"]}


# Every answer


@pytest.mark.parametrize("address", [BOARD, f"{BOARD}/skills", "/v1/compare", "/v1/queue"])
def test_every_format_of_a_table_has_the_same_values(api: Asking, address: str) -> None:
    table, frame = api.table(address), parquet_of(api, address)
    assert frame.column_names == [column["name"] for column in table["columns"]]
    of_json = [[_plain(v) for v in row.values()] for row in table["rows"]]
    assert [[_plain(v) for v in row.values()] for row in frame.to_pylist()] == of_json
    as_csv = pd.read_csv(io.StringIO(csv_of(api, address)), keep_default_na=False)
    assert len(as_csv) == len(of_json)


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def test_each_answer_says_as_of_when_it_is_and_means_every_column(api: Asking) -> None:
    for path in OPERATIONS:
        if path in {"/moved", "/index"} or "{prompt_set}" in path or "{entry_id}" in path:
            continue
        answer = api.client.get(f"/v1{path.replace('{benchmark}', 'ratings')}")
        table = answer.json()
        assert table["about"]["as_of"], path
        assert answer.headers["Assay-As-Of"].startswith("2026-03-01T12:00")
        names = {column["name"] for column in table["columns"]}
        for row in table["rows"]:
            assert set(row) == names
            assert {type(v) for v in row.values()} <= {str, int, float, bool, type(None)}


def test_names_of_strangers_are_no_formula_in_csv_and_escaped_in_json(api: Asking) -> None:
    answer = api.client.get(BOARD)
    for told in (answer.text, csv_of(api, BOARD)):
        assert "\u202e" not in told
        assert "\x1b" not in told
    assert {row["metric"] for row in answer.json()["rows"]} <= set(METRICS)


A = entry_id(NOISY)
ITEMS = "/v1/items?benchmark=ratings"


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
    first = told["rows"][0]
    assert (
        api.rows(f"{ITEMS}&a={state['a']}&case={first['case_id']}")[0]["case_id"]
        == first["case_id"]
    )


def test_the_page_offers_exactly_its_own_items(api: Asking) -> None:
    html = api.items_page(benchmark="ratings", a=A, split="real", page="1")
    address = re.search(r'href="\./(v1/items\?[^"]+format=json)"', html)
    assert address
    told = api.table("/" + address[1].replace("&amp;", "&"))
    assert {row["split"] for row in told["rows"]} == {"real"}
    assert (told["about"]["split"], told["about"]["show"]) == ("real", "failures")


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
    assert f"./v1/skills{choice.query.to_query()}" == f"./v1/skills?{query}"
    assert api.refused("/v1/skills?skill=nothing-such", 400) == "bad_query"
    assert api.refused(f"/v1/skills?{query}&w=nothing:1", 400) == "bad_query"


@pytest.mark.first_quick
@pytest.mark.parametrize("path", sorted(OPERATIONS.keys() - {"/benchmarks", "/queue", "/ledger"}))
def test_boards_that_a_withdrawal_empties_are_told_as_those_that_never_had_an_entry(
    path: str, emptied: House
) -> None:
    told = [
        asking(store, CARDS).client.get(f"/v1{path.format_map(defaultdict(lambda: 'open'))}")
        for store in (emptied.store, memory_store())
    ]
    assert [one.status_code for one in told] == [told[1].status_code] * 2
    rows = [one.json().get("rows", one.json().get("error")) for one in told]
    assert rows[0] == rows[1]


def test_pages_of_boards_that_a_withdrawal_empties_are_those_of_a_new_store(emptied: House) -> None:
    emptied_, new = (site_of(store, cards_=CARDS) for store in (emptied.store, memory_store()))
    for query in (MetricsQuery(), MetricsQuery(tab="benchmark:open")):
        assert metrics_tab(emptied_, query).html == metrics_tab(new, query).html


def test_every_table_comes_for_papers_too_and_with_the_columns_that_are_named(api: Asking) -> None:
    asked = f"{BOARD}?only=metric,value,ci_low,ci_high"
    for kind, media, start in (
        ("markdown", "text/markdown", "| metric | value |"),
        ("latex", "application/x-latex", "% needs"),
    ):
        answer = api.client.get(f"{asked}&format={kind}")
        assert (answer.status_code, answer.text.startswith(start)) == (200, True)
        assert answer.headers["content-type"].startswith(media)
        assert re.search(r"0\.\d{3} \\?\[", answer.text), "an interval stands in the cell"
    assert csv_of(api, asked).splitlines()[0] == "metric,value,ci_low,ci_high"
    wrong = api.client.get(f"{BOARD}?only=metric,nothing")
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (400, "bad_query")
