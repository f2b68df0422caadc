"""What papers print stands beside a ranking, marked as such, and never in it."""

from __future__ import annotations

import re
from html import unescape

import pytest

from benchmarks.errata import errata
from benchmarks.published import published
from benchmarks.registry import load_registry
from benchmarks.rows import Row
from benchmarks.schema import Card, Selector
from benchmarks.ts2.protocol import CARD
from leaderboard.publication.reader import view_of
from leaderboard.publication.results import Published
from leaderboard.ranking.orders import Orders
from leaderboard.records import RunResult
from leaderboard.rendering import environment
from leaderboard.store.memory import memory_store
from leaderboard.views.benchmark_board import all_printed
from leaderboard.views.boards import BoardQuery, resolve
from leaderboard.web.benchmark_below import PublishedFigures, as_published, everything_published
from leaderboard.web.benchmark_tab import board_html
from leaderboard.web.pages.docs_page import errata_view
from tests.leaderboard.api.asking import asking
from tests.leaderboard.web.parsed import Node, read
from tests.leaderboard.web.synthetic import NOW, publish, submission

RANK = Selector(measure="rank", split="all", variant="paper")
PAPER = "https://arxiv.org/abs/2404.04251"


def page_of(found: PublishedFigures | None) -> Node:
    """The section of printed figures."""
    assert found is not None
    macros = environment().get_template("metrics/published.html").module
    return read(str(macros.published_section(found)))  # type: ignore[attr-defined]


def values_in(page: Node) -> list[float]:
    return [float(row.all("td")[0].text) for row in page.all("tbody tr")]


def empty_board(card: Card) -> Node:
    view = view_of(None, {card.name: card}, Orders(memory_store()))
    return read(board_html(resolve(BoardQuery(card.name), view.boards), view))


def test_the_printed_figures_of_a_measure_come_best_first_with_their_source() -> None:
    page = page_of(as_published(CARD, RANK, None))
    assert "As published" in page and "Table 2" in page and PAPER in page.links()
    assert values_in(page) == sorted(values_in(page), reverse=True)
    assert "0.77865394" in page  # as printed
    for skill, variant in (("counting", "paper"), (None, "equation")):  # nothing was printed
        assert as_published(CARD, RANK.model_copy(update={"variant": variant}), skill) is None


def test_all_figures_of_a_board_stand_in_one_table_a_measure_with_what_was_printed_on_hover() -> (
    None
):
    page = page_of(everything_published(CARD))
    assert len(page.all("table")) == 3  # rank, sep, delta
    assert "Synth" in " ".join(page.texts("th"))
    assert page.all("[title=printed 0.77865394 in T2IScoreScore, Table 2]")
    assert everything_published(CARD.model_copy(update={"name": "demo_ts2"})) is None


def test_a_figure_that_two_papers_print_has_its_most_digits_and_both_on_hover() -> None:
    page = page_of(everything_published(load_registry()["tifa160"].card))
    both = [one for one in page.nodes if re.search(r"in DSG, .*; .* in Gecko", one["title"])]
    assert both and all(re.fullmatch(r"0\.\d{3}", one.text) for one in both)


def test_the_sources_lead_to_what_is_known_to_be_wrong_in_them() -> None:
    (link,) = page_of(everything_published(CARD)).all("a[href=./errata#ts2]")
    assert link.text == f"{sum(one.paper == 'ts2' for one in errata())} errata"
    page = read(errata_view(errata()))
    speaking = [b.card for b in load_registry().values() if "Erratum" in b.card.description]
    assert len(speaking) >= 4
    for card in speaking:
        own = [one.id for one in errata() if one.paper.partition("_")[0] in card.name]
        assert own and all(page.all(f"#{ident}") for ident in own), card.name


def test_what_was_printed_is_a_table_of_its_own_that_says_so_in_every_row() -> None:
    api = asking(memory_store(), {"ts2": CARD})
    rows = api.table("/v1/boards/ts2/published")["rows"]
    assert len(rows) == len(all_printed(CARD)) > 50
    assert {(row["kind"], row["url"]) for row in rows} == {("as published", PAPER)}
    assert api.table("/v1/boards/ts2")["rows"] == []
    assert page_of(everything_published(CARD)).links("./v1/") == [
        f"./v1/boards/ts2/published?format={kind}" for kind in ("csv", "parquet", "json")
    ]


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
    api = asking(publish(memory_store(), [Published(own, run, None)], {"ts2": CARD}), {"ts2": CARD})
    ranked = api.table("/v1/boards/ts2")["rows"]
    assert [(one["metric"], one["kind"]) for one in ranked] == [("mine", "metric")]
    page = page_of(as_published(CARD, RANK, None))
    (address,) = (one for one in page.links("./v1/") if one.endswith("format=json"))
    beside = api.table(address.removeprefix("."))["rows"]
    assert [round(one["value"], 3) for one in beside] == values_in(page)
    assert "mine" not in {one["metric"] for one in beside}


@pytest.mark.parametrize(
    ("name", "needed", "printed"),
    [
        ("ts2", "", ("gpt4v_tifa",)),
        ("croc_hum", "fetch croc_hum", ("68.7%", "share of setups best")),
        ("gecko", "not public", ("Krippendorff", "by skill")),
        ("evalmuse", "fetch evalmuse", ("fga-blip2", "Element accuracy", "by skill")),
        ("genai_1600", "fetch genai_1600", ("vqascore",)),
    ],
)
def test_an_empty_board_says_what_fills_it_and_shows_all_that_was_printed_and_no_ranking(
    name: str, needed: str, printed: tuple[str, ...]
) -> None:
    card = load_registry()[name].card
    page = empty_board(card)
    assert unescape(card.unfilled) in page and needed in page and f"--benchmark {name}" in page
    assert not page.all(".as-board") and not page.all(".as-rk")
    shown = {cell.metric for cell in published(name) if cell.model is None}
    assert shown and all(metric in page for metric in shown)
    assert [words for words in printed if words.lower() not in page.told.lower()] == []
