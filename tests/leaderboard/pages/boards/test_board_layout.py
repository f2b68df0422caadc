"""How a ranking is laid out: columns, pins, sorting and pages, all of it in the link."""

from __future__ import annotations

import html as escaping
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.pages.boards.arrangement import MOST_PINS, Arrangement
from leaderboard.pages.boards.chips import without
from leaderboard.pages.boards.columns import columns_of, every_key, values_of
from leaderboard.pages.boards.filters import Filters
from leaderboard.pages.boards.layout import window
from leaderboard.pages.boards.query import BoardQuery, Choice, resolve
from leaderboard.pages.boards.view import board_body, board_head, board_view, layout_of
from leaderboard.pages.reading import View, view_of
from leaderboard.pages.shown.tiers import in_tiers
from leaderboard.ranking.orders import Orders
from leaderboard.store.memory import memory_store
from tests.leaderboard.pages.synthetic import METRICS, NASTY, cards, fill, snapshot

PLCC, COUNTING, SECONDS = "plcc~paper", "srcc~assay@counting", "cost:seconds"
KEYS = st.text(st.sampled_from("ab,:@~/ %&=+é“"), min_size=1, max_size=12)
FILTERS = st.builds(
    Filters,
    search=st.sampled_from(["", "clip", "tifa, dsg", "zzz", "a group, hps"]),
    kind=st.sampled_from(["", "metric", "scores"]),
    untrained=st.booleans(),
)


@pytest.fixture(scope="module")
def view() -> View:
    return view_of(snapshot(), cards(), Orders(fill(memory_store())))


def entry_of(view: View, metric: str) -> str:
    return next(e for e, entry in view.entries.items() if entry.metric == metric)


def asked(view: View, arranged: Arrangement, filters: Filters | None = None) -> Choice:
    return resolve(
        BoardQuery("ratings", filters=filters or Filters(), arranged=arranged), view.boards
    )


def body(view: View, arranged: Arrangement, filters: Filters | None = None) -> str:
    return board_body(asked(view, arranged, filters), view)


def ranking_of(html: str) -> list[str]:
    ranking = html.split("Metric against metric", maxsplit=1)[0]
    return re.findall(r'class="as-name"[^>]*><bdi>(.*?)</bdi>', ranking)


def kept(view: View, filters: Filters) -> frozenset[str]:
    """Ids of the entries that stand in the ranking."""
    choice = asked(view, Arrangement(), filters)
    everyone = choice.entry_ids()
    found = filters.kept(everyone, view.entries, choice.board.card)
    return frozenset(everyone if found is None else found)


# Links.


@given(
    columns=st.lists(KEYS, max_size=4, unique=True),
    pins=st.lists(KEYS, max_size=MOST_PINS, unique=True),
    sort=KEYS | st.just(""),
    page=st.integers(1, 999),
)
def test_a_link_restores_columns_pins_sorting_and_page(
    columns: list[str], pins: list[str], sort: str, page: int
) -> None:
    arranged = Arrangement(tuple(columns), tuple(pins), sort, page)
    query = BoardQuery("ratings", arranged=arranged).to_query()
    assert BoardQuery.from_link(query).arranged == arranged


@pytest.mark.parametrize("name", ["columns", "pin", "sort", "page"])
@pytest.mark.parametrize("value", [NASTY, "," * 5000, "%", "-1", "9" * 400, "a" * 100_000, "\x00"])
def test_whatever_a_link_asks_of_the_layout_the_page_is_whole_and_harmless(
    view: View, name: str, value: str
) -> None:
    choice = resolve(BoardQuery.from_params({"benchmark": "ratings", name: value}), view.boards)
    html = board_view(choice, view)
    assert len(ranking_of(html)) == len(METRICS)
    assert "<img" not in html
    assert len(choice.query.to_query()) < 200


def test_columns_and_pins_that_are_not_there_are_said(view: View) -> None:
    head = board_head(asked(view, Arrangement(("nothing", PLCC), ("nobody/x",))))
    assert "No column “nothing” on Ratings." in head
    assert "A pinned metric is not on this board." in head


# Columns.


