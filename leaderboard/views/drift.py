"""Drift: validity of metrics against the release date of the generators that made the images.

A benchmark has its headline for each generator. Over their dates that makes a slope; over several
benchmarks, rescaled so that 0 is chance and 1 the ceiling, one slope with a level for each of them, in
which a generator counts once.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Literal

import numpy as np

from benchmarks.comparison import p_words
from benchmarks.generators import Generator, find_generator
from benchmarks.schema import BY_GENERATOR, Card, Kind
from benchmarks.statistics.meta_regression import Slope, share_errors, slope_over_time, why_no_slope
from benchmarks.statistics.multiplicity import holm
from leaderboard.publication.entries import Entry, Identity, entries_of_each
from leaderboard.publication.index import rescaled
from leaderboard.publication.measure_names import info
from leaderboard.publication.reader import PerView, View
from leaderboard.ranking.cells import Cell
from leaderboard.tables import Table, Type, Value, columns_of
from leaderboard.text import count, interval, signed
from leaderboard.views.skills import scale_of

LEVEL = 0.05
"""Of the corrected p-value below which a metric is said to drift."""
_ENDS = 3.92
"""Length of a 95 % interval of a normal estimate, in standard errors."""
NO_SCALE = "the headline has no ceiling, by which it could be compared with others"
NO_GENERATORS = "no result says what it is worth by generator"
Verdict = Literal["decays", "improves", "undecided"]


@dataclass(frozen=True)
class DriftPoint:
    """Validity of a metric on the images of one generator."""

    name: str  # as the benchmark calls it
    generator: Generator | None  # with its date; None where none is known
    cell: Cell  # the headline on its images
    error: float  # standard error, from the interval, of shares smoothed; NaN where there is none

    @property
    def counts(self) -> bool:
        """Whether it is part of a slope."""
        return self.generator is not None and self.cell.value is not None and self.error > 0

    @property
    def year(self) -> float:
        """Its date in years; NaN without one."""
        return self.generator.year if self.generator else math.nan

    @property
    def title(self) -> str:
        """The generator's name; the benchmark's own where it is not known."""
        return self.generator.name if self.generator else self.name


@dataclass(frozen=True, eq=False)
class BoardDrift:
    """Validity of a metric on one benchmark, by generator."""

    card: Card
    entry_id: str  # of the metric there
    points: tuple[DriftPoint, ...]  # by date, those without one last
    slope: Slope | None  # a year, in the unit of the headline
    why: str  # why there is none; empty where there is

    @property
    def dated(self) -> tuple[DriftPoint, ...]:
        """The points of the slope."""
        return tuple(one for one in self.points if one.counts)

    @property
    def n_undated(self) -> int:
        """Generators without a known date."""
        return sum(one.generator is None for one in self.points)

    @property
    def n_undefined(self) -> int:
        """Generators with a date without a value or its standard error."""
        return len(self.points) - len(self.dated) - self.n_undated


@dataclass(frozen=True, eq=False)
class MetricDrift:
    """Validity of a metric against the dates of generators, on all its benchmarks."""

    boards: tuple[BoardDrift, ...]  # real ratings before simulated ones
    combined: Slope | None = None  # a year; 1 is the way from chance to the ceiling
    of: tuple[str, ...] = ()  # names of the benchmarks that it combines, each generator on one
    why: str = NO_GENERATORS  # why there is none; empty where there is
    p_corrected: float = math.nan  # of the combined slope, by Holm over the metrics that have one
    n_metrics: int = 0  # how many these are

    @property
    def verdict(self) -> Verdict:
        """What the corrected p-value says."""
        if self.combined is None or not self.p_corrected < LEVEL:
            return "undecided"
        return "decays" if self.combined.value < 0 else "improves"

    def newest(self, kinds: Collection[Kind], *, simulated: bool = False) -> Generator | None:
        """The newest generator on whose images benchmarks of these kinds tested it; None without one.

        A value of too few clusters to order metrics by, or without an error, is no test.
        """
        dated = [
            one.generator
            for board in self.boards
            if board.card.simulated == simulated and board.card.kind in kinds
            for one in board.dated
            if one.generator is not None and one.cell.orderable
        ]
        return max(dated, key=lambda one: one.released, default=None)


def drift_of(view: View, entry: Entry) -> MetricDrift:
    """The drift of the metric that an entry belongs to."""
    return _OF_VIEW.of(view).get(Identity.of(entry), MetricDrift(()))


def all_drifts(view: View) -> Mapping[Identity, MetricDrift]:
    """The drift of every metric that has values by generator; p-values are corrected over them.

    Metrics on real ratings are corrected together, and those that have simulated ones alone apart.
    """
    every = entries_of_each(view.entries.values())
    by_entry = _cells(view)
    found = {}
    for who, entries in every.items():
        boards = [
            board
            for name, cells in by_entry.items()
            if (board := _on_board(view.boards[name].card, entries, cells)) is not None
        ]
        if boards:
            boards.sort(key=lambda one: one.card.simulated)
            found[who] = _combined(boards)
    return _corrected(found)


_OF_VIEW: PerView[Mapping[Identity, MetricDrift]] = PerView(all_drifts)


def _cells(view: View) -> dict[str, dict[str, list[Cell]]]:
    """Benchmark to entry to its cells by generator."""
    found: dict[str, dict[str, list[Cell]]] = {}
    for name, board in view.boards.items():
        for cell in () if board.empty else board.of_entries(list(view.entries)):
            if cell.measure == BY_GENERATOR:
                found.setdefault(name, {}).setdefault(cell.entry_id, []).append(cell)
    return found


def _on_board(
    card: Card, entries: Sequence[Entry], cells: Mapping[str, Sequence[Cell]]
) -> BoardDrift | None:
    """The latest entry of a metric that has cells there."""
    there = [one for one in entries if one.entry_id in cells]
    if not there:
        return None
    latest = max(there, key=lambda one: one.published_at)
    points = sorted(
        _points(card, cells[latest.entry_id]),
        key=lambda one: (math.isnan(one.year), one.year, one.name),
    )
    dated = [one for one in points if one.counts]
    why = why_no_slope([one.year for one in dated])
    slope = None
    if not why:
        slope = slope_over_time(
            [one.cell.value or 0.0 for one in dated],
            [one.error for one in dated],
            [one.year for one in dated],
        )
    return BoardDrift(card, latest.entry_id, tuple(points), slope, why)


def _points(card: Card, cells: Sequence[Cell]) -> list[DriftPoint]:
    names = [cell.facet or "" for cell in cells]
    return [
        DriftPoint(name, find_generator(name), cell, error)
        for name, cell, error in zip(names, cells, _errors(card, cells), strict=True)
    ]


def _errors(card: Card, cells: Sequence[Cell]) -> list[float]:
    """Standard errors by the intervals; NaN where there is no interval."""
    found = np.array([_length(cell) / _ENDS for cell in cells])
    about = info(card, card.headline.measure)
    if (about.low, about.high) == (0.0, 1.0):
        known = np.isfinite(found)
        shares = [cell.value or 0.0 for cell, one in zip(cells, known, strict=True) if one]
        sizes = [cell.n_clusters for cell, one in zip(cells, known, strict=True) if one]
        found[known] = share_errors(shares, found[known], sizes)
    return [float(one) for one in found]


def _length(cell: Cell) -> float:
    low, high = cell.ci_low, cell.ci_high
    return math.nan if low is None or high is None else high - low


def _combined(boards: Sequence[BoardDrift]) -> MetricDrift:
    """One slope over benchmarks whose labels say the same: real ratings, of alignment if there are any."""
    able = [one for one in boards if one.slope is not None]
    if not able:
        reasons = "; ".join(f"{one.card.title}: {one.why}" for one in boards)
        return MetricDrift(tuple(boards), why=reasons)
    scaled = [one for one in able if scale_of(one.card, one.card.headline.measure)[0] is not None]
    if not scaled:
        return MetricDrift(tuple(boards), why=NO_SCALE)
    first = min(scaled, key=lambda one: (one.card.simulated, one.card.kind != "alignment"))
    chosen = [
        one
        for one in scaled
        if (one.card.simulated, one.card.kind) == (first.card.simulated, first.card.kind)
    ]
    values, errors, years, groups = [], [], [], []
    used = _each_once(chosen)
    for number, (board, points) in enumerate(used):
        scale, _ = scale_of(board.card, board.card.headline.measure)
        assert scale is not None
        length = abs(scale.ceiling - scale.chance)
        for point in points:
            values.append(rescaled(point.cell, scale).value)
            errors.append(point.error / length)
            years.append(point.year)
            groups.append(number)
    slope = slope_over_time(values, errors, years, groups)
    return MetricDrift(tuple(boards), slope, tuple(board.card.name for board, _ in used), "")


def _each_once(boards: Sequence[BoardDrift]) -> list[tuple[BoardDrift, list[DriftPoint]]]:
    """The points of a combined slope, each generator on the benchmark with the most of them.

    What is peculiar to a generator is so on every benchmark: two values of it are not independent. A
    benchmark with one new date adds nothing, since it has a level of its own.
    """
    found, seen = list[tuple[BoardDrift, list[DriftPoint]]](), set[str]()
    for board in sorted(boards, key=lambda one: (-len(one.dated), one.card.name)):
        new = [one for one in board.dated if one.title not in seen]
        if len({one.year for one in new}) > 1:
            found.append((board, new))
            seen.update(one.title for one in new)
    return found


def _corrected(found: Mapping[Identity, MetricDrift]) -> dict[Identity, MetricDrift]:
    done = dict(found)
    for simulated in (False, True):
        tested = {
            who: one.combined.p
            for who, one in found.items()
            if one.combined is not None and _is_simulated(one) == simulated
        }
        for (who, _), p in zip(tested.items(), holm(list(tested.values())).tolist(), strict=True):
            done[who] = replace(found[who], p_corrected=p, n_metrics=len(tested))
    return done


def _is_simulated(drift: MetricDrift) -> bool:
    return any(one.card.simulated for one in drift.boards if one.card.name in drift.of)


# In words.


def slope_text(slope: Slope, digits: int = 3) -> str:
    """`−0.041 [−0.070, −0.012]`."""
    return f"{signed(slope.value, digits)} {interval(slope.low, slope.high, digits)}"


def drift_sentence(drift: MetricDrift, name: str) -> str:
    """What the combined slope says of a metric."""
    slope = drift.combined
    if slope is None:
        return f"Whether the validity of {name} changes with newer generators is not known: {drift.why}."
    said = {
        "decays": f"The validity of {name} decays with newer generators",
        "improves": f"{name} is more valid on newer generators",
        "undecided": f"Whether the validity of {name} changes with newer generators is undecided",
    }[drift.verdict]
    over = f"{count(slope.n, 'generator')} on {count(len(drift.of), 'benchmark')}"
    corrected = f", corrected for {count(drift.n_metrics, 'metric')}" if drift.n_metrics > 1 else ""
    return (
        f"{said}: {slope_text(slope)} of the way from chance to the ceiling a year "
        f"({over}; {p_words(drift.p_corrected)}{corrected})."
    )


# As a table.

_COLUMNS = (
    "row", "benchmark", "title", "simulated", "measure", "generator", "known_as", "released", "source",
    "verified", "value", "ci_low", "ci_high", "n_items", "n_missing", "slope", "slope_low", "slope_high",
    "p_value", "p_corrected", "n_metrics", "tau", "n_generators", "n_undated", "n_undefined", "verdict",
    "why",
)  # fmt: skip
_TYPES = {
    Type.NUMBER: "value ci_low ci_high slope slope_low slope_high p_value p_corrected tau",
    Type.COUNT: "n_items n_missing n_metrics n_generators n_undated n_undefined",
    Type.FLAG: "simulated verified",
}
_MEANINGS = {
    "row": "generator: the metric on the images of one; slope: over the generators of a benchmark; "
    "combined: over benchmarks, each generator on one of them.",
    "measure": "The headline of the benchmark, of which value and slope are in the unit; of the combined "
    "slope 1 is the way from chance to the ceiling.",
    "generator": "As the benchmark calls it.",
    "known_as": "Its entry in benchmarks/generators.toml; missing where no date is known.",
    "released": "First day of the month of its release.",
    "source": "Where the month stands.",
    "verified": "Whether somebody found the month there.",
    "value": "Of the headline on its images alone, with its 95 % interval.",
    "slope": "Change a year: random-effects meta-regression with its 95 % interval.",
    "p_value": "Of no slope, two-sided, before correction.",
    "p_corrected": "After Holm's, over the n_metrics that have a combined slope.",
    "tau": "Standard deviation between generators that sampling does not explain.",
    "n_generators": "Generators of the slope.",
    "n_undated": "Generators without a known date, which are left out.",
    "n_undefined": "Generators with a date without a value or its standard error, left out likewise.",
    "verdict": "decays or improves where the corrected p-value is below 0.05, else undecided.",
    "why": "Why there is no slope, or no value.",
}


def drift_table(drift: MetricDrift, about: Mapping[str, Any]) -> Table:
    """Every generator and slope of a metric."""
    rows = [*_combined_rows(drift), *(row for one in drift.boards for row in _board_rows(one))]
    return Table("drift", columns_of(_COLUMNS, _TYPES, _MEANINGS), rows, about)


def _combined_rows(drift: MetricDrift) -> Iterable[dict[str, Value]]:
    if not drift.boards:
        return
    yield {
        "row": "combined",
        "benchmark": ",".join(drift.of),
        "verdict": drift.verdict,
        "p_corrected": None if math.isnan(drift.p_corrected) else drift.p_corrected,
        "n_metrics": drift.n_metrics,
        "why": drift.why,
        **_slope_fields(drift.combined),
    }


def _board_rows(board: BoardDrift) -> Iterable[dict[str, Value]]:
    card = board.card
    of: dict[str, Value] = {
        "benchmark": card.name, "title": card.title, "simulated": card.simulated,
        "measure": card.headline.measure,
    }  # fmt: skip
    yield {
        **of, "row": "slope", "n_undated": board.n_undated, "n_undefined": board.n_undefined,
        "why": board.why, **_slope_fields(board.slope),
    }  # fmt: skip
    for point in board.points:
        cell, known = point.cell, point.generator
        yield {
            **of, "row": "generator", "generator": point.name, "value": cell.value,
            "ci_low": cell.ci_low, "ci_high": cell.ci_high, "n_items": cell.n_items,
            "n_missing": cell.n_missing, "why": cell.note,
            **({"known_as": known.name, "released": known.released.isoformat(),
                "source": known.source, "verified": known.verified} if known else {}),
        }  # fmt: skip


def _slope_fields(slope: Slope | None) -> dict[str, Value]:
    if slope is None:
        return {}
    return {
        "slope": slope.value, "slope_low": slope.low, "slope_high": slope.high, "p_value": slope.p,
        "tau": slope.tau, "n_generators": slope.n,
    }  # fmt: skip


def headline_title(card: Card) -> str:
    """Title of what is measured on each generator."""
    return info(card, card.headline.measure).title


def month(day: date) -> str:
    """`Aug 2024`."""
    return f"{day:%b %Y}"
