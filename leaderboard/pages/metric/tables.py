"""Results of one metric as tables: benchmarks, skills, everything, and its profile."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from leaderboard.pages.index.marks import index_axis
from leaderboard.pages.shown.marks import Axis, axis_header, rank_bar, rank_text
from leaderboard.pages.shown.markup import badge, scroll_box, text
from leaderboard.pages.shown.ranking_marks import percent
from leaderboard.publication.entries import Entry
from leaderboard.publication.measure_names import info, skill_title, title, token
from leaderboard.ranking.cells import Cell
from leaderboard.ranking.index import Interval
from leaderboard.text import MISSING, count, interval, number
from leaderboard.views.addresses import board_address, compare_address, items_address
from leaderboard.views.metric import OnBoard, ProfileRow

MOST_ROWS = 1200


def benchmark_table(found: Sequence[OnBoard], shown: Entry) -> str:
    """The headline on every benchmark."""
    heads = ("Benchmark", "Headline", "Value", "Rank range", "Tier", "P(best)", "Clusters",
             "Missing", "Look")  # fmt: skip
    rows = "".join(_benchmark(one, shown) for one in found)
    return _table("Results on every benchmark", heads, rows, "as-m-boards")


def skill_table(one: OnBoard) -> str:
    """One row per skill, by the measure nearest to the headline; empty where there is none."""
    if not one.skills:
        return ""
    card = one.card
    every = one.board.every_selector()
    rows = "".join(
        f'<tr><th scope="row"><a href="{text(_board_of(one, cell))}">'
        f"{text(skill_title(card, cell.skill))}</a></th>"
        f'<td class="as-muted">{text(title(card, cell.selector, every))}</td>{_figures(cell)}'
        f"<td>{_failures(one, cell.skill or '')}</td></tr>"
        for cell in one.skills
    )
    heads = ("Skill", "Measure", "Value", "Rank range", "Clusters", "Missing", "Where it fails")
    return _table(f"{card.title} by skill", heads, rows, "as-m-skills")


def measure_table(one: OnBoard) -> str:
    """Every row that was published, whatever it is."""
    card = one.card
    every = one.board.every_selector()
    rows = "".join(
        f'<tr><th scope="row"><a href="{text(_board_of(one, cell))}">'
        f"{text(title(card, cell.selector, every))}</a></th>"
        f"<td>{text(skill_title(card, cell.skill))}</td>{_figures(cell)}</tr>"
        for cell in one.cells[:MOST_ROWS]
    )
    heads = ("Measure", "Skill", "Value", "Rank range", "Clusters", "Missing")
    cut = len(one.cells) - MOST_ROWS
    more = f'<p class="as-legend">{count(cut, "more row")} on the board.</p>' if cut > 0 else ""
    return _table(f"{card.title}, all measures", heads, rows, "as-m-skills") + more


def profile_table(rows: Sequence[ProfileRow], links: Mapping[str, str]) -> str:
    """Skills across benchmarks on one axis, with the median and the best metric beside the own.

    Args:
        rows: in their order; those of one skill stand together.
        links: name of a skill to its address in the skill explorer.
    """
    ends = [
        Interval(end, end, end) for row in rows for end in (*row.own, row.median, row.best)
        if math.isfinite(end)
    ]  # fmt: skip
    axis = index_axis([*ends, Interval(1.0, 1.0, 1.0)])
    body, before = [], ""
    for row in rows:
        to = links.get(row.skill)
        name = f'<a href="{text(to)}">{text(row.skill)}</a>' if to else text(row.skill)
        again = ' class="as-again"' if row.skill == before else ""
        before = row.skill
        body.append(
            f'<tr{again}><th scope="row"><span class="as-m-skill">{name}</span>'
            f'<span class="as-note">{text(row.on.title)}</span></th>'
            f'<td class="as-m-axis">{_profile_mark(row, axis)}</td>'
            f"<td><b>{number(row.own.value, 2)}</b> "
            f'<span class="as-ci">{interval(row.own.low, row.own.high)}</span></td>'
            f'<td data-label="median">{number(row.median, 2)}</td>'
            f'<td data-label="best">{number(row.best, 2)}</td></tr>'
        )
    head = (
        '<th scope="col">Skill</th><th scope="col" class="as-m-axis"><span class="as-sr">Rescaled '
        f'value</span>{axis_header(axis)}</th><th scope="col">Rescaled</th>'
        '<th scope="col">Median</th><th scope="col">Best</th>'
    )
    return (
        f'{scroll_box("Profile over skills")}<table class="as-table as-profile">'
        '<caption class="as-sr">Rescaled values by skill, with the median and the best metric'
        f"</caption><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
    )


def _benchmark(one: OnBoard, shown: Entry) -> str:
    card, cell = one.card, one.headline
    to = board_address(card.name)
    marks = badge("simulated ratings", "warn") if card.simulated else ""
    elsewhere = (
        f'<span class="as-note">from submission {text(one.entry_id.rpartition("/")[0])}</span>'
        if one.entry_id != shown.entry_id
        else ""
    )
    name = f'<th scope="row"><a href="{text(to)}">{text(card.title)}</a> {marks}{elsewhere}</th>'
    if cell is None:
        return f'<tr>{name}<td colspan="8" class="as-muted">No value of the headline.</td></tr>'
    note = f'<span class="as-note">{text(cell.note, limit=200)}</span>' if cell.note else ""
    look = [
        f'<a href="{text(to)}">Board</a>',
        f'<a href="{text(compare_address(card.name, one.entry_id))}">Compare</a>',
    ]
    if card.answers_public:
        fails = items_address(card.name, a=one.entry_id, show="failures")
        look.append(f'<a href="{text(fails)}">Where it fails</a>')
    chance = MISSING if cell.p_best is None else percent(cell.p_best)
    return (
        f'<tr>{name}<td data-label="Headline">{text(info(card, cell.measure).title)}</td>'
        f'<td data-label="Value">{_value(cell)}{note}</td>'
        f'<td data-label="Rank range">{_rank(cell, one.ranked)}</td>'
        f'<td data-label="Tier">{MISSING if cell.tier is None else cell.tier}</td>'
        f'<td data-label="P(best)">{chance}</td>'
        f'<td data-label="{text(card.cluster.capitalize())}s">{cell.n_clusters:,}</td>'
        f'<td data-label="Missing">{_missing(cell)}</td>'
        f'<td class="as-m-look">{" · ".join(look)}</td></tr>'
    )


def _figures(cell: Cell) -> str:
    note = f'<span class="as-note">{text(cell.note, limit=200)}</span>' if cell.note else ""
    return (
        f'<td data-label="Value">{_value(cell)}{note}</td>'
        f'<td data-label="Rank range">{_rank(cell)}</td>'
        f'<td data-label="Clusters" title="{count(cell.n_items, "item")}">{cell.n_clusters:,}</td>'
        f'<td data-label="Missing">{_missing(cell)}</td>'
    )


def _value(cell: Cell) -> str:
    return f'<b>{number(cell.value)}</b> <span class="as-ci">{interval(cell.ci_low, cell.ci_high)}</span>'


def _rank(cell: Cell, ranked: int = 0) -> str:
    if cell.rank is None or cell.rank_low is None or cell.rank_high is None:
        return f'<span class="as-none">{text(cell.why_unranked)}</span>'
    if not ranked:
        return f'<span class="as-range">{rank_text(cell)}</span>'
    bar = rank_bar(cell.rank_low, cell.rank, cell.rank_high, ranked)
    of = f'<span class="as-muted">of {ranked}</span>'
    return f'<span class="as-range">{rank_text(cell)}</span> {of}{bar}'


def _missing(cell: Cell) -> str:
    if not cell.n_missing:
        return "0"
    return badge(f"{cell.n_missing:,} of {cell.n_items + cell.n_missing:,}", "warn")


def _failures(one: OnBoard, skill: str) -> str:
    if not one.card.answers_public:
        return f'<span class="as-none" title="Its answers are not public">{MISSING}</span>'
    to = items_address(one.card.name, skill=skill, a=one.entry_id, show="failures")
    return f'<a href="{text(to)}">Images</a>'


def _board_of(one: OnBoard, cell: Cell) -> str:
    return board_address(one.card.name, skill=cell.skill or "", measure=token(cell.selector))


def _profile_mark(row: ProfileRow, axis: Axis) -> str:
    """A dot with its interval, a stroke at the median and a diamond at the best."""
    zero, one = axis.at(0.0), axis.at(1.0)
    marks = [
        f'<line class="as-chance" x1="{zero}%" x2="{zero}%" y1="0" y2="22"/>',
        f'<line class="as-top-line" x1="{one}%" x2="{one}%" y1="0" y2="22"/>',
    ]
    low, value, high = row.own.low, row.own.value, row.own.high
    if math.isfinite(low) and math.isfinite(high):
        marks.append(
            f'<line class="as-whisker" x1="{axis.at(low)}%" x2="{axis.at(high)}%" y1="11" y2="11"/>'
        )
    median = axis.at(row.median)
    marks.append(f'<line class="as-median" x1="{median}%" x2="{median}%" y1="4" y2="18"/>')
    marks.append(
        f'<svg x="{axis.at(row.best)}%" y="11" overflow="visible">'
        '<path class="as-top-mark" d="M0 -5.5L5.5 0L0 5.5L-5.5 0z"/></svg>'
    )
    marks.append(f'<circle class="as-dot" cx="{axis.at(value)}%" cy="11" r="4"/>')
    label = (
        f"{row.skill}, {row.on.title}: {number(value, 2)} {interval(low, high)}; median "
        f"{number(row.median, 2)}, best {number(row.best, 2)} of {count(row.n_metrics, 'metric')}"
    )
    return f'<svg class="as-mark" role="img" aria-label="{text(label)}">{"".join(marks)}</svg>'


def _table(caption: str, heads: Sequence[str], rows: str, kind: str) -> str:
    head = "".join(f'<th scope="col">{name}</th>' for name in heads)
    return (
        f'{scroll_box(caption)}<table class="as-table {kind}">'
        f'<caption class="as-sr">{text(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )
