"""Report on the data of a card before any metric stands on its board: counts, chance, controls, power."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

import numpy as np

from benchmarks.arrays import FloatArray
from benchmarks.families.benchmark import CardBenchmark, Ceiling, ItemAnswers
from benchmarks.families.controls import CONTROLS, REVERSED, Controls, run_controls
from benchmarks.published import published
from benchmarks.rows import Measured, Row
from benchmarks.schema import ScoreTable, Selector
from benchmarks.sources.folder import Reader
from benchmarks.statistics.power import (
    clusters_needed,
    detectable,
    probability,
    se_of_accuracies,
    se_of_correlations,
    se_of_neighbours,
)
from benchmarks.statistics.resampling import DEFAULT_RESAMPLES

DIFFERENCES = (0.01, 0.02, 0.05, 0.1)
"""Differences of the headline whose detection is planned."""
_DISCORDANT = 0.3
_CORRELATION, _ALIKE = 0.5, 0.5
_DROPPED, _ONE_SIDED = 0.05, 0.9

WarningCode = Literal["rows_dropped", "one_sided_labels", "control_above_metric"]


@dataclass(frozen=True)
class ControlFigure:
    """The headline of a control."""

    name: str  # `position`, or `-position` with its sign turned round
    meaning: str
    value: float


@dataclass(frozen=True)
class GoldenFigure:
    """A figure of the card beside what came out."""

    label: str
    metric: str
    measure: str
    expected: float
    tol: float
    found: float  # NaN where there is no such row
    status: Literal["right", "wrong", "not checked"]  # not checked: its scores are not at hand


@dataclass(frozen=True)
class CardWarning:
    """Something that is no error, and that a reader of the board must know."""

    code: WarningCode
    message: str


@dataclass(frozen=True)
class PowerLine:
    """How well a difference is found."""

    what: str  # the difference, or the two metrics
    difference: float  # in the unit of the headline
    probability: float  # that it is found with the clusters there are, at 5 %, two-sided
    more: float  # clusters beside these that find it in 80 % of all cases; infinite for none


@dataclass(frozen=True)
class Power:
    """How well two metrics are told apart."""

    se: float  # standard error of a paired difference of two metrics
    n_clusters: int
    detectable: float  # smallest difference that is found in 80 % of all cases
    basis: str  # where the standard error comes from, in a sentence
    lines: tuple[PowerLine, ...]


@dataclass(frozen=True)
class CardReport:
    """Everything that is known of a card with its data."""

    name: str
    title: str
    family: str
    kind: str
    revision: str
    headline: Selector
    counts: Mapping[str, int]
    labels: Mapping[str, int]
    chance: float  # NaN where unknown
    ceiling: Ceiling | None
    controls: tuple[ControlFigure, ...]
    half_credit: bool  # whether ties of a control count half, where those of a metric do not
    golden: tuple[GoldenFigure, ...]
    warnings: tuple[CardWarning, ...]
    power: Power

    @property
    def right(self) -> bool:
        """Whether no golden figure is wrong."""
        return all(figure.status != "wrong" for figure in self.golden)


def report_of(
    benchmark: CardBenchmark,
    answers: ItemAnswers,
    scores: ScoreTable | None = None,
    images: Mapping[str, Reader] | None = None,
    n_resamples: int = DEFAULT_RESAMPLES,
) -> CardReport:
    """Report of a card whose data were read.

    `scores`: of metrics, for golden figures of theirs and for the power of comparing them; `images`:
    readers by name, for controls of encoded images.
    """
    card = benchmark.card
    controls = run_controls(benchmark, answers, images, 0)
    measured = None
    if scores is not None:
        measured = benchmark.measure(scores, answers, benchmark.plan(answers, n_resamples))
    figures = tuple(_control_figures(benchmark, controls))
    return CardReport(
        card.name,
        card.title,
        card.family,
        card.kind,
        card.revision,
        card.headline,
        answers.counts(),
        benchmark.labels(answers),
        benchmark.chance(answers),
        benchmark.ceiling(answers),
        figures,
        controls.half_credit,
        tuple(_golden_figures(benchmark, controls.measured, measured)),
        tuple(_warnings(benchmark, answers, figures)),
        _power(benchmark, answers, measured),
    )


def _control_figures(benchmark: CardBenchmark, controls: Controls) -> Iterator[ControlFigure]:
    for row in _headline_rows(benchmark, controls.measured):
        name = row.metric.removeprefix(REVERSED)
        meaning = next(text for key, text in CONTROLS.items() if key == name)
        turned = " (sign turned round)" if row.metric.startswith(REVERSED) else ""
        yield ControlFigure(row.metric, f"{meaning}{turned}", row.value)


def _headline_rows(benchmark: CardBenchmark, measured: Measured) -> list[Row]:
    selector = benchmark.card.headline
    return [row for row in measured.rows if selector.matches(row) and row.skill is None]


def _golden_figures(
    benchmark: CardBenchmark, controls: Measured, metrics: Measured | None
) -> Iterator[GoldenFigure]:
    rows = [*controls.rows, *(metrics.rows if metrics else ())]
    known = {row.metric for row in rows}
    for label, golden in benchmark.card.golden.items():
        wanted = golden.model_dump(include={"metric", "measure", "skill"}) | {
            name: value
            for name in ("variant", "facet", "split")
            if (value := getattr(golden, name)) is not None
        }
        values = [row.value for row in rows if all(getattr(row, k) == v for k, v in wanted.items())]
        found = values[0] if values else math.nan
        right = abs(found - golden.value) <= golden.tol
        control = golden.metric.removeprefix(REVERSED) in CONTROLS
        status: Literal["right", "wrong", "not checked"] = "right" if right else "wrong"
        if golden.metric not in known and not control:
            status = "not checked"
        yield GoldenFigure(
            label, golden.metric, golden.measure, golden.value, golden.tol, found, status
        )


def _warnings(
    benchmark: CardBenchmark, answers: ItemAnswers, controls: tuple[ControlFigure, ...]
) -> Iterator[CardWarning]:
    main = benchmark.card.tables[0].name if benchmark.card.tables else ""
    dropped, kept = answers.items.dropped.get(main, 0), len(answers.items.rows)
    if dropped > _DROPPED * (dropped + kept):
        said = f"{dropped:,} of {dropped + kept:,} rows are left out by `where`."
        yield CardWarning("rows_dropped", said)
    labels = benchmark.labels(answers)
    total = sum(labels.values())
    for label, number in labels.items():
        if number > _ONE_SIDED * total:
            said = (
                f"{number:,} of {total:,} labels are {label!r}: a constant answer is nearly right."
            )
            yield CardWarning("one_sided_labels", said)
    rises = benchmark.card.higher_is_better(benchmark.card.headline.measure)
    for metric, value in _published(benchmark).items():
        above = [one for one in controls if (one.value > value if rises else one.value < value)]
        if above:
            best = max(above, key=lambda one: one.value if rises else -one.value)
            yield CardWarning(
                "control_above_metric",
                f"{best.name} reaches {best.value:.4f}, more than the {value:.4f} published for "
                f"{metric}.",
            )


def _published(benchmark: CardBenchmark) -> dict[str, float]:
    """Published headlines of metrics: of papers, and of the card's golden figures."""
    card, headline = benchmark.card, benchmark.card.headline
    found = {
        cell.metric: cell.value
        for cell in published(card.name)
        if cell.metric != "human"
        and cell.matches(headline.measure, headline.split, None, headline.variant, headline.facet)
    }
    for golden in card.golden.values():
        of_headline = golden.measure == headline.measure and golden.skill is None
        if of_headline and golden.metric.removeprefix(REVERSED) not in CONTROLS:
            found[golden.metric] = golden.value
    return found


