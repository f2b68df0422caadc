"""Tiers of the index in words, and why there are none."""

from __future__ import annotations

from collections.abc import Sequence

from leaderboard.publication.index import Ranked
from leaderboard.text import MISSING, count

IN_SHORT = "Within a <b>tier</b> no two metrics differ significantly, all pairs allowed for."
NOT_PUBLISHED = (
    "<b>No tiers:</b> a benchmark with a weight was published without the contributions of clusters "
    "from which metrics are tested against each other."
)
_ALONE = "<b>Tiers:</b> a single metric is ranked, so there is nothing to test."


def tier_cell(row: Ranked) -> str:
    """The tier of a ranked metric, in its cell."""
    tier = row.standing.tier
    if tier is None:
        return (
            f'<td class="as-i-tier"><span class="as-none" title="Not tested: no contributions of '
            f'clusters are published for it on every benchmark">{MISSING}</span></td>'
        )
    return f'<td class="as-i-tier">{tier}</td>'


def is_tested(rows: Sequence[Ranked]) -> bool:
    """Whether any of the ranked metrics was tested against another."""
    return sum(row.standing.tier is not None for row in rows) > 1


def about_tiers(rows: Sequence[Ranked]) -> str:
    """How tiers were tested, or why there are none; empty where nobody is ranked.

    Args:
        rows: all ranked metrics.
    """
    tested = sum(row.standing.tier is not None for row in rows)
    if len(rows) < 2:
        return _ALONE if rows else ""
    if tested < 2:
        return NOT_PUBLISHED
    left = len(rows) - tested
    without = (
        f" {count(left, 'metric has', 'metrics have')} no stored contributions on one of the "
        f"benchmarks and {'was' if left == 1 else 'were'} not tested."
        if left
        else ""
    )
    return (
        "<b>Tiers:</b> paired tests of the index itself, by flipping signs in the clusters of all "
        f"benchmarks, Holm’s correction over the {count(tested * (tested - 1) // 2, 'pair')}, 5 %. "
        "A metric opens a new tier if it differs from one of the tier above. The p-values are upper "
        "bounds, so tiers are stricter than rank ranges and a little stricter than those of a "
        f"board.{without}"
    )
