"""The list of the skill explorer as a table to take away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from leaderboard.pages.shown.flops import GIGA
from leaderboard.pages.skills.base import Placed
from leaderboard.pages.skills.costs import Spent
from leaderboard.pages.skills.found import Found
from leaderboard.pages.skills.query import SkillsChoice
from leaderboard.tables import Column, Table, Type, Value, columns_of

COLUMNS = (
    "skills", "metric", "version", "submitter", "account", "kind", "released_with", "mean", "ci_low", "ci_high",
    "rank_low", "rank", "rank_high", "p_best", "parts", "missing", "seconds_per_1000_pairs",
    "flops_per_pair_declared", "peak_memory_gib", "devices", "recommended",
    "on_front", "entry_id",
)  # fmt: skip
PART_COLUMNS = ("weight", "rescaled", "ci_low", "ci_high")
"""Of each part, after its name."""
_TYPES = {
    Type.NUMBER: "mean ci_low ci_high p_best seconds_per_1000_pairs flops_per_pair_declared "
    "peak_memory_gib",
    Type.COUNT: "rank_low rank rank_high",
    Type.FLAG: "recommended on_front",
}
_MEANINGS = {
    "skills": "Keys, joined by commas.",
    "mean": "Weighted mean of the rescaled values: 0 is a guess, 1 the ceiling.",
    "rank": "Missing where a benchmark with a weight is.",
    "p_best": "Share of the resamples in which it comes first.",
    "parts": "What it has values of, joined by ;",
    "missing": "What it lacks, joined by ;",
    "seconds_per_1000_pairs": "Where it was recorded, on `devices`.",
    "flops_per_pair_declared": "Declared by its author, not measured; empty: not declared.",
    "recommended": "Whether it may be: ranked, its interval, corrected for the number of "
    "metrics, wholly above 0, and no unchanged template.",
    "on_front": "Whether it is recommended and nothing recommended that costs less is as good.",
}


def skills_table(
    choice: SkillsChoice, found: Found | None, about: Mapping[str, Any] | None = None
) -> Table:
    """One row per metric of the list, with its rescaled value on every part.

    Args:
        choice: the skills.
        found: what is known of them; None where none is chosen.
        about: what the table says of itself beside its skills and weights.
    """
    keys = [skill.key for skill in choice.skills]
    columns: Sequence[Column] = columns_of(COLUMNS, _TYPES, _MEANINGS)
    told = {**(about or {}), "skills": keys, "weights": dict(found.weights) if found else {}}
    if found is None:
        return Table("skills", tuple(columns), (), told)
    parts = [
        Column(f"{name} {column}", Type.NUMBER) for name in found.weights for column in PART_COLUMNS
    ]
    front = {point.placed.entry.entry_id for point in found.front}
    rows = [
        {
            "skills": ",".join(keys),
            **_of_metric(one, used),
            "recommended": one.recommended,
            "on_front": one.entry.entry_id in front,
            **_of_parts(one, found),
        }
        for one, used in zip(found.placed, found.spent, strict=True)
    ]
    return Table(f"skills-{'-'.join(keys)}", (*columns, *parts), rows, told)


def _of_metric(one: Placed, used: Spent | None) -> dict[str, Value]:
    standing, rank, index = one.standing, one.standing.rank, one.standing.index
    return {
        "metric": one.who.metric,
        "version": one.who.version,
        "submitter": one.who.submitter,
        "account": one.entry.account,
        "kind": one.who.kind.value,
        "released_with": one.entry.released_with,
        "mean": index.value,
        "ci_low": index.low,
        "ci_high": index.high,
        "rank_low": rank.low if rank else None,
        "rank": rank.rank if rank else None,
        "rank_high": rank.high if rank else None,
        "p_best": standing.p_best,
        "parts": ";".join(standing.present),
        "missing": ";".join(standing.missing),
        "seconds_per_1000_pairs": used.seconds if used else None,
        "flops_per_pair_declared": _flops(used),
        "peak_memory_gib": used.memory if used else None,
        "devices": ";".join(used.devices) if used else "",
        "entry_id": one.entry.entry_id,
    }


def _flops(used: Spent | None) -> float | None:
    return None if used is None or used.gigaflops is None else used.gigaflops * GIGA


def _of_parts(one: Placed, found: Found) -> dict[str, Value]:
    row: dict[str, Value] = {}
    for name, weight in found.weights.items():
        value = found.base.values[name].get(one.who)
        values = (weight, *(value or (None, None, None)))
        row |= {f"{name} {k}": v for k, v in zip(PART_COLUMNS, values, strict=True)}
    return row
