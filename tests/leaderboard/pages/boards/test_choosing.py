"""What of a board is shown: by link, filter, skill, column, pin, sorting and page, all in the link."""

from __future__ import annotations

import re
from dataclasses import replace
from urllib.parse import parse_qsl

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import QueryParams

from benchmarks.errors import PlatformError
from benchmarks.schema import Selector
from leaderboard.pages.boards.chips import without
from leaderboard.pages.boards.view import board_body, board_view, skills_placeholder, skills_view
from leaderboard.publication.measure_names import nearest, token
from leaderboard.publication.reader import View
from leaderboard.ranking.tiers import in_tiers
from leaderboard.records import Kind
from leaderboard.text import clean
from leaderboard.views.boards import (
    KINDS,
    MOST_PINS,
    MOST_SEARCHED,
    Arrangement,
    BoardQuery,
    Choice,
    Filters,
    columns_of,
    every_key,
    layout_of,
    resolve,
    values_of,
    window,
)
from tests.leaderboard.pages import synthetic
from tests.leaderboard.pages.parsed import Node, harmless, read
from tests.leaderboard.pages.synthetic import METRICS, NASTY, cards

PLCC, COUNTING, SECONDS = "plcc~paper", "srcc~assay@counting", "cost:seconds"
HOSTILE = [NASTY, "\x00", "'; drop table", "%", "-1", "9" * 400, "," * 5000, "a" * 100_000, "(.*"]
KEYS = st.text(st.sampled_from("ab,:@~/ %&=+é“"), min_size=1, max_size=12)
FILTERS = st.builds(
    Filters,
    search=st.sampled_from(["", "clip", "tifa, dsg", "zzz", "a group, hps"]),
    kind=st.sampled_from(["", "metric", "scores"]),
    untrained=st.booleans(),
)


@pytest.fixture(scope="module")
def view() -> View:
    return synthetic.view()


def chosen(view: View, benchmark: str = "ratings", skill: str = "", measure: str = "",
           **more: object) -> Choice:  # fmt: skip
    return resolve(BoardQuery(benchmark, skill, measure, **more), view.boards)  # type: ignore[arg-type]


def body(view: View, arranged: Arrangement | None = None, filters: Filters | None = None,
         benchmark: str = "ratings", skill: str = "") -> Node:  # fmt: skip
    """The first part of a board: its ranking."""
    choice = chosen(view, benchmark, skill, filters=filters or Filters(),
                    arranged=arranged or Arrangement())  # fmt: skip
    return read(board_body(choice, view).split("Metric against metric")[0])


def entry_of(view: View, metric: str) -> str:
    return next(e for e, entry in view.entries.items() if entry.metric == metric)


def links_of(page: Node, path: str, start: str = "./boards") -> list[BoardQuery]:
    return [BoardQuery.from_link(one.removeprefix("./boards")) for one in page.links(start, path)]


# The link.


def test_every_link_of_the_choosers_resolves_to_itself(view: View) -> None:
    for name, board in view.boards.items():
        for skill in ("", *board.skills()):
            for selector in board.selectors(skill or None):
                asked = BoardQuery(name, skill, token(selector))
                choice = resolve(asked, view.boards)
                assert (choice.skill or "", choice.selector) == (skill, selector)
                assert choice.remarks == ()
                assert choice.query == asked == BoardQuery.from_link(asked.to_query())


def test_without_a_link_the_first_board_opens_at_its_headline(view: View) -> None:
    choice = resolve(BoardQuery(), view.boards)
    assert (choice.board.card.name, choice.selector) == ("ratings", cards()["ratings"].headline)
    with pytest.raises(PlatformError):
        resolve(BoardQuery(), {})


@pytest.mark.parametrize(
    ("asked", "measure", "remarks"),
    [("srcc~paper", "srcc", 1), ("plcc~paper", "srcc", 1), ("accuracy", "accuracy", 0)],
)
def test_a_measure_a_skill_lacks_is_replaced_visibly_and_its_bare_name_is_enough(
    view: View, asked: str, measure: str, remarks: int
) -> None:
    choice = chosen(view, skill="counting", measure=asked)
    assert choice.selector == Selector(measure=measure, variant="assay")
    assert len(choice.remarks) == remarks and all("Counting" in one for one in choice.remarks)


def test_the_nearest_measure_agrees_in_name_before_anything_else() -> None:
    wanted = Selector(measure="delta", variant="equation", split="nat")
    available = [wanted.model_copy(update={"measure": "rank"}),
                 Selector(measure="delta", variant="paper", split="all")]  # fmt: skip
    assert nearest(wanted, available, cards()["graphs"]).measure == "delta"


