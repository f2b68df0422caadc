"""Legend of a ranking: how ranks and tiers were made, and where there are none."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.schema import Card
from leaderboard.pages.shown.marks import Axis
from leaderboard.pages.shown.markup import notice, text
from leaderboard.ranking.cells import Cell
from leaderboard.ranking.rank_ranges import MIN_CLUSTERS
from leaderboard.ranking.tiers import Basis
from leaderboard.text import count, number


def order_notice(cells: Sequence[Cell], card: Card) -> str:
    """A message above a ranking whose values rest on too few clusters; empty where none do."""
    few = sum(not cell.orderable for cell in cells)
    if not few:
        return ""
    whose = "" if few == len(cells) else f" for {few} of {len(cells)} metrics"
    return notice(
        f"<b>Too few items to order{whose}.</b> Fewer than {MIN_CLUSTERS} {text(card.cluster)}s lie "
        "behind the values, so they are shown without ranks.",
        "warn",
    )


def legend(
    axis: Axis, cells: Sequence[Cell], card: Card, basis: Basis, flags: Sequence[str] = ()
) -> str:
    """What the marks of a ranking mean, how ranges were drawn, and how tiers were tested.

    Args:
        axis: of the marks.
        cells: of the ranking.
        card: of the benchmark.
        basis: what ranks and tiers were made from.
        flags: what the flags on its rows mean, a sentence each.
    """
    parts = ["Dot: value. Line: 95 % interval (hover: its method)."]
    if axis.chance is not None:
        parts.append(f"Dashes: chance ({number(axis.chance, 2)}).")
    lines = [" ".join(parts)]
    if any(cell.rank is not None for cell in cells):
        lines += [_about_ranks(card, basis), _about_tiers(cells, card, basis)]
    if flags:
        lines.append(" ".join(flags))
    return "".join(f'<p class="as-legend">{line}</p>' for line in lines)


def _about_ranks(card: Card, basis: Basis) -> str:
    if not basis.n_resamples:
        return "No resamples are stored for these values, so every place is possible for them."
    return (
        "<b>Rank range:</b> the places a metric takes, among those shown, in 95 % of "
        f"{basis.n_resamples:,} resamples by {text(card.cluster)} that all metrics share. "
        "<b>P(best):</b> how often it comes first in them."
    )


def _about_tiers(cells: Sequence[Cell], card: Card, basis: Basis) -> str:
    untested = sum(cell.rank is not None and cell.tier is None for cell in cells)
    if not basis.n_pairs:
        ranked = sum(cell.rank is not None for cell in cells)
        if ranked == 1:
            return "<b>Tiers:</b> a single metric is ranked, so there is nothing to test."
        if basis.kept:
            return "<b>Tiers</b> are kept for the headline of an earlier board only."
        return (
            "<b>No tiers:</b> these results were published without the contributions of "
            f"{text(card.cluster)}s from which metrics are tested against each other."
        )
    left_out = (
        f" {count(untested, 'metric has', 'metrics have')} no stored contributions and "
        f"{'was' if untested == 1 else 'were'} not tested."
        if untested
        else ""
    )
    return (
        f"<b>Tiers:</b> paired permutation tests by {text(card.cluster)}, Holm's correction over the "
        f"{count(basis.n_pairs, 'pair')} shown, 5 %. A metric opens a new tier if it differs from one "
        "of the tier above. Tiers are stricter than rank ranges: they allow for the number of pairs."
        f"{left_out}{_about_bounds(basis)}"
    )


def _about_bounds(basis: Basis) -> str:
    if not basis.n_bounded:
        return ""
    return (
        f" For {count(basis.n_bounded, 'pair')} of so many, the p-value is an upper bound (Bentkus and "
        "Dzindzalieta 2015), so tiers are if anything too few; a smaller selection is tested in full."
    )