def test_further_columns_stand_beside_the_ranked_one_with_direction_and_meaning(
    view: View,
) -> None:
    html = body(view, Arrangement((PLCC, COUNTING, SECONDS)))
    heads = re.findall(r'class="as-c-more" title="([^"]*)">(.*?)</th>', html)
    assert [re.sub(r"<[^>]+>", "", head).strip() for _, head in heads] == [
        "Pearson r ↑", "Spearman ρ · summary by Assay, Counting ↑", "Seconds ↓",
    ]  # fmt: skip
    assert heads[0][0].startswith("Pearson r between the metric")
    assert "What the further columns mean" in html


def test_a_further_column_shows_the_value_of_its_own_slice(view: View) -> None:
    board = view.boards["ratings"]
    (column,) = columns_of(board, [COUNTING])
    values = values_of(board, column, view.entries)
    row = next(r for r in body(view, Arrangement((COUNTING,))).split("<tr ") if "VQAScore" in r)
    shown = values.of(entry_of(view, "VQAScore"))
    assert shown is not None
    assert re.search(rf'class="as-c-more"[^>]*><a [^>]*>{shown:.3f}</a>', row)


def test_every_value_leads_to_the_items_behind_it(view: View) -> None:
    row = next(r for r in body(view, Arrangement((COUNTING,))).split("<tr ") if "VQAScore" in r)
    links = [escaping.unescape(one) for one in re.findall(r'href="(\./items[^"]*)"', row)]
    entry = entry_of(view, "VQAScore")
    assert links == [
        f"./items?benchmark=ratings&a={entry}",
        f"./items?benchmark=ratings&skill=counting&a={entry}",
    ]


def test_where_answers_are_not_public_no_value_leads_to_items(view: View) -> None:
    choice = asked(view, Arrangement())
    choice.board.card = choice.board.card.model_copy(update={"answers_public": False})
    try:
        assert "./items" not in board_body(choice, view)
    finally:
        choice.board.card = cards()["ratings"]


def test_every_value_and_cost_of_a_board_can_be_a_column(view: View) -> None:
    board = view.boards["ratings"]
    keys = every_key(board)
    assert len([key for key in keys if not key.startswith("cost:")]) == 13
    assert [column.key for column in columns_of(board, keys)] == list(keys)


# Sorting.


def test_rows_can_be_sorted_by_a_column_and_keep_their_ranks(view: View) -> None:
    best = ranking_of(body(view, Arrangement((SECONDS,), sort=SECONDS)))
    worst = ranking_of(body(view, Arrangement((SECONDS,), sort=f"-{SECONDS}")))
    timed = [name for name in best if name not in {"BLIP2-ITM", "ImageReward", "DSG"}]
    assert timed[0] == "CLIPScore"
    assert best[-3:] == worst[-3:], "those without a value come last either way"
    assert worst[:-3] == best[:-3][::-1]
    plain, sorted_ = body(view, Arrangement()), body(view, Arrangement(sort=PLCC))
    ranks = r'title="Rank (\d+) of (\d+)'
    assert sorted(re.findall(ranks, plain)) == sorted(re.findall(ranks, sorted_))
    assert 'aria-sort="descending"' in sorted_
    assert "Tier 1" not in sorted_


# Pins.


def test_pinned_rows_stand_on_top_and_lead_to_a_comparison(view: View) -> None:
    pins = (entry_of(view, "DSG"), entry_of(view, "TIFA"))
    html = body(view, Arrangement(pins=pins))
    assert ranking_of(html)[:2] == ["DSG", "TIFA"]
    assert len(ranking_of(html)) == len(METRICS)
    link = escaping.unescape(re.search(r'href="(\./compare[^"]*)">Compare pinned', html)[1])  # type: ignore[index]
    assert link == f"./compare?benchmark=ratings&measure=srcc~paper&a={pins[0]}&b={pins[1]}"


def test_one_pin_is_no_comparison_yet(view: View) -> None:
    html = body(view, Arrangement(pins=(entry_of(view, "DSG"),)))
    assert "Compare pinned" not in html
    assert "Pin another to compare" in html


def test_a_fifth_pin_takes_the_place_of_the_first() -> None:
    four = Arrangement(pins=("a", "b", "c", "d"))
    assert four.pinned("e").pins == ("b", "c", "d", "e")
    assert four.pinned("b") == four
    assert four.unpinned("b").pins == ("a", "c", "d")


