"""What stands below a ranking: tests of pairs, skills, printed figures and what to cite."""

from __future__ import annotations

import re
from html import unescape

import numpy as np
import pytest

from benchmarks.errata import errata
from benchmarks.published import published
from benchmarks.registry import load_registry
from benchmarks.schema import Card, Selector
from benchmarks.ts2.protocol import CARD
from leaderboard.publication.reader import Revision, View, view_of
from leaderboard.ranking.orders import Orders
from leaderboard.ranking.slices import Ranked
from leaderboard.rendering import environment
from leaderboard.text import signed
from leaderboard.views.benchmark_board import all_printed
from leaderboard.views.board_tables import Pair, pairs
from leaderboard.views.boards import BoardQuery, Choice, Filters, resolve
from leaderboard.views.citation import NOWHERE, CitedAt, metric_board_citation
from leaderboard.web.benchmark_below import (
    as_published,
    below_of,
    everything_published,
    matrix_of,
    p_stated,
    p_text,
    patterns,
)
from leaderboard.web.benchmark_tab import board_html
from leaderboard.web.components import Values
from leaderboard.web.pages.docs_page import errata_view
from tests.kit import boards as synthetic
from tests.kit.boards import SKILLS
from tests.kit.html import Node, named, read
from tests.kit.store import memory_store
from tests.leaderboard.api.asking import asking
from tests.leaderboard.ranking.made_up_ranking import ranking_of

SITE = "http://localhost/"


def of(view: View, benchmark: str = "ratings", skill: str = "") -> tuple[Choice, Ranked]:
    choice = resolve(BoardQuery(benchmark, skill), view.boards)
    return choice, view.orders.ranked(choice.board.card, choice.slices())


def page_of(view: View, filters: Filters | None = None, benchmark: str = "ratings") -> Node:
    query = BoardQuery(benchmark, filters=filters or Filters())
    page = read(below_of(resolve(query, view.boards), view, CitedAt(site=SITE)))
    named(page)
    return page


def matrix(view: View, found: Ranked, choice: Choice) -> Values:
    made_of = matrix_of(found, pairs(found), view.entries, choice)
    assert made_of is not None
    return made_of


# Each two.


def test_a_difference_stands_above_the_diagonal_and_its_p_value_below(view: View) -> None:
    choice, found = of(view)
    page = page_of(view)
    assert page.one("[aria-label=All pairs of metrics]")["tabindex"] == "0"
    data = page.one("[aria-label=Download CSV of pairs]")["href"]
    assert data.startswith("./v1/boards/ratings/pairs?") and data.endswith("format=csv")
    rows = [row.all("td") for row in page.all("#pairs tbody tr")]
    assert {len(rows), *map(len, rows)} == {10}
    first = pairs(found)[0]
    mark = "*" if first.significant else ""
    assert rows[0][1].text == f"{signed(first.difference)}{mark}"
    assert rows[1][0].text == p_text(first.p_corrected) + mark
    (to,) = rows[0][1].links()
    assert to.startswith("./compare?benchmark=ratings&measure=srcc~paper&a=made-up-0")
    assert "45 pairs" in " ".join(matrix(view, found, choice)["legend"])
    choice, found = of(view, "tiny")  # Fewer than two could be tested.
    assert pairs(found) == () and matrix_of(found, (), view.entries, choice) is None


@pytest.mark.slow
def test_only_the_first_thirty_are_shown_and_all_are_corrected_for() -> None:
    big = synthetic.view(36)
    choice, found = of(big)
    tested = int(np.isfinite(found.ordering.corrected).any(axis=1).sum())
    assert tested > 30 and len(pairs(found)) == 30 * 29 // 2
    words = " ".join(matrix(big, found, choice)["legend"])
    assert f"30 of {tested} metrics" in words and f"{tested * (tested - 1) // 2} pairs" in words


@pytest.mark.parametrize(("n_clusters", "blocks"), [(60, False), (61, True)])
def test_signs_are_flipped_in_blocks_only_where_there_are_more_clusters_than_blocks(
    view: View, n_clusters: int, blocks: bool
) -> None:
    base = ranking_of([0.9, 0.5], 0.1)
    cells = tuple(c.model_copy(update={"n_clusters": n_clusters}) for c in base.cells)
    choice, _ = of(view)
    shown = matrix(view, Ranked(cells, base.ordering, base.draws), choice)
    assert ("blocks of prompt" in shown["legend"][1]) is blocks
    assert f"60 {'blocks of ' if blocks else ''}prompt pairs" in shown["rows"][0][1].hint


