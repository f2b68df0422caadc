"""The report as listings for a terminal, scores times 100 as in the paper."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from benchmarks.commands.layout import Listing
from benchmarks.rethinking.perturbation import Perturbation
from benchmarks.rethinking.ranking import Interval, MetricStability
from benchmarks.rethinking.report import Report
from benchmarks.rethinking.significance import Comparison

_TRUST = "Trust the prompt lines: images of one prompt are alike, so image lines are too sure."
_LARGEST_IN_FULL = 1e9
"""Beyond it a number is shown with its leading digits and a power of ten."""


def listings_of(found: Report) -> Iterator[Listing]:
    """The listings that have something to show."""
    yield _scores(found)
    yield _stability(found.stability)
    if any(s.over_seeds.swaps for s in found.stability):
        yield _swaps(found.stability)
    change = "Change of the score x 100 when every channel value grows by one"
    if found.perturbation:
        yield _perturbations(found.perturbation, change)
    if found.perturbation_over_seeds:
        title = f"{change}, all seeds together. {_TRUST}"
        yield _perturbations(found.perturbation_over_seeds, title)
    pairs = "Pairs of models: paired t-test beside dominance ratios (R: share won)"
    if found.comparisons:
        yield _comparisons(found.comparisons, pairs)
    if found.comparisons_over_seeds:
        yield _comparisons(found.comparisons_over_seeds, f"{pairs}, all seeds together. {_TRUST}")


def _scores(found: Report) -> Listing:
    names = ("metric", "seed", "model")
    lines = [
        (
            *(s.metric, s.seed, s.model),
            _percent(s.value),
            _interval(s.ci_low, s.ci_high),
            "-" if s.rank is None else str(s.rank),
            str(s.n_prompts),
            str(s.n_missing),
        )
        for s in found.scores
    ]
    return Listing(
        "Scores x 100 and ranks (highest first; equal scores share a rank)",
        (*names, "score", "95 % interval", "rank", "prompts", "missing"),
        lines,
        n_names=len(names),
    )


def _stability(found: Sequence[MetricStability]) -> Listing:
    heads = ("metric", "stable", "in resamples", "like rankings", "swapped pairs", "mean tau")
    return Listing(
        "Same ranking with every seed? (intervals: prompts resampled; p: against random orders)",
        (
            *heads,
            "least tau",
            "tau (swapped) by seeds",
            "W",
            "chi2",
            "p (chi2)",
            "p (permuted)",
            "note",
        ),
        [_stability_line(s) for s in found],
    )


def _stability_line(s: MetricStability) -> tuple[str, ...]:
    over = s.over_seeds
    taus = (
        f"{s.seeds[p.first]}/{s.seeds[p.second]}: {_number(p.tau, 2)} ({p.swapped})"
        for p in over.pairs
    )
    return (
        s.metric,
        "-" if over.stable is None else ("yes" if over.stable else "no"),
        _share(s.stable_share),
        f"{_share(over.identical_share)}{_share_between(s.identical_share)}",
        f"{over.swapped} of {over.n_model_pairs}{_between(s.swapped, 0)}",
        f"{_number(over.tau_mean, 2)}{_between(s.tau_mean, 2)}",
        _number(over.tau_min, 2),
        ", ".join(taus),
        f"{_number(over.concordance.w, 3)}{_between(s.kendall_w, 3)}",
        _number(over.concordance.chi_square, 2),
        _p_value(over.concordance.chi_square_p),
        _p_value(over.concordance.permutation_p),
        s.note,
    )


def _swaps(found: Sequence[MetricStability]) -> Listing:
    return Listing(
        "Which models change places (seeds with which each scores higher)",
        ("metric", "model", "higher with", "model", "higher with", "equal with"),
        [
            (
                s.metric,
                s.models[swap.first],
                str(swap.first_higher),
                s.models[swap.second],
                str(swap.second_higher),
                str(swap.tied),
            )
            for s in found
            for swap in s.over_seeds.swaps
        ],
    )


def _perturbations(found: Sequence[Perturbation], title: str) -> Listing:
    names = ("metric", "seed", "unit", "model")
    heads = ("mean", "95 % interval", "largest", "sd", "mean / sd", "largest / sd")
    lines = [
        (
            *(p.metric, _seed(p.seed), p.unit, p.model),
            _percent(p.mean),
            _interval(p.ci_low, p.ci_high),
            _percent(p.largest),
            _percent(p.spread),
            _number(p.mean_of_spread, 3),
            _number(p.largest_of_spread, 3),
            str(p.n_units),
            str(p.n_missing),
        )
        for p in found
    ]
    return Listing(title, (*names, *heads, "units", "missing"), lines, n_names=len(names))


def _comparisons(found: Sequence[Comparison], title: str) -> Listing:
    names = ("metric", "seed", "unit", "models")
    heads = ("difference x 100", "d_z", "t", "p", "p (Holm)", "Wilcoxon W", "p (Wilcoxon)")
    counts = ("R a>b", "R b>a", "units", "missing")
    lines = [_comparison_line(c) for c in found]
    return Listing(title, (*names, *heads, *counts), lines, n_names=len(names))


def _comparison_line(c: Comparison) -> tuple[str, ...]:
    return (
        *(c.metric, _seed(c.seed), c.unit, f"{c.model_a} {c.relation} {c.model_b}"),
        f"{_percent(c.difference)} {_interval(c.ci_low, c.ci_high)}".rstrip(),
        f"{_number(c.effect, 2)}{_between(Interval(c.effect_low, c.effect_high), 2)}",
        _number(c.t, 2),
        _p_value(c.p_value),
        _p_value(c.p_corrected),
        _number(c.wilcoxon_w, 1),
        _p_value(c.wilcoxon_p),
        _number(c.r_ab, 3),
        _number(c.r_ba, 3),
        str(c.n_units),
        str(c.n_missing),
    )


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


def _share_between(interval: Interval) -> str:
    if math.isnan(interval.low):
        return ""
    return f" ({_share(interval.low)} to {_share(interval.high)})"


def _number(value: float, digits: int) -> str:
    """Rounded to so many decimals; one that would be 0 or endless has leading digits instead."""
    if math.isnan(value):
        return "-"
    shown = f"{value + 0.0:.{digits}f}"  # -0.0 becomes 0.0
    if (value and not float(shown)) or abs(value) >= _LARGEST_IN_FULL:
        return f"{value:.{max(digits, 2)}g}"
    return shown


def _p_value(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.2g}"
