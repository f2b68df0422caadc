"""The differences of two metrics by skill and by measure, as tables with marks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from benchmarks.comparison import LEVEL, Compared, figures, p_words, units_of
from benchmarks.schema import Selector
from leaderboard.pages.compare.marks import difference_axis, difference_mark, tally_bar
from leaderboard.pages.shown.marks import Axis, axis_header
from leaderboard.pages.shown.markup import scroll_box, submitted, text
from leaderboard.pages.shown.ranking_marks import direction
from leaderboard.publication.measure_names import info, skill_title, title
from leaderboard.text import MISSING, count
from leaderboard.views.boards import Choice
from leaderboard.views.comparison import Several, Shown

Names = tuple[str, str]
_BH, _HOLM = "p (BH)", "p (Holm)"
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


def pairs_table(found: Several) -> str:
    """Each two of several metrics: difference, test, and on how many units each is better."""
    axis = difference_axis(found.rows)
    lines = "".join(
        _line(_pair_name(row), row, axis, label=_HOLM, dominance=True) for row in found.rows
    )
    sides = ("second", "first") if found.rows[0].higher_is_better else ("first", "second")
    drawn = (
        f'<span class="as-sides-head"><span>← {sides[0]} better</span><span>{sides[1]} better →'
        f"</span></span>{axis_header(axis)}"
    )
    n_tests = max(row.n_tests for row in found.rows)
    tested = (
        f" {_HOLM}: corrected by Holm over {count(n_tests, 'pair')} of the whole board, without "
        "filters."
        if any(row.correction for row in found.rows)
        else ""
    )
    unit = text(units_of(found.rows[0].unit))
    return (
        _table(lines, drawn, "First and second metric", "Differences of each two", _HOLM)
        + '<p class="as-legend">Difference: value of the first less that of the second, with its '
        "95 % interval. Filled dot: told apart at "
        f"{LEVEL * 100:.0f} % after correction; ring: not.{tested} R: dominance, the share of the "
        f"{unit} on which the first is better, and the share on which the second is.</p>"
    )


def _pair_name(row: Compared) -> Names:
    return row.metric_a, row.metric_b


def _standardised(row: Compared) -> Compared:
    """A row whose difference is the effect in favour of its first metric."""
    favoured = replace(row, difference=row.effect, ci_low=row.effect_low, ci_high=row.effect_high)
    value, low, high = favoured.advantage
    return replace(favoured, difference=value, ci_low=low, ci_high=high)


def _table(lines: str, drawn: str, of: str, caption: str, label: str = _BH) -> str:
    heads = (
        (of, "as-c-what"), (drawn, "as-c-axis"), ("Difference", "as-c-value"), ("p", "as-c-p"),
        (label, "as-c-p"), ("Better, tied, worse", "as-c-tally"),
    )  # fmt: skip
    head = "".join(f'<th scope="col" role="columnheader" class="{c}">{h}</th>' for h, c in heads)
    return (
        f'{scroll_box(caption)}<table class="as-table as-compare" role="table">'
        f'<caption class="as-sr">{caption}</caption>'
        f'<thead role="rowgroup"><tr role="row">{head}</tr></thead>'
        f'<tbody role="rowgroup">{lines}</tbody></table></div>'
    )


def _line(
    name: str | Names,
    row: Compared,
    axis: Axis,
    *,
    marked: Compared | None = None,
    arrow: str = "",
    first: bool = False,
    label: str = _BH,
    dominance: bool = False,
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
    if dominance:
        counts += _dominance(row)
    what = text(name) if isinstance(name, str) else _both(name)
    return (
        f'<tr role="row"{whole}>'
        f'<th scope="row" role="rowheader" class="as-c-what">{what} {arrow}{note}</th>'
        f'<td role="cell" class="as-c-axis">{difference_mark(marked or row, axis)}</td>'
        f'<td role="cell" class="as-c-value">{_difference(row)}</td>'
        f'<td role="cell" class="as-c-p" data-label="p">{_p(row.p_value)}</td>'
        f'<td role="cell" class="as-c-p" data-label="{label}"><span{sure}>{bh}</span></td>'
        f'<td role="cell" class="as-c-tally">{tally}<span class="as-ci">{counts}</span></td></tr>'
    )


def _both(names: Names) -> str:
    first, second = (submitted(name, limit=_LONGEST_NAME) for name in names)
    return f'{first} <span class="as-muted">and</span> {second}'


def _dominance(row: Compared) -> str:
    if not row.tally or not row.n_units:
        return ""
    better, _, worse = row.tally
    return f"; R {better / row.n_units:.2f} and {worse / row.n_units:.2f}"


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
