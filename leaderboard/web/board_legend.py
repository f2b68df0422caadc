"""Legend of a ranking: how ranks and tiers were made, and where there are none."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.schema import Card
from leaderboard.ranking.cells import Cell, chance_of
from leaderboard.ranking.rank_ranges import MIN_CLUSTERS
from leaderboard.ranking.slices import Basis
from leaderboard.text import count, number

Line = tuple[str, str]
"""What is explained, and its explanation."""


def order_note(cells: Sequence[Cell], card: Card) -> Line | None:
    """What is said above a ranking whose values rest on too few clusters; None where none do."""
    few = sum(not cell.orderable for cell in cells)
    if not few:
        return None
    whose = "" if few == len(cells) else f" for {few} of {len(cells)} metrics"
    return (
        f"Too few items to order{whose}.",
        f"Fewer than {MIN_CLUSTERS} {card.cluster}s lie behind the values, so they are shown "
        "without ranks.",
    )


def legend(cells: Sequence[Cell], card: Card, basis: Basis, *, within: bool = False) -> list[Line]:
    """What the marks of a ranking mean, how ranges were made, and how tiers were tested."""
    chance = chance_of(card, cells[0].measure) if cells else None
    guess = "" if chance is None else f" Dashes: chance ({number(chance, 2)})."
    marks = f"dot: value; line: 95% interval (its method on hover).{guess}"
    lines: list[Line] = [("Marks", marks)]
    if any(cell.rank is not None for cell in cells):
        lines += [_ranks(card, basis, within=within), _tiers(cells, card, basis, within=within)]
    return lines


def _ranks(card: Card, basis: Basis, *, within: bool) -> Line:
    if not basis.n_resamples:
        return "Rank range", "no resamples are stored for these values, so every rank is possible."
    among = "among the metrics of the filter" if within else "among all metrics of the board"
    return (
        "Rank range",
        f"95% range of the rank {among} over {basis.n_resamples:,} bootstrap resamples by "
        f"{card.cluster}, the same for all metrics. P(best): share of them in which it has the "
        "best value.",
    )


def _tiers(cells: Sequence[Cell], card: Card, basis: Basis, *, within: bool) -> Line:
    if not basis.n_pairs:
        ranked = sum(cell.rank is not None for cell in cells)
        if ranked == 1:
            return "Tiers", "a single metric is ranked, so there is nothing to test."
        if basis.kept:
            return "Tiers", "kept for the headline of an earlier board only."
        return (
            "No tiers",
            f"these results were published without the contributions of {card.cluster}s from "
            "which metrics are tested against each other.",
        )
    untested = sum(cell.rank is not None and cell.tier is None for cell in cells)
    left_out = (
        f" {count(untested, 'metric has', 'metrics have')} no stored contributions and "
        f"{'was' if untested == 1 else 'were'} not tested."
        if untested
        else ""
    )
    of = "of the filter" if within else "of the board"
    return (
        "Tiers",
        f"no two metrics of a tier differ significantly: paired permutation tests by "
        f"{card.cluster}, Holm's correction over the {count(basis.n_pairs, 'pair')} {of}, α = 0.05. "
        "A metric opens a new tier if it differs from one of the tier above."
        f"{left_out}{_bounds(basis)}",
    )


def _bounds(basis: Basis) -> str:
    if not basis.n_bounded:
        return ""
    return (
        f" For {count(basis.n_bounded, 'pair')} the p-value is an upper bound (Bentkus and "
        "Dzindzalieta 2015), so tiers are if anything too few."
    )
