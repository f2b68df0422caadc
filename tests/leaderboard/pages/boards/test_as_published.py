"""What papers print stands beside a ranking, marked as such, and never in it."""

from __future__ import annotations

import re
from html import unescape

import pytest

from benchmarks.errata import errata
from benchmarks.published import published
from benchmarks.registry import load_registry
from benchmarks.rows import Row
from benchmarks.schema import Selector
from benchmarks.ts2.protocol import CARD
from leaderboard.pages.about.errata_page import errata_view
from leaderboard.pages.boards.as_published import (
    all_printed,
    as_published,
    everything_published,
)
from leaderboard.pages.boards.query import BoardQuery, resolve
from leaderboard.pages.boards.view import board_view
from leaderboard.pages.reading import view_of
from leaderboard.publication.snapshot import PATH, Published, build_snapshot, snapshot_bytes
from leaderboard.ranking.orders import Orders
from leaderboard.records import RunResult
from leaderboard.store.memory import memory_store
from tests.leaderboard.api.asking import asking
from tests.leaderboard.pages.synthetic import NOW, submission

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


def test_the_sources_lead_to_what_is_known_to_be_wrong_in_them() -> None:
    found = [one for one in errata() if one.paper == "ts2"]
    assert f'<a href="./errata#ts2">{len(found)} errata</a>' in everything_published(CARD)


def test_every_card_that_speaks_of_an_erratum_has_one_on_the_page_of_errata() -> None:
    page = errata_view(errata())
    speaking = [b.card for b in load_registry().values() if "Erratum" in b.card.description]
    assert len(speaking) >= 4
    for card in speaking:
        own = [one for one in errata() if one.paper.partition("_")[0] in card.name]
        assert own, card.name
        assert all(f'id="{one.id}"' in page for one in own)


def test_what_was_printed_is_a_table_of_its_own_that_says_so_in_every_row() -> None:
    api = asking(memory_store(), {"ts2": CARD})
    rows = api.table("/v1/boards/ts2/published")["rows"]
    assert len(rows) == len(all_printed(CARD)) > 50
    assert {row["kind"] for row in rows} == {"as published"}
    assert {row["url"] for row in rows} == {"https://arxiv.org/abs/2404.04251"}
    assert api.table("/v1/boards/ts2")["rows"] == []
    links = re.findall(r'href="(\./v1/[^"]+)"', everything_published(CARD))
    assert [one.rpartition("=")[2] for one in links] == ["csv", "parquet", "json"]
    assert all(one.startswith("./v1/boards/ts2/published?format=") for one in links)


def test_the_data_of_a_ranking_are_its_own_entries_and_the_printed_ones_those_beside_it() -> None:
    row = Row(
        benchmark="ts2", revision=CARD.revision, metric="mine", measure="rank", value=0.5,
        split="all", variant="paper", n_items=10, n_clusters=10,
    )  # fmt: skip
    own = submission(0, "mine", ("ts2",))
    run = RunResult(
        submission_id=own.submission_id, benchmark="ts2", revision=CARD.revision,
        rows=(row.to_json(),), resampling_seed=7, n_resamples=200, isolation=(), versions={},
        judged_at=NOW,
    )  # fmt: skip
    store = memory_store()
    built = build_snapshot([Published(own, run, None)], {"ts2": CARD}, NOW)
    store.public.commit({PATH: snapshot_bytes(built)}, parent=store.public.head(), message="made")
    api = asking(store, {"ts2": CARD})
    ranked = api.table("/v1/boards/ts2")["rows"]
    assert [(one["metric"], one["kind"]) for one in ranked] == [("mine", "metric")]
    on_page = as_published(CARD, RANK, None)
    linked = re.search(r'href="\.(/v1/[^"]+format=json)"', on_page)
    assert linked is not None
    beside = api.table(unescape(linked[1]))["rows"]
    values = [float(v) for v in re.findall(r'data-label="Value"><b>([\d.]+)', on_page)]
    assert [round(one["value"], 3) for one in beside] == values
    assert "mine" not in {one["metric"] for one in beside}


@pytest.mark.parametrize(
    ("name", "needed", "printed"),
    [
        ("croc_hum", "fetch croc_hum", ("68.7 %", "share of setups best")),
        ("gecko", "not public", ("Krippendorff", "by skill")),
        ("evalmuse", "fetch evalmuse", ("fga-blip2", "Element accuracy", "by skill")),
        ("genai_1600", "fetch genai_1600", ("vqascore",)),
    ],
)
def test_an_empty_board_says_what_fills_it_and_shows_all_that_was_printed(
    name: str, needed: str, printed: tuple[str, ...]
) -> None:
    card = load_registry()[name].card
    view = view_of(None, {name: card}, Orders(memory_store()))
    html = unescape(board_view(resolve(BoardQuery(name), view.boards), view))
    assert card.unfilled and card.unfilled in html
    assert needed in html and f"--benchmark {name}" in html
    shown = [cell for cell in published(name) if cell.model is None]
    assert all(cell.metric in html for cell in shown) and shown
    assert [words for words in printed if words.lower() not in html.lower()] == []
