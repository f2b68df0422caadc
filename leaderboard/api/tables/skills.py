"""Ranking of metrics on a skill, over the benchmarks that measure it."""

from __future__ import annotations

from leaderboard.api.operations import RATINGS, Asked, Operation, Parameter
from leaderboard.api.source import Source
from leaderboard.api.tables.boards import as_of, refuse
from leaderboard.tables import Table
from leaderboard.views.skill_choice import COSTS, SkillsQuery, found_for, resolve, skills_table


def skills(source: Source, asked: Asked) -> Table:
    """The list that the skill explorer shows for the same query.

    Raises:
        RefusedError: `bad_query`.
    """
    view = source.reader.view()
    choice = resolve(SkillsQuery.from_params(asked.params), view.boards)
    refuse(choice.remarks)
    about = {"as_of": as_of(view), "known": {key: one.title for key, one in choice.known.items()}}
    if not choice.skills:
        return skills_table(choice, None, about)
    with source.turn():
        found = found_for(choice, source.skills.of(view, choice.parts))
    return skills_table(choice, found, about)


OPERATIONS = (
    Operation(
        "/skills", "skills",
        "Metrics for one skill or several, best first, and whether each may be recommended; without a "
        "skill, which there are.", skills,
        (
            Parameter("skill", "Keys or names of skills, joined by commas.", "counting"),
            Parameter("w", "Weights of skills and benchmarks, as `counting:2,gecko:0`."),
            Parameter("cost", "What `on_front` goes by; without: seconds.", "", tuple(COSTS)),
            Parameter("budget", "Most that may be spent; it changes no row."), RATINGS,
        ),
    ),
)  # fmt: skip