def _power(benchmark: CardBenchmark, answers: ItemAnswers, measured: Measured | None) -> Power:
    n = len(answers.clusters)
    rows: list[Row] = []
    drawn = np.empty((0, 0))
    if measured is not None:
        wanted = {id(row) for row in _headline_rows(benchmark, measured)}
        lines = [at for at, row in enumerate(measured.rows) if id(row) in wanted]
        rows = [measured.rows[at] for at in lines]
        drawn = np.asarray(measured.resamples[lines], np.float64)
    se = se_of_neighbours([row.value for row in rows], drawn) if len(rows) > 1 else math.nan
    if se > 0:
        basis = f"the resamples of {len(rows)} metrics, as the median over neighbours"
    else:
        se, basis = _planned(benchmark, answers)
    found = [_line("any two metrics", difference, se, n) for difference in DIFFERENCES]
    return Power(se, n, detectable(se), basis, (*found, *_of_neighbours(rows, drawn, n)))


def _planned(benchmark: CardBenchmark, answers: ItemAnswers) -> tuple[float, str]:
    """Standard error of a difference before any metric is known, and what it takes for granted."""
    n = max(answers.counts().get("decided", len(answers.items.rows)), 4)
    if benchmark.card.measures[benchmark.card.headline.measure].low == -1.0:
        return se_of_correlations(_CORRELATION, _ALIKE, n), (
            f"two correlations near {_CORRELATION:g} over {n:,} rows, as alike as {_ALIKE:g}; rows of "
            "one prompt taken as independent"
        )
    return se_of_accuracies(_DISCORDANT, n), (
        f"exactly one of two metrics is right in {_DISCORDANT:.0%} of {n:,} rows with a label; rows "
        "of one prompt taken as independent"
    )


def _line(what: str, difference: float, se: float, n: int) -> PowerLine:
    more = max(0.0, clusters_needed(difference, se, n) - n)
    return PowerLine(what, difference, float(probability(difference, se)), more)


def _of_neighbours(rows: list[Row], drawn: FloatArray, n: int) -> Iterator[PowerLine]:
    """Metrics that follow each other on the board, each pair with its own standard error."""
    known = [at for at, row in enumerate(rows) if math.isfinite(row.value)]
    known.sort(key=lambda at: -rows[at].value)
    for first, second in pairwise(known):
        difference = rows[first].value - rows[second].value
        se = float(np.nanstd(drawn[first] - drawn[second], ddof=1))
        what = f"{rows[first].metric} over {rows[second].metric}"
        if se > 0:
            yield _line(what, difference, se, n)
        else:
            yield replace(_line(what, difference, 1.0, n), probability=math.nan, more=math.nan)
