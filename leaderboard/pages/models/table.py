"""The board of models as a coloured table: one row for each model, one column for each skill."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from leaderboard.models.board_types import Mean, ModelBoard, SkillBoard, Standing
from leaderboard.pages.models.names import badges, model_name
from leaderboard.pages.shown.markup import scroll_box, submitted, text
from leaderboard.publication.model_entries import ModelEntry
from leaderboard.text import MISSING, count, interval, number
from leaderboard.views.addresses import model_address
from leaderboard.views.models import Choice

MOST_MODELS = 200
"""More rows than this help nobody's eyes; the rest is in the download."""


@dataclass(frozen=True)
class Column:
    """A skill as a column.

    Attributes:
        board: of the skill.
        low: the smallest mean of its lead metric; NaN where there is none.
        high: the greatest.
    """

    board: SkillBoard
    low: float
    high: float

    @classmethod
    def of(cls, board: SkillBoard) -> Column:
        """The column of a skill."""
        means = (lead_mean(board, one) for one in board.standings.values())
        known = [mean.value for mean in means if mean is not None and mean.value is not None]
        return cls(board, min(known, default=0.0), max(known, default=0.0))

    def strength(self, value: float) -> int:
        """How strong the colour of a mean is, from 0 (lowest of the column) to 100."""
        return strength(value, self.low, self.high)


def strength(value: float, low: float, high: float) -> int:
    """How strong the colour of a value is, from 0 (lowest of its column) to 100."""
    return round(100 * (value - low) / (high - low)) if high > low else 50


def lead_mean(board: SkillBoard, standing: Standing) -> Mean | None:
    """The mean that stands in a model's cell: that of the lead metric."""
    return standing.means.get(board.lead) if board.lead else None


def rank_range(standing: Standing | Mean | None) -> str:
    """`1–3`, `4`, or a dash where there is no rank."""
    if standing is None or standing.rank_low is None or standing.rank_high is None:
        return "–"
    low, high = standing.rank_low, standing.rank_high
    return str(low) if low == high else f"{low}–{high}"


def models_in_order(board: ModelBoard) -> tuple[str, ...]:
    """Submission ids in the order of the first skill, then those it does not have."""
    found = dict.fromkeys(one for of in board.skills.values() for one in of.standings)
    return tuple(one for one in found if one in board.entries)


def models_table(board: ModelBoard, choice: Choice) -> str:
    """The table; the rows are in tiers of its first column.

    Args:
        board: what is shown; it has at least one skill.
        choice: what is looked at, for the links into a skill.
    """
    columns = [Column.of(of) for of in board.skills.values()]
    first = columns[0].board
    of_skill = f" by {first.title}" if first.skill is not None else ""
    order = models_in_order(board)
    shown = order[:MOST_MODELS]
    heads = "".join(_head(column, choice) for column in columns)
    body = "".join(
        tier_row(f"{tier}{of_skill}", len(columns))
        + "".join(_row(board.entries[one], columns) for one in of)
        for tier, of in groupby(shown, key=lambda one: _group(first.standings.get(one)))
    )
    left = len(order) - len(shown)
    cut = f" The first {MOST_MODELS}; {left:,} more are in the download." if left else ""
    return (
        f"{scroll_box('Models by skill')}"
        '<table class="as-table as-heat as-models"><caption class="as-sr">Mean scores of models by '
        "skill with their rank ranges</caption>"
        f'<thead><tr><th scope="col" class="as-c-metric">Model</th>{heads}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>{_legend(board, cut)}"
    )


def _group(standing: Standing | None) -> str:
    """What the row of a tier says; rows without a rank are the last."""
    if standing is None or standing.rank_low is None:
        return "No rank"
    return f"Tier {standing.tier}" if standing.tier is not None else "Ranked, without tiers"


def tier_row(title: str, n_columns: int) -> str:
    """The row above the models of a tier.

    Args:
        title: what it says.
        n_columns: of the table, the models' names left out.
    """
    return (
        f'<tr class="as-tier"><th scope="rowgroup" colspan="{n_columns + 1}">'
        f"<span>{text(title)}</span></th></tr>"
    )


