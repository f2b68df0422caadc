"""One measure of every metric by skill, as a coloured table: where metrics truly differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.schema import Selector
from leaderboard.cells import Cell
from leaderboard.pages.board_table import metric_name
from leaderboard.pages.marks import rank_text
from leaderboard.pages.markup import MISSING, count, interval, number, text
from leaderboard.pages.measures import info, nearest, skill_title, title
from leaderboard.pages.reading import BoardIndex
from leaderboard.snapshot import Entry

MOST_METRICS = 60
"""More rows than this help nobody's eyes; the rest is in the CSV."""


@dataclass(frozen=True)
class _Column:
    skill: str | None
    selector: Selector
    cells: Mapping[str, Cell]
    ranked: int


def heatmap(board: BoardIndex, selector: Selector, entries: Mapping[str, Entry]) -> str:
    """Metrics by skills for one measure; empty where the board has no skills for it.

    A skill whose rows have another variant of the measure is shown by that one, and the caption
    says so; a skill without the measure has no column.
    """
    columns = _columns(board, selector)
    if not any(column.skill is not None for column in columns):
        return ""
    order = _row_order(columns)
    shown = order[:MOST_METRICS]
    values = [c.cells[e].value for c in columns for e in shown if e in c.cells]
    known = [value for value in values if value is not None]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    higher = info(board.card, selector.measure).higher_is_better
    scale = _Scale(low, high, higher_is_better=higher)
    body = "".join(
        f'<tr><th scope="row" class="as-c-metric">{metric_name(entries[entry_id])}</th>'
        f"{''.join(_cell(column, entry_id, scale) for column in columns)}</tr>"
        for entry_id in shown
    )
    heads = "".join(_head(board, column) for column in columns)
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


def _columns(board: BoardIndex, selector: Selector) -> list[_Column]:
    columns: list[_Column] = []
    for skill in (None, *_whole_skills(board)):
        available = [s for s in board.selectors(skill) if s.measure == selector.measure]
        if not available:
            continue
        found = nearest(selector, available, board.card)
        cells = {cell.entry_id: cell for cell in board.cells(found, skill)}
        ranked = sum(cell.rank is not None for cell in cells.values())
        columns.append(_Column(skill, found, cells, ranked))
    return columns


def _whole_skills(board: BoardIndex) -> list[str]:
    """Skills without their sub-skills, which rest on too few items to be taken in at a glance."""
    return [skill for skill in board.skills() if ":" not in skill]


def _row_order(columns: Sequence[_Column]) -> list[str]:
    """Entries in the order of the first column, then those it does not have."""
    return list(dict.fromkeys(entry_id for column in columns for entry_id in column.cells))


def _head(board: BoardIndex, column: _Column) -> str:
    return f'<th scope="col"><span>{text(skill_title(board.card, column.skill))}</span></th>'


def _cell(column: _Column, entry_id: str, scale: _Scale) -> str:
    cell = column.cells.get(entry_id)
    if cell is None or cell.value is None:
        why = f' title="{text(cell.note)}"' if cell is not None and cell.note else ""
        return f'<td class="as-blank"{why}>{MISSING}</td>'
    hover = f"{number(cell.value)} {interval(cell.ci_low, cell.ci_high)}"
    if cell.rank is not None:
        hover += f", rank {rank_text(cell)} of {column.ranked}"
    hover += f", {count(cell.n_clusters, 'cluster')}"
    best = ' class="as-best"' if cell.rank_low == 1 else ""
    return (
        f'<td{best} style="--t:{scale.strength(cell.value)}%" title="{text(hover)}">'
        f"{number(cell.value, 2)}</td>"
    )


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
        f'<p class="as-legend">{text(names)}: {ramp}. Bold: the rank range reaches 1, so it may be '
        f"the best at this skill.{finer}{mixed}{cut}</p>"
    )
