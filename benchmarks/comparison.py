"""Comparison of two metrics on one measure, corrected for many tests, in figures and in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from benchmarks.statistics.multiplicity import benjamini_hochberg

LEVEL = 0.05
"""Corrected p-values below this tell two metrics apart."""
Correction = Literal["joint", "benjamini_hochberg"]
CORRECTIONS: Mapping[Correction, str] = {
    "joint": "joint tests",
    "benjamini_hochberg": "Benjamini-Hochberg",
}
"""What the p-values of several pairs are corrected by; `joint` is `statistics.joint_tests`."""


@dataclass(frozen=True)
class Compared:
    """Metric a against metric b on one measure of one slice. NaN where something is undefined."""

    metric_a: str  # name of the one
    metric_b: str  # name of the other
    measure: str  # of both, with
    variant: str | None  # its variant,
    split: str | None  # split,
    facet: str | None  # facet and
    skill: str | None  # skill, as in `Row`
    higher_is_better: bool  # whether larger values of the measure are better
    value_a: float  # the value of a
    value_b: float  # the value of b
    difference: float  # value of a less that of b
    ci_low: float = math.nan  # lower end of its 95 % interval (see `statistics.difference`)
    ci_high: float = math.nan  # upper end
    # `bca`, or `percentile` where BCa is undefined; None without interval
    ci_method: str | None = None
    percentile_low: float = math.nan  # lower end of the percentile interval
    percentile_high: float = math.nan  # its upper end
    p_value: float = math.nan  # two-sided p-value of the sign-flip test, the test of the boards
    p_corrected: float = math.nan  # the same after `correction` over `n_tests`
    correction: Correction | None = None  # key of `CORRECTIONS`; None before there is one
    n_tests: int = 1  # tests that were corrected together
    n_patterns: int = 0  # patterns of signs looked at; 0 where the p-value is an upper bound
    exact: bool = False  # whether these are all patterns
    n_differing: int = 0  # units in which the two differ, whose signs were flipped
    unit: str = "cluster"  # what a unit is: a cluster, or a block of clusters
    n_units: int = 0  # units behind both values
    # units on which a is better; None where this was not counted, then there are neither paired
    # tests nor an effect below
    n_better_a: int | None = 0
    n_tied: int | None = 0  # units on which they are equal but for rounding; None likewise
    n_better_b: int | None = 0  # units on which b is better; None likewise
    uncounted: str = ""  # why units were not counted: scores are missing. Empty as a rule.
    t: float = math.nan  # Student's paired t over the units
    t_p: float = math.nan  # its p-value
    wilcoxon_w: float = math.nan  # the smaller signed-rank sum over the units
    wilcoxon_p: float = math.nan  # its p-value
    # d_z, the difference over the standard deviation of the units' differences
    effect: float = math.nan
    effect_low: float = math.nan  # lower end of its interval
    effect_high: float = math.nan  # its upper end
    # why there are no p-values although there may be a difference; empty as a rule
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


def corrected(rows: Sequence[Compared], joint: ArrayLike | None = None) -> tuple[Compared, ...]:
    """The rows with p-values corrected over all of them; those without a test do not count.

    `joint`: p-values of joint tests, one for each row. None: Benjamini and Hochberg's method.
    """
    method: Correction = "benjamini_hochberg" if joint is None else "joint"
    alone = np.array([row.p_value for row in rows])
    values = benjamini_hochberg(alone) if joint is None else np.where(np.isnan(alone), alone, joint)
    n_tests = sum(math.isfinite(row.p_value) for row in rows)
    return tuple(
        replace(row, p_corrected=float(p), correction=method, n_tests=n_tests)
        for row, p in zip(rows, values, strict=True)
    )


_LEAST_P = 1e-5
_NEAR = 0.0005
"""P-values this close to the level would be rounded to it with three digits."""
_MOST_DIGITS = 12


def figures(*values: float) -> list[str]:
    """Numbers for people, all with as many digits as the first needs; three at least.

    A dash stands for NaN.
    """
    size = abs(values[0])
    small = 0.0 < size < 0.01
    digits = min(6, 1 - math.floor(math.log10(size))) if small else 3
    return [_signed(f"{value:.{max(3, digits)}f}") for value in values]


def _signed(shown: str) -> str:
    if shown == "nan":
        return "–"
    bare = shown.lstrip("-") if float(shown) == 0.0 else shown
    return bare.replace("-", "−")


def p_words(p: float) -> str:
    """`p = 0.0004`, `p < 0.00001`, `p = 1`; a dash where there was no test."""
    if math.isnan(p):
        return "p –"
    if p < _LEAST_P:
        return "p < 0.00001"
    digits = digits_of_p(p, 1 - math.floor(math.log10(p)))
    return f"p = {'1' if round(p, digits) >= 1.0 else f'{p:.{digits}f}'}"


def digits_of_p(p: float, digits: int) -> int:
    """So many decimals, or as many more as show on which side of the level p lies."""
    if p == LEVEL or not LEVEL - _NEAR <= p <= LEVEL + _NEAR:
        return digits
    digits += 1
    while digits < _MOST_DIGITS and (float(f"{p:.{digits}f}") < LEVEL) != (p < LEVEL):
        digits += 1
    return digits


def plural(unit: str, n: int) -> str:
    """`1 graph`, `165 graphs`, `250 blocks of prompts`."""
    head, of, rest = unit.partition(" of ")
    return f"{n:,} {head if n == 1 else head + 's'}{of}{rest}"


def units_of(unit: str) -> str:
    """`graphs`, `blocks of prompts`: the plural without a number."""
    return plural(unit, 2).removeprefix("2 ")


def verdict(found: Compared, a: str, b: str) -> str:
    """Which of the two is better and by how much, in one sentence without its full stop."""
    undefined = [n for n, v in ((a, found.value_a), (b, found.value_b)) if math.isnan(v)]
    if undefined:
        return f"{' and '.join(undefined)} {'has' if len(undefined) == 1 else 'have'} no value here"
    gain, low, high = found.advantage
    if gain == 0.0 and found.n_differing == 0 and found.tally:
        return f"{a} and {b} are equal on every {found.unit}"
    if gain < 0.0:
        a, b, gain, low, high = b, a, -gain, -high, -low
    by, *ends = figures(gain, low, high)
    interval = "" if math.isnan(low) else f" [{ends[0]}, {ends[1]}]"
    if found.told_apart:
        return f"{a} is better than {b} by {by}{interval}"
    if math.isnan(found.p_value):
        return f"{a} has {by}{interval} over {b}, but the two were not tested"
    if gain == 0.0:
        return f"{a} and {b} have the same value{interval}"
    said = f"No significant difference between {a} and {b}: {a} has {by}{interval} over {b}"
    return said + _only_alone(found)


def _only_alone(found: Compared) -> str:
    """That it is the correction which keeps the two together; empty where it is not."""
    if not found.p_value < LEVEL <= found.p_corrected:
        return ""
    alone, once = (p_words(p).removeprefix("p ") for p in (found.p_value, found.p_corrected))
    return (
        f" (p {alone} alone, {once.removeprefix('= ')} once corrected for {found.n_tests:,} pairs)"
    )


def evidence_words(found: Compared) -> str:
    """The test behind the p-value, or why there is none."""
    if math.isnan(found.p_value):
        return found.untested or "no contributions of clusters are there to test with"
    units = plural(found.unit, found.n_differing)
    if found.n_differing == 0:
        return p_words(found.p_value)
    if not found.n_patterns:
        bound = p_words(found.p_value).replace("=", "≤")
        return f"{bound} (sign flips of {units}, an upper bound)"
    how = f"all {found.n_patterns:,} patterns" if found.exact else f"{found.n_patterns:,} draws"
    return f"{p_words(found.p_value)} (sign flips of {units}, {how})"


def correction_words(found: Compared, of: str) -> str:
    """The corrected p-value, by its name; `of` says what was corrected over, in the plural."""
    if found.correction is None or math.isnan(found.p_corrected):
        return ""
    return (
        f"{CORRECTIONS[found.correction]} over {found.n_tests:,} {of}: {p_words(found.p_corrected)}"
    )


def dominance_words(found: Compared, a: str, b: str) -> str:
    """On how many units each is better, or why this is not said; empty without units."""
    if found.uncounted:
        return f"better, tied, worse, paired tests and d_z: {found.uncounted}"
    if not found.tally:
        return ""
    better, tied, worse = found.tally
    return f"{a} better on {plural(found.unit, better)}, {b} on {worse:,}, tied on {tied:,}"


def effect_words(found: Compared) -> str:
    """The effect size with its interval; empty where it is undefined."""
    if math.isnan(found.effect):
        return ""
    if math.isinf(found.effect):
        return f"d_z is infinite: every {found.unit} differs by the same amount"
    value, low, high = (f"{n:.2f}" for n in (found.effect, found.effect_low, found.effect_high))
    ends = "" if math.isnan(found.effect_low) else f" [{_signed(low)}, {_signed(high)}]"
    return f"d_z = {_signed(value)}{ends}"


def paired_words(found: Compared) -> str:
    """Student's and Wilcoxon's tests on the units; empty where there are none."""
    if math.isnan(found.t_p) or math.isnan(found.wilcoxon_p):
        return ""
    t = "∞" if math.isinf(found.t) else f"{abs(found.t):.2f}"
    sign = "−" if found.t < 0 else ""
    return (
        f"paired t = {sign}{t}, {p_words(found.t_p)}; "
        f"Wilcoxon W = {found.wilcoxon_w:,.10g}, {p_words(found.wilcoxon_p)}"
    )
