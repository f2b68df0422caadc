"""Legend below a table of comparisons: how its figures were made and what they count."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.comparison import Compared, plural, units_of
from benchmarks.schema import Card
from leaderboard.publication.measure_names import info


def about_table(rows: Sequence[Compared], card: Card) -> str:
    """How the p-values of a table are corrected, and what its columns count."""
    first, *others = rows
    lines = [
        f"{plural(of, len(tests))}"
        for of, tests in (
            ("skill", [r for r in others if r.skill != first.skill and math.isfinite(r.p_value)]),
            ("measure", [r for r in others if r.skill == first.skill and math.isfinite(r.p_value)]),
        )
        if tests
    ]
    over = " and over ".join(lines)
    said = [
        f"p (BH): Benjamini-Hochberg over {over}, without the first line." if over else "",
        f"Better and worse are those of {first.metric_a}. For a measure that is not a mean of "
        f"values of {units_of(card.cluster)}, they count contributions to its value "
        "(influences), not scores.",
        *(f"{why[0].upper()}{why[1:]}." for why in dict.fromkeys(r.uncounted for r in rows) if why),
        _directions(rows, card),
    ]
    return " ".join(filter(None, said))


def _directions(rows: Sequence[Compared], card: Card) -> str:
    falling = dict.fromkeys(
        row.measure for row in rows if not info(card, row.measure).higher_is_better
    )
    return f"Lower is better: {', '.join(falling)}." if falling else ""


def legend(facts: Mapping[str, Any]) -> str:
    """How intervals were made, and what gives the same figures again."""
    return (
        f"[low, high]: 95 % BCa interval from {facts['n_resamples']:,} joint resamples. Seed "
        f"{facts['seed']}, plan {facts['plan']}, {facts['versions']}."
    )
