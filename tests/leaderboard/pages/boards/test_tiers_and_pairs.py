"""Tiers, the pair matrix and the heatmap's bold figures: what they show, and what they rest on."""

from __future__ import annotations

import csv
import html as escaped
import io
import re

import numpy as np
import pytest

from benchmarks.statistics.multiplicity import holm
from benchmarks.statistics.sign_flips import flip_tests
from leaderboard.pages.boards.heatmap import heatmap
from leaderboard.pages.boards.legend import legend
from leaderboard.pages.boards.pair_matrix import (
    Pair,
    p_stated,
    p_text,
    pair_matrix,
    pairs,
    patterns,
    signed,
)
from leaderboard.pages.boards.query import BoardQuery, Choice, resolve
from leaderboard.pages.boards.table import board_table, percent
from leaderboard.pages.boards.view import board_view
from leaderboard.pages.reading import View, view_of
from leaderboard.pages.shown.csv_export import board_csv, pairs_csv
from leaderboard.pages.shown.marks import axis_for
from leaderboard.pages.shown.measures import info
from leaderboard.pages.shown.tiers import Basis, groups, in_tiers
from leaderboard.ranking.cells import Cell
from leaderboard.ranking.draws import Draws
from leaderboard.ranking.orders import Orders
from leaderboard.ranking.pairs import Pairs
from leaderboard.ranking.pairs import tests_of as made_tests
from leaderboard.ranking.slices import Ranked, Slice, ranked
from leaderboard.store.interface import Store
from leaderboard.store.memory import memory_store
from tests.leaderboard.pages.synthetic import METRICS, cards, fill, snapshot

CARD = cards()["ratings"]


@pytest.fixture(scope="module")
def view() -> View:
    return view_of(snapshot(), cards(), Orders(fill(memory_store())))


def of(view: View, query: BoardQuery) -> tuple[Choice, Ranked]:
    choice = resolve(query, view.boards)
    return choice, in_tiers(view.orders.ranked(choice.board.card, choice.slices()))


def cell(name: str, rank: int | None, tier: int | None, value: float = 0.5) -> Cell:
    return Cell(
        entry_id=name, measure="srcc", variant=None, split=None, facet=None, skill=None,
        value=value, ci_low=None, ci_high=None, n_items=9, n_clusters=9, n_missing=0, note="",
        rank=rank, rank_low=rank, rank_high=rank, tier=tier,
    )  # fmt: skip


def made(values: list[float], noise: float, blocks: int = 60, resamples: int = 50) -> Ranked:
    """A ranking of so many entries, whose differences have that noise over blocks."""
    rng = np.random.default_rng(5)
    shares = rng.normal(size=(len(values), blocks)) * noise
    shares += (np.array(values) / blocks - shares.mean(axis=1))[:, None]
    draws = np.array(values)[:, None] + 0.02 * rng.normal(size=(len(values), resamples))
    cells = tuple(
        cell(f"made-up-{i:04d}/{METRICS[i]}", None, None, value).model_copy(
            update={"variant": "paper"}
        )
        for i, value in enumerate(values)
    )
    return ranked(Slice(cells, Draws(draws, shares)), CARD).best_first(CARD)


# Tiers.


def test_rows_stand_below_the_label_of_their_tier_and_the_unranked_last(view: View) -> None:
    choice, found = of(view, BoardQuery("ratings"))
    html = board_view(choice, view).split("Metric against metric")[0]
    labels = re.findall(r'colspan="7"><span>(.*?)</span>', html)
    n_tiers = max(c.tier for c in found.cells if c.tier is not None)
    assert labels == [*(f"Tier {n + 1}" for n in range(n_tiers)), "Without a rank"]
    assert n_tiers > 1
    last = html.split("Without a rank")[1]
    assert "always-half" in last
    assert 'title="Rank' not in last


