"""Tabs of the Metrics place: all metrics, a skill each, a benchmark each."""

from __future__ import annotations

from dataclasses import replace

from leaderboard.publication.reader import View
from leaderboard.publication.skill_names import common_names, skills_of
from leaderboard.views.boards import BoardQuery, Filters
from leaderboard.views.index import SIMULATED
from leaderboard.views.metric_table import short_title
from leaderboard.views.metrics import (
    BENCHMARK,
    SKILL,
    MetricsQuery,
)
from leaderboard.web.components import Link, Tab

MOST_SKILLS = 9
EVERYTHING = Filters()


def metric_tabs(
    view: View, tab: str, *, simulated: bool = False, filters: Filters = EVERYTHING
) -> tuple[Tab, ...]:
    """The tabs."""
    shown = view.group(simulated=simulated)
    start = MetricsQuery(ratings=SIMULATED if simulated else "")
    known = skills_of(shown.boards)
    named = [one for key, one in known.items() if key in common_names()][:MOST_SKILLS]
    kind, _, which = tab.partition(":")
    found = [_tab(start, "", "Overall", "", current=not kind)]
    found += [
        _tab(start, f"{SKILL}:{one.key}", one.title, "Skill", current=tab == f"{SKILL}:{one.key}")
        for one in named
    ]
    if known:
        elsewhere = kind == SKILL and which not in {one.key for one in named}
        more = f"{len(known)}" if named else ""
        found.append(_tab(start, f"{SKILL}:", "All skills", "Skill", note=more, current=elsewhere))
    kept = replace(filters, within=False)
    boards = sorted(shown.boards.items(), key=lambda one: one[1].empty)
    found += [
        Tab(
            short_title(board.card), BoardQuery(name, filters=kept).to_link(),
            tab == f"{BENCHMARK}:{name}", "no results" if board.empty else "", "Benchmark",
            go=f"tab-{BENCHMARK}:{name}",
        )
        for name, board in boards
    ]  # fmt: skip
    return tuple(found)


def kinds_of_data(view: View, query: MetricsQuery) -> tuple[Link, ...]:
    """Links to real data and to simulated ratings, where there are both; the current is empty."""
    if not view.has_both:
        return ()
    pairs = (("Real data", ""), ("Simulated ratings", SIMULATED))
    return tuple(
        Link(label, "" if query.ratings == ratings else MetricsQuery(ratings=ratings).link(),
             go=f"ratings-{ratings or 'real'}")
        for label, ratings in pairs
    )  # fmt: skip


def _tab(
    start: MetricsQuery, tab: str, title: str, group: str, *, current: bool, note: str = ""
) -> Tab:
    return Tab(title, start.link(tab=tab), current, note, group, go=f"tab-{tab or 'overall'}")
