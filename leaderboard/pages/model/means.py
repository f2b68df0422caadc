"""A model's mean scores: by skill, by every metric, with intervals and ranks."""

from __future__ import annotations

from collections.abc import Sequence

from leaderboard.models.board_types import Judge, Mean, ModelBoard, SkillBoard
from leaderboard.pages.models.names import judge_name
from leaderboard.pages.models.table import rank_range
from leaderboard.pages.shown.markup import badge, scroll_box, section, text
from leaderboard.text import MISSING, count, interval, number
from leaderboard.views.addresses import model_address

MOST_METRICS = 8
"""Columns of metrics; those that are trusted on most skills come first."""


def means_section(submission_id: str, board: ModelBoard | None) -> str:
    """Skills down, metrics across.

    Args:
        submission_id: of the model.
        board: of its prompt set, without filters; None where there is none.
    """
    having = [of for of in board.skills.values() if submission_id in of.standings] if board else []
    judges = _judges(having)
    if not judges:
        return ""
    heads = "".join(f'<th scope="col">{judge_name(one.entry_id, one.title)}</th>' for one in judges)
    rows = "".join(_row(of, submission_id, judges) for of in having)
    return section(
        "Mean scores by skill",
        f"{scroll_box('Mean scores by skill')}"
        '<table class="as-table as-matrix as-m-means"><caption class="as-sr">Mean scores by skill '
        'and metric</caption><thead><tr><th scope="col" class="as-c-metric">Skill</th>'
        f'<th scope="col">Rank</th>{heads}</tr></thead><tbody>{rows}</tbody></table></div>'
        '<p class="as-legend"><b>Rank:</b> range among all models of the set by the metrics that '
        "judge the skill. Figures are means with 95 % intervals, in units of each metric; "
        f"{badge('judges', 'good')}: it judges this skill; others are for the curious.</p>",
        ident="means",
    )


def _judges(boards: Sequence[SkillBoard]) -> list[Judge]:
    trusted: dict[str, int] = {}
    first: dict[str, Judge] = {}
    for of in boards:
        for judge in of.judges:
            first.setdefault(judge.entry_id, judge)
            trusted[judge.entry_id] = trusted.get(judge.entry_id, 0) + judge.trusted
    return sorted(first.values(), key=lambda one: -trusted[one.entry_id])[:MOST_METRICS]


def _row(of: SkillBoard, submission_id: str, judges: Sequence[Judge]) -> str:
    standing = of.standings[submission_id]
    here = {judge.entry_id: judge for judge in of.judges}
    cells = "".join(
        _cell(standing.means.get(one.entry_id), here.get(one.entry_id)) for one in judges
    )
    address = text(f"{model_address(submission_id, skill=of.skill or '')}#images")
    tier = f"<small>tier {standing.tier}</small>" if standing.tier is not None else ""
    return (
        f'<tr><th scope="row" class="as-c-metric"><a href="{address}">{text(of.title)}</a>'
        f'<span class="as-note">{count(of.n_prompts, "prompt")}</span></th>'
        f'<td title="{text(standing.unranked)}"><span class="as-range">{rank_range(standing)}</span>'
        f"{tier}</td>{cells}</tr>"
    )


def _cell(mean: Mean | None, judge: Judge | None) -> str:
    if mean is None or mean.value is None:
        return f"<td>{MISSING}</td>"
    mark = badge("judges", "good") if judge and judge.trusted else ""
    lacks = f"<small>{mean.n_missing:,} without a score</small>" if mean.n_missing else ""
    return (
        f"<td><b>{number(mean.value)}</b><small>{interval(mean.ci_low, mean.ci_high)}</small>"
        f"{lacks}{mark}</td>"
    )