def test_the_legend_names_the_test_the_correction_and_how_many_pairs(view: View) -> None:
    html = board_view(resolve(BoardQuery("ratings"), view.boards), view)
    assert "paired permutation tests by prompt pair" in html
    assert "Holm's correction over the 45 pairs shown, 5 %" in html  # ten of twelve are ranked
    assert "200 resamples by prompt pair" in html
    assert "Tiers are stricter than rank ranges: they allow for the number of pairs." in html


def test_the_legend_says_for_how_many_pairs_the_p_value_is_a_bound() -> None:
    drawn = made([0.5, 0.49, 0.1], noise=0.01)
    shares = drawn.draws.contributions
    none = Pairs("1", (), flip_tests(shares[:0], 1))
    bounded = made_tests(["a", "b", "c"], shares, 1, none, most_drawn=0)
    assert Basis.of(drawn).n_bounded == 0
    one = Slice(drawn.cells, drawn.draws)
    basis = Basis.of(ranked(one, CARD, tests=bounded))
    assert basis.n_bounded > 0
    axis = axis_for(drawn.cells, None)
    told = legend(axis, drawn.cells, CARD, basis)
    assert f"For {basis.n_bounded} pair" in told
    assert "the p-value is an upper bound" in told
    assert "upper bound" not in legend(axis, drawn.cells, CARD, Basis.of(drawn))


def test_tiers_are_in_one_piece_even_where_rank_ranges_would_part_them() -> None:
    cells = (cell("a", 2, 2), cell("b", 1, 1), cell("c", 3, None), cell("d", 4, 2))
    found = groups(cells_in_tiers(cells))
    assert [(g.tier, [c.entry_id for c in g.cells]) for g in found] == [
        (1, ["b", "c"]),  # not tested, so it stays with its neighbour above
        (2, ["a", "d"]),
    ]


def cells_in_tiers(cells: tuple[Cell, ...]) -> tuple[Cell, ...]:
    size = len(cells)
    base = made([0.5 - 0.01 * i for i in range(size)], 0.1)
    return in_tiers(Ranked(cells, base.ordering, base.draws)).cells


def test_reordering_by_tier_takes_tests_and_draws_along() -> None:
    before = made([0.9, 0.5, 0.1], 0.001)
    after = in_tiers(before)
    assert [c.tier for c in after.cells] == [1, 2, 3]
    for ranking in (before, after):
        tests = ranking.ordering.tests
        assert tests is not None
        for i, one in enumerate(ranking.cells):
            for j, other in enumerate(ranking.cells):
                assert tests.difference[i, j] == pytest.approx(
                    (one.value or 0) - (other.value or 0)
                )


def test_without_contributions_there_are_no_tiers_and_the_page_says_why(view: View) -> None:
    store = fill(memory_store())
    drop(store, "influence")
    bare = view_of(snapshot(), cards(), Orders(store))
    html = board_view(resolve(BoardQuery("ratings"), bare.boards), bare)
    assert "<b>No tiers:</b>" in html
    assert "as-tier" not in html
    assert "Metric against metric" not in html
    board = bare.boards["ratings"]
    by_skill = heatmap(board, board.card.headline, bare)
    assert "nothing could be tested here, so bold where the rank range" in by_skill
    assert "as-best" in by_skill


def drop(store: Store, name: str) -> None:
    """Take the files of one sort out of the store."""
    for repository in (store.public, store.private):
        there = [path for path in repository.list("results") if f".{name}." in path]
        if there:
            repository.commit(dict.fromkeys(there), parent=repository.head(), message="drop")


def test_an_entry_without_contributions_is_ranked_untested_and_counted(view: View) -> None:
    base = made([0.9, 0.5, 0.1], 0.001)
    shares = base.draws.contributions.copy()
    shares[1] = np.nan
    part = ranked(Slice(base.cells, Draws(base.draws.resamples, shares)), CARD).best_first(CARD)
    html = board_table(
        in_tiers(part).cells, view.entries, CARD, info(CARD, "srcc"), "", basis=Basis.of(part)
    )
    assert "not tested, so without a tier" in html
    assert "1 metric has no stored contributions and was not tested" in html
    assert "over the 1 pair shown" in html


