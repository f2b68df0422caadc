"""Public part of a run on a benchmark whose answers are withheld: rounded figures.

A scorer has read the questions, so every figure of its run can carry some of them out: the fewer
digits, the less. docs/security.md says how much remains.
"""

from __future__ import annotations

import math
from typing import Any

from leaderboard.records import Cost, Findings, RunResult
from leaderboard.trust import TrustReport

DECIMALS = 3
"""Of values and intervals, as boards show them."""
DIGITS = 2
"""Significant ones, of time and memory."""
_SHOWN = ("value", "ci_low", "ci_high")
_NOT_SHOWN = ("percentile_low", "percentile_high")


def public_result(result: RunResult) -> RunResult:
    """The result as it is published where answers are withheld."""
    return result.model_copy(
        update={
            "rows": tuple(_row(row) for row in result.rows),
            "cost": result.cost and _cost(result.cost),
            "findings": result.findings and _findings(result.findings),
            "trust": result.trust and _trust(result.trust),
            "scores_sha256": {},  # A guess at the scores could be checked against it.
        }
    )


def _row(row: dict[str, Any]) -> dict[str, Any]:
    shown = {name: row[name] and round(row[name], DECIMALS) for name in _SHOWN}
    return {**row, **shown, **dict.fromkeys(_NOT_SHOWN)}


def _cost(cost: Cost) -> Cost:
    measured = {
        "seconds": _significant(cost.seconds),
        "pairs_per_s": _significant(cost.pairs_per_s),
        "peak_memory_bytes": int(_significant(cost.peak_memory_bytes)),
    }
    return cost.model_copy(update=measured)


def _findings(findings: Findings) -> Findings:
    return findings.model_copy(update={"examples": ()})


def _trust(report: TrustReport) -> TrustReport:
    """Whether each check was passed, and no figure."""
    checks = (
        check.model_copy(
            update={"mean": math.nan, "largest": math.nan, "n_lost": 0, "example": None}
        )
        for check in report.checks
    )
    return report.model_copy(
        update={"spread": math.nan, "precision": None, "checks": tuple(checks)}
    )


def _significant(figure: float) -> float:
    if figure == 0.0 or not math.isfinite(figure):
        return figure
    return round(figure, DIGITS - 1 - math.floor(math.log10(abs(figure))))
