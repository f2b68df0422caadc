"""Two metrics on one measure: what is found, and corrected for many looks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from benchmarks.statistics.multiplicity import benjamini_hochberg, holm

LEVEL = 0.05
"""Corrected p-values below this tell two metrics apart."""
Correction = Literal["holm", "benjamini_hochberg"]
CORRECTIONS = {
    "holm": (holm, "Holm"),
    "benjamini_hochberg": (benjamini_hochberg, "Benjamini-Hochberg"),
}


@dataclass(frozen=True)
class Compared:
    """Metric a against metric b on one measure of one slice. NaN where something is undefined.

    Attributes:
        metric_a: name of the one.
        metric_b: name of the other.
        measure: of both, with
        variant: its variant,
        split: split,
        facet: facet and
        skill: skill, as in `Row`.
        higher_is_better: whether larger values of the measure are better.
        value_a: the value of a.
        value_b: the value of b.
        difference: value of a less that of b.
        ci_low: lower end of its 95 % interval (see `statistics.difference`).
        ci_high: upper end.
        ci_method: `bca`, or `percentile` where BCa is undefined; None without interval.
        percentile_low: lower end of the percentile interval.
        percentile_high: its upper end.
        p_value: two-sided p-value of the sign-flip test, the test of the boards.
        p_corrected: the same after `correction` over `n_tests`.
        correction: key of `CORRECTIONS`; None before there is one.
        n_tests: tests that were corrected together.
        n_patterns: patterns of signs looked at; 0 where the p-value is an upper bound.
        exact: whether these are all patterns.
        n_differing: units in which the two differ, whose signs were flipped.
        unit: what a unit is: a cluster, or a block of clusters.
        n_units: units behind both values.
        n_better_a: units on which a is better; None where this was not counted, then there are
            neither paired tests nor an effect below.
        n_tied: units on which they are equal but for rounding; None likewise.
        n_better_b: units on which b is better; None likewise.
        uncounted: why units were not counted: scores are missing. Empty as a rule.
        t: Student's paired t over the units.
        t_p: its p-value.
        wilcoxon_w: the smaller signed-rank sum over the units.
        wilcoxon_p: its p-value.
        effect: d_z, the difference over the standard deviation of the units' differences.
        effect_low: lower end of its interval.
        effect_high: its upper end.
        untested: why there are no p-values although there may be a difference; empty as a rule.
    """

    metric_a: str
    metric_b: str
    measure: str
    variant: str | None
    split: str | None
    facet: str | None
    skill: str | None
    higher_is_better: bool
    value_a: float
    value_b: float
    difference: float
    ci_low: float = math.nan
    ci_high: float = math.nan
    ci_method: str | None = None
    percentile_low: float = math.nan
    percentile_high: float = math.nan
    p_value: float = math.nan
    p_corrected: float = math.nan
    correction: Correction | None = None
    n_tests: int = 1
    n_patterns: int = 0
    exact: bool = False
    n_differing: int = 0
    unit: str = "cluster"
    n_units: int = 0
    n_better_a: int | None = 0
    n_tied: int | None = 0
    n_better_b: int | None = 0
    uncounted: str = ""
    t: float = math.nan
    t_p: float = math.nan
    wilcoxon_w: float = math.nan
    wilcoxon_p: float = math.nan
    effect: float = math.nan
    effect_low: float = math.nan
    effect_high: float = math.nan
    untested: str = ""

    def to_json(self) -> dict[str, Any]:
        """All fields as JSON values: null for NaN and for what is infinite."""
        return {
            key: None if isinstance(value, float) and not math.isfinite(value) else value
            for key, value in asdict(self).items()
        }

    @property
    def p_decisive(self) -> float:
        """The p-value by which the two are told apart: the corrected one where there is one."""
        return self.p_corrected if self.correction else self.p_value

    @property
    def told_apart(self) -> bool:
        """Whether the test finds a difference."""
        return self.p_decisive < LEVEL

    @property
    def tally(self) -> tuple[int, int, int] | None:
        """Units on which a is better, both are equal, b is better; None where not counted."""
        better, tied, worse = self.n_better_a, self.n_tied, self.n_better_b
        if not self.n_units or better is None or tied is None or worse is None:
            return None
        return better, tied, worse

    @property
    def advantage(self) -> tuple[float, float, float]:
        """By how much a is better, with both ends; negative where it is worse."""
        if self.higher_is_better:
            return self.difference, self.ci_low, self.ci_high
        return -self.difference, -self.ci_high, -self.ci_low


def corrected(rows: Sequence[Compared], method: Correction) -> tuple[Compared, ...]:
    """The rows with p-values corrected over all of them; those without a test do not count."""
    correct, _ = CORRECTIONS[method]
    values = correct([row.p_value for row in rows])
    n_tests = sum(math.isfinite(row.p_value) for row in rows)
    return tuple(
        replace(row, p_corrected=float(p), correction=method, n_tests=n_tests)
        for row, p in zip(rows, values, strict=True)
    )
