"""Heatmap of one measure by metric and skill, marked where metrics differ significantly."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.schema import Card, Selector
from leaderboard.pages.boards.pair_matrix import p_stated
from leaderboard.pages.shown.marks import rank_text
from leaderboard.pages.shown.markup import text
from leaderboard.pages.shown.metric_names import metric_name
from leaderboard.publication.measure_names import info, nearest, skill_title, title
from leaderboard.publication.reader import BoardIndex, View
from leaderboard.ranking.cells import Cell
from leaderboard.ranking.skill_tests import TestedColumn
from leaderboard.text import MISSING, count, interval, number

MOST_METRICS = 60
"""More rows than this help nobody's eyes; the rest is in the CSV."""


@dataclass(frozen=True)
class _Column:
    skill: str | None
    selector: Selector
    cells: Mapping[str, Cell]
    tests: TestedColumn


def has_skills(board: BoardIndex, selector: Selector) -> bool:
    """Whether any skill has this measure, so that there is a heatmap to show."""
    return any(
        one.measure == selector.measure
        for skill in _whole_skills(board)
        for one in board.selectors(skill)
    )


def heatmap(
    board: BoardIndex, selector: Selector, view: View, entry_ids: Collection[str] | None = None
) -> str:
    """Metrics by skills for one measure; empty where the board has no skills for it.

    A skill whose rows have another variant of the measure is shown by that one, and the caption
    says so; a skill without the measure has no column. Bold is the best of a column and whatever
    the tests do not tell apart from it.

    Args:
        board: the board.
        selector: the measure.
        view: has the entries and makes the tests.
        entry_ids: those that are shown; None: all.
    """
    if not has_skills(board, selector):
        return ""
    columns = _columns(board, selector, view, entry_ids)
    order = _row_order(columns, entry_ids)
    if not order:
        return ""
    shown = order[:MOST_METRICS]
    entries = view.entries
    values = [c.cells[e].value for c in columns for e in shown if e in c.cells]
    known = [value for value in values if value is not None]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    higher = info(board.card, selector.measure).higher_is_better
    scale = _Scale(low, high, higher_is_better=higher)
    body = "".join(
        f'<tr><th scope="row" class="as-c-metric">{metric_name(entries[entry_id])}</th>'
        f"{''.join(_cell(column, entry_id, scale, alone=len(order) == 1) for column in columns)}</tr>"
        for entry_id in shown
    )
    heads = "".join(_head(board, column, alone=len(order) == 1) for column in columns)
    return (
        '<div class="as-scroll" tabindex="0" role="region" aria-label="Values by skill">'
        '<table class="as-table as-heat"><caption class="as-sr">Values by skill</caption>'
        f'<thead><tr><th scope="col" class="as-c-metric">Metric</th>{heads}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>{_legend(board, columns, scale, len(order))}"
    )


@dataclass(frozen=True)
class _Scale:
    low: float
    high: float
    higher_is_better: bool

    def strength(self, value: float) -> int:
        """How strong the colour is, from 0 (worst shown) to 100 (best shown)."""
        if self.high <= self.low:
            return 50
        share = (value - self.low) / (self.high - self.low)
        return round(100 * (share if self.higher_is_better else 1.0 - share))


def _columns(
    board: BoardIndex, selector: Selector, view: View, entry_ids: Collection[str] | None
) -> list[_Column]:
    found: list[tuple[str | None, Selector, tuple[Cell, ...]]] = []
    for skill in (None, *_whole_skills(board)):
        available = [s for s in board.selectors(skill) if s.measure == selector.measure]
        if available:
            one = nearest(selector, available, board.card)
            found.append((skill, one, board.cells(one, skill)))
    tests = view.skill_tests.columns(
        view.orders, board.card, [cells for _, _, cells in found], entry_ids
    )
    return [
        _Column(skill, one, {cell.entry_id: cell for cell in cells}, tested)
        for (skill, one, cells), tested in zip(found, tests, strict=True)
    ]


def _whole_skills(board: BoardIndex) -> list[str]:
    """Skills without their sub-skills, which rest on too few items to be taken in at a glance."""
    return [skill for skill in board.skills() if ":" not in skill]


