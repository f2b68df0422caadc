"""Comparisons of two metrics: the chosen one, by skill and by measure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.comparison import Compared, corrected
from benchmarks.schema import Selector
from leaderboard.pages.boards.query import Choice
from leaderboard.pages.reading import View
from leaderboard.pages.shown.measures import in_order, nearest
from leaderboard.ranking.cells import Cell
from leaderboard.ranking.comparing import Match, compare_cells
from leaderboard.ranking.slices import Slice, mean_over_skills

COLUMNS = (
    "shown_as", "metric_a", "metric_b", "entry_a", "entry_b", "benchmark", "revision", "measure",
    "variant", "split", "facet", "skill", "higher_is_better", "value_a", "value_b", "difference",
    "ci_low", "ci_high", "ci_method", "percentile_low", "percentile_high", "p_value",
    "p_corrected", "correction", "n_tests", "n_patterns", "exact", "n_differing", "unit",
    "n_units", "n_better_a", "n_tied", "n_better_b", "t", "t_p", "wilcoxon_w", "wilcoxon_p",
    "effect", "effect_low", "effect_high", "seed", "n_resamples", "untested", "uncounted",
    "kind_a", "kind_b",
)  # fmt: skip


@dataclass(frozen=True)
class Shown:
    """All comparisons of two metrics on one page.

    Attributes:
        chosen: by the chosen measure and skill, corrected as on the board (Holm).
        skills: the same measure by skill, corrected over them (Benjamini-Hochberg).
        measures: everything else for the chosen skill, corrected over it likewise.
        n_resamples: joint resamples behind the intervals; 0 where none are published.
    """

    chosen: Compared
    skills: tuple[Compared, ...]
    measures: tuple[Compared, ...]
    n_resamples: int


def shown(choice: Choice, a: str, b: str, view: View) -> Shown:
    """Compare two entries of a board.

    Args:
        choice: board, skill and measure; the measure is there.
        a: entry id of the one metric, which has cells of that slice.
        b: entry id of the other.
        view: gives the draws.

    Raises:
        ValueError: the choice has no measure.
    """
    if choice.selector is None:
        raise ValueError("there is no measure to compare by")
    by_skill = _by_skill(choice, choice.selector)
    others = [s for s in in_order(choice.board.card, choice.options) if s != choice.selector]
    wanted = [
        (choice.selector, choice.skills or (None,)),
        *((selector, (skill,)) for selector, skill in by_skill),
        *((selector, choice.skills or (None,)) for selector in others),
    ]
    matches = _matches(choice, wanted, (a, b), view)
    names = {entry: view.entries[entry].metric for entry in (a, b)}
    found = compare_cells([m for m in matches if m is not None], choice.board.card, names)
    rows = iter(found)
    placed = [None if match is None else next(rows) for match in matches]
    first = placed[0]
    if first is None:
        raise ValueError("the two metrics have no result by the chosen measure")
    end = 1 + len(by_skill)
    resamples = matches[0].of.draws.resamples.shape[1] if matches[0] else 0
    return Shown(
        chosen=as_on_the_board(first, choice, (a, b), view),
        skills=corrected([row for row in placed[1:end] if row], "benjamini_hochberg"),
        measures=corrected([row for row in placed[end:] if row], "benjamini_hochberg"),
        n_resamples=resamples,
    )


def _by_skill(choice: Choice, wanted: Selector) -> list[tuple[Selector, str]]:
    """The measure for each whole skill, by the variant that comes nearest."""
    board = choice.board
    known = board.skills()
    found: list[tuple[Selector, str]] = []
    for skill in [skill for skill in known if ":" not in skill] or known:
        available = [s for s in board.selectors(skill) if s.measure == wanted.measure]
        if available:
            found.append((nearest(wanted, available, board.card), skill))
    return found


_Wanted = tuple[Selector, tuple[str | None, ...]]


def _matches(
    choice: Choice, wanted: Sequence[_Wanted], entries: tuple[str, str], view: View
) -> list[Match | None]:
    """The two cells of each slice with their draws; None where one of the two has no cell."""
    cells = [
        [of_entries(choice.board.cells(selector, skill), entries) for skill in skills]
        for selector, skills in wanted
    ]
    # Read at once: the files of a run are then read once for all of them.
    flat = [pair for of_slice in cells for pair in of_slice]
    slices = iter(view.orders.slices(choice.board.card, flat))
    found: list[Match | None] = []
    for of_slice in cells:
        parts = [next(slices) for _ in of_slice]
        whole = all(len(part.cells) == len(entries) for part in parts)
        found.append(_match(parts) if whole else None)
    return found


def _match(parts: Sequence[Slice]) -> Match:
    return Match(mean_over_skills(parts), 0, 1)


def of_entries(cells: Sequence[Cell], entries: Sequence[str]) -> tuple[Cell, ...]:
    """The cells of some entries, in the order of these; shorter where one has none."""
    of_entry = {cell.entry_id: cell for cell in cells}
    return tuple(of_entry[entry] for entry in entries if entry in of_entry)


def as_on_the_board(
    row: Compared, choice: Choice, entries: tuple[str, str], view: View
) -> Compared:
    """With the p-value that the board corrects over all pairs of its ranking."""
    if math.isnan(row.p_value):
        return row
    ranked = view.orders.ranked(choice.board.card, choice.slices())
    places = {cell.entry_id: place for place, cell in enumerate(ranked.cells)}
    matrix = ranked.ordering.corrected
    p_corrected = float(matrix[places[entries[0]], places[entries[1]]])
    if math.isnan(p_corrected):
        return row
    n_tests = int(np.isfinite(matrix).sum()) // 2
    return replace(row, p_corrected=p_corrected, correction="holm", n_tests=n_tests)
