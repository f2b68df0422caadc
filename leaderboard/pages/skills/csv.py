"""The list of the skill explorer as a file."""

from __future__ import annotations

import csv
import io
import math

from leaderboard.pages.shown.csv_export import harmless
from leaderboard.pages.skills.found import Found
from leaderboard.pages.skills.query import SkillsChoice

COLUMNS = (
    "skills", "metric", "version", "submitter", "account", "kind", "mean", "ci_low", "ci_high",
    "rank_low", "rank", "rank_high", "p_best", "parts", "missing", "seconds_per_1000_pairs",
    "peak_memory_gib", "devices", "on_front", "entry_id",
)  # fmt: skip
PART_COLUMNS = ("weight", "rescaled", "ci_low", "ci_high")
"""Of each part, after its name."""


def skills_csv(choice: SkillsChoice, found: Found) -> str:
    """One line per metric of the list, with its rescaled value on every part."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    parts = [f"{name} {column}" for name in found.weights for column in PART_COLUMNS]
    writer.writerow([harmless(column) for column in (*COLUMNS, *parts)])
    on_front = {point.placed.entry.entry_id for point in found.front}
    for one, used in zip(found.placed, found.spent, strict=True):
        standing, rank = one.standing, one.standing.rank
        row: list[object] = [
            ",".join(skill.key for skill in choice.skills), one.who.metric, one.who.version,
            one.who.submitter, one.entry.account, one.who.kind.value,
            *map(_number, standing.index),
            *((rank.low, rank.rank, rank.high) if rank else ("", "", "")),
            _number(standing.p_best), ";".join(standing.present), ";".join(standing.missing),
            used.seconds if used else None, used.memory if used else None,
            ";".join(used.devices) if used else "",
            "true" if one.entry.entry_id in on_front else "false", one.entry.entry_id,
        ]  # fmt: skip
        for name, weight in found.weights.items():
            value = found.base.values[name].get(one.who)
            row += [weight, *(map(_number, value) if value else (None, None, None))]
        writer.writerow([harmless(cell) for cell in row])
    return out.getvalue()


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
