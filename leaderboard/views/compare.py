"""Compare place: its state in the address, whom it compares by what, and the differences."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal

from benchmarks.comparison import (
    Compared,
    correction_words,
    effect_words,
    evidence_words,
    figures,
    p_words,
    paired_words,
    plural,
    units_of,
)
from benchmarks.schema import Card, Selector
from benchmarks.statistics.resampling import seed_of
from leaderboard.publication.entries import Entry, Identity, shown_account
from leaderboard.publication.measure_names import info, nearest, skill_title, title, token
from leaderboard.publication.metric_facts import facts_of, metric_label, metric_name
from leaderboard.publication.reader import View
from leaderboard.ranking.cells import Cell
from leaderboard.ranking.comparing import NO_CONTRIBUTIONS, Match, compare_cells
from leaderboard.ranking.slices import mean_over_skills
from leaderboard.text import clean
from leaderboard.views.addresses import metric_address
from leaderboard.views.badges import Tag, badges_of
from leaderboard.views.boards import BETWEEN_SKILLS, Choice
from leaderboard.views.compare_query import SIDES, VIEWS, CompareQuery, ViewName
from leaderboard.views.comparison import (
    ComparisonPage,
    Opponents,
    as_on_the_board,
    comparison_page,
    of_entries,
    opponents,
)
from leaderboard.views.examples import ALL_SPLITS, entries_on
from leaderboard.views.figures import Option, told_apart

MOST_OPTIONS = 400
"""Metrics that a list offers: of very many the first of the board, and those chosen."""


@dataclass(frozen=True)
class ComparedMetric:
    """One of the metrics that are compared."""

    side: str  # `a` to `d`
    entry_id: str
    name: str  # as submitted
    version: str  # likewise
    href: str  # of its own page
    submitter: str = ""  # as signed; empty where there is no account to show
    account: str = ""  # its key
    value: float | None = None  # by the chosen measure; None where it has none
    badges: tuple[Tag, ...] = ()  # what must be known of it


def resolve_place(query: CompareQuery, view: View) -> Opponents:
    """The metrics, benchmark, skill and measure that a state of the place is about.

    Where the form asks for another benchmark, the same metrics are looked for there, and its skill
    and measure are those it begins with.
    """
    return opponents(moved_along(query, view), view)


def moved_along(query: CompareQuery, view: View) -> CompareQuery:
    """The query with the metrics as they are called on another benchmark, if it asks for one."""
    if not query.before or query.before == query.benchmark:
        return replace(query, before="")
    board = view.boards.get(query.benchmark)
    there = {} if board is None else by_identity(view, entries_on(board))

    def entry_there(asked: str) -> str:
        entry = view.entries.get(asked)
        return "" if entry is None else there.get(Identity.of(entry), "")

    named: dict[str, Any] = {side: entry_there(getattr(query, side)) for side in SIDES}
    return replace(query, **named, before="", skill="", measure="", split="", case="", page=1)


def by_identity(view: View, entries: Sequence[str]) -> dict[Identity, str]:
    """The metrics of some entries, each by the first of its entries."""
    found: dict[Identity, str] = {}
    for entry in entries:
        found.setdefault(Identity.of(view.entries[entry]), entry)
    return found


def tab_links(state: CompareQuery, choice: Choice | None) -> dict[ViewName, str]:
    """Where each tab leads from a state."""
    skill = state.skill if BETWEEN_SKILLS not in state.skill else ""
    split = state.split
    if choice is not None and choice.selector is not None:
        own = choice.selector.split or ""
        split = "" if own == ALL_SPLITS else own
    listed = replace(state, skill=skill, split=split, page=1, case="")
    compared = replace(state, split="", show="", case="", page=1)
    return {
        name: listed.to_link(view=name) if name == "examples" else compared.to_link(view=name)
        for name in VIEWS
    }


def entry_options(
    entries: Sequence[str], chosen: Sequence[str | None], view: View
) -> tuple[Option, ...]:
    """Names of entries to choose from; equal names are told apart by their submission."""
    offered = list(dict.fromkeys([*entries[:MOST_OPTIONS], *filter(None, chosen)]))
    return told_apart({entry: clean(metric_label(view.entries[entry])) for entry in offered})


def benchmark_options(view: View) -> tuple[Option, ...]:
    """Titles of the benchmarks, those with results first."""
    boards = sorted(view.boards.items(), key=lambda item: item[1].empty)
    return tuple(
        Option(name, f"{board.card.title} (no results yet)" if board.empty else board.card.title)
        for name, board in boards
    )


def measure_options(choice: Choice) -> tuple[Option, ...]:
    """Titles of the measures that exist for the chosen skill."""
    card, among = choice.board.card, choice.board.every_selector()
    return tuple(Option(token(one), title(card, one, among)) for one in choice.options)


def skill_options(choice: Choice) -> tuple[Option, ...]:
    """Titles of the skills that have results."""
    card = choice.board.card
    return tuple(Option(skill, skill_title(card, skill)) for skill in choice.board.skills())


def measure_name(choice: Choice) -> str:
    """The bare name of the chosen measure; empty where there is none."""
    return info(choice.board.card, choice.selector.measure).title if choice.selector else ""


def higher_is_better(choice: Choice) -> bool:
    """Whether larger values of the chosen measure are better."""
    measure = choice.selector.measure if choice.selector else ""
    return info(choice.board.card, measure).higher_is_better


def compared_metrics(
    pair: Opponents, view: View, values: Mapping[str, float] | None = None
) -> tuple[ComparedMetric, ...]:
    """The chosen metrics with what a reader must know of them."""
    cells = {cell.entry_id: cell for of in pair.choice.slices() for cell in of}
    card = pair.choice.board.card
    found = []
    for side, entry_id in zip(SIDES, pair.chosen, strict=False):
        badges = badges_of(view.entries[entry_id], cells.get(entry_id), card)
        one = named_metric(side, view.entries[entry_id])
        value = (values or {}).get(entry_id)
        known = value is not None and math.isfinite(value)
        found.append(replace(one, value=value if known else None, badges=badges))
    return tuple(found)


def named_metric(side: str, entry: Entry) -> ComparedMetric:
    """A metric by its name alone."""
    account = shown_account(entry.account)
    return ComparedMetric(
        side, entry.entry_id, metric_name(entry),
        "" if facts_of(entry).title else entry.version, metric_address(entry.entry_id),
        entry.submitter if account else "", account,
    )  # fmt: skip


Outcome = Literal["better", "not_significant", "equal", "same_value", "untested", "undefined"]


def verdict_of(row: Compared) -> dict[str, Any]:
    """Which of two metrics is better (`ahead`), by how much and how sure that is.

    Texts are empty where there is no interval, no test or no correction.
    """
    gain, low, high = row.advantage
    ahead: Literal["a", "b"] = "a"
    if gain < 0.0:
        ahead, gain, low, high = "b", -gain, -high, -low
    by, start, end = figures(gain, low, high) if math.isfinite(gain) else ("", "", "")
    return {
        "outcome": _outcome(row),
        "ahead": ahead,
        "by": by,
        "interval": f"[{start}, {end}]" if math.isfinite(low) and math.isfinite(high) else "",
        "p": "" if math.isnan(row.p_value) else p_words(row.p_value),
        "corrected": "" if math.isnan(row.p_corrected) else p_words(row.p_corrected),
        "n_tests": row.n_tests,
        "correction": correction_words(row, "pairs of the whole board, without filters"),
        "unit": row.unit,
    }


def _outcome(row: Compared) -> Outcome:
    if math.isnan(row.value_a) or math.isnan(row.value_b):
        return "undefined"
    if row.difference == 0.0 and row.n_differing == 0 and row.tally:
        return "equal"
    if row.told_apart:
        return "better"
    if math.isnan(row.p_value):
        return "untested"
    return "same_value" if row.difference == 0.0 else "not_significant"


Better = Literal["a", "b", ""]


@dataclass(frozen=True)
class DifferenceRow:
    """One comparison as a table shows it."""

    what: str  # the skill, measure or pair that it is of
    part: Literal["skill", "measure", "pair"]  # what it is one of
    lower_is_better: bool  # whether smaller values of its measure are better
    better: Better  # side of the one that is significantly better; empty where none is
    ahead: Better  # side of the one with the better value; empty where they are equal or undefined
    tested: bool  # whether a test was made
    # what its mark stands at: in favour of the first, with both ends of its interval; NaN
    # where it is undefined
    drawn: tuple[float, float, float]
    difference: str  # value of the first less that of the second, as text
    interval: str  # its 95% interval; empty where there is none
    p: str  # p-value alone, as text; empty where there is none
    corrected: str  # after correction, likewise
    # units on which the first is better, both are equal, and the second is better
    tally: tuple[int, int, int] | None
    notes: tuple[str, ...]  # why there is no test, or no tally
    pair: tuple[str, str] = ("", "")  # names of the two, where rows are of several pairs

    @property
    def dominance(self) -> tuple[float, float] | None:
        """Share of the units on which the first is better, and on which the second is."""
        if self.tally is None:
            return None
        better, _, worse = self.tally
        return better / sum(self.tally), worse / sum(self.tally)


@dataclass(frozen=True)
class DifferenceTable:
    """Comparisons on one axis."""

    rows: tuple[DifferenceRow, ...]  # of the table
    low: float  # lowest value drawn; at most zero
    high: float  # highest
    n_corrected: int  # tests that were corrected together, without the chosen one


def two_compared(pair: Opponents, view: View) -> dict[str, Any]:
    """What is printed of the first two of some metrics: test, sizes, differences, where each leads."""
    choice = pair.choice
    found = comparison_page(choice, pair.a or "", pair.b or "", view)
    row, card = found.chosen, choice.board.card
    counted = row.tally
    return {
        "chosen": row,
        "evidence": evidence_words(row),
        "correction": correction_words(row, "pairs of the whole board, without filters"),
        "paired": paired_words(row),
        "effect": effect_words(row),
        "counted": counted,
        "units": [plural(row.unit, n) for n in counted] if counted else [],
        "uncounted": row.uncounted,
        "unit": row.unit,
        "each_unit": units_of(row.unit),
        "by_skill": _by_skill(found, choice),
        "by_measure": _by_measure(found, choice),
        "better_on": _better_on(found, card),
        "mixed": len({(r.variant, r.split, r.facet) for r in (row, *found.skills)}) > 1,
        "unpublished": row.untested == NO_CONTRIBUTIONS,
        "n_resamples": found.n_resamples,
        "seed": seed_of(card.name, card.revision),
    }


def _by_skill(found: ComparisonPage, choice: Choice) -> DifferenceTable:
    card = choice.board.card
    if not found.skills:
        return _table((), ())
    rows = [_row(row, skill_title(card, row.skill), "skill", card) for row in found.skills]
    return _table(rows, found.skills)


def _by_measure(found: ComparisonPage, choice: Choice) -> DifferenceTable:
    card, among = choice.board.card, choice.board.every_selector()

    def named(row: Compared) -> DifferenceRow:
        selector = Selector(
            measure=row.measure, variant=row.variant, split=row.split, facet=row.facet
        )
        return _row(row, title(card, selector, among), "measure", card, standardised=True)

    return _table([named(row) for row in found.measures], found.measures)


def _better_on(found: ComparisonPage, card: Card) -> tuple[tuple[str, ...], tuple[str, ...]]:
    sure = [row for row in found.skills if row.told_apart]
    ahead = tuple(skill_title(card, row.skill) for row in sure if row.advantage[0] > 0)
    behind = tuple(skill_title(card, row.skill) for row in sure if row.advantage[0] < 0)
    return ahead, behind


def several_compared(pair: Opponents, view: View) -> dict[str, Any]:
    """What is printed of each two of the chosen metrics, in their order, corrected as on the board."""
    choice, chosen, card = pair.choice, pair.chosen, pair.choice.board.card
    cells = [of_entries(of, chosen) for of in choice.slices()]
    if not cells or any(len(of_skill) != len(chosen) for of_skill in cells):
        raise ValueError("one of the metrics has no result by the chosen measure")
    whole = mean_over_skills(view.orders.slices(card, cells))
    place = {cell.entry_id: i for i, cell in enumerate(whole.cells)}
    pairs = tuple(combinations(chosen, 2))
    names = {entry: view.entries[entry].metric for entry in chosen}
    found = compare_cells([Match(whole, place[a], place[b]) for a, b in pairs], card, names)
    rows = tuple(
        as_on_the_board(row, choice, two, view) for row, two in zip(found, pairs, strict=True)
    )
    return {
        "pairs": pairs,
        "rows": rows,
        "table": _table([_row(row, "", "pair", card) for row in rows], ()),
        "of_entries": {
            entry: value
            for two, row in zip(pairs, rows, strict=True)
            for entry, value in zip(two, (row.value_a, row.value_b), strict=True)
        },
        "n_significant": sum(row.told_apart for row in rows),
        "n_tests": max(row.n_tests if row.correction else 0 for row in rows),
        "unit": rows[0].unit,
        "unpublished": all(row.untested == NO_CONTRIBUTIONS for row in rows),
    }


def _table(rows: Sequence[DifferenceRow], corrected: Sequence[Compared]) -> DifferenceTable:
    known = [0.0, *(n for row in rows for n in row.drawn if math.isfinite(n))]
    n_tests = sum(math.isfinite(row.p_value) for row in corrected)
    return DifferenceTable(tuple(rows), min(known), max(known), n_tests)


def _row(
    row: Compared,
    what: str,
    part: Literal["skill", "measure", "pair"],
    card: Card,
    *,
    standardised: bool = False,
) -> DifferenceRow:
    gain = row.advantage[0]
    ahead: Better = "" if math.isnan(gain) or gain == 0.0 else "a" if gain > 0.0 else "b"
    # The effect has the sign of the difference.
    drawn = (row.effect, row.effect_low, row.effect_high) if standardised else row.advantage
    if standardised and not row.higher_is_better:
        drawn = (-row.effect, -row.effect_high, -row.effect_low)
    value, low, high = figures(row.difference, row.ci_low, row.ci_high)
    return DifferenceRow(
        what=what,
        part=part,
        lower_is_better=not info(card, row.measure).higher_is_better,
        better=ahead if row.told_apart else "",
        ahead=ahead,
        tested=not math.isnan(row.p_value),
        drawn=drawn,
        difference=value,
        interval="" if math.isnan(row.ci_low) else f"[{low}, {high}]",
        p=_p(row.p_value),
        corrected=_p(row.p_corrected),
        tally=row.tally,
        notes=tuple(clean(why) for why in (row.untested, row.uncounted) if why),
        pair=(row.metric_a, row.metric_b),
    )


def _p(value: float) -> str:
    return "" if math.isnan(value) else p_words(value).removeprefix("p ").removeprefix("= ")


@dataclass(frozen=True)
class SkillValues:
    """Values of some metrics by skill."""

    skill: str  # key
    title: str  # how it is shown
    n_items: int  # most items behind a value; 0 where there is none
    cells: tuple[Cell | None, ...]  # of each metric in order; None where it has none


def skill_values(pair: Opponents) -> tuple[SkillValues, ...]:
    """The values of the chosen metrics by the chosen measure, for each whole skill."""
    choice = pair.choice
    if choice.selector is None:
        return ()
    board = choice.board
    known = board.skills()
    found = []
    for skill in [skill for skill in known if ":" not in skill] or known:
        available = [s for s in board.selectors(skill) if s.measure == choice.selector.measure]
        if not available:
            continue
        selector = nearest(choice.selector, available, board.card)
        of_entry = {cell.entry_id: cell for cell in board.cells(selector, skill)}
        cells = tuple(of_entry.get(entry) for entry in pair.chosen)
        n_items = max((cell.n_items for cell in cells if cell is not None), default=0)
        name = skill_title(board.card, skill)
        found.append(SkillValues(skill, name, n_items, cells))
    return tuple(found)
