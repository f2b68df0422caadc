"""All measures of a set of scored generations together, and their tables for people."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.markup import escape
from rich.table import Table

from benchmarks.rethinking.generations import MetricScores
from benchmarks.rethinking.perturbation import Perturbation, perturbations
from benchmarks.rethinking.ranking import MetricStability, ModelScore, model_scores, stability
from benchmarks.rethinking.significance import LEVEL, Comparison, comparisons
from benchmarks.statistics.resampling import DEFAULT_RESAMPLES, ResamplingPlan


@dataclass(frozen=True)
class Report:
    """Everything Re-Thinking asks of a set of scored generations."""

    scores: tuple[ModelScore, ...]
    stability: tuple[MetricStability, ...]
    perturbation: tuple[Perturbation, ...]
    comparisons: tuple[Comparison, ...]

    def to_json(self) -> dict[str, Any]:
        """JSON values; numbers that are not finite become null, since JSON knows none."""
        plain = _plain(asdict(self))
        assert isinstance(plain, dict)
        return plain


def report(
    tables: Sequence[MetricScores],
    n_resamples: int = DEFAULT_RESAMPLES,
    level: float = LEVEL,
) -> Report:
    """Compute all measures; metrics on the same prompts meet the same resamples.

    Args:
        tables: one per metric, see `benchmarks.rethinking.generations`.
        n_resamples: bootstrap resamples of the prompts behind the intervals.
        level: significance level of the paired t-test.
    """
    prompts = tuple(dict.fromkeys(prompt for table in tables for prompt in table.prompts))
    plan = ResamplingPlan.for_revision("rethinking", "generations", prompts, n_resamples)
    return Report(
        scores=tuple(score for table in tables for score in model_scores(table, plan)),
        stability=tuple(stability(table, plan) for table in tables),
        perturbation=tuple(p for table in tables for p in perturbations(table, plan)),
        comparisons=tuple(c for table in tables for c in comparisons(table, plan, level)),
    )


def tables_of(found: Report) -> Iterator[Table]:
    """The report as tables for a terminal, scores times 100 as in the paper."""
    yield _score_table(found)
    yield _stability_table(found)
    if found.perturbation:
        yield _perturbation_table(found)
    if found.comparisons:
        yield _comparison_table(found)


def _score_table(found: Report) -> Table:
    table = Table(title="Scores x 100 and ranks (highest first; equal scores share a rank)")
    for name in ("metric", "seed", "model", "score", "95 % interval", "rank", "prompts", "missing"):
        table.add_column(name)
    for s in found.scores:
        table.add_row(
            *map(escape, (s.metric, s.seed, s.model)),
            _percent(s.value),
            _interval(s.ci_low, s.ci_high),
            "-" if s.rank is None else str(s.rank),
            str(s.n_prompts),
            str(s.n_missing),
        )
    return table


def _stability_table(found: Report) -> Table:
    table = Table(title="Same ranking with every seed?")
    for name in ("metric", "stable", "in resamples", "W", "swapped pairs", "tau by seeds", "note"):
        table.add_column(name)
    for s in found.stability:
        over = s.over_seeds
        stable = "-" if over.stable is None else ("yes" if over.stable else "no")
        taus = ", ".join(
            f"{s.seeds[p.first]}/{s.seeds[p.second]}: {_number(p.tau, 2)}" for p in over.pairs
        )
        table.add_row(
            escape(s.metric),
            stable,
            "-" if math.isnan(s.stable_share) else f"{s.stable_share:.0%}",
            _number(over.kendall_w, 3),
            f"{over.swapped} of {over.n_model_pairs}",
            escape(taus),
            escape(s.note),
        )
    return table


def _perturbation_table(found: Report) -> Table:
    table = Table(title="Change of the score x 100 when every channel value grows by one")
    names = ("metric", "seed", "model", "mean", "95 % interval", "largest", "prompts", "missing")
    for name in names:
        table.add_column(name)
    for p in found.perturbation:
        table.add_row(
            *map(escape, (p.metric, p.seed, p.model)),
            _percent(p.mean),
            _interval(p.ci_low, p.ci_high),
            _percent(p.largest),
            str(p.n_prompts),
            str(p.n_missing),
        )
    return table


def _comparison_table(found: Report) -> Table:
    table = Table(title="Pairs of models: paired t-test beside dominance ratios (R: share won)")
    names = ("metric", "seed", "models", "difference x 100", "p", "p (Holm)", "p (Wilcoxon)")
    for name in (*names, "R a>b", "R b>a", "prompts", "missing"):
        table.add_column(name)
    for c in found.comparisons:
        table.add_row(
            *map(escape, (c.metric, c.seed, f"{c.model_a} {c.relation} {c.model_b}")),
            f"{_percent(c.difference)} {_interval(c.ci_low, c.ci_high)}",
            _p_value(c.p_value),
            _p_value(c.p_corrected),
            _p_value(c.wilcoxon_p),
            _number(c.r_ab, 3),
            _number(c.r_ba, 3),
            str(c.n_prompts),
            str(c.n_missing),
        )
    return table


def _percent(value: float) -> str:
    return _number(100.0 * value, 2)


def _interval(low: float, high: float) -> str:
    return "" if math.isnan(low) else f"({_percent(low)} to {_percent(high)})"


def _number(value: float, digits: int) -> str:
    return "-" if math.isnan(value) else f"{value:.{digits}f}"


def _p_value(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.2g}"


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