def test_one_ranked_metric_needs_no_test(view: View) -> None:
    alone = made([0.5], 0.1)
    html = board_table(
        alone.cells, view.entries, CARD, info(CARD, "srcc"), "", basis=Basis.of(alone)
    )
    assert "a single metric is ranked" in html


@pytest.mark.parametrize(
    ("share", "said"),
    [(0.0, "0 %"), (0.001, "&lt;1 %"), (0.5, "50 %"), (0.999, "&gt;99 %"), (1.0, "100 %")],
)
def test_a_chance_is_never_rounded_to_none_or_all(share: float, said: str) -> None:
    assert percent(share) == said


def test_how_an_interval_was_made_is_said_on_hover(view: View) -> None:
    both = [
        cell("made-up-0000/CLIPScore", 1, 1).model_copy(
            update={"ci_low": 0.1, "ci_high": 0.9, "ci_method": method}
        )
        for method in ("bca", "percentile", None)
    ]
    html = board_table(both, view.entries, CARD, info(CARD, "srcc"), "")
    for said in ("BCa (bias-corrected", "interval, percentile", "interval, method not stored"):
        assert said in html


# Metric against metric.


def test_every_pair_is_tested_once_and_corrected_over_all_of_them(view: View) -> None:
    _, found = of(view, BoardQuery("ratings"))
    tests = found.ordering.tests
    assert tests is not None
    every = pairs(found, most=None)
    assert len(every) == 45
    corrected = holm([pair.p_value for pair in every])
    np.testing.assert_allclose([pair.p_holm for pair in every], corrected, rtol=0, atol=1e-12)
    values = {c.entry_id: c.value for c in found.cells}
    for pair in every:
        assert pair.difference == pytest.approx((values[pair.a] or 0) - (values[pair.b] or 0))


def test_a_pair_is_above_the_diagonal_with_its_difference_and_below_with_its_p_value(
    view: View,
) -> None:
    choice, found = of(view, BoardQuery("ratings"))
    every = pairs(found)
    html = pair_matrix(found, every, view.entries, choice)
    rows = html.split("<tr>")[2:]
    assert len(rows) == 10
    cells = [re.findall(r"<td.*?</td>", row) for row in rows]
    assert all(len(row) == 10 for row in cells)
    first = every[0]
    mark = "*" if first.significant else ""
    assert f">{signed(first.difference)}{mark}</a>" in cells[0][1]
    assert f">{p_text(first.p_holm)}{mark}</td>" in cells[1][0]
    assert "the same metric" in cells[0][0]
    assert "Holm's over 45 pairs" in html
    assert "that page corrects over the whole board, without filters" in html


@pytest.mark.parametrize(
    ("n_clusters", "flipped", "differ"),
    [(60, "differences are flipped.", "60 prompt pairs differ"),
     (61, "differences are flipped in blocks of prompt pairs.", "60 blocks of prompt pairs differ")],
)  # fmt: skip
def test_signs_are_flipped_in_blocks_only_where_there_are_more_clusters_than_blocks(
    view: View, n_clusters: int, flipped: str, differ: str
) -> None:
    base = made([0.9, 0.5], 0.1)
    cells = tuple(c.model_copy(update={"n_clusters": n_clusters}) for c in base.cells)
    found = Ranked(cells, base.ordering, base.draws)
    choice = resolve(BoardQuery("ratings"), view.boards)
    html = pair_matrix(found, pairs(found), view.entries, choice)
    assert flipped in html
    assert differ in html


def test_a_difference_leads_to_the_comparison_of_its_metrics(view: View) -> None:
    choice, found = of(view, BoardQuery("ratings", "counting"))
    html = pair_matrix(found, pairs(found), view.entries, choice)
    address = escaped.unescape(re.findall(r'href="(\./compare[^"]*)"', html)[0])
    assert address.startswith(
        "./compare?benchmark=ratings&measure=srcc~assay&skill=counting&a=made-up-0"
    )
    assert "&b=made-up-0" in address
    assert " " not in address


