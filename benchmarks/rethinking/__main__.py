"""Command `python -m benchmarks.rethinking`: all measures of a set of scored generations, as listings."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.text import Text

from benchmarks.command_line import JsonOption, run
from benchmarks.commands.common import Listing, print_blocks, table_or_lines, write
from benchmarks.rethinking.measures import (
    LEVEL,
    Comparison,
    Interval,
    MetricScores,
    MetricStability,
    ModelScore,
    Perturbation,
    comparisons,
    comparisons_over_seeds,
    model_scores,
    perturbations,
    perturbations_over_seeds,
    read_generations,
    stability,
    unit_counts,
)
from benchmarks.sources.output import finite
from benchmarks.statistics.resampling import DEFAULT_RESAMPLES, ResamplingPlan


@dataclass(frozen=True)
class Report:
    """Everything Re-Thinking asks of a set of scored generations."""

    scores: tuple[ModelScore, ...]  # mean score and rank of each model with each seed
    # whether the ranks hold over the seeds, one entry per metric
    stability: tuple[MetricStability, ...]
    # change of the scores of perturbed images, with each seed
    perturbation: tuple[Perturbation, ...]
    # the same for all seeds together, by image and by prompt
    perturbation_over_seeds: tuple[Perturbation, ...]
    comparisons: tuple[Comparison, ...]  # each two models with each seed
    # the same for all seeds together, by image and by prompt
    comparisons_over_seeds: tuple[Comparison, ...]
    notes: tuple[str, ...]  # what cannot be said about a metric, and why
    plan_seed: int  # seed of the generator of the resamples
    n_resamples: int  # their number

    def to_json(self) -> dict[str, Any]:
        """JSON values; numbers that are not finite become null, since JSON knows none."""
        plain = finite(asdict(self))
        assert isinstance(plain, dict)
        return plain


def report(
    tables: Sequence[MetricScores],
    n_resamples: int = DEFAULT_RESAMPLES,
    level: float = LEVEL,
) -> Report:
    """Compute all measures; metrics on the same prompts meet the same resamples."""
    prompts = tuple(dict.fromkeys(prompt for table in tables for prompt in table.prompts))
    plan = ResamplingPlan.for_revision("rethinking", "generations", prompts, n_resamples)
    counted = [(table, unit_counts(table, plan)) for table in tables]
    return Report(
        scores=tuple(chain.from_iterable(model_scores(table, plan) for table in tables)),
        stability=tuple(stability(table, plan) for table in tables),
        perturbation=tuple(chain.from_iterable(perturbations(table, plan) for table in tables)),
        perturbation_over_seeds=tuple(
            chain.from_iterable(perturbations_over_seeds(*both) for both in counted)
        ),
        comparisons=tuple(chain.from_iterable(comparisons(table, plan, level) for table in tables)),
        comparisons_over_seeds=tuple(
            chain.from_iterable(comparisons_over_seeds(*both, level) for both in counted)
        ),
        notes=tuple(chain.from_iterable(map(_notes, tables))),
        plan_seed=plan.seed,
        n_resamples=plan.n_resamples,
    )


def _notes(table: MetricScores) -> list[str]:
    """Reasons for what the tables lack."""
    found = []
    if len(table.models) < 2:
        found.append("one model: no ranks to compare and no pairs to test")
    if len(table.seeds) < 2:
        found.append("one seed: nothing can be said of the stability over seeds")
    if len(table.prompts) < 2:
        found.append("one prompt: no intervals and no t-tests by prompt")
    defined = table.scores[np.isfinite(table.scores)]
    if defined.size == 0:
        found.append("no score at all")
    elif defined.size > 1 and np.ptp(defined) == 0:
        found.append("every score is the same: the metric tells no model from another")
    return [f"{table.metric}: {note}" for note in found]


# Listings for a terminal, scores times 100 as in the paper.


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
    heads = (
        "difference x 100",
        "d_z",
        "t",
        "p",
        "p (Holm)",
        "Wilcoxon W",
        "p (Wilcoxon)",
        "p (W, 9 digits)",
    )
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
        _p_value(c.wilcoxon_p_rounded),
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


app = typer.Typer(
    help="Ranks over seeds, one-step perturbation and significance of scored generations.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@app.command()
def rethinking(
    scores: Annotated[
        Path,
        typer.Argument(
            help="CSV file with the columns metric, model, seed, prompt_id, score and, "
            "optionally, perturbed_score; one line per score, see FORMAT.md of this package."
        ),
    ],
    resamples: Annotated[
        int, typer.Option("--resamples", min=1, help="Bootstrap resamples of the prompts.")
    ] = DEFAULT_RESAMPLES,
    level: Annotated[
        float, typer.Option("--level", min=0.0, max=1.0, help="Significance level of the t-test.")
    ] = LEVEL,
    as_json: JsonOption = False,
) -> None:
    """Print the measures of Re-Thinking for the generations of several models and seeds.

    With several seeds, models are compared and perturbations summed up twice: by prompt (the mean
    over its seeds) and by image. Trust the prompt lines. The images of one prompt are alike, so
    counting each by itself makes p-values too small and intervals too narrow.

    Example: python -m benchmarks.rethinking scores.csv
    """
    found = report(read_generations(scores), resamples, level)
    if as_json:
        write(json.dumps(found.to_json(), indent=1) + "\n")
        return
    console = Console()
    blocks = [b for listing in listings_of(found) for b in table_or_lines(listing, console.width)]
    drawn = f"Intervals: {found.n_resamples} resamples, generator seed {found.plan_seed}"
    print_blocks([*blocks, *map(Text, (*found.notes, drawn))], console)


def main() -> int:
    """Run the command line; returns the exit code (0, 1 their input, 2 usage, 3 ours)."""
    return run(app)


if __name__ == "__main__":
    sys.exit(main())
