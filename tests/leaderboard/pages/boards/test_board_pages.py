"""The boards: what a ranking shows, how a link finds it, what a spreadsheet gets."""

from __future__ import annotations

import csv
import io
import re
from datetime import timedelta
from itertools import pairwise
from urllib.parse import parse_qsl

import pytest

from benchmarks.errors import PlatformError
from benchmarks.schema import Selector
from leaderboard.ledger.ledger import Ledger
from leaderboard.pages.boards.heatmap import heatmap
from leaderboard.pages.boards.query import BoardQuery, resolve
from leaderboard.pages.boards.table import board_table
from leaderboard.pages.boards.view import board_view, skills_view
from leaderboard.pages.overview.overview_page import overview
from leaderboard.pages.overview.standings import leader_cards, matrix, standings
from leaderboard.pages.reading import BoardIndex, Reader, View, view_of
from leaderboard.pages.shown.csv_export import board_csv, harmless
from leaderboard.pages.shown.marks import axis_for, ticks, whisker
from leaderboard.pages.shown.markup import clean, number, text
from leaderboard.pages.shown.measures import info, nearest, token
from leaderboard.publication.snapshot import PATH, Board, snapshot_bytes
from leaderboard.ranking.cells import Cell
from leaderboard.ranking.orders import Orders
from leaderboard.records import Event
from leaderboard.states import State
from leaderboard.store.memory import memory_store
from tests.leaderboard.pages.synthetic import NASTY, NOW, cards, fill, snapshot


@pytest.fixture(scope="module")
def view() -> View:
    return view_of(snapshot(), cards(), Orders(fill(memory_store())))


def shown(view: View, benchmark: str, skill: str = "", measure: str = "") -> str:
    return board_view(resolve(BoardQuery(benchmark, skill, measure), view.boards), view)


def metrics_in(html: str) -> list[str]:
    return re.findall(r'class="as-name"[^>]*><bdi>(.*?)</bdi>', html)


def cell(value: float | None, low: int | None = None, high: int | None = None) -> Cell:
    return Cell(
        entry_id="e", measure="srcc", variant=None, split=None, facet=None, skill=None, value=value,
        ci_low=None, ci_high=None, n_items=9, n_clusters=9, n_missing=0, note="", rank=low,
        rank_low=low, rank_high=high,
    )  # fmt: skip


# What strangers wrote.


def test_a_hostile_name_is_text_on_every_page(view: View) -> None:
    html = shown(view, "ratings") + overview(view, NOW)
    assert "<img" not in html
    assert "&lt;img src=x onerror=alert(1)&gt;&#x27;&quot;$&#123;alert(2)" in html
    assert "\u202e" not in html
    assert "\x1b" not in html
    assert "{{" not in html
    assert "${" not in html


def test_cleaning_keeps_letters_of_every_language_and_drops_what_cannot_be_seen() -> None:
    assert clean("ρ 指标 é\u202e\u2066\x00\x1b\ufeff") == "ρ 指标 é"
    assert clean("a\r\nb\tc") == "a b c"
    assert clean("a\r\nb\tc", lines=True) == "a\nb\tc"
    assert text("x" * 100, limit=10) == "xxxxxxxxx…"


def test_figures_have_a_true_minus_and_no_negative_zero() -> None:
    assert number(-0.5) == "−0.500"
    assert number(-0.0001) == "0.000"
    assert number(None) == "—"
    assert number(float("nan")) == "—"


# The ranking.


def test_a_board_is_ordered_by_rank_range_and_undefined_values_come_last(view: View) -> None:
    names = metrics_in(shown(view, "ratings").split("Metric against metric")[0])
    assert names[0] == "CLIPScore"
    assert names[-1] == "always-half"
    assert len(names) == 12


def test_a_board_says_what_must_be_known_before_trusting_a_value(view: View) -> None:
    html = shown(view, "ratings")
    assert "Ratings on this board are simulated" in html
    assert "scores as submitted, not re-run" in html
    assert "not isolated: bundled code" in html
    assert "trained on this benchmark" in html
    assert "12 missing" in html
    assert "no correlation is defined" in html
    assert "simulated" not in shown(view, "graphs")


def test_too_few_items_are_shown_without_an_order_and_the_better_value_first(view: View) -> None:
    html = shown(view, "tiny")
    assert "Too few items to order." in html
    assert not re.search(r'class="as-range"[^>]*>\d', html)
    assert metrics_in(html)[-1] == "CLIPScore"  # the largest error, where lower is better
    assert "lower is better" in html


def test_an_empty_board_says_so_and_how_to_submit(view: View) -> None:
    html = shown(view, "unused")
    assert "No metric published yet" in html
    assert './submit"' in html
    assert "<table" not in html


def test_headers_have_a_scope_and_drawings_a_name(view: View) -> None:
    html = shown(view, "ratings") + skills_view(resolve(BoardQuery("ratings"), view.boards), view)
    assert all('scope="' in th for th in re.findall(r"<th[ >][^>]*", html))
    assert all("aria-" in svg for svg in re.findall(r"<svg[^>]*", html))