@pytest.mark.slow
def test_only_the_first_thirty_are_drawn_and_all_are_corrected_for(view: View) -> None:
    big = view_of(snapshot(36), cards(), Orders(fill(memory_store(), 36)))
    choice, found = of(big, BoardQuery("ratings"))
    drawn = pairs(found)
    html = pair_matrix(found, drawn, big.entries, choice)
    tested = int(np.isfinite(found.ordering.corrected).any(axis=1).sum())
    assert tested > 30
    assert len(drawn) == 30 * 29 // 2
    assert f"The first 30 of {tested} metrics" in html
    assert f"Holm's over {tested * (tested - 1) // 2} pairs" in html


def test_fewer_than_two_tested_metrics_make_no_matrix(view: View) -> None:
    choice, found = of(view, BoardQuery("tiny"))
    assert pairs(found) == ()
    assert pair_matrix(found, (), view.entries, choice) == ""


def test_how_a_p_value_was_found_is_said() -> None:
    pair = Pair("a", "b", 0.1, 0.01, 0.02, 12, 4096, True)
    assert patterns(pair) == "exact (all 4,096 patterns)"
    assert patterns(pair._replace(exact=False, n_patterns=9999)) == "9,999 patterns drawn"
    assert patterns(pair._replace(exact=False, n_patterns=0)) == "p is an upper bound"


def test_figures_of_the_matrix_are_short_and_keep_their_sign() -> None:
    assert [signed(x) for x in (0.0451, -0.0451, 0.0, 0.00001)] == [
        "+0.045", "−0.045", "0.000", "0.000",
    ]  # fmt: skip
    assert [p_text(p) for p in (1.0, 0.9999, 0.05, 0.0004)] == ["1", "1", ".050", "&lt;.001"]
    assert p_stated(2e-5) == "= 2.0e-05"
    assert [p_text(p) for p in (0.0495, 0.04996, 0.0504)] == [".0495", ".04996", ".0504"]
    assert p_stated(0.0497) == "= 0.0497"


# CSV.


def test_the_csv_says_how_its_figures_were_made(view: View) -> None:
    choice, found = of(view, BoardQuery("ratings"))
    entry = view.entries[found.cells[0].entry_id]
    rows = list(csv.DictReader(io.StringIO(board_csv(found.cells, view.entries, choice.board))))
    first, stated = rows[0], entry.provenance["ratings"]
    assert float(first["p_best"]) == found.cells[0].p_best
    assert first["tier_holm_5_percent"] == "1"
    assert (int(first["seed"]), int(first["n_resamples"])) == (stated.seed, stated.n_resamples)
    assert {"plan", "versions", "ci_method"} <= first.keys()


def test_entries_older_than_the_statements_have_empty_fields(view: View) -> None:
    choice, found = of(view, BoardQuery("ratings"))
    older = {k: e.model_copy(update={"provenance": {}}) for k, e in view.entries.items()}
    rows = list(csv.DictReader(io.StringIO(board_csv(found.cells, older, choice.board))))
    assert {row["seed"] for row in rows} == {""}


def test_the_pairs_come_as_a_long_table_of_their_own(view: View) -> None:
    _, found = of(view, BoardQuery("ratings"))
    every = pairs(found)
    rows = list(csv.DictReader(io.StringIO(pairs_csv(every, view.entries))))
    assert len(rows) == len(every)
    for row, pair in zip(rows, every, strict=True):
        assert float(row["p_holm"]) == pair.p_holm
        assert float(row["difference"]) == pair.difference
        assert row["exact"] in {"true", "false"}
        assert row["entry_a"] == pair.a


def test_a_formula_for_a_name_is_harmless_among_the_pairs(view: View) -> None:
    entry = next(iter(view.entries.values()))
    bad = entry.model_copy(update={"metric": "=HYPERLINK('x')"})
    pair = Pair(entry.entry_id, entry.entry_id, 0.1, 0.01, 0.02, 12, 0, False)
    assert "'=HYPERLINK" in pairs_csv([pair], {entry.entry_id: bad})