@pytest.mark.parametrize(
    "asked", [(NASTY,), ("ratings", NASTY), ("ratings", "", NASTY), ("graphs", "counting")]
)
def test_what_a_link_asks_for_in_vain_is_said(view: View, asked: tuple[str, ...]) -> None:
    choice = chosen(view, *asked)
    assert len(choice.remarks) == 1
    harmless(board_view(choice, view))


@given(
    filters=st.builds(
        Filters, st.text(max_size=MOST_SEARCHED).map(clean).map(str.strip),
        st.sampled_from(["", "metric", "scores"]), st.booleans(),
    ),
    arranged=st.builds(
        Arrangement, st.lists(KEYS, max_size=4, unique=True).map(tuple),
        st.lists(KEYS, max_size=MOST_PINS, unique=True).map(tuple), KEYS | st.just(""),
        st.integers(1, 999),
    ),
    skill=st.sampled_from(["", "counting", "counting,colour"]),
)  # fmt: skip
def test_a_link_restores_all_that_was_chosen(
    view: View, filters: Filters, arranged: Arrangement, skill: str
) -> None:
    choice = chosen(view, skill=skill, filters=filters)
    query = choice.query.to_query()
    assert choice.filters == filters and BoardQuery.from_link(query) == choice.query
    assert BoardQuery.from_params(dict(parse_qsl(query[1:]))) == choice.query
    link = BoardQuery("ratings", arranged=arranged).to_query()
    assert BoardQuery.from_link(link).arranged == arranged


def test_an_old_link_with_one_skill_still_works_also_with_a_sub_skill() -> None:
    query = BoardQuery.from_params({"benchmark": "b", "skill": "count:exact", "measure": "m~v"})
    assert query == BoardQuery("b", "count:exact", "m~v")
    assert query.to_query() == "?benchmark=b&skill=count:exact&measure=m~v"


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize(
    "name",
    [
        "benchmark",
        "skill",
        "measure",
        "search",
        "kind",
        "untrained",
        "columns",
        "pin",
        "sort",
        "page",
    ],
)
def test_whatever_a_link_holds_the_page_is_whole_and_harmless(
    view: View, name: str, value: str
) -> None:
    choice = resolve(BoardQuery.from_params({"benchmark": "ratings", name: value}), view.boards)
    html = board_view(choice, view) + skills_placeholder(choice) + skills_view(choice, view)
    harmless(html)
    assert read(html).one("h1").text == "Ratings" and len(html) < 200_000
    layout = name in {"columns", "pin", "sort", "page"}
    assert len(choice.query.to_query()) < (200 if layout else 2000)


def test_columns_pins_and_kinds_that_are_not_there_are_said(view: View) -> None:
    layout = Arrangement(("nothing", PLCC), ("nobody/x",))
    choice = chosen(view, arranged=layout, filters=Filters(kind="model"))
    page = read(board_view(choice, view))
    assert "nothing" in page and "pinned" in page and "model" in page
    assert not choice.filters.active


# Filters: who is kept, and that ranks are those of the selection.


@pytest.mark.parametrize(
    ("filters", "kept"),
    [(Filters("clip, hps"), ["CLIPScore", "HPSv2"]),
     (Filters("a GROUP"), [m for m in METRICS if m != NASTY]),  # The submitter.
     (Filters(kind="scores"), [METRICS[place] for place in (1, 5, 9)]),
     (Filters(untrained=True), [m for m in METRICS if m != "PickScore"])],
)  # fmt: skip
def test_a_filter_keeps_who_fits_and_counts_them(
    view: View, filters: Filters, kept: list[str]
) -> None:
    page = body(view, filters=filters)
    known = [clean(metric) for metric in kept]
    assert sorted(page.names) == sorted(known) and f"{len(kept)} of 12" in page
    assert "PickScore" in body(view, filters=Filters(untrained=True), benchmark="graphs").names


def test_each_kind_of_entry_is_kept_by_itself(view: View) -> None:
    for kind in map(Kind, KINDS):
        page = body(view, filters=Filters(kind=kind.value))
        assert len(page.names) == sum(e.kind is kind for e in view.entries.values())
    assert "not re-run" not in body(view, filters=Filters(kind="metric"))


def test_a_filter_that_nobody_fits_says_so_and_leads_back(view: View) -> None:
    page = body(view, filters=Filters("zzz"), skill="counting")
    assert "None of 12" in page and not page.all("table")
    assert "./boards?benchmark=ratings&skill=counting&measure=srcc~assay" in page.links()


def test_ranks_chances_tiers_and_tests_are_made_anew_inside_a_filter(view: View) -> None:
    page = body(view, filters=Filters("tifa,dsg,siglip"))
    ranks = [re.match(r"Rank (\d) of (\d)", one["title"]) for one in page.all(".as-range")]
    assert [one and one.groups() for one in ranks] == [("1", "3"), ("2", "3"), ("3", "3")]
    chances = [int(row["P(best)"].text.strip("<> %")) for row in page.rows]
    assert sum(chances) == pytest.approx(100, abs=2)
    assert "3 pairs" in page and "Tier 1" in page.groups


