"""What of a board is asked for: link, filters, skills, columns, pins, sorting and pages."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import QueryParams

from benchmarks.errors import PlatformError
from benchmarks.schema import Selector
from leaderboard.publication.measure_names import nearest, short_titles, token
from leaderboard.publication.reader import View
from leaderboard.records import Kind
from leaderboard.text import clean
from leaderboard.views.addresses import params_of
from leaderboard.views.benchmark_board import in_shown_order, window
from leaderboard.views.boards import (
    KINDS,
    MOST_OPEN,
    MOST_PINS,
    MOST_SEARCHED,
    Arrangement,
    BoardQuery,
    Filters,
    columns_of,
    every_key,
    layout_of,
    resolve,
    values_of,
)
from tests.kit import boards as synthetic
from tests.kit.boards import METRICS, NASTY, cards, chosen, entry_of
from tests.leaderboard.web.skills_fixture import PRICE, skills_view_of

PLCC, SECONDS = "plcc~paper", "cost:seconds"
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


# The link.


def test_every_link_of_the_choosers_resolves_to_itself(view: View) -> None:
    for name, board in view.boards.items():
        for skill in ("", *board.skills()):
            for selector in board.selectors(skill or None):
                asked = BoardQuery(name, skill, token(selector))
                choice = resolve(asked, view.boards)
                assert (choice.skill or "", choice.selector) == (skill, selector)
                assert choice.remarks == ()
                assert choice.query == asked == BoardQuery.from_params(params_of(asked.to_query()))


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
    assert len(chosen(view, *asked).remarks) == 1


def test_columns_pins_and_kinds_that_are_not_there_are_said(view: View) -> None:
    layout = Arrangement(("nothing", PLCC), ("nobody/x",), sort="what", opened=("nobody/x",))
    choice = chosen(view, arranged=layout, filters=Filters(kind="model", within=True))
    assert len(choice.remarks) == 4 and choice.filters == Filters()
    assert choice.arranged == Arrangement((PLCC,))


@given(
    filters=st.builds(
        Filters, st.text(max_size=MOST_SEARCHED).map(clean).map(str.strip),
        st.sampled_from(["", "metric", "scores"]), st.booleans(),
    ),
    arranged=st.builds(
        Arrangement, st.lists(KEYS, max_size=4, unique=True).map(tuple),
        st.lists(KEYS, max_size=MOST_PINS, unique=True).map(tuple), KEYS | st.just(""),
        st.integers(1, 999), st.lists(KEYS, max_size=MOST_OPEN, unique=True).map(tuple),
    ),
    skill=st.sampled_from(["", "counting", "counting,colour"]),
)  # fmt: skip
def test_a_link_restores_all_that_was_chosen(
    view: View, filters: Filters, arranged: Arrangement, skill: str
) -> None:
    choice = chosen(view, skill=skill, filters=filters)
    query = choice.query.to_query()
    assert choice.filters == filters and BoardQuery.from_params(params_of(query)) == choice.query
    assert BoardQuery.from_params(dict(parse_qsl(query[1:]))) == choice.query
    link = BoardQuery("ratings", arranged=arranged).to_query()
    assert BoardQuery.from_params(params_of(link)).arranged == arranged


def test_an_old_link_with_one_skill_still_works_also_with_a_sub_skill() -> None:
    query = BoardQuery.from_params({"benchmark": "b", "skill": "count:exact", "measure": "m~v"})
    assert query == BoardQuery("b", "count:exact", "m~v")
    assert query.to_query() == "?benchmark=b&skill=count:exact&measure=m~v"


# Filters: who is kept, and that ranks are those of the selection.


@pytest.mark.parametrize(
    ("filters", "names"),
    [(Filters("clip, hps"), ["CLIPScore", "HPSv2"]),
     (Filters("a GROUP"), [m for m in METRICS if m != NASTY]),  # The submitter.
     (Filters(kind="scores"), [METRICS[place] for place in (1, 5, 9)]),
     (Filters(untrained=True), [m for m in METRICS if m != "PickScore"]),
     (Filters("zzz"), [])],
)  # fmt: skip
def test_a_filter_keeps_who_fits(view: View, filters: Filters, names: list[str]) -> None:
    assert sorted(view.entries[e].metric for e in kept(view, filters)) == sorted(names)


def test_each_kind_of_entry_is_kept_by_itself(view: View) -> None:
    for kind in map(Kind, KINDS):
        of_kind = {e for e, entry in view.entries.items() if entry.kind is kind}
        assert kept(view, Filters(kind=kind.value)) == of_kind


def test_tests_within_are_asked_for_anew_whenever_a_filter_changes() -> None:
    filters = Filters("clip, hps", "metric", True, within=True)
    assert len(filters.parts()) == 4
    assert not any(left.within for _, left in filters.parts())
    assert Filters(within=True).known() == (Filters(), ())
    assert Filters.from_params(Filters(within=True).to_params()) == Filters()


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
    for _, left in filters.parts():
        if filters.terms and not left.terms:  # Of several terms any may fit.
            assert shown <= kept(view, left)
    terms = list(filters.terms)
    order.shuffle(terms)  # type: ignore[attr-defined]
    assert kept(view, replace(filters, search=", ".join(terms))) == shown
    left, steps = filters, 0
    while left.active:
        _, left = data.draw(st.sampled_from(left.parts()))
        steps += 1
    assert (left, steps) == (Filters(), len(filters.parts()))


# Several skills.


def test_of_several_skills_the_mean_is_ranked(view: View) -> None:
    choice = chosen(view, skill="counting,spatial")
    assert choice.title == "mean of Counting and Spatial relations"
    found = view.orders.ranked(choice.board.card, choice.slices())
    one, other = ({c.entry_id: c.value for c in cells} for cells in choice.slices())
    for cell in found.cells:
        pair = (one[cell.entry_id], other[cell.entry_id])
        expected = None if None in pair else pytest.approx(sum(v or 0.0 for v in pair) / 2)
        assert cell.value == expected
    many = chosen(view, skill=",".join(("counting", "spatial", "text", "colour", "style")))
    assert many.title == "mean of 5 skills"
    # One of them has too few clusters, and a mean is no better founded than its parts.
    mean = view.orders.ranked(many.board.card, many.slices()).cells
    assert not any(cell.orderable for cell in mean)


def test_a_skill_may_be_repeated_or_joined_and_unknown_ones_are_named_once(view: View) -> None:
    repeated = BoardQuery.from_params(QueryParams("benchmark=ratings&skill=counting&skill=colour"))
    assert resolve(repeated, view.boards).skills == ("counting", "colour")
    assert chosen(view, skill="counting,colour,counting,").skills == ("counting", "colour")
    choice = chosen(view, skill=f"counting,{','.join('abcdefgh')}")
    assert choice.skills == ("counting",) and len(choice.remarks) == 1
    assert "“a”, “b”, “c”, …" in choice.remarks[0]


# Columns and sorting.


def test_every_value_and_cost_of_a_board_can_be_a_column(view: View) -> None:
    board = view.boards["ratings"]
    keys = every_key(board)
    assert len([key for key in keys if not key.startswith(("cost:", "meta:"))]) == 13
    assert [column.key for column in columns_of(board, keys)] == list(keys)


def in_order(view: View, sort: str) -> list[str]:
    choice = chosen(view, arranged=Arrangement(sort=sort))
    assert choice.remarks == ()
    cells = view.orders.ranked(choice.board.card, choice.slices()).cells
    return [
        cell.entry_id.partition("/")[2] for cell in in_shown_order(cells, layout_of(choice, view))
    ]


def test_rows_are_sorted_by_a_column_and_those_without_a_value_come_last(view: View) -> None:
    best, worst = in_order(view, SECONDS), in_order(view, f"-{SECONDS}")
    assert best[0] == "CLIPScore"
    assert set(best[-3:]) == {"BLIP2-ITM", "ImageReward", "DSG"}
    assert worst == [*best[:-3][::-1], *best[-3:]]


@pytest.mark.parametrize("key", ["metric", "value", "best_share", "n", "meta:version", "meta:kind"])
def test_rows_are_sorted_by_whatever_every_board_shows_both_ways(view: View, key: str) -> None:
    up, down = in_order(view, key), in_order(view, f"-{key}")
    assert sorted(up) == sorted(down) == sorted(in_order(view, ""))
    if key == "metric":
        assert up == sorted(up, key=str.casefold) == down[::-1]
    if key == "value":
        assert (up[0], up[-1]) == ("CLIPScore", "always-half") == (up[0], down[-1])


# Pins and pages.


def test_a_fifth_pin_takes_the_place_of_the_first() -> None:
    four = Arrangement(pins=("a", "b", "c", "d"))
    assert four.pinned("e").pins == ("b", "c", "d", "e")
    assert four.pinned("b") == four
    assert four.unpinned("b").pins == ("a", "c", "d")


def test_pages_hold_every_row_once_and_in_order(view: View) -> None:
    choice = chosen(view, arranged=Arrangement(pins=(entry_of(view, "TIFA"),)))
    ranked = view.orders.ranked(choice.board.card, choice.slices())
    layout = layout_of(choice, view)
    whole = window(ranked.cells, layout, 100)
    seen: list[str] = []
    for page in (1, 2, 3):
        at = replace(layout, arranged=replace(layout.arranged, page=page))
        part = window(ranked.cells, at, 4)
        assert (part.page, part.pages, part.total) == (page, 3, 11)
        assert part.parts[0][0] == "Pinned"
        seen += [cell.entry_id for _, of in part.parts[1:] for cell in of]
    assert seen == [cell.entry_id for _, of in whole.parts[1:] for cell in of]
    assert window(ranked.cells, replace(layout, arranged=Arrangement(page=99)), 5).page == 3


def test_a_price_is_that_of_a_thousand_pairs_and_only_of_what_is_paid_for() -> None:
    view = skills_view_of()
    board = view.boards["croc"]
    (column,) = columns_of(board, ["cost:usd_per_1000_pairs"])
    found = values_of(board, column, view.entries).costs
    assert {view.entries[entry_id].metric: usd for entry_id, usd in found.items()} == PRICE


def test_benchmarks_that_are_alike_without_brackets_keep_them() -> None:
    titles = ("GenAI-Bench (1,600 prompts)", "GenAI-Bench (527 prompts)", "T2IScoreScore (TS2)")
    given = [cards()["ratings"].model_copy(update={"name": f"b{n}", "title": one})
             for n, one in enumerate(titles)]  # fmt: skip
    assert list(short_titles(given).values()) == [*titles[:2], "T2IScoreScore"]
    assert short_titles(given[1:]) == {"b1": "GenAI-Bench", "b2": "T2IScoreScore"}
