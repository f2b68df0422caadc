"""Cells against cells: the comparisons that pages and commands show, from the same numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from benchmarks.comparison import Compared, corrected
from benchmarks.inference import IN_STEPS
from benchmarks.pooled import MAX_MISSING
from benchmarks.schema import Card
from benchmarks.statistics.difference import Differences, Measurements, differences
from benchmarks.statistics.intervals import MAX_BLOCKS
from benchmarks.statistics.joint_tests import JointTests
from benchmarks.statistics.resampling import seed_of
from leaderboard.ranking.cells import Cell
from leaderboard.ranking.slices import Slice

TOO_FEW = "too few items to order"
NO_CONTRIBUTIONS = "no contributions of clusters are published"


class Match(NamedTuple):
    """Two cells of a slice, by their places in it."""

    of: Slice
    a: int
    b: int

    @property
    def cells(self) -> tuple[Cell, Cell]:
        """Both cells."""
        return self.of.cells[self.a], self.of.cells[self.b]


def compare_cells(
    matches: Sequence[Match], card: Card, names: Mapping[str, str]
) -> tuple[Compared, ...]:
    """Compare the two cells of each match.

    The p-values are of each pair alone: a pair that a board does not rank is not tested.
    """
    if not matches:
        return ()
    found = differences(
        _measurements([(match.of, match.a) for match in matches]),
        _measurements([(match.of, match.b) for match in matches]),
        seed_of(card.name, card.revision),
    )
    unit = flipped_unit(
        card,
        matches[0].of.draws.contributions.shape[1],
        [cell.n_clusters for match in matches for cell in match.cells],
    )
    return tuple(
        replace(_compared(match, found, row, card, names), unit=unit)
        for row, match in enumerate(matches)
    )


def compare_all(one: Slice, card: Card, names: Mapping[str, str]) -> tuple[Compared, ...]:
    """Compare each two cells of a slice, tested together as those of a board are."""
    first, second = np.triu_indices(len(one.cells), 1)
    matches = [Match(one, int(a), int(b)) for a, b in zip(first, second, strict=True)]
    rows = compare_cells(matches, card, names)
    usable = np.array([not why_untested([cell], names) for cell in one.cells], bool)
    shares = np.where(usable[:, None], one.draws.contributions, np.nan)
    tests = JointTests.of(shares, seed_of(card.name, card.revision))
    return corrected(rows, tests.p_value[first, second])


def flipped_unit(card: Card, n_blocks: int, n_clusters: Sequence[int]) -> str:
    """Whose signs are flipped: of single clusters, or of blocks of them where there are more."""
    most = max(n_clusters, default=0)
    blocks = n_blocks and (n_blocks >= MAX_BLOCKS or most > n_blocks)
    return f"block of {card.cluster}s" if blocks else card.cluster


def why_untested(cells: Sequence[Cell], names: Mapping[str, str]) -> str:
    """Why a board makes no test between cells; empty where it does, given contributions."""
    if any(cell.value is None for cell in cells):
        notes = dict.fromkeys(_reason(cell.note) for cell in cells if cell.value is None)
        said = "; ".join(note for note in notes if note)
        return f"value undefined: {said}" if said else "value undefined"
    if not all(cell.orderable for cell in cells):
        return TOO_FEW
    distrusted = [f"{names[c.entry_id]}: {c.distrust}" for c in cells if c.distrust]
    if distrusted:
        return "; ".join(distrusted)
    lacking = [
        f"{names[cell.entry_id]} lacks {cell.n_missing:,} of "
        f"{cell.n_items + cell.n_missing:,} scores"
        for cell in cells
        if not cell.complete
    ]
    limit = f"the limit is {100 * MAX_MISSING:g} %"
    return "; ".join((*lacking, limit)) if lacking else ""


def why_uncounted(cells: Sequence[Cell], names: Mapping[str, str]) -> str:
    """Why two metrics are not compared cluster by cluster; empty where every score is there.

    A value's contributions hold an even share of it for every block of its slice. Where a metric
    scored fewer clusters, that share is not the other's, though no single score may differ.
    """
    lacking = [(cell.n_missing, names[cell.entry_id]) for cell in cells if cell.n_missing]
    if not lacking:
        return ""
    (n, name), *more = lacking
    first = f"{n:,} {'score' if n == 1 else 'scores'} of {name}"
    said = " and ".join((first, *(f"{n:,} of {name}" for n, name in more)))
    one = n == 1 and not more
    return f"not counted: {said} {'is' if one else 'are'} missing"


def _reason(note: str) -> str:
    """A note as the end of a sentence that has said already that a value is undefined."""
    return note.removeprefix("Undefined:").strip().removesuffix(".")


def _measurements(of: Sequence[tuple[Slice, int]]) -> Measurements:
    cells = [one.cells[place] for one, place in of]
    return Measurements(
        values=np.array([math.nan if cell.value is None else cell.value for cell in cells]),
        resamples=np.stack([one.draws.resamples[place] for one, place in of]),
        contributions=np.stack([one.draws.contributions[place] for one, place in of]),
        n_clusters=np.array([cell.n_clusters for cell in cells], np.intp),
    )


def _compared(
    match: Match, found: Differences, row: int, card: Card, names: Mapping[str, str]
) -> Compared:
    a, b = match.cells
    rises = card.higher_is_better(a.measure)
    units, interval, flips = found.units, found.interval, found.flips
    better = (units.larger, units.smaller) if rises else (units.smaller, units.larger)
    method = "bca" if interval.defined[row] else "percentile"
    shown = Compared(
        metric_a=names[a.entry_id],
        metric_b=names[b.entry_id],
        measure=a.measure,
        variant=a.variant,
        split=a.split,
        facet=a.facet,
        skill=a.skill,
        higher_is_better=rises,
        value_a=math.nan if a.value is None else a.value,
        value_b=math.nan if b.value is None else b.value,
        difference=float(found.difference[row]),
        ci_low=float(interval.low[row]),
        ci_high=float(interval.high[row]),
        ci_method=method if math.isfinite(interval.low[row]) else None,
        percentile_low=float(found.percentile.low[row]),
        percentile_high=float(found.percentile.high[row]),
        n_differing=int(flips.n_units[row]),
        n_units=int(units.n[row]),
        n_better_a=int(better[0][row]),
        n_tied=int(units.equal[row]),
        n_better_b=int(better[1][row]),
        effect=float(found.effect[row]),
        effect_low=float(found.effect_low[row]),
        effect_high=float(found.effect_high[row]),
    )
    uncounted = why_uncounted(match.cells, names)
    if uncounted:
        shown = replace(
            shown,
            n_better_a=None,
            n_tied=None,
            n_better_b=None,
            uncounted=uncounted,
            effect=math.nan,
            effect_low=math.nan,
            effect_high=math.nan,
        )
    untested = why_untested(match.cells, names)
    if not untested and math.isnan(flips.p_value[row]):
        stepping = any(IN_STEPS in cell.note for cell in match.cells)
        untested = IN_STEPS if stepping else NO_CONTRIBUTIONS
    if untested:
        return replace(shown, untested=untested)
    tested = replace(
        shown,
        p_value=float(flips.p_value[row]),
        n_patterns=int(flips.n_patterns[row]),
        exact=bool(flips.exact[row]),
    )
    if uncounted:
        return tested
    return replace(
        tested,
        t=float(units.t[row]),
        t_p=float(units.t_p[row]),
        wilcoxon_w=float(units.wilcoxon_w[row]),
        wilcoxon_p=float(units.wilcoxon_p[row]),
    )
