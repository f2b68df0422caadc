"""What stands below a ranking and takes longer than it: its tests, skills, figures and programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.comparison import digits_of_p, plural, units_of
from benchmarks.schema import Card
from leaderboard.publication.entries import Entry
from leaderboard.publication.measure_names import info, skill_title, title
from leaderboard.publication.reader import View
from leaderboard.ranking.cells import Cell
from leaderboard.ranking.comparing import unit_of
from leaderboard.ranking.slices import Basis, Ranked
from leaderboard.rendering import render
from leaderboard.text import count, interval, number
from leaderboard.views.addresses import compare_address
from leaderboard.views.benchmark_board import (
    SkillColumn,
    SkillHeat,
    data_of,
    ranking_with_tests,
    skill_heat,
)
from leaderboard.views.board_tables import (
    Pair,
    pairs,
    tested_places,
)
from leaderboard.views.boards import Choice
from leaderboard.views.figures import rank_range
from leaderboard.web.components import HeatCell
from leaderboard.web.published_tables import as_published
from leaderboard.web.snippets import Snippet, snippets

MOST_METRICS = 60
"""More rows than this cannot be taken in; the rest is in the CSV."""


@dataclass(frozen=True)
class MatrixCell:
    """A cell of the matrix of pairs."""

    text: str = ""  # difference or p-value; empty on the diagonal
    hint: str = ""  # both, and how they were found
    href: str = ""  # of the comparison; empty below the diagonal
    significant: bool = False  # whether the two differ
    ahead: bool = False  # whether the metric of the row is the better one


@dataclass(frozen=True)
class Matrix:
    """Differences above the diagonal, corrected p-values below it."""

    names: tuple[str, ...]  # of the metrics, in board order
    hrefs: tuple[str, ...]  # of their pages
    rows: tuple[tuple[MatrixCell, ...], ...]  # their cells
    legend: tuple[str, ...]  # sentences below it


@dataclass(frozen=True)
class Heat:
    """Metrics by skills."""

    heads: tuple[tuple[str, bool], ...]  # title of each column, and whether it was tested
    # name of the metric, address of its page and its cells
    rows: tuple[tuple[str, str, tuple[HeatCell, ...]], ...]
    legend: tuple[str, ...]  # sentences below it


def below_of(choice: Choice, view: View, site: str = "", hub: str = "") -> str:
    """The second part of a tab; empty where nothing is ranked."""
    selector = choice.selector
    if selector is None:
        return ""
    card = choice.board.card
    kept = choice.filters.kept(choice.entry_ids(), view.entries, card)
    matrix = None
    if kept is None or kept:
        ranked = ranking_with_tests(choice, view)
        among = None if choice.filters.within else kept
        matrix = matrix_of(ranked, pairs(ranked, among=among), view.entries, choice)
    heat = skill_heat(choice, view)
    programs: tuple[Snippet, ...] = snippets(choice, data_of(choice), site, hub) if site else ()
    printed = None if len(choice.skills) > 1 else as_published(card, selector, choice.skill)
    return render(
        "metrics/benchmark_below.html", matrix=matrix,
        matrix_data=data_of(choice, "pairs"),
        heat=heat_of(heat, choice, view.entries) if heat and heat.entry_ids else None,
        heat_data=data_of(choice, "skills"),
        published=printed, programs=programs, within=choice.filters.within,
        cite=citation(choice, view, site),
    )  # fmt: skip


def matrix_of(
    ranked: Ranked, found: tuple[Pair, ...], entries: Mapping[str, Entry], choice: Choice
) -> Matrix | None:
    """The tests of a ranking as a square; None where fewer than two metrics were tested."""
    if not found:
        return None
    card, query = choice.board.card, choice.query
    shown = list(dict.fromkeys(name for pair in found for name in (pair.a, pair.b)))
    names = [entries[entry_id].metric for entry_id in shown]
    unit = _unit(ranked, card)
    place = {entry_id: i for i, entry_id in enumerate(shown)}
    measure = choice.selector.measure if choice.selector else ""
    sign = 1.0 if card.higher_is_better(measure) else -1.0
    cells = [[MatrixCell() for _ in shown] for _ in shown]
    for pair in found:
        i, j = place[pair.a], place[pair.b]
        said, ahead = signed(pair.difference), sign * pair.difference >= 0
        hint = (
            f"{names[i]} less {names[j]}: {said}; p {p_stated(pair.p_value)}, corrected "
            f"{p_stated(pair.p_holm)}; {differ(pair, unit)}, {patterns(pair)}"
        )
        star = "*" if pair.significant else ""
        there = compare_address(card.name, pair.a, pair.b, skill=query.skill, measure=query.measure)
        cells[i][j] = MatrixCell(f"{said}{star}", hint, there, pair.significant, ahead)
        cells[j][i] = MatrixCell(f"{p_text(pair.p_holm)}{star}", hint, "", pair.significant)
    hrefs = tuple(f"./metric?id={entry_id}" for entry_id in shown)
    return Matrix(
        tuple(names), hrefs, tuple(map(tuple, cells)), _matrix_legend(ranked, card, found)
    )


def heat_of(heat: SkillHeat, choice: Choice, entries: Mapping[str, Entry]) -> Heat:
    """The values by skill as coloured cells."""
    shown = heat.entry_ids[:MOST_METRICS]
    alone = len(heat.entry_ids) == 1
    values = [c.cells[e].value for c in heat.columns for e in shown if e in c.cells]
    known = [value for value in values if value is not None]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    measure = choice.selector.measure if choice.selector else ""
    rises = info(choice.board.card, measure).higher_is_better
    rows = tuple(
        (
            entries[entry_id].metric,
            f"./metric?id={entry_id}",
            tuple(_heat_cell(c, entry_id, (low, high), rises=rises, alone=alone)
                  for c in heat.columns),
        )
        for entry_id in shown
    )  # fmt: skip
    heads = tuple(
        (skill_title(choice.board.card, c.skill), c.tests.best is not None or alone)
        for c in heat.columns
    )
    return Heat(heads, rows, _heat_legend(heat, choice, (low, high), rises=rises))


def citation(choice: Choice, view: View, site: str) -> tuple[str, str]:
    """What to cite a board with: a sentence, and BibTeX."""
    card = choice.board.card
    measure = choice.measure_title
    at = f"{view.built_at:%Y-%m-%d}" if view.built_at else "not dated"
    year = f"{view.built_at:%Y}" if view.built_at else ""
    address = f"{site}{choice.query.to_link().removeprefix('./')}" if site else ""
    what = f"{card.title}, revision {card.revision}: {measure}, {choice.title}"
    plain = " ".join(filter(None, (
        f"Assay, board of {what}, as of {at}.", address, card.citation,
    )))  # fmt: skip
    fields = {"title": f"Assay: board of {what}", "year": year, "url": address,
              "note": f"As of {at}. {card.citation}".strip()}  # fmt: skip
    lines = ",\n".join(f"  {name} = {{{_bib(value)}}}" for name, value in fields.items() if value)
    return plain, f"@misc{{assay-{card.name},\n{lines}\n}}"


def signed(value: float) -> str:
    """A difference with its sign."""
    shown = number(value)
    return shown if value <= 0 or shown == number(0.0) else f"+{shown}"


def p_text(p: float) -> str:
    """A p-value for a narrow cell."""
    if p < 0.0005:
        return "<.001"
    return f"{p:.{digits_of_p(p, 3)}f}".removeprefix("0") if p < 0.9995 else "1"


def p_stated(p: float) -> str:
    """A p-value in a sentence: `= 0.012`, `= 2.0e-05`."""
    return f"= {p:.{digits_of_p(p, 3)}f}" if p >= 0.0005 else f"= {p:.1e}"


def differ(pair: Pair, unit: str) -> str:
    """In how many clusters or blocks the two differ."""
    return f"{plural(unit, pair.n_units)} {'differs' if pair.n_units == 1 else 'differ'}"


def patterns(pair: Pair) -> str:
    """How the p-value of a pair was found."""
    if pair.exact:
        return f"exact (all {pair.n_patterns:,} patterns)"
    return f"{pair.n_patterns:,} random patterns" if pair.n_patterns else "p is an upper bound"


def _bib(value: str) -> str:
    """A value of BibTeX in braces of its own, which it may not close."""
    return value.replace("{", "(").replace("}", ")")


def _unit(ranked: Ranked, card: Card) -> str:
    n_clusters = [ranked.cells[place].n_clusters for place in tested_places(ranked, None)]
    return unit_of(card, ranked.draws.contributions.shape[1], n_clusters)


def _matrix_legend(ranked: Ranked, card: Card, found: tuple[Pair, ...]) -> tuple[str, ...]:
    unit, basis = _unit(ranked, card), Basis.of(ranked)
    in_blocks = f" in {units_of(unit)}" if unit != card.cluster else ""
    tested = len(tested_places(ranked, None))
    shown = len({name for pair in found for name in (pair.a, pair.b)})
    sure = sum(pair.significant for pair in found)
    cut = f" {shown} of {count(tested, 'metric')} shown." if tested > shown else ""
    untested = sum(cell.rank is not None for cell in ranked.cells) - tested
    absent = f" {count(untested, 'metric')} without tests left out." if untested > 0 else ""
    return (
        "Above the diagonal: value of the row's metric less that of the column's. Below: p-value "
        f"after correction. Bold and *: significant at α = 0.05 ({sure} of the "
        f"{count(len(found), 'pair')} shown).{cut}{absent}",
        f"Test: paired permutation by {card.cluster}; signs of the differences are flipped"
        f"{in_blocks}. Correction: Holm's over {count(basis.n_pairs, 'pair')}.",
    )


def _heat_cell(
    column: SkillColumn, entry_id: str, ends: tuple[float, float], *, rises: bool, alone: bool
) -> HeatCell:
    cell = column.cells.get(entry_id)
    if cell is None or cell.value is None:
        return HeatCell(None, hint=cell.note if cell is not None else "")
    low, high = ends
    share = 0.5 if high <= low else (cell.value - low) / (high - low)
    hint = (
        f"{number(cell.value)} {interval(cell.ci_low, cell.ci_high)}, "
        f"{count(cell.n_clusters, 'cluster')}{_stands(column, cell)}"
    )
    best = column.may_be_best(cell) and not alone
    return HeatCell(cell.value, share if rises else 1.0 - share, hint=hint, best=best)


def _stands(column: SkillColumn, cell: Cell) -> str:
    """How it is known whether it may be the best of its column."""
    tests = column.tests
    if tests.best is None:
        if cell.rank is None:
            return f", {cell.why_unranked}"
        return f", rank {rank_range(cell)} of all metrics"
    if cell.entry_id == tests.best:
        return ", best"
    if cell.entry_id not in tests.corrected:
        return ", not tested against the best"
    return f", against the best p {p_stated(tests.corrected[cell.entry_id])}"


def _heat_legend(
    heat: SkillHeat, choice: Choice, ends: tuple[float, float], *, rises: bool
) -> tuple[str, ...]:
    board, entries = choice.board, len(heat.entry_ids)
    used = tuple(dict.fromkeys(column.selector for column in heat.columns))
    names = " / ".join(title(board.card, one, board.every_selector()) for one in used)
    worse, better = ends if rises else ends[::-1]
    cut = f" {MOST_METRICS} of {count(entries, 'metric')}." if entries > MOST_METRICS else ""
    mixed = (
        " Skills and the whole are computed in different variants; see the measure chooser."
        if len(used) > 1
        else ""
    )
    finer = " Sub-skills are in the skill chooser." if any(":" in s for s in board.skills()) else ""
    scale = (
        f"{names}, from {number(worse, 2)} (lightest) to {number(better, 2)} (strongest colour)."
    )
    return f"{scale}{finer}{mixed}{cut}", _about_best(heat, choice, entries)


def _about_best(heat: SkillHeat, choice: Choice, entries: int) -> str:
    """The rule behind what is underlined, with test, correction and number of tests."""
    if entries == 1:
        return "A single metric is shown, so nothing is marked as the best."
    untested = sum(column.tests.best is None for column in heat.columns)
    ranges = "underlined where the rank range among all metrics reaches 1"
    if not heat.n_tests:
        return f"Nothing could be tested here, so {ranges}."
    others = (
        f" {count(untested, 'column')} marked “not tested”: {ranges}." if untested else ""
    )  # fmt: skip
    of = "the filter's metrics" if choice.filters.within else "all metrics of the board"
    return (
        "Underlined: the best of its column, or no significant difference from it at α = 0.05: "
        f"paired permutation tests by {choice.board.card.cluster}, Benjamini and Hochberg's "
        f"correction over all pairs of {of} in all columns ({count(heat.n_tests, 'test')}).{others}"
    )
