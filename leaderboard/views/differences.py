"""Differences of compared metrics: by skill, by measure, and of each two of several."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

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
from leaderboard.publication.measure_names import info, nearest, skill_title, title
from leaderboard.publication.reader import View
from leaderboard.ranking.cells import Cell
from leaderboard.ranking.comparing import NO_CONTRIBUTIONS
from leaderboard.text import clean
from leaderboard.views.boards import Choice
from leaderboard.views.comparison import Opponents, Several, Shown, several, shown

Better = Literal["a", "b", ""]


@dataclass(frozen=True)
class DifferenceRow:
    """One comparison as a table shows it."""

    what: str  # the skill, measure or pair that it is of
    part: Literal["chosen", "skill", "measure", "pair"]  # `chosen`, `skill`, `measure` or `pair`
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


@dataclass(frozen=True)
class TwoCompared:
    """All comparisons of two metrics."""

    chosen: Compared  # by the chosen measure and skill
    values: tuple[float, float]  # of the two
    evidence: str  # the test behind the p-value, or why there is none
    correction: str  # the corrected p-value of the board, with its method
    paired: str  # Student's and Wilcoxon's tests; empty where there are none
    effect: str  # the effect size; empty where it is undefined
    # on how many units each is better; None where that is not counted
    counted: tuple[int, int, int] | None
    uncounted: str  # why it is not
    unit: str  # one of those units, as `graph`
    by_skill: DifferenceTable  # differences by skill; no rows where the benchmark has none
    by_measure: DifferenceTable  # differences by measure, drawn as standardised effects
    # titles of skills on which A is significantly better, and on which B is
    better_on: tuple[tuple[str, ...], tuple[str, ...]]
    mixed: bool  # whether skills have another variant of the measure than the whole
    unpublished: bool  # whether nothing is published to test with
    n_resamples: int  # joint resamples behind the intervals; 0 where none are published
    seed: int  # of the resamples

    def units(self, n: int) -> str:
        """`1 graph`, `165 graphs`, `250 blocks of prompts`."""
        return plural(self.unit, n)

    @property
    def each_unit(self) -> str:
        """The units in the plural: `graphs`, `blocks of prompts`."""
        return units_of(self.unit)


def two_compared(pair: Opponents, view: View) -> TwoCompared:
    """Compare the first two of some metrics."""
    choice = pair.choice
    found = shown(choice, pair.a or "", pair.b or "", view)
    row, card = found.chosen, choice.board.card
    return TwoCompared(
        chosen=row,
        values=(row.value_a, row.value_b),
        evidence=evidence_words(row),
        correction=correction_words(row, "pairs of the whole board, without filters"),
        paired=paired_words(row),
        effect=effect_words(row),
        counted=row.tally,
        uncounted=row.uncounted,
        unit=row.unit,
        by_skill=_by_skill(found, choice),
        by_measure=_by_measure(found, choice),
        better_on=_better_on(found, card),
        mixed=len({(r.variant, r.split, r.facet) for r in (row, *found.skills)}) > 1,
        unpublished=row.untested == NO_CONTRIBUTIONS,
        n_resamples=found.n_resamples,
        seed=seed_of(card.name, card.revision),
    )


def _by_skill(found: Shown, choice: Choice) -> DifferenceTable:
    card = choice.board.card
    if not found.skills:
        return _table((), ())
    rows = [_row(row, skill_title(card, row.skill), "skill", card) for row in found.skills]
    if found.chosen.skill not in {row.skill for row in found.skills}:
        rows.insert(0, _row(found.chosen, choice.title, "chosen", card))
    return _table(rows, found.skills)


def _by_measure(found: Shown, choice: Choice) -> DifferenceTable:
    card, among = choice.board.card, choice.board.every_selector()

    def named(row: Compared, part: Literal["chosen", "measure"]) -> DifferenceRow:
        selector = Selector(
            measure=row.measure, variant=row.variant, split=row.split, facet=row.facet
        )
        return _row(row, title(card, selector, among), part, card, standardised=True)

    rows = [named(found.chosen, "chosen"), *(named(row, "measure") for row in found.measures)]
    return _table(rows, found.measures)


def _better_on(found: Shown, card: Card) -> tuple[tuple[str, ...], tuple[str, ...]]:
    sure = [row for row in found.skills if row.told_apart]
    ahead = tuple(skill_title(card, row.skill) for row in sure if row.advantage[0] > 0)
    behind = tuple(skill_title(card, row.skill) for row in sure if row.advantage[0] < 0)
    return ahead, behind


@dataclass(frozen=True)
class SeveralCompared:
    """Each two of several metrics, compared by the chosen measure and skill."""

    table: DifferenceTable  # a row for each pair
    values: dict[str, float]  # entry id to its value
    n_significant: int  # pairs that differ significantly after the correction of the board
    n_tests: int  # tests that were corrected together
    unit: str  # what is counted
    unpublished: bool  # whether nothing is published to test with
    n_resamples: int  # joint resamples behind the intervals


def several_compared(pair: Opponents, view: View) -> SeveralCompared:
    """Compare each two of the chosen metrics."""
    card = pair.choice.board.card
    found: Several = several(pair.choice, pair.chosen, view)
    values = {
        entry: value
        for two, row in zip(found.pairs, found.rows, strict=True)
        for entry, value in zip(two, (row.value_a, row.value_b), strict=True)
    }
    return SeveralCompared(
        table=_table([_row(row, "", "pair", card) for row in found.rows], ()),
        values=values,
        n_significant=sum(row.told_apart for row in found.rows),
        n_tests=max(row.n_tests if row.correction else 0 for row in found.rows),
        unit=found.rows[0].unit,
        unpublished=all(row.untested == NO_CONTRIBUTIONS for row in found.rows),
        n_resamples=found.n_resamples,
    )


def _table(rows: Sequence[DifferenceRow], corrected: Sequence[Compared]) -> DifferenceTable:
    known = [0.0, *(n for row in rows for n in row.drawn if math.isfinite(n))]
    n_tests = sum(math.isfinite(row.p_value) for row in corrected)
    return DifferenceTable(tuple(rows), min(known), max(known), n_tests)


def _row(
    row: Compared,
    what: str,
    part: Literal["chosen", "skill", "measure", "pair"],
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
