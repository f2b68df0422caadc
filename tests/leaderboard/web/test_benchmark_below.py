"""Below a ranking: each two metrics tested, values by skill, citation and programs."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.statistics.multiplicity import holm
from leaderboard.publication.reader import View
from leaderboard.ranking.slices import Ranked, in_tiers
from leaderboard.views.board_tables import Pair, pairs
from leaderboard.views.boards import BoardQuery, Choice, Filters, resolve
from leaderboard.web.benchmark_below import (
    Matrix,
    below_of,
    citation,
    matrix_of,
    p_stated,
    p_text,
    patterns,
    signed,
)
from tests.leaderboard.ranking.made_up_ranking import ranking_of
from tests.leaderboard.web import synthetic
from tests.leaderboard.web.parsed import Node, named, read
from tests.leaderboard.web.synthetic import SKILLS

SITE = "http://localhost/"


@pytest.fixture(scope="module")
def view() -> View:
    return synthetic.view()


def of(view: View, benchmark: str = "ratings", skill: str = "") -> tuple[Choice, Ranked]:
    choice = resolve(BoardQuery(benchmark, skill), view.boards)
    return choice, in_tiers(view.orders.ranked(choice.board.card, choice.slices()))


def page_of(view: View, filters: Filters | None = None, benchmark: str = "ratings") -> Node:
    query = BoardQuery(benchmark, filters=filters or Filters())
    page = read(below_of(resolve(query, view.boards), view, SITE))
    named(page)
    return page


def matrix(view: View, found: Ranked, choice: Choice) -> Matrix:
    made_of = matrix_of(found, pairs(found), view.entries, choice)
    assert made_of is not None
    return made_of


# Each two.


def test_every_pair_is_tested_once_and_corrected_over_all_of_them(view: View) -> None:
    _, found = of(view)
    every = pairs(found, most=None)
    assert len(every) == 45
    corrected = holm([pair.p_value for pair in every])
    np.testing.assert_allclose([pair.p_holm for pair in every], corrected, rtol=0, atol=1e-12)
    values = {c.entry_id: c.value or 0.0 for c in found.cells}
    for pair in every:
        assert pair.difference == pytest.approx(values[pair.a] - values[pair.b])


def test_a_difference_stands_above_the_diagonal_and_its_p_value_below(view: View) -> None:
    choice, found = of(view)
    rows = [row.all("td") for row in page_of(view).all("#pairs tbody tr")]
    assert {len(rows), *map(len, rows)} == {10}
    first = pairs(found)[0]
    mark = "*" if first.significant else ""
    assert rows[0][1].text == f"{signed(first.difference)}{mark}"
    assert rows[1][0].text == p_text(first.p_holm) + mark
    assert rows[0][0]["class"] == "is-self"
    assert "45 pairs" in " ".join(matrix(view, found, choice).legend)


def test_a_filter_leaves_every_p_value_of_the_matrix_as_it_is(view: View) -> None:
    whole, part = page_of(view), page_of(view, Filters("tifa,dsg,siglip"))
    names = part.one("#pairs").names
    assert sorted(names) == ["DSG", "SigLIP-2", "TIFA"] and "45 pairs" in part
    place = {name: i for i, name in enumerate(whole.one("#pairs").names)}
    cells = [
        {row.names[0]: row.texts("td") for row in page.all("#pairs tbody tr")}
        for page in (whole, part)
    ]
    for i, row in enumerate(names):
        for j, column in enumerate(names):
            if i != j:
                assert cells[1][row][j] == cells[0][row][place[column]]
    assert "3 pairs" in page_of(view, Filters("tifa,dsg,siglip", within=True)).one("#pairs")


@pytest.mark.parametrize(("n_clusters", "blocks"), [(60, False), (61, True)])
def test_signs_are_flipped_in_blocks_only_where_there_are_more_clusters_than_blocks(
    view: View, n_clusters: int, blocks: bool
) -> None:
    base = ranking_of([0.9, 0.5], 0.1)
    cells = tuple(c.model_copy(update={"n_clusters": n_clusters}) for c in base.cells)
    choice, _ = of(view)
    shown = matrix(view, Ranked(cells, base.ordering, base.draws), choice)
    assert ("blocks of prompt" in shown.legend[1]) is blocks
    assert f"60 {'blocks of ' if blocks else ''}prompt pairs" in shown.rows[0][1].hint


def test_a_difference_leads_to_the_comparison_of_its_metrics(view: View) -> None:
    choice, found = of(view, skill="counting")
    address = matrix(view, found, choice).rows[0][1].href
    start = "./compare?benchmark=ratings&skill=counting&measure=srcc~assay&a=made-up-0"
    assert address.startswith(start) and "&b=made-up-0" in address and " " not in address


@pytest.mark.slow
def test_only_the_first_thirty_are_shown_and_all_are_corrected_for() -> None:
    big = synthetic.view(36)
    choice, found = of(big)
    tested = int(np.isfinite(found.ordering.corrected).any(axis=1).sum())
    assert tested > 30 and len(pairs(found)) == 30 * 29 // 2
    words = " ".join(matrix(big, found, choice).legend)
    assert f"30 of {tested} metrics" in words and f"{tested * (tested - 1) // 2} pairs" in words


def test_fewer_than_two_tested_metrics_make_no_matrix(view: View) -> None:
    choice, found = of(view, "tiny")
    assert pairs(found) == () and matrix_of(found, (), view.entries, choice) is None
    assert not page_of(view, Filters("tifa", within=True)).all("#pairs")


def test_figures_of_the_matrix_are_short_keep_their_sign_and_say_how_they_were_found() -> None:
    shown = [signed(x) for x in (0.0451, -0.0451, 0.0, 0.00001)]
    assert shown == ["+0.045", "−0.045", "0.000", "0.000"]
    p_values = (1.0, 0.9999, 0.05, 0.0004, 0.0495, 0.04996, 0.0504)
    assert [p_text(p) for p in p_values] == [
        "1", "1", ".050", "<.001", ".0495", ".04996", ".0504"
    ]  # fmt: skip
    assert (p_stated(2e-5), p_stated(0.0497)) == ("= 2.0e-05", "= 0.0497")
    pair = Pair("a", "b", 0.1, 0.01, 0.02, 12, 4096, True)
    for one, word in ((pair, "4,096"), (pair._replace(exact=False, n_patterns=9999), "9,999"),
                      (pair._replace(exact=False, n_patterns=0), "bound")):  # fmt: skip
        assert word in patterns(one)


# By skill.


def test_every_skill_has_a_column_and_every_hole_a_dash(view: View) -> None:
    heat = page_of(view).one("#by-skill")
    heads = heat.texts("thead th")
    for title in ("All skills", *SKILLS.values()):
        assert any(head.startswith(title) for head in heads), title
    assert heat.texts("thead small") == ["not tested"]  # six clusters only
    holes = {cell.text for cell in heat.row("always-half").all("td")}
    assert len(holes) == 1 and "–" in holes.pop()
    assert "different variants" in heat and "225 tests" in heat
    best = heat.all("td.is-best")
    assert 6 <= len(best) < len(heat.all("td")) and all(one["title"] for one in best)


def test_a_single_metric_is_not_called_the_best(view: View) -> None:
    heat = page_of(view, Filters("tifa")).one("#by-skill")
    assert len(heat.all("tbody tr")) == 1 and not heat.all("td.is-best")
    assert not page_of(view, benchmark="graphs").all("#by-skill")


# Citation and programs.


def test_a_board_can_be_cited_with_revision_measure_date_and_address(view: View) -> None:
    choice, _ = of(view, skill="counting")
    plain, bibtex = citation(choice, view, SITE)
    card = choice.board.card
    for words in (card.title, card.revision, "Spearman ρ", "Counting", f"{view.built_at:%Y-%m-%d}",
                  f"{SITE}?tab=benchmark:ratings&skill=counting"):  # fmt: skip
        assert words in plain and words in bibtex, words
    assert bibtex.startswith("@misc{assay-ratings,") and bibtex.count("{") == bibtex.count("}")
    page = page_of(view)
    assert "@misc" in page.one("#cite pre").text and page.all("#cite button[data-copy]")
    assert citation(choice, view, "")[0].count("http") == card.citation.count("http")


def test_programs_are_shown_where_the_address_of_the_site_is_known(view: View) -> None:
    assert len(page_of(view).all("details.as-snippets pre")) == 3
    choice, _ = of(view)
    assert not read(below_of(choice, view)).all("details.as-snippets")
