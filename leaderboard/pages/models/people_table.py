"""People's ratings of models as a table: one row for each model in its tier, one column a skill."""

from __future__ import annotations

from itertools import groupby

from leaderboard.models.board_types import Mean
from leaderboard.models.people import PeopleBoard, RatedSkill
from leaderboard.pages.models.table import rank_range, strength, tier_row
from leaderboard.pages.shown.marks import Axis, axis_for, axis_header, whisker
from leaderboard.pages.shown.markup import link, scroll_box, text
from leaderboard.text import MISSING, count, interval, number

DIGITS = 2
"""Of ratings."""
UNDECIDED = "No two models differ significantly."


def people_verdict(board: PeopleBoard) -> str:
    """Which model people rate highest, and on which skills they see no difference; as HTML."""
    overall = board.overall
    first, mean = next(iter(overall.means.items()))
    others, ahead = len(overall.means) - 1, len(overall.ahead_of)
    who = "every other model" if ahead == others else f"{ahead} of {count(others, 'other model')}"
    said = (
        f"{text(board.models[first])} has the highest mean rating, {number(mean.value, DIGITS)} "
        f"{interval(mean.ci_low, mean.ci_high, DIGITS)}"
    )
    said += f", significantly above {who}." if ahead else "; no other is significantly below it."
    equal = [one.title for one in board.skills.values() if one.skill and one.undecided]
    if equal:
        said += f" No significant difference between any two models: {text(', '.join(equal))}."
    return f"<p>{said}</p>"


def people_table(board: PeopleBoard) -> str:
    """The table; its rows are in tiers over all prompts, its columns are skills."""
    overall, skills = board.overall, [one for one in board.skills.values() if one.skill is not None]
    axis = axis_for(overall.means.values(), None)
    heads = _head(overall, axis_header(axis)) + "".join(map(_head, skills))
    body = "".join(
        tier_row(_tier(tier), 1 + len(skills))
        + "".join(_row(board, model, skills, axis) for model in models)
        for tier, models in groupby(overall.means, key=lambda one: overall.means[one].tier)
    )
    label = f"People’s ratings of models on {board.benchmark.title}"
    label += f": {board.gold_title}" if board.gold else ""
    return (
        f'{scroll_box(label)}<table class="as-table as-heat as-models as-people">'
        f'<caption class="as-sr">{text(label)}, by skill, with rank ranges</caption>'
        f'<thead><tr><th scope="col" class="as-c-metric">Model</th>{heads}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def people_legend(board: PeopleBoard) -> str:
    """How the table is read, and whose ratings they are."""
    card = board.benchmark
    links = " · ".join(link(url, label) for label, url in card.links.items())
    ratings = f", {count(board.n_ratings, 'rating')}" if board.n_ratings else ""
    note = f" {text(board.note)}" if board.note else ""
    return (
        '<p class="as-legend"><b>Large:</b> mean rating, from 1 to 5. <b>Brackets:</b> 95% interval, '
        "prompts resampled. <b>Small:</b> 95% range of the rank over the resamples. "
        '<b>Colour:</b> within the column, lowest <span class="as-ramp" aria-hidden="true"></span> '
        "highest; none where no two models differ significantly (n.s.). <b>n:</b> prompts. "
        "<b>Tier:</b> no two models of a tier differ significantly on all prompts (paired t-tests, "
        "Holm’s correction, level 0.05). No metric takes part in this table. "
        f"<b>Source:</b> {text(card.title)}, {count(board.overall.n_prompts, 'prompt')} with one image "
        f"of each model{ratings}; {links}. <b>Licence:</b> {text(card.licence)}.{note}</p>"
    )


def _tier(tier: int | None) -> str:
    return "No rank" if tier is None else f"Tier {tier}"


def _head(skill: RatedSkill, scale: str = "") -> str:
    short, long = ("no order", skill.note) if skill.note else ("n.s.", UNDECIDED)
    note = (
        f'<span class="as-note as-warned" title="{text(long)}">{short}</span>'
        if skill.note or skill.undecided
        else ""
    )
    n = f'<span class="as-note" title="{count(skill.n_prompts, "prompt")}">n\u00a0=\u00a0{skill.n_prompts:,}</span>'
    return f'<th scope="col">{text(skill.title)}{n}{note}{scale}</th>'


def _row(board: PeopleBoard, model: str, skills: list[RatedSkill], axis: Axis) -> str:
    overall = board.overall.means[model]
    first = (
        f'<td title="{_hover(board.overall, overall)}"><b>{number(overall.value, DIGITS)}</b> '
        f'<span class="as-ci">{interval(overall.ci_low, overall.ci_high, DIGITS)}</span>'
        f"{whisker(overall, axis, DIGITS)}"
        f'<small class="as-range">{rank_range(overall)}</small></td>'
    )
    cells = "".join(_cell(skill, skill.means[model]) for skill in skills)
    name = f'<span class="as-name">{text(board.models[model])}</span>'
    return f'<tr><th scope="row" class="as-c-metric">{name}</th>{first}{cells}</tr>'


def _cell(skill: RatedSkill, mean: Mean) -> str:
    if mean.value is None:
        return f'<td class="as-blank" title="No rating">{MISSING}</td>'
    known = [one.value for one in skill.means.values() if one.value is not None]
    # Where the ratings give no order there is no colour either: it would show one.
    share = 0 if skill.note or skill.undecided else strength(mean.value, min(known), max(known))
    return (
        f'<td style="--t:{share}%" title="{_hover(skill, mean)}"><b>{number(mean.value, DIGITS)}</b>'
        f'<small class="as-range">{rank_range(mean)}</small></td>'
    )


def _hover(skill: RatedSkill, mean: Mean) -> str:
    """All that a cell rests on."""
    said = [
        f"{skill.title}: {number(mean.value, DIGITS)} {interval(mean.ci_low, mean.ci_high, DIGITS)}",
        count(mean.n_prompts, "prompt"),
    ]
    if mean.rank is None:
        said.append(skill.note or "no rank")
    else:
        said.append(
            f"rank {mean.rank}, 95% range {rank_range(mean)}; tier {mean.tier} on this skill"
        )
    return text("; ".join(said))
