"""The ranking of a board: values, rank ranges, tiers and what they rest on, and each two tested."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable

import numpy as np
import pytest

from benchmarks.statistics.multiplicity import holm
from benchmarks.statistics.sign_flips import flip_tests
from leaderboard.pages.boards.heatmap import heatmap
from leaderboard.pages.boards.legend import legend
from leaderboard.pages.boards.pair_matrix import p_stated, p_text, pair_matrix, patterns, signed
from leaderboard.pages.boards.table import board_table, percent
from leaderboard.pages.boards.view import board_view, skills_view
from leaderboard.pages.shown.marks import axis_for
from leaderboard.publication.measure_names import info
from leaderboard.publication.reader import View, view_of
from leaderboard.ranking.cells import Cell
from leaderboard.ranking.draws import Draws
from leaderboard.ranking.orders import Orders
from leaderboard.ranking.pairs import Pairs
from leaderboard.ranking.pairs import tests_of as made_tests
from leaderboard.ranking.slices import Ranked, Slice, ranked
from leaderboard.ranking.tiers import Basis, groups, in_tiers
from leaderboard.store.memory import memory_store
from leaderboard.tables import harmless as text_cell
from leaderboard.views.board_tables import board_csv, pairs_csv
from leaderboard.views.boards import BoardQuery, Choice, resolve
from leaderboard.views.pairs import Pair, pairs
from tests.leaderboard.pages import synthetic
from tests.leaderboard.pages.parsed import Node, harmless, named, read
from tests.leaderboard.pages.synthetic import METRICS, cards, fill, keep, snapshot

CARD = cards()["ratings"]


@pytest.fixture(scope="module")
def view() -> View:
    return synthetic.view()


def shown(view: View, benchmark: str, skill: str = "") -> str:
    return board_view(resolve(BoardQuery(benchmark, skill), view.boards), view)


def of(view: View, benchmark: str, skill: str = "") -> tuple[Choice, Ranked]:
    choice = resolve(BoardQuery(benchmark, skill), view.boards)
    return choice, in_tiers(view.orders.ranked(choice.board.card, choice.slices()))


def matrix_of(view: View, found: Ranked, choice: Choice) -> Node:
    return read(pair_matrix(found, pairs(found), view.entries, choice))


def cell(name: str, rank: int | None = 1, tier: int | None = 1, **more: object) -> Cell:
    given = {
        "entry_id": name, "measure": "srcc", "value": 0.5, "n_items": 9, "n_clusters": 9,
        "n_missing": 0, "note": "", "rank": rank, "rank_low": rank, "rank_high": rank,
        "tier": tier, **dict.fromkeys(("variant", "split", "facet", "skill", "ci_low", "ci_high")),
    }  # fmt: skip
    return Cell.model_validate({**given, **more})


def made(values: list[float], noise: float) -> Ranked:
    """A ranking of so many entries, whose differences have that noise over blocks."""
    rng = np.random.default_rng(5)
    shares = rng.normal(size=(len(values), 60)) * noise
    shares += (np.array(values) / 60 - shares.mean(axis=1))[:, None]
    draws = np.array(values)[:, None] + 0.02 * rng.normal(size=(len(values), 50))
    cells = tuple(
        cell(f"made-up-{i:04d}/{METRICS[i]}", None, None, value=value, variant="paper")
        for i, value in enumerate(values)
    )
    return ranked(Slice(cells, Draws(draws, shares)), CARD).best_first(CARD)


def table_of(view: View, found: Ranked | list[Cell]) -> Node:
    if isinstance(found, list):
        return read(board_table(found, view.entries, CARD, info(CARD, "srcc"), ""))
    made_of = in_tiers(found).cells
    basis = Basis.of(found)
    return read(board_table(made_of, view.entries, CARD, info(CARD, "srcc"), "", basis=basis))


# The ranking.


def test_rows_show_value_interval_rank_range_and_cost_and_can_be_read_out(view: View) -> None:
    page = read(shown(view, "ratings"))
    named(page)
    first = page.rows[0]
    assert [one for one in first if one.startswith("Dot")]
    assert [first[name].text for name in ("P(best)", "Spearman ρ ↑", "Prompt pairs", "Pairs/s")] == [
        "69 %", "0.720 [0.632, 0.812]", "120", "38.4"
    ]  # fmt: skip
    assert first["Rank range"].text.startswith("1–3")
    assert first["Metric"].links() == ["./metric?id=made-up-0000/CLIPScore"]


def test_rows_stand_below_their_tier_and_the_unranked_last(view: View) -> None:
    _, found = of(view, "ratings")
    page = read(shown(view, "ratings").split("Metric against metric")[0])
    n_tiers = max(c.tier for c in found.cells if c.tier is not None)
    assert n_tiers > 1
    assert list(page.groups) == [*(f"Tier {n + 1}" for n in range(n_tiers)), "Without a rank"]
    assert page.groups["Tier 1"][0] == "CLIPScore"
    assert page.groups["Without a rank"][-1] == "always-half" and len(page.names) == len(METRICS)
    assert not page.row("always-half").all("[title=Rank]")


def test_a_row_says_what_must_be_known_before_trusting_its_value(view: View) -> None:
    page = read(shown(view, "ratings"))
    for name, words in (("CLIPScore", "not isolated"), ("BLIP2-ITM", "not re-run"),
                        ("PickScore", "trained on"), ("ImageReward", "12 missing"),
                        ("always-half", "no correlation")):  # fmt: skip
        assert words in page.row(name), name
    assert "simulated" in page.one("[role=note]")
    assert "simulated" not in shown(view, "graphs")


def test_too_few_items_are_shown_without_an_order_the_better_value_first(view: View) -> None:
    page = read(shown(view, "tiny"))
    assert "Too few" in page and not any(re.match(r"\d", one) for one in page.texts(".as-range"))
    assert page.names[-1] == "CLIPScore"  # the largest error, where lower is better
    assert page.all("[aria-label=lower is better]")


def test_an_empty_board_says_so_and_how_to_submit(view: View) -> None:
    page = read(shown(view, "unused"))
    assert not page.all("table") and "./submit" in page.links()
    nothing = view_of(None, cards(), Orders(memory_store()))
    assert not read(shown(nothing, "ratings")).all("table")


def test_the_legend_names_test_correction_and_resamples(view: View) -> None:
    words = read(shown(view, "ratings")).text
    for figure in ("45 pairs", "5 %", "200 resamples", "Holm", "permutation"):
        assert figure in words  # ten of twelve are ranked


def test_the_legend_says_for_how_many_pairs_the_p_value_is_a_bound() -> None:
    drawn = made([0.5, 0.49, 0.1], noise=0.01)
    shares = drawn.draws.contributions
    none = Pairs("1", (), flip_tests(shares[:0], 1))
    tests = made_tests(["a", "b", "c"], shares, 1, none, most_drawn=0)
    basis = Basis.of(ranked(Slice(drawn.cells, drawn.draws), CARD, tests=tests))
    assert Basis.of(drawn).n_bounded == 0 < basis.n_bounded
    axis = axis_for(drawn.cells, None)
    assert f"{basis.n_bounded} pair" in legend(axis, drawn.cells, CARD, basis)
    bound = "upper bound"
    told = [bound in legend(axis, drawn.cells, CARD, one) for one in (basis, Basis.of(drawn))]
    assert told == [True, False]


def test_tiers_are_in_one_piece_even_where_rank_ranges_would_part_them() -> None:
    cells = (cell("a", 2, 2), cell("b", 1, 1), cell("c", 3, None), cell("d", 4, 2))
    base = made([0.5, 0.49, 0.48, 0.47], 0.1)
    found = groups(in_tiers(Ranked(cells, base.ordering, base.draws)).cells)
    assert [(g.tier, [c.entry_id for c in g.cells]) for g in found] == [
        (1, ["b", "c"]),  # not tested, so it stays with its neighbour above
        (2, ["a", "d"]),
    ]


def test_reordering_by_tier_takes_tests_and_draws_along() -> None:
    before = made([0.9, 0.5, 0.1], 0.001)
    after = in_tiers(before)
    assert [c.tier for c in after.cells] == [1, 2, 3]
    for ranking in (before, after):
        assert ranking.ordering.tests is not None
        values = np.array([one.value for one in ranking.cells], float)
        np.testing.assert_allclose(
            ranking.ordering.tests.difference, values[:, None] - values[None, :]
        )


def test_without_contributions_there_are_no_tiers_and_the_page_says_why() -> None:
    store = fill(memory_store())
    gone = [path for path in store.public.list("results") if ".influence." in path]
    keep(store, dict.fromkeys(gone))
    bare = view_of(snapshot(), cards(), Orders(store))
    page = read(shown(bare, "ratings"))
    assert "No tiers:" in page and not page.groups and "Metric against metric" not in page
    by_skill = read(heatmap(bare.boards["ratings"], CARD.headline, bare))
    assert "nothing could be tested" in by_skill and by_skill.all(".as-best")


def test_an_entry_without_contributions_is_ranked_untested_and_counted(view: View) -> None:
    base = made([0.9, 0.5, 0.1], 0.001)
    shares = base.draws.contributions.copy()
    shares[1] = np.nan
    part = ranked(Slice(base.cells, Draws(base.draws.resamples, shares)), CARD).best_first(CARD)
    page = table_of(view, part)
    assert "without a tier" in page and "1 metric" in page and "the 1 pair" in page
    assert "a single metric" in table_of(view, made([0.5], 0.1))


def test_how_an_interval_was_made_is_said_on_hover(view: View) -> None:
    name = "made-up-0000/CLIPScore"
    both = [
        cell(name, ci_low=0.1, ci_high=0.9, ci_method=method)
        for method in ("bca", "percentile", None)
    ]
    titles = [one["title"] for one in table_of(view, both).all(".as-ci")]
    for title, word in zip(titles, ("BCa", "percentile", "not stored"), strict=True):
        assert word in title


@pytest.mark.parametrize(
    ("share", "said"),
    [(0.0, "0 %"), (0.001, "&lt;1 %"), (0.5, "50 %"), (0.999, "&gt;99 %"), (1.0, "100 %")],
)
def test_a_chance_is_never_rounded_to_none_or_all(share: float, said: str) -> None:
    assert percent(share) == said


def test_a_thousand_metrics_are_built_in_linear_time(view: View) -> None:
    entry = next(iter(view.entries))
    html = board_table([cell(entry, tier=None)] * 1000, view.entries, CARD, info(CARD, "srcc"), "")
    assert html.count('<tr role="row"') == 1001 and len(html) < 1_500_000


# Metric against metric.


def test_every_pair_is_tested_once_and_corrected_over_all_of_them(view: View) -> None:
    _, found = of(view, "ratings")
    every = pairs(found, most=None)
    assert len(every) == 45
    corrected = holm([pair.p_value for pair in every])
    np.testing.assert_allclose([pair.p_holm for pair in every], corrected, rtol=0, atol=1e-12)
    values = {c.entry_id: c.value or 0.0 for c in found.cells}
    for pair in every:
        assert pair.difference == pytest.approx(values[pair.a] - values[pair.b])


def test_a_difference_stands_above_the_diagonal_and_its_p_value_below(view: View) -> None:
    choice, found = of(view, "ratings")
    page = matrix_of(view, found, choice)
    named(page)
    cells = [row.all("td") for row in page.all("tbody tr")]
    assert {len(cells), *map(len, cells)} == {10}
    first = pairs(found)[0]
    mark = "*" if first.significant else ""
    assert cells[0][1].text == f"{signed(first.difference)}{mark}"
    assert cells[1][0].text == read(p_text(first.p_holm)).text + mark
    assert cells[0][0]["class"] == "as-self" and "45 pairs" in page


@pytest.mark.parametrize(("n_clusters", "blocks"), [(60, False), (61, True)])
def test_signs_are_flipped_in_blocks_only_where_there_are_more_clusters_than_blocks(
    view: View, n_clusters: int, blocks: bool
) -> None:
    base = made([0.9, 0.5], 0.1)
    cells = tuple(c.model_copy(update={"n_clusters": n_clusters}) for c in base.cells)
    found = Ranked(cells, base.ordering, base.draws)
    words = matrix_of(view, found, resolve(BoardQuery("ratings"), view.boards)).told
    assert ("blocks of prompt" in words) is blocks
    assert f"60 {'blocks of ' if blocks else ''}prompt pairs" in words


def test_a_difference_leads_to_the_comparison_of_its_metrics(view: View) -> None:
    choice, found = of(view, "ratings", "counting")
    address = matrix_of(view, found, choice).links("./compare")[0]
    start = "./compare?benchmark=ratings&measure=srcc~assay&skill=counting&a=made-up-0"
    assert address.startswith(start) and "&b=made-up-0" in address and " " not in address


@pytest.mark.slow
def test_only_the_first_thirty_are_drawn_and_all_are_corrected_for() -> None:
    big = synthetic.view(36)
    choice, found = of(big, "ratings")
    tested = int(np.isfinite(found.ordering.corrected).any(axis=1).sum())
    assert tested > 30 and len(pairs(found)) == 30 * 29 // 2
    words = matrix_of(big, found, choice).text
    assert f"30 of {tested} metrics" in words and f"{tested * (tested - 1) // 2} pairs" in words


def test_fewer_than_two_tested_metrics_make_no_matrix(view: View) -> None:
    choice, found = of(view, "tiny")
    assert pairs(found) == () and pair_matrix(found, (), view.entries, choice) == ""


def test_figures_of_the_matrix_are_short_keep_their_sign_and_say_how_they_were_found() -> None:
    shown = [signed(x) for x in (0.0451, -0.0451, 0.0, 0.00001)]
    assert shown == ["+0.045", "−0.045", "0.000", "0.000"]
    p_values = (1.0, 0.9999, 0.05, 0.0004, 0.0495, 0.04996, 0.0504)
    assert [p_text(p) for p in p_values] == [
        "1", "1", ".050", "&lt;.001", ".0495", ".04996", ".0504"
    ]  # fmt: skip
    assert (p_stated(2e-5), p_stated(0.0497)) == ("= 2.0e-05", "= 0.0497")
    pair = Pair("a", "b", 0.1, 0.01, 0.02, 12, 4096, True)
    for one, word in ((pair, "4,096"), (pair._replace(exact=False, n_patterns=9999), "9,999"),
                      (pair._replace(exact=False, n_patterns=0), "bound")):  # fmt: skip
        assert word in patterns(one)


# Files.


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_the_csv_holds_what_is_on_screen_in_its_order_and_how_it_was_made(view: View) -> None:
    choice, found = of(view, "ratings")
    rows = rows_of(board_csv(found.cells, view.entries, choice.board))
    first, cell_ = rows[0], found.cells[0]
    stated = view.entries[cell_.entry_id].provenance["ratings"]
    assert (first["metric"], first["tier_holm_5_percent"]) == ("CLIPScore", "1")
    assert (float(first["value"]), float(first["p_best"])) == (cell_.value, cell_.p_best)
    assert [row["value"] for row in rows] == [
        "" if c.value is None else str(c.value) for c in found.cells
    ]
    assert (int(first["seed"]), int(first["n_resamples"])) == (stated.seed, stated.n_resamples)
    assert first["pairs_per_s"] and {"plan", "versions", "ci_method"} <= first.keys()
    older = {k: e.model_copy(update={"provenance": {}}) for k, e in view.entries.items()}
    assert {row["seed"] for row in rows_of(board_csv(found.cells, older, choice.board))} == {""}


def test_the_pairs_come_as_a_long_table_of_their_own(view: View) -> None:
    _, found = of(view, "ratings")
    every = pairs(found)
    rows = rows_of(pairs_csv(every, view.entries))
    figures = [(row["entry_a"], float(row["difference"]), float(row["p_holm"])) for row in rows]
    assert figures == [(pair.a, pair.difference, pair.p_holm) for pair in every]
    assert {row["exact"] for row in rows} <= {"true", "false"}
    entry = next(iter(view.entries.values()))
    bad = {entry.entry_id: entry.model_copy(update={"metric": "=HYPERLINK('x')"})}
    assert "'=HYPERLINK" in pairs_csv([every[0]._replace(a=entry.entry_id, b=entry.entry_id)], bad)


UNSEEN = ["\u200b=", "\x00=", "\x00\u202e =", "\ufeff+", "\u200b\t@"]
"""Starts of a formula behind characters that are dropped."""


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "  =", "＝", *UNSEEN])
def test_text_that_a_spreadsheet_would_run_is_made_harmless(start: str) -> None:
    made_ = text_cell(f"{start}HYPERLINK('x')")
    assert isinstance(made_, str) and made_.startswith("'")


@pytest.mark.parametrize("value", [-0.5, "-0.5", "+3", "1e-5", "plain", None, 7])
def test_numbers_and_plain_text_are_left_alone(value: object) -> None:
    assert text_cell(value) == value


@pytest.mark.parametrize(
    "made_", [shown, lambda view, _: skills_view(of(view, "ratings")[0], view)]
)
def test_a_hostile_name_is_text(view: View, made_: Callable[[View, str], str]) -> None:
    page = made_(view, "ratings")
    harmless(page)
    assert any(name.startswith("<img src=x") for name in read(page).names)