def _row_order(columns: Sequence[_Column], entry_ids: Collection[str] | None) -> list[str]:
    """Entries in the order of the first column, then those it does not have."""
    found = dict.fromkeys(entry_id for column in columns for entry_id in column.cells)
    return [entry_id for entry_id in found if entry_ids is None or entry_id in entry_ids]


def _head(board: BoardIndex, column: _Column, *, alone: bool) -> str:
    name = text(skill_title(board.card, column.skill))
    # Visibly another rule: where nothing could be tested, the rank range decides, as the legend says.
    mark = "" if column.tests.best or alone else '<span class="as-note">not tested</span>'
    return f'<th scope="col"><span>{name}</span>{mark}</th>'


def _cell(column: _Column, entry_id: str, scale: _Scale, *, alone: bool) -> str:
    cell = column.cells.get(entry_id)
    if cell is None or cell.value is None:
        why = f' title="{text(cell.note)}"' if cell is not None and cell.note else ""
        return f'<td class="as-blank"{why}>{MISSING}</td>'
    bold, said = _standing(column, cell)
    best = ' class="as-best"' if bold and not alone else ""
    return (
        f'<td{best} style="--t:{scale.strength(cell.value)}%" title="{number(cell.value)} '
        f'{interval(cell.ci_low, cell.ci_high)}, {count(cell.n_clusters, "cluster")}{said}">'
        f"{number(cell.value, 2)}</td>"
    )


def _standing(column: _Column, cell: Cell) -> tuple[bool, str]:
    """Whether it may be the best of its column, and how that is known."""
    tests = column.tests
    if tests.best is None:
        if cell.rank is None:
            return False, f", {cell.why_unranked}"
        return cell.rank_low == 1, f", rank {rank_text(cell)} of all metrics"
    if cell.entry_id == tests.best:
        return True, ", best"
    if cell.entry_id not in tests.corrected:
        return False, ", not tested against the best"
    p = tests.corrected[cell.entry_id]
    return tests.as_good_as_best(cell.entry_id), f", against the best p {p_stated(p)}"


def _legend(board: BoardIndex, columns: Sequence[_Column], scale: _Scale, entries: int) -> str:
    used = tuple(dict.fromkeys(column.selector for column in columns))
    names = " / ".join(title(board.card, one, board.every_selector()) for one in used)
    worse, better = (scale.low, scale.high) if scale.higher_is_better else (scale.high, scale.low)
    ramp = f'<span class="as-ramp" aria-hidden="true"></span> {number(worse, 2)} to {number(better, 2)}'
    cut = (
        f" {MOST_METRICS} of {entries:,} metrics, in board order." if entries > MOST_METRICS else ""
    )
    mixed = (
        " Skills and the whole are computed in different variants; see the measure chooser."
        if len(used) > 1
        else ""
    )
    parts = any(":" in skill for skill in board.skills())
    finer = " Sub-skills are in the skill chooser." if parts else ""
    return (
        f'<p class="as-legend">{text(names)}: {ramp}.{finer}{mixed}{cut}</p>'
        f'<p class="as-legend">{_about_bold(board.card, columns, entries)}</p>'
    )


def _about_bold(card: Card, columns: Sequence[_Column], entries: int) -> str:
    """The rule behind bold figures, with test, correction and number of tests."""
    if entries == 1:
        return "A single metric is shown, so nothing was tested against it."
    n_tests = sum(column.tests.n_tests for column in columns)
    untested = sum(column.tests.best is None for column in columns)
    ranges = "bold where the rank range among all metrics reaches 1"
    if not n_tests:
        return f"<b>Bold:</b> nothing could be tested here, so {ranges}."
    others = (
        f" {count(untested, 'column', 'columns')} marked “not tested”: {ranges}."
        if untested
        else ""
    )
    return (
        "<b>Bold:</b> the best of its column, or not told apart from it at 5 %: paired permutation "
        f"tests by {text(card.cluster)}, Benjamini and Hochberg's correction over all pairs of "
        f"metrics in all columns ({count(n_tests, 'test')}).{others}"
    )
