"""What papers print stands beside a ranking, marked as such, and never in it."""

from __future__ import annotations

import re

from benchmarks.registry import load_registry
from benchmarks.schema import Selector
from benchmarks.ts2.benchmark import CARD
from leaderboard.pages.boards.as_published import as_published, everything_published
from leaderboard.pages.boards.query import BoardQuery, resolve
from leaderboard.pages.boards.view import board_view
from leaderboard.pages.reading import view_of
from leaderboard.ranking.orders import Orders
from leaderboard.store.memory import memory_store

RANK = Selector(measure="rank", split="all", variant="paper")


def test_the_printed_figures_of_a_measure_come_best_first_with_their_source() -> None:
    html = as_published(CARD, RANK, None)
    assert "As published" in html
    assert "take part in no ranking" in html
    values = [float(v) for v in re.findall(r'data-label="Value"><b>([\d.]+)', html)]
    assert values == sorted(values, reverse=True)
    assert "0.77865394" in html  # of Table 2, as printed
    assert "Table 2" in html
    assert "arxiv.org/abs/2404.04251" in html


def test_a_slice_of_which_nothing_was_printed_has_no_such_section() -> None:
    assert as_published(CARD, RANK, "counting") == ""
    assert as_published(CARD, RANK.model_copy(update={"variant": "equation"}), None) == ""


def test_a_board_without_any_submission_shows_them_too_and_no_ranking() -> None:
    view = view_of(None, {"ts2": CARD}, Orders(memory_store()))
    html = board_view(resolve(BoardQuery("ts2"), view.boards), view)
    assert "No metric published yet" in html
    assert "gpt4v_tifa" in html
    assert "as-board" not in html
    assert "as-range" not in html


def test_all_figures_of_a_board_stand_in_one_table_a_measure_with_what_was_printed_on_hover() -> (
    None
):
    html = everything_published(CARD)
    assert html.count("<table") == 3  # rank, sep, delta
    assert '<th scope="col">Synth' in html
    assert 'title="printed 0.77865394 in T2IScoreScore, Table 2"' in html


def test_a_board_of_which_no_paper_prints_anything_says_nothing_of_it() -> None:
    assert everything_published(CARD.model_copy(update={"name": "demo_ts2"})) == ""


def test_a_figure_that_two_papers_print_is_shown_with_its_most_digits_and_both_on_hover() -> None:
    card = load_registry()["tifa160"].card
    html = everything_published(card)
    assert re.search(
        r'title="printed [^"]* in DSG, [^"]*; [^"]* in Gecko, Table 6">0\.\d{3}<', html
    )