def test_the_pin_link_of_a_row_pins_that_row_whatever_its_name(view: View) -> None:
    html = body(view, Arrangement((PLCC,)))
    links = dict(re.findall(r'class="as-pin" href="\./boards([^"]*)" data-go="pin ([^"]*)"', html))
    assert len(links) == len(METRICS)
    for query, entry in links.items():
        found = BoardQuery.from_link(escaping.unescape(query)).arranged
        (pin,) = found.pins
        assert pin in view.entries
        assert escaping.escape(pin)[:20] == entry[:20]
        assert found.columns == (PLCC,)


def test_a_pin_outside_the_filter_is_named_and_has_no_row(view: View) -> None:
    pins = (entry_of(view, "DSG"), entry_of(view, "TIFA"))
    html = body(view, Arrangement(pins=pins), Filters("tifa, clip"))
    assert "DSG" not in ranking_of(html)
    assert 'aria-label="Remove DSG"' in html


# Pages.


def test_pages_hold_every_row_once_and_in_order(view: View) -> None:
    choice = asked(view, Arrangement(pins=(entry_of(view, "TIFA"),)))
    ranked = in_tiers(view.orders.ranked(choice.board.card, choice.slices()))
    layout = layout_of(choice, view)
    whole = window(ranked.cells, layout, 100)
    seen: list[str] = []
    for page in (1, 2, 3):
        part = window(
            ranked.cells, replace(layout, arranged=replace(layout.arranged, page=page)), 4
        )
        assert (part.page, part.pages, part.total) == (page, 3, 11)
        assert part.parts[0].label == "Pinned"
        seen += [cell.entry_id for one in part.parts[1:] for cell in one.cells]
    assert seen == [cell.entry_id for one in whole.parts[1:] for cell in one.cells]
    beyond = window(ranked.cells, replace(layout, arranged=Arrangement(page=99)), 5)
    assert beyond.page == 3


# Filters as chips.


@given(filters=FILTERS)
def test_a_filter_shows_a_part_and_undoing_any_chip_shows_no_less(
    view: View, filters: Filters
) -> None:
    everyone, shown = kept(view, Filters()), kept(view, filters)
    assert shown <= everyone
    for _, left in without(filters):
        if (
            left.terms or not filters.terms
        ):  # Of several terms any may fit: fewer terms, fewer rows.
            continue
        assert shown <= kept(view, left)
    if not filters.active:
        assert shown == everyone


@given(filters=FILTERS, data=st.data())
def test_undoing_all_chips_in_any_order_restores_all(
    view: View, filters: Filters, data: st.DataObject
) -> None:
    left = filters
    steps = 0
    while left.active:
        _, left = data.draw(st.sampled_from(without(left)))
        steps += 1
    assert steps == len(without(filters))
    assert left == Filters()
    assert kept(view, left) == kept(view, Filters())


@given(filters=FILTERS, order=st.randoms(use_true_random=False))
def test_the_order_of_search_terms_changes_nothing(
    view: View, filters: Filters, order: object
) -> None:
    terms = list(filters.terms)
    order.shuffle(terms)  # type: ignore[attr-defined]
    assert kept(view, replace(filters, search=", ".join(terms))) == kept(view, filters)


def test_each_active_filter_is_a_chip_that_leads_to_the_view_without_it(view: View) -> None:
    filters = Filters("clip, hps", "metric", True)
    html = body(view, Arrangement((PLCC,)), filters)
    assert "<b>2 of 12 metrics</b> shown" in html
    chips = re.findall(r'href="\./boards([^"]*)" data-go="filter [^"]*" aria-label="Remove ([^"]*)"', html)  # fmt: skip
    found = {label: BoardQuery.from_link(escaping.unescape(query)) for query, label in chips}
    assert {label: one.filters for label, one in found.items()} == {
        "“clip”": Filters("hps", "metric", True),
        "“hps”": Filters("clip", "metric", True),
        "run by Assay": Filters("clip, hps", "", True),
        "not trained on this benchmark": Filters("clip, hps", "metric"),
    }
    assert all(one.arranged.columns == (PLCC,) for one in found.values())


def test_without_a_filter_there_is_no_chip_and_all_are_shown(view: View) -> None:
    html = body(view, Arrangement())
    assert "as-chip-off" not in html
    assert "12 metrics" in html
