"""The differences of two metrics by skill and by measure, as tables with marks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from benchmarks.comparison import LEVEL, Compared
from benchmarks.comparison_words import figures, p_words
from benchmarks.schema import Selector
from leaderboard.pages.boards.query import Choice
from leaderboard.pages.boards.table import direction
from leaderboard.pages.compare.marks import difference_axis, difference_mark, tally_bar
from leaderboard.pages.compare.rows import Shown
from leaderboard.pages.shown.marks import Axis, axis_header
from leaderboard.pages.shown.markup import MISSING, count, submitted, text
from leaderboard.pages.shown.measures import info, skill_title, title

_LONGEST_NAME = 60
_LONGEST_NOTE = 200


def forest(rows: Shown, choice: Choice) -> str:
    """The difference by skill, on one axis; what was chosen comes first."""
    card = choice.board.card
    every = (rows.chosen, *rows.skills)
    axis = difference_axis(every)
    chosen = (
        ""
        if rows.chosen.skill in {row.skill for row in rows.skills}
        else _line(choice.title, rows.chosen, axis, first=True)
    )
    lines = "".join(_line(skill_title(card, row.skill), row, axis) for row in rows.skills)
    variants = {(row.variant, row.split, row.facet) for row in every}
    mixed = (
        " Skills may have another variant of the measure than the whole."
        if len(variants) > 1
        else ""
    )
    return (
        _table(chosen + lines, _axis_head(rows.chosen, axis), "Skill", "Differences by skill")
        + f'<p class="as-legend">{_reading(rows.chosen)}{_correction(rows.skills, "skill")}'
        f"{mixed}</p>"
    )


def measure_table(rows: Shown, choice: Choice) -> str:
    """The difference by every other measure, on the one axis that they share: that of d_z."""
    card, among = choice.board.card, choice.board.every_selector()
    drawn = [_standardised(row) for row in rows.measures]
    axis = difference_axis(drawn)
    lines = []
    for row, marked in zip(rows.measures, drawn, strict=True):
        selector = Selector(
            measure=row.measure, split=row.split, variant=row.variant, facet=row.facet
        )
        arrow = direction(info(card, row.measure))
        lines.append(_line(title(card, selector, among), row, axis, marked=marked, arrow=arrow))
    head = _axis_head(
        replace(rows.chosen, higher_is_better=True), axis, "<span>d<sub>z</sub></span>"
    )
    return (
        _table("".join(lines), head, "Measure", "Differences by other measures")
        + '<p class="as-legend">Drawn is d<sub>z</sub>: by how much '
        f"{submitted(rows.chosen.metric_a, limit=_LONGEST_NAME)} is better, over the standard "
        "deviation of the units' differences, with its 95 % interval."
        f"{_correction(rows.measures, 'measure')}</p>"
    )


def _standardised(row: Compared) -> Compared:
    """A row whose difference is the effect in favour of its first metric."""
    favoured = replace(row, difference=row.effect, ci_low=row.effect_low, ci_high=row.effect_high)
    value, low, high = favoured.advantage
    return replace(favoured, difference=value, ci_low=low, ci_high=high)


def _table(lines: str, drawn: str, of: str, caption: str) -> str:
    heads = (
        (of, "as-c-what"), (drawn, "as-c-axis"), ("Difference", "as-c-value"), ("p", "as-c-p"),
        ("p (BH)", "as-c-p"), ("Better, tied, worse", "as-c-tally"),
    )  # fmt: skip
    head = "".join(f'<th scope="col" role="columnheader" class="{c}">{h}</th>' for h, c in heads)
    return (
        '<div class="as-scroll"><table class="as-table as-compare" role="table">'
        f'<caption class="as-sr">{caption}</caption>'
        f'<thead role="rowgroup"><tr role="row">{head}</tr></thead>'
        f'<tbody role="rowgroup">{lines}</tbody></table></div>'
    )


def _line(
    name: str,
    row: Compared,
    axis: Axis,
    *,
    marked: Compared | None = None,
    arrow: str = "",
    first: bool = False,
) -> str:
    sure = ' class="as-sure"' if row.told_apart and not first else ""
    bh = MISSING if first else _p(row.p_corrected)
    note = "".join(
        f'<span class="as-note">{text(why, limit=_LONGEST_NOTE)}</span>'
        for why in (row.untested, row.uncounted)
        if why
    )
    counts = ", ".join(f"{n:,}" for n in row.tally) if row.tally else MISSING
    tally = tally_bar(row, row.metric_a, row.metric_b)
    whole = ' class="as-whole"' if first else ""
    return (
        f'<tr role="row"{whole}>'
        f'<th scope="row" role="rowheader" class="as-c-what">{text(name)} {arrow}{note}</th>'
        f'<td role="cell" class="as-c-axis">{difference_mark(marked or row, axis)}</td>'
        f'<td role="cell" class="as-c-value">{_difference(row)}</td>'
        f'<td role="cell" class="as-c-p" data-label="p">{_p(row.p_value)}</td>'
        f'<td role="cell" class="as-c-p" data-label="p (BH)"><span{sure}>{bh}</span></td>'
        f'<td role="cell" class="as-c-tally">{tally}<span class="as-ci">{counts}</span></td></tr>'
    )


def _difference(row: Compared) -> str:
    if not math.isfinite(row.difference):
        return MISSING
    value, low, high = figures(row.difference, row.ci_low, row.ci_high)
    ends = "" if math.isnan(row.ci_low) else f' <span class="as-ci">[{low}, {high}]</span>'
    return f"<b>{value}</b>{ends}"


def _p(value: float) -> str:
    return (
        MISSING if math.isnan(value) else text(p_words(value).removeprefix("p ").removeprefix("= "))
    )


def _correction(rows: Sequence[Compared], of: str) -> str:
    tested = sum(math.isfinite(row.p_value) for row in rows)
    over = f"corrected by Benjamini-Hochberg over {count(tested, of)}"
    return f" p (BH): {over}." if tested else ""


def _axis_head(row: Compared, axis: Axis, of: str = "") -> str:
    """Which side is whose, what is drawn (marked up) if it is not the difference, and the scale."""
    left, right = (
        (row.metric_b, row.metric_a) if row.higher_is_better else (row.metric_a, row.metric_b)
    )
    return (
        '<span class="as-sides-head"><span>← '
        f"{submitted(left, limit=24)} better</span>{of}<span>{submitted(right, limit=24)} better →"
        f"</span></span>{axis_header(axis)}"
    )


def _reading(row: Compared) -> str:
    a, b = (submitted(name, limit=_LONGEST_NAME) for name in (row.metric_a, row.metric_b))
    return (
        f"Difference: value of {a} less that of {b}, with its 95 % interval. Filled dot: told apart "
        f"at {LEVEL * 100:.0f} % after correction; ring: not."
    )
