"""The listed cases as a table to take away: one row for each case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from benchmarks.cases import BETWEEN_SKILLS
from leaderboard.pages.items.cases import CaseSet, Standing
from leaderboard.tables import Column, Table, Type, Value

_OF_CASE = (
    Column("case_id", Type.TEXT, "what is looked at together; see the file of cases"),
    Column("cluster", Type.TEXT, "what is resampled, of which the case is a part"),
    Column("split", Type.TEXT, "parts of the benchmark that it is in, joined by ;"),
    Column("skills", Type.TEXT, "what it is about, joined by ;"),
    Column("n_comparisons", Type.COUNT, "comparisons that people decide"),
)
_SIDES = ("a", "b")


def table_of(
    cases: CaseSet,
    standings: Sequence[Standing],
    order: Iterable[int],
    about: Mapping[str, Any] | None = None,
) -> Table:
    """What the item browser lists, with all of its pages.

    Args:
        cases: of the benchmark.
        standings: of metric A, and of metric B where there is one.
        order: positions of the cases that are listed.
        about: what the table says of itself beside benchmark and metrics.
    """
    sides = list(zip(_SIDES, standings, strict=False))
    return Table(
        name=f"{cases.benchmark}-items",
        columns=(*_OF_CASE, *(column for side, _ in sides for column in _of_metric(side))),
        rows=[_row(cases, sides, int(case)) for case in order],
        about={
            **(about or {}),
            "benchmark": cases.benchmark,
            "revision": cases.revision,
            **{side: standing.entry_id for side, standing in sides},
        },
    )


def _of_metric(side: str) -> tuple[Column, ...]:
    name = f"metric {side.upper()}"
    return (
        Column(f"{side}_n_compared", Type.COUNT, f"comparisons of which {name} scored both pairs"),
        Column(f"{side}_n_right", Type.NUMBER, "as people have them; equal scores count a half"),
        Column(f"{side}_share", Type.NUMBER, "right among those compared"),
        Column(f"{side}_n_missing", Type.COUNT, f"pairs without a score by {name}"),
    )


def _row(cases: CaseSet, sides: Sequence[tuple[str, Standing]], case: int) -> dict[str, Value]:
    row: dict[str, Value] = {
        "case_id": cases.comparisons.case_ids[case],
        "cluster": cases.clusters[cases.cluster_of[case]],
        "split": BETWEEN_SKILLS.join(cases.splits[case]),
        "skills": BETWEEN_SKILLS.join(cases.skills[case]),
        "n_comparisons": int(cases.compared[case]),
    }
    for side, standing in sides:
        row |= {
            f"{side}_n_compared": int(standing.n_compared[case]),
            f"{side}_n_right": float(standing.n_right[case]),
            f"{side}_share": float(standing.share[case]),
            f"{side}_n_missing": int(standing.n_missing[case]),
        }
    return row