def test_an_axis_holds_all_values_and_chance() -> None:
    axis = axis_for([cell(0.4), cell(-0.2)], chance=0.5)
    assert axis.low < -0.2
    assert axis.high > 0.5
    assert 0 < axis.at(-0.2) < axis.at(0.5) < 100
    assert ticks(-0.2, 0.5) == (-0.2, 0.0, 0.2, 0.4)
    assert 'aria-label="no value"' in whisker(cell(None), axis)


def test_an_axis_of_equal_values_or_of_none_is_still_an_axis() -> None:
    assert axis_for([cell(0.3)], None).at(0.3) == pytest.approx(50)
    assert axis_for([], None).ticks


def test_a_thousand_metrics_are_built_in_linear_time(view: View) -> None:
    board = view.boards["ratings"]
    entry = next(iter(view.entries.values()))
    many = [cell(0.5, 1, 1000).model_copy(update={"entry_id": entry.entry_id})] * 1000
    html = board_table(many, view.entries, board.card, info(board.card, "srcc"), "")
    assert html.count('<tr role="row"') == 1001
    assert len(html) < 1_500_000


# Links and choosers.


def test_a_link_restores_the_state_it_was_made_from(view: View) -> None:
    for name, board in view.boards.items():
        for skill in (None, *board.skills()):
            for selector in board.selectors(skill):
                asked = BoardQuery(name, skill or "", token(selector))
                again = BoardQuery.from_params(dict(parse_qsl(asked.to_query()[1:])))
                choice = resolve(again, view.boards)
                assert (choice.skill, choice.selector, choice.remarks) == (skill, selector, ())
                assert choice.query == asked
                assert BoardQuery.from_link(asked.to_query()) == asked


def test_without_a_link_the_first_board_opens_at_its_headline(view: View) -> None:
    choice = resolve(BoardQuery(), view.boards)
    assert choice.board.card.name == "ratings"
    assert choice.selector == choice.board.card.headline


def test_a_measure_the_skill_does_not_have_is_replaced_visibly(view: View) -> None:
    choice = resolve(BoardQuery("ratings", "counting", "srcc~paper"), view.boards)
    assert choice.selector == Selector(measure="srcc", variant="assay")
    assert "is not reported for Counting" in choice.remarks[0]
    choice = resolve(BoardQuery("ratings", "counting", "plcc~paper"), view.boards)
    assert choice.selector is not None
    assert choice.selector.measure == "srcc"


def test_the_bare_name_of_a_measure_is_enough_in_a_link(view: View) -> None:
    choice = resolve(BoardQuery("ratings", "counting", "accuracy"), view.boards)
    assert choice.selector == Selector(measure="accuracy", variant="assay")
    assert choice.remarks == ()


@pytest.mark.parametrize(
    "query",
    [
        BoardQuery(NASTY),
        BoardQuery("ratings", NASTY),
        BoardQuery("ratings", "", NASTY),
        BoardQuery("graphs", "counting"),
    ],
)
def test_what_a_link_asks_for_in_vain_is_said_and_harmless(view: View, query: BoardQuery) -> None:
    choice = resolve(query, view.boards)
    assert len(choice.remarks) == 1
    assert "<img" not in board_view(choice, view)


def test_an_installation_without_benchmarks_is_an_error_of_ours() -> None:
    with pytest.raises(PlatformError, match="no benchmarks"):
        resolve(BoardQuery(), {})


def test_the_nearest_measure_agrees_in_name_before_anything_else() -> None:
    card = cards()["graphs"]
    wanted = Selector(measure="delta", variant="equation", split="nat")
    available = [
        Selector(measure="rank", variant="equation", split="nat"),
        Selector(measure="delta", variant="paper", split="all"),
    ]
    assert nearest(wanted, available, card).measure == "delta"


# By skill.


def test_the_heatmap_has_a_column_for_every_skill_and_a_dash_for_every_hole(view: View) -> None:
    board = view.boards["ratings"]
    html = heatmap(board, board.card.headline, view)
    for title in ("All skills", *board.card.skills.values()):
        assert f"<span>{title}</span>" in html
    last = html.split("always-half")[-1]
    assert last.count("—</td>") == 6
    assert "different variants" in html


def test_a_board_without_skills_has_no_heatmap(view: View) -> None:
    board = view.boards["graphs"]
    assert heatmap(board, board.card.headline, view) == ""


# All boards together.


def test_the_matrix_shows_a_dash_where_a_metric_was_not_run(view: View) -> None:
    html = matrix(view)
    row = next(r for r in html.split("<tr>") if "VQAScore" in r)
    assert row.count("not run") == 2
    assert "1 of 3 boards" in row
    assert "0.000" not in row


