"""Rows of the list of a skill: which are shown, and in which order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from leaderboard.publication.metric_facts import metric_title
from leaderboard.publication.reader import View
from leaderboard.text import clean
from leaderboard.views.addresses import items_address
from leaderboard.views.metrics_query import SKILL, MetricsQuery
from leaderboard.views.rankings import MEAN, Ranking, skill_ranking
from leaderboard.views.skill_choice import (
    COSTS,
    FLOPS,
    GIGA,
    SECONDS,
    Found,
    Point,
    SkillsChoice,
    SkillsQuery,
    Spent,
    found_for,
    resolve,
)
from leaderboard.views.skill_choice import Prepared as PreparedSkills
from leaderboard.views.skills import Placed

NAME, P_BEST = "name", "p_best"


@dataclass(frozen=True)
class SkillRow:
    """One metric of the list."""

    placed: Placed
    used: Spent | None

    def cost(self, by: str) -> float | None:
        """A cost, in FLOPs, seconds for 1,000 pairs or GiB; None: not known."""
        cost = self.used.by(by) if self.used else None
        return cost * GIGA if cost is not None and by == FLOPS else cost


@dataclass(frozen=True)
class SkillView:
    """What the tab of a skill shows."""

    query: MetricsQuery  # the exact state
    choice: SkillsChoice  # skills, weights and budget
    found: Found | None  # what is known of them; None where no skill is chosen
    ranking: Ranking | None  # the weighted means
    ranked: tuple[SkillRow, ...]  # rows with a rank, in the order that is asked for
    lacking: tuple[SkillRow, ...]  # rows that lack a benchmark, likewise
    by: str  # the cost that is looked at
    everyone: int  # how many metrics there are before the filter

    @property
    def sort(self) -> tuple[str, bool]:
        """Key of the column that rows are sorted by, and whether the highest come first."""
        if not self.query.sort:
            return MEAN, True
        return self.query.sorted_by, self.query.sort.startswith("-")

    @property
    def budget(self) -> float | None:
        """The bound as the choice has it, in thousands of millions of operations."""
        return self.choice.budget

    @property
    def best_affordable(self) -> Point | None:
        """The best within the bound; without one, the cheapest that may be as good as the best."""
        return self.found.affordable(self.budget) if self.found else None


def skill_view(query: MetricsQuery, view: View, prepared: PreparedSkills) -> SkillView:
    """Find what a query asks for."""
    by = query.by or SECONDS
    bound = query.cost
    budget = "" if bound is None else f"{bound / (GIGA if by == FLOPS else 1.0):.6f}"
    asked = SkillsQuery(query.named, query.weights, by, budget, query.ratings)
    choice = resolve(asked, view.boards)
    exact = MetricsQuery(
        tab=f"{SKILL}:{','.join(one.key for one in choice.skills)}",
        sort=query.sort,
        words=query.words,
        by="" if choice.cost == SECONDS else choice.cost,
        cost=bound if choice.budget is not None else None,
        weights=choice.query.weights,
        open=query.open,
        ratings=choice.ratings,
    )
    if not choice.skills:
        return SkillView(exact, choice, None, None, (), (), choice.cost, 0)
    found = found_for(choice, prepared.of(view, choice.parts))
    keys = {MEAN, NAME, P_BEST, *COSTS, *found.base.measured}
    if query.sorted_by not in keys or query.sort == f"-{MEAN}":
        exact = MetricsQuery(**{**vars(exact), "sort": ""})
    rows = [SkillRow(one, used) for one, used in zip(found.placed, found.spent, strict=True)]
    kept = [row for row in rows if _keeps(row, exact.terms)]
    ranked = [row for row in kept if row.placed.standing.rank is not None]
    lacking = [row for row in kept if row.placed.standing.rank is None]
    return SkillView(
        exact, choice, found, skill_ranking(found, choice.title.lower()),
        _in_order(ranked, exact, found), _in_order(lacking, exact, found), choice.cost, len(rows),
    )  # fmt: skip


def fails_at(placed: Placed, found: Found) -> tuple[tuple[str, str], ...]:
    """Title of a benchmark and the address of the images where a metric fails there.

    Those with a weight come first; benchmarks whose answers are not public are left out.
    """
    links: list[tuple[bool, str, str]] = []
    for name in sorted(found.base.measured, key=lambda one: not found.weights.get(one)):
        one = found.base.measured[name]
        cell = one.able.get(placed.who)
        if cell is not None and one.card.answers_public and name in found.weights:
            to = items_address(one.card.name, skill=one.part.key, a=cell.entry_id, show="failures")
            links.append((found.weights[name] > 0, one.card.title, to))
    return tuple((title, to) for _, title, to in links)


def _keeps(row: SkillRow, terms: Sequence[str]) -> bool:
    entry = row.placed.entry
    words = [clean(one).casefold() for one in (entry.metric, *metric_title(entry), entry.submitter)]
    return not terms or any(term in word for term in terms for word in words)


def _in_order(rows: Sequence[SkillRow], query: MetricsQuery, found: Found) -> tuple[SkillRow, ...]:
    """By the column that is asked for; those without a value last in both directions."""
    if not query.sort:
        return tuple(rows)
    key, down = query.sorted_by, query.sort.startswith("-")
    if key == NAME:
        return tuple(sorted(rows, key=_name, reverse=down))
    valued = [(_value(row, key, found), row) for row in rows]
    there = [(value, row) for value, row in valued if value is not None]
    there.sort(key=lambda pair: pair[0], reverse=down)
    return (*(row for _, row in there), *(row for value, row in valued if value is None))


def _name(row: SkillRow) -> str:
    return metric_title(row.placed.entry)[0].casefold()


def _value(row: SkillRow, key: str, found: Found) -> float | None:
    if key in COSTS:
        return row.cost(key)
    standing = row.placed.standing
    if key == P_BEST:
        return None if math.isnan(standing.p_best) else standing.p_best
    if key == MEAN:
        return None if math.isnan(standing.index.value) else standing.index.value
    cell = found.base.measured[key].able.get(row.placed.who)
    return cell.value if cell is not None else None