def test_figures_of_the_matrix_are_short_keep_their_sign_and_say_how_they_were_found() -> None:
    shown = [signed(x) for x in (0.0451, -0.0451, 0.0, 0.00001)]
    assert shown == ["+0.045", "−0.045", "0.000", "0.000"]
    p_values = (1.0, 0.9999, 0.05, 0.0004, 0.0495, 0.04996, 0.0504)
    assert [p_text(p) for p in p_values] == [
        "1", "1", ".050", "<.001", ".0495", ".04996", ".0504"
    ]  # fmt: skip
    assert (p_stated(2e-5), p_stated(0.0497)) == ("= 2.0e-05", "= 0.0497")
    pair = Pair("a", "b", 0.1, 0.02, 12, 4096, True)
    for one, word in ((pair, "4,096"), (pair._replace(exact=False, n_patterns=9999), "9,999")):
        assert word in patterns(one)


# By skill.


def test_every_skill_has_a_column_and_a_single_metric_is_not_called_the_best(view: View) -> None:
    heat = page_of(view).one("#by-skill")
    heads = heat.texts("thead th")
    for title in ("All skills", *SKILLS.values()):
        assert any(head.startswith(title) for head in heads), title
    assert heat.texts("thead small") == ["not tested"]  # six clusters only
    assert "–" in heat.row("always-half").text and "225 tests" in heat
    assert 6 <= len(heat.all("td.is-best")) < len(heat.all("td"))
    alone = page_of(view, Filters("tifa")).one("#by-skill")
    assert len(alone.all("tbody tr")) == 1 and not alone.all("td.is-best")
    assert not page_of(view, benchmark="graphs").all("#by-skill")


# Citation and programs.


def test_a_board_can_be_cited_and_read_by_programs_where_its_address_is_known(view: View) -> None:
    choice, _ = of(view, skill="counting")
    revision = Revision("c0ffee", "ab" * 32, view.built_at)
    cite = metric_board_citation(choice, CitedAt(revision, SITE))
    plain, bibtex = cite.plain(), cite.bibtex()
    card = choice.board.card
    for words in (card.title, card.revision, "Spearman ρ", "Counting", f"{view.built_at:%Y-%m-%d}",
                  "c0ffee", f"{SITE}?tab=benchmark:ratings&skill=counting"):  # fmt: skip
        assert words in plain and words in bibtex, words
    assert bibtex.startswith("@misc{assay-ratings,") and bibtex.count("{") == bibtex.count("}")
    page = page_of(view)
    assert page.all("#cite button[data-copy]") and len(page.all("details.as-snippets pre")) == 3
    assert metric_board_citation(choice, NOWHERE).plain().count("http") == card.citation.count(
        "http"
    )
    assert not read(below_of(choice, view)).all("details.as-snippets")


RANK = Selector(measure="rank", split="all", variant="paper")
PAPER = "https://arxiv.org/abs/2404.04251"


def figures_page(found: Values | None) -> Node:
    """The section of printed figures."""
    assert found is not None
    macros = environment().get_template("metrics/published.html").module
    return read(str(macros.published_section(found)))  # type: ignore[attr-defined]


def values_in(page: Node) -> list[float]:
    return [float(row.all("td")[0].text) for row in page.all("tbody tr")]


def empty_board(card: Card) -> Node:
    view = view_of(None, {card.name: card}, Orders(memory_store()))
    return read(board_html(resolve(BoardQuery(card.name), view.boards), view))


def test_printed_figures_come_best_first_as_printed_with_every_source() -> None:
    page = figures_page(as_published(CARD, RANK, None))
    assert "Table 2" in page and PAPER in page.links() and "0.77865394" in page
    assert values_in(page) == sorted(values_in(page), reverse=True)
    for skill, variant in (("counting", "paper"), (None, "equation")):  # nothing was printed
        assert as_published(CARD, RANK.model_copy(update={"variant": variant}), skill) is None
    assert len(figures_page(everything_published(CARD)).all("table")) == 3  # rank, sep, delta
    assert everything_published(CARD.model_copy(update={"name": "demo_ts2"})) is None
    # A figure that two papers print has its most digits.
    two = figures_page(everything_published(load_registry()["tifa160"].card))
    both = [one for one in two.nodes if re.search(r"in DSG, .*; .* in Gecko", one["title"])]
    assert both and all(re.fullmatch(r"0\.\d{3}", one.text) for one in both)


def test_the_sources_lead_to_what_is_known_to_be_wrong_in_them() -> None:
    (link,) = figures_page(everything_published(CARD)).all("a[href=./errata#ts2]")
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
    page = figures_page(as_published(CARD, RANK, None))
    (address,) = (one for one in page.links("./v1/") if one.endswith("format=json"))
    beside = api.table(address.removeprefix("."))["rows"]
    assert set(values_in(page)) <= {round(one["value"], 3) for one in beside}


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