def _head(column: Column, choice: Choice) -> str:
    board = column.board
    titles = {judge.entry_id: judge.title for judge in board.judges}
    by = submitted(titles.get(board.lead, board.lead), limit=24) if board.lead else "nobody trusted"
    more = sum(judge.entry_id != board.lead for judge in board.trusted)
    others = f" +{more}" if board.lead and more and not choice.query.judge else ""
    few = (
        f'<span class="as-note as-warned" title="{text(board.note)}">note</span>'
        if board.note
        else ""
    )
    return (
        f'<th scope="col">{_skill_link(board, choice)}<span class="as-note">{by}{others}</span>'
        f'<span class="as-note">{count(board.n_prompts, "prompt")}</span>{few}</th>'
    )


def _skill_link(board: SkillBoard, choice: Choice) -> str:
    """The skill; where it has sub-skills, leading to them."""
    skill = board.skill
    if skill is None or skill == choice.query.skill or len(choice.with_parts(skill)) < 2:
        return text(board.title)
    address = text(choice.query.to_link(skill=skill))
    return f'<a class="as-into" href="{address}" title="Its sub-skills">{text(board.title)}</a>'


def _row(entry: ModelEntry, columns: Sequence[Column]) -> str:
    cells = "".join(_cell(entry, column) for column in columns)
    marks = badges(entry)
    note = f'<span class="as-badges as-block">{marks}</span>' if marks else ""
    return f'<tr><th scope="row" class="as-c-metric">{model_name(entry)}{note}</th>{cells}</tr>'


def _cell(entry: ModelEntry, column: Column) -> str:
    board = column.board
    standing = board.standings.get(entry.submission_id)
    mean = lead_mean(board, standing) if standing else None
    if standing is None or mean is None or mean.value is None:
        why = (
            standing.unranked if standing and standing.unranked else "No score by a trusted metric"
        )
        return f'<td class="as-blank" title="{text(why)}">{MISSING}</td>'
    address = model_address(entry.submission_id, skill=board.skill or "", judge=board.lead or "")
    return (
        f'<td style="--t:{column.strength(mean.value)}%" title="{_hover(board, standing, mean)}">'
        f'<a class="as-to" href="{text(address)}"><b>{number(mean.value)}</b></a>'
        f'<small class="as-range">{rank_range(standing)}</small></td>'
    )


def _hover(board: SkillBoard, standing: Standing, mean: Mean) -> str:
    """All that a cell rests on, in a sentence or two."""
    titles = {judge.entry_id: judge.title for judge in board.judges}
    said = [f"{titles.get(board.lead or '', '')}: {number(mean.value)} "
            f"{interval(mean.ci_low, mean.ci_high)}, {count(mean.n_prompts, 'prompt')}"]  # fmt: skip
    if mean.n_missing:
        said.append(f"{mean.n_missing:,} without a score")
    for judge in board.trusted:
        other = standing.means.get(judge.entry_id)
        if judge.entry_id != board.lead and other is not None:
            said.append(f"{judge.title}: {number(other.value)}")
    if standing.unranked:
        said.append(f"no rank: {standing.unranked}")
    else:
        said.append(f"better than {len(standing.better_than):,}, worse than "
                    f"{len(standing.worse_than):,} of {len(board.standings) - 1:,}")  # fmt: skip
    return text("; ".join(said))


def _legend(board: ModelBoard, cut: str) -> str:
    alone = "by this metric alone" if board.query.judge else "by all metrics that judge the skill"
    return (
        '<p class="as-legend"><b>Large:</b> mean score of the metric in the head of the column, in '
        "its own units, which no two metrics share; +1: one more metric judges this skill. "
        f"<b>Small:</b> rank range {alone}. <b>Colour:</b> within the column, lowest "
        '<span class="as-ramp" aria-hidden="true"></span> highest. <b>Tier:</b> models of which '
        f"no two are told apart. Follow a figure to the images behind it.{cut}</p>"
    )
