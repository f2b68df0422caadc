"""Disagreements of qualified metrics about two models: stated, never averaged away."""

from __future__ import annotations

from leaderboard.models.board_types import Disagreement, ModelBoard, SkillBoard
from leaderboard.pages.models.names import in_words, model_name
from leaderboard.pages.shown.markup import section, submitted, text
from leaderboard.text import count
from leaderboard.views.addresses import with_state
from leaderboard.views.models import Choice

MOST_OF_A_SKILL = 12
"""Pairs that are listed of a skill; the rest is in the download."""


def disagreements_section(board: ModelBoard, choice: Choice) -> str:
    """Every pair of models that trusted metrics order in opposite ways, by skill."""
    if board.query.judge or len(board.entries) < 2:
        return ""
    found = [of for of in board.skills.values() if of.disagreements]
    total = sum(len(of.disagreements) for of in found)
    if not total:
        several = any(len(of.trusted) > 1 for of in board.skills.values())
        said = (
            "No two trusted metrics order two models in opposite ways with significance."
            if several
            else "No skill has two trusted metrics that could disagree."
        )
        return section("Where trusted metrics disagree", f"<p>{said}</p>", ident="disagreements")
    body = "".join(_skill(of, board, choice) for of in found)
    return section(
        "Where trusted metrics disagree",
        '<p class="as-lead">Each of these pairs is ordered one way by one trusted metric and the '
        "other way by another, both with significance. Neither model counts as better.</p>"
        f"{body}",
        aside=f"<span>{count(total, 'pair')}</span>",
        ident="disagreements",
    )


def _skill(of: SkillBoard, board: ModelBoard, choice: Choice) -> str:
    shown = of.disagreements[:MOST_OF_A_SKILL]
    lines = "".join(f"<li>{_line(one, of, board, choice)}</li>" for one in shown)
    left = len(of.disagreements) - len(shown)
    more = f"<li>{count(left, 'more pair')} in the download.</li>" if left else ""
    return f'<h3>{text(of.title)}</h3><ul class="as-disagree">{lines}{more}</ul>'


def _line(one: Disagreement, of: SkillBoard, board: ModelBoard, choice: Choice) -> str:
    titles = {judge.entry_id: judge.title for judge in of.judges}

    def by(entry_ids: tuple[str, ...]) -> str:
        return in_words([submitted(titles.get(e, e), limit=40) for e in entry_ids])

    within = choice.query.to_link("model-pair", skill=of.skill or "")
    address = with_state(within, a=one.first, b=one.second)
    first, second = board.entries[one.first], board.entries[one.second]
    return (
        f"By {by(one.for_first)} {model_name(first)} is better, by {by(one.for_second)} "
        f'{model_name(second)}. <a href="{text(address)}">Compare the two</a>'
    )
