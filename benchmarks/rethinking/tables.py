"""The report as tables for a terminal, scores times 100 as in the paper."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from rich.markup import escape
from rich.table import Table

from benchmarks.rethinking.perturbation import Perturbation
from benchmarks.rethinking.ranking import Interval, MetricStability
from benchmarks.rethinking.report import Report
from benchmarks.rethinking.significance import Comparison

_TRUST = "Trust the prompt lines: images of one prompt are alike, so image lines are too sure."


def tables_of(found: Report) -> Iterator[Table]:
    """The tables that have something to show."""
    yield _score_table(found)
    yield _stability_table(found.stability)
    if any(s.over_seeds.swaps for s in found.stability):
        yield _swap_table(found.stability)
    change = "Change of the score x 100 when every channel value grows by one"
    if found.perturbation:
        yield _perturbation_table(found.perturbation, change)
    if found.perturbation_over_seeds:
        title = f"{change}, all seeds together. {_TRUST}"
        yield _perturbation_table(found.perturbation_over_seeds, title)
    pairs = "Pairs of models: paired t-test beside dominance ratios (R: share won)"
    if found.comparisons:
        yield _comparison_table(found.comparisons, pairs)
    if found.comparisons_over_seeds:
        yield _comparison_table(
            found.comparisons_over_seeds, f"{pairs}, all seeds together. {_TRUST}"
        )


def _score_table(found: Report) -> Table:
    table = _table(
        "Scores x 100 and ranks (highest first; equal scores share a rank)",
        ("metric", "seed", "model", "score", "95 % interval", "rank", "prompts", "missing"),
    )
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


def _stability_table(found: Sequence[MetricStability]) -> Table:
    names = ("metric", "stable", "in resamples", "like rankings", "swapped pairs", "mean tau")
    table = _table(
        "Same ranking with every seed? (intervals: prompts resampled; p: against random orders)",
        (*names, "least tau", "tau by seeds", "W", "p (chi2)", "p (permuted)", "note"),
    )
    for s in found:
        over = s.over_seeds
        taus = ", ".join(
            f"{s.seeds[p.first]}/{s.seeds[p.second]}: {_number(p.tau, 2)}" for p in over.pairs
        )
        table.add_row(
            escape(s.metric),
            "-" if over.stable is None else ("yes" if over.stable else "no"),
            _share(s.stable_share),
            _share(over.identical_share),
            f"{over.swapped} of {over.n_model_pairs}{_between(s.swapped, 0)}",
            f"{_number(over.tau_mean, 2)}{_between(s.tau_mean, 2)}",
            _number(over.tau_min, 2),
            escape(taus),
            f"{_number(over.concordance.w, 3)}{_between(s.kendall_w, 3)}",
            _p_value(over.concordance.chi_square_p),
            _p_value(over.concordance.permutation_p),
            escape(s.note),
        )
    return table


def _swap_table(found: Sequence[MetricStability]) -> Table:
    table = _table(
        "Which models change places (seeds with which each scores higher)",
        ("metric", "model", "higher with", "model", "higher with", "equal with"),
    )
    for s in found:
        for swap in s.over_seeds.swaps:
            table.add_row(
                escape(s.metric),
                escape(s.models[swap.first]),
                str(swap.first_higher),
                escape(s.models[swap.second]),
                str(swap.second_higher),
                str(swap.tied),
            )
    return table


def _perturbation_table(found: Sequence[Perturbation], title: str) -> Table:
    names = ("metric", "seed", "unit", "model", "mean", "95 % interval", "largest")
    table = _table(title, (*names, "mean / sd", "largest / sd", "units", "missing"))
    for p in found:
        table.add_row(
            *map(escape, (p.metric, _seed(p.seed), p.unit, p.model)),
            _percent(p.mean),
            _interval(p.ci_low, p.ci_high),
            _percent(p.largest),
            _number(p.mean_of_spread, 3),
            _number(p.largest_of_spread, 3),
            str(p.n_units),
            str(p.n_missing),
        )
    return table


def _comparison_table(found: Sequence[Comparison], title: str) -> Table:
    names = ("metric", "seed", "unit", "models", "difference x 100", "d_z", "p", "p (Holm)")
    table = _table(title, (*names, "p (Wilcoxon)", "R a>b", "R b>a", "units", "missing"))
    for c in found:
        effect = f"{_number(c.effect, 2)}{_between(Interval(c.effect_low, c.effect_high), 2)}"
        models = f"{c.model_a} {c.relation} {c.model_b}"
        table.add_row(
            *map(escape, (c.metric, _seed(c.seed), c.unit, models)),
            f"{_percent(c.difference)} {_interval(c.ci_low, c.ci_high)}",
            effect,
            _p_value(c.p_value),
            _p_value(c.p_corrected),
            _p_value(c.wilcoxon_p),
            _number(c.r_ab, 3),
            _number(c.r_ba, 3),
            str(c.n_units),
            str(c.n_missing),
        )
    return table


def _table(title: str, columns: Sequence[str]) -> Table:
    table = Table(title=title)
    for name in columns:
        table.add_column(name)
    return table


def _seed(seed: str | None) -> str:
    return "all" if seed is None else seed


def _percent(value: float) -> str:
    return _number(100.0 * value, 2)


def _share(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.0%}"


def _interval(low: float, high: float) -> str:
    return "" if math.isnan(low) else f"({_percent(low)} to {_percent(high)})"


def _between(interval: Interval, digits: int) -> str:
    if math.isnan(interval.low):
        return ""
    return f" ({_number(interval.low, digits)} to {_number(interval.high, digits)})"


def _number(value: float, digits: int) -> str:
    return "-" if math.isnan(value) else f"{value:.{digits}f}"


def _p_value(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.2g}"