def test_metrics_on_the_same_boards_stand_together_best_mean_place_first(view: View) -> None:
    rows = [row for row in standings(view) if row.relative is not None]
    groups = [frozenset(row.cells) for row in rows]
    changes = sum(one != other for one, other in pairwise(groups))
    assert changes == len(set(groups)) - 1
    for one, other in pairwise(rows):
        if one.cells.keys() == other.cells.keys():
            assert (one.relative or 0) <= (other.relative or 0)
    assert rows[0].entry.metric == "CLIPScore"


def test_metrics_without_any_rank_come_last(view: View) -> None:
    unranked = [row.relative is None for row in standings(view)]
    assert unranked == sorted(unranked)
    assert any(unranked)


def test_leader_cards_flag_simulated_ratings_and_name_no_leader_without_an_order(
    view: View,
) -> None:
    by_board = leader_cards(view).split("<article")[1:]
    assert len(by_board) == 3
    assert "simulated ratings" in by_board[0]
    assert "may be first as well" in by_board[0]
    assert "Too few prompt pairs to order metrics (5; at least 8 needed)." in by_board[2]


def test_benchmarks_without_a_metric_are_named_in_one_line(view: View) -> None:
    assert 'No metric published yet on <a href="./boards?benchmark=unused">Unused</a>' in (
        leader_cards(view)
    )


def graphs_with(view: View, *lows: float | None, template: bool = False) -> str:
    """The card of a board whose metrics have these lower ends, in the order of their ranks."""
    names = list(view.entries)[: len(lows)]
    cells = tuple(
        cell(0.3 - 0.01 * place, place, 1).model_copy(
            update={"entry_id": name, "measure": "rank", "variant": "paper", "split": "all",
                    "rank": place, "ci_low": low, "ci_high": None if low is None else 0.5}
        )
        for place, (name, low) in enumerate(zip(names, lows, strict=True), 1)
    )  # fmt: skip
    kind = "plain" if template else ""
    entries = {name: view.entries[name].model_copy(update={"template": kind}) for name in names}
    board = BoardIndex(Board(card=view.boards["graphs"].card, cells=cells))
    return leader_cards(View(entries, {"graphs": board}, view.orders))


@pytest.mark.parametrize("low", [-0.1, 0.0, None])
def test_nobody_leads_a_board_on_which_nobody_beats_chance(view: View, low: float | None) -> None:
    assert "significantly above chance" not in leader_cards(view)
    card = graphs_with(view, low, low)
    assert "No metric is significantly above chance." in card
    assert 'href="./metric' not in card


def test_the_first_that_beats_chance_leads(view: View) -> None:
    card = graphs_with(view, -0.1, 0.1, 0.05)
    first, second, third = (view.entries[name].entry_id for name in list(view.entries)[:3])
    assert f"id={second}" in card and f"id={first}" not in card and f"id={third}" not in card


def test_a_template_leads_no_board(view: View) -> None:
    card = graphs_with(view, 0.1, template=True)
    assert "No metric but an unchanged template is significantly above chance." in card
    assert 'href="./metric' not in card


def test_an_empty_store_has_pages_too() -> None:
    nothing = view_of(None, cards(), Orders(memory_store()))
    assert "No metric has been published yet" in overview(nothing, NOW)
    assert "No metric published yet" in shown(nothing, "ratings")


# CSV.


def test_the_csv_holds_what_is_on_screen_in_the_same_order(view: View) -> None:
    choice = resolve(BoardQuery("ratings"), view.boards)
    assert choice.selector is not None
    cells = choice.board.cells(choice.selector, None)
    rows = list(csv.DictReader(io.StringIO(board_csv(cells, view.entries, choice.board))))
    assert rows[0]["metric"] == "CLIPScore"
    assert [float(row["value"]) for row in rows if row["value"]] == [
        c.value for c in cells if c.value is not None
    ]
    assert rows[-1]["value"] == ""
    assert rows[0]["pairs_per_s"]


UNSEEN = ["\u200b=", "\x00=", "\x00\u202e =", "\ufeff+", "\u200b\t@"]
"""Starts of a formula behind characters that are dropped."""


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "  =", "＝", *UNSEEN])
def test_text_that_a_spreadsheet_would_run_is_made_harmless(start: str) -> None:
    made = harmless(f"{start}HYPERLINK('x')")
    assert isinstance(made, str)
    assert made.startswith("'")


@pytest.mark.parametrize("value", [-0.5, "-0.5", "+3", "1e-5", "plain", None, 7])
def test_numbers_and_plain_text_are_left_alone(value: object) -> None:
    assert harmless(value) == value


# Reading.


def test_the_snapshot_is_parsed_again_only_when_it_changed() -> None:
    store = fill(memory_store())
    reader = Reader(store, cards())
    first = reader.view()
    assert reader.view() is first
    Ledger(store).append(
        "made-up-0000", [Event(at=NOW + timedelta(minutes=1), state=State.CLAIMED, by="worker-1")]
    )
    assert reader.view() is first
    assert reader.statuses()[-1].state is State.CLAIMED
    changed = snapshot_bytes(snapshot(3))
    store.public.commit({PATH: changed}, parent=store.public.head(), message="publish")
    assert len(reader.view().entries) == 3