def test_a_filter_that_keeps_everybody_changes_no_rank(view: View) -> None:
    board = view.boards["ratings"]
    cells = [board.cells(board.card.headline, None)]
    everybody = view.orders.ranked(board.card, cells)
    kept = view.orders.ranked(board.card, cells, {cell.entry_id for cell in cells[0]})
    assert kept.cells == everybody.cells
    np.testing.assert_array_equal(kept.ordering.corrected, everybody.ordering.corrected)


def kept(view: View, filters: Filters) -> frozenset[str]:
    """Ids of the entries that stand in the ranking."""
    choice = chosen(view, filters=filters)
    everyone = choice.entry_ids()
    found = filters.kept(everyone, view.entries, choice.board.card)
    return frozenset(everyone if found is None else found)


@given(filters=FILTERS, data=st.data(), order=st.randoms(use_true_random=False))
def test_undoing_a_chip_shows_no_less_and_undoing_all_in_any_order_restores_all(
    view: View, filters: Filters, data: st.DataObject, order: object
) -> None:
    everyone, shown = kept(view, Filters()), kept(view, filters)
    assert shown <= everyone and (filters.active or shown == everyone)
    for _, left in without(filters):
        if filters.terms and not left.terms:  # Of several terms any may fit.
            assert shown <= kept(view, left)
    terms = list(filters.terms)
    order.shuffle(terms)  # type: ignore[attr-defined]
    assert kept(view, replace(filters, search=", ".join(terms))) == shown
    left, steps = filters, 0
    while left.active:
        _, left = data.draw(st.sampled_from(without(left)))
        steps += 1
    assert (left, steps) == (Filters(), len(without(filters)))


def test_each_active_filter_is_a_chip_that_leads_to_the_view_without_it(view: View) -> None:
    page = body(view, Arrangement((PLCC,)), Filters("clip, hps", "metric", True))
    chips = page.all("a[aria-label=Remove]")
    found = {
        chip["aria-label"].removeprefix("Remove "): BoardQuery.from_link(
            chip["href"].removeprefix("./boards")
        )
        for chip in chips
    }
    assert {label: one.filters for label, one in found.items()} == {
        "“clip”": Filters("hps", "metric", True),
        "“hps”": Filters("clip", "metric", True),
        "run by Assay": Filters("clip, hps", "", True),
        "not trained on this benchmark": Filters("clip, hps", "metric"),
    }
    assert all(one.arranged.columns == (PLCC,) for one in found.values())
    assert not body(view).all("a[aria-label=Remove]") and "12 metrics" in body(view)


# Several skills.


def test_of_several_skills_the_mean_is_ranked(view: View) -> None:
    choice = chosen(view, skill="counting,spatial")
    page = read(board_view(choice, view))
    assert "mean of Counting" in page and "2 skills" in page
    found = view.orders.ranked(choice.board.card, choice.slices())
    one, other = ({c.entry_id: c.value for c in cells} for cells in choice.slices())
    for cell in found.cells:
        pair = (one[cell.entry_id], other[cell.entry_id])
        expected = None if None in pair else pytest.approx(sum(v or 0.0 for v in pair) / 2)
        assert cell.value == expected
    many = chosen(view, skill=",".join(("counting", "spatial", "text", "colour", "style")))
    assert many.title == "mean of 5 skills"
    # One of them has too few clusters, and a mean is no better founded than its parts.
    assert "Too few" in read(board_view(many, view))


def test_a_skill_may_be_repeated_or_joined_and_unknown_ones_are_named_once(view: View) -> None:
    repeated = BoardQuery.from_params(QueryParams("benchmark=ratings&skill=counting&skill=colour"))
    assert resolve(repeated, view.boards).skills == ("counting", "colour")
    assert chosen(view, skill="counting,colour,counting,").skills == ("counting", "colour")
    choice = chosen(view, skill=f"counting,{','.join('abcdefgh')}")
    assert choice.skills == ("counting",) and len(choice.remarks) == 1
    assert "“a”, “b”, “c”, …" in choice.remarks[0]


# Columns and sorting.


def test_further_columns_have_direction_meaning_and_values_of_their_own_slice(view: View) -> None:
    page = body(view, Arrangement((PLCC, COUNTING, SECONDS)))
    heads = page.all("th.as-c-more")
    assert [head.text for head in heads] == [
        "Pearson r ↑", "Spearman ρ · summary by Assay, Counting ↑", "Seconds ↓",
    ]  # fmt: skip
    assert heads[0]["title"].startswith("Pearson r between the metric")
    board, entry = view.boards["ratings"], entry_of(view, "VQAScore")
    values = values_of(board, columns_of(board, [COUNTING])[0], view.entries)
    cell = next(row for row in page.rows if "VQAScore" in row["Metric"])[heads[1].text]
    assert cell.text == f"{values.of(entry):.3f}"
    assert cell.links() == [f"./compare?benchmark=ratings&a={entry}&skill=counting&view=examples"]
    assert page.row("VQAScore").links("./compare")[0] == (
        f"./compare?benchmark=ratings&a={entry}&view=examples"
    )


def test_where_answers_are_not_public_no_value_leads_to_examples(view: View) -> None:
    choice = chosen(view)
    choice.board.card = choice.board.card.model_copy(update={"answers_public": False})
    try:
        links = read(board_body(choice, view)).links("./compare")
        assert not [to for to in links if "view=examples" in to]
    finally:
        choice.board.card = cards()["ratings"]


def test_every_value_and_cost_of_a_board_can_be_a_column(view: View) -> None:
    board = view.boards["ratings"]
    keys = every_key(board)
    assert len([key for key in keys if not key.startswith("cost:")]) == 13
    assert [column.key for column in columns_of(board, keys)] == list(keys)


def test_rows_are_sorted_by_a_column_and_keep_their_ranks(view: View) -> None:
    best = body(view, Arrangement((SECONDS,), sort=SECONDS)).names
    worst = body(view, Arrangement((SECONDS,), sort=f"-{SECONDS}")).names
    assert best[0] == "CLIPScore"
    assert set(best[-3:]) == {"BLIP2-ITM", "ImageReward", "DSG"}, "those without a value come last"
    assert worst == [*best[:-3][::-1], *best[-3:]]
    plain, by_plcc = body(view), body(view, Arrangement(sort=PLCC))
    ranks = [sorted(one["title"] for one in page.all("[title=Rank]")) for page in (plain, by_plcc)]
    assert ranks[0] == ranks[1]
    assert by_plcc.all("[aria-sort=descending]") and not by_plcc.groups


# Pins and pages.


def test_pinned_rows_stand_on_top_and_two_lead_to_a_comparison(view: View) -> None:
    pins = (entry_of(view, "DSG"), entry_of(view, "TIFA"))
    page = body(view, Arrangement(pins=pins))
    assert page.names[:2] == ["DSG", "TIFA"] and len(page.names) == len(METRICS)
    address = f"./compare?benchmark=ratings&measure=srcc~paper&a={pins[0]}&b={pins[1]}"
    assert [to for to in page.links("./compare") if "view=examples" not in to] == [address]
    one = body(view, Arrangement(pins=pins[:1]))
    assert (
        not [to for to in one.links("./compare") if "view=examples" not in to]
        and "Pin another" in one
    )
    page = body(view, Arrangement(pins=pins), Filters("tifa, clip"))
    assert "DSG" not in page.names and page.all("[aria-label=Remove DSG]")


def test_a_fifth_pin_takes_the_place_of_the_first() -> None:
    four = Arrangement(pins=("a", "b", "c", "d"))
    assert four.pinned("e").pins == ("b", "c", "d", "e")
    assert four.pinned("b") == four
    assert four.unpinned("b").pins == ("a", "c", "d")


def test_the_pin_link_of_a_row_pins_that_row_whatever_its_name(view: View) -> None:
    page = body(view, Arrangement((PLCC,)))
    found = links_of(page, "a.as-pin")
    assert [view.entries[one.arranged.pins[0]].metric for one in found][:3] == page.names[:3]
    assert len({one.arranged.pins for one in found}) == len(METRICS)
    assert {one.arranged.columns for one in found} == {(PLCC,)}


def test_pages_hold_every_row_once_and_in_order(view: View) -> None:
    choice = chosen(view, arranged=Arrangement(pins=(entry_of(view, "TIFA"),)))
    ranked = in_tiers(view.orders.ranked(choice.board.card, choice.slices()))
    layout = layout_of(choice, view)
    whole = window(ranked.cells, layout, 100)
    seen: list[str] = []
    for page in (1, 2, 3):
        at = replace(layout, arranged=replace(layout.arranged, page=page))
        part = window(ranked.cells, at, 4)
        assert (part.page, part.pages, part.total) == (page, 3, 11)
        assert part.parts[0].label == "Pinned"
        seen += [cell.entry_id for one in part.parts[1:] for cell in one.cells]
    assert seen == [cell.entry_id for one in whole.parts[1:] for cell in one.cells]
    assert window(ranked.cells, replace(layout, arranged=Arrangement(page=99)), 5).page == 3
