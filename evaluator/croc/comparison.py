"""Agreement between CROC boards, between the models behind one, and between metrics, as Kendall's tau-b.

Its report has figures for programs, and a page with heat maps for people.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from benchmarks.arrays import FloatArray
from benchmarks.errors import SubmitterError
from benchmarks.sources.output import finite
from benchmarks.statistics.concordance import taus_between
from benchmarks.statistics.intervals import percentile
from evaluator.croc.boards import WAYS, CrocBoard, Values
from evaluator.croc.human_check import HumanCheck
from evaluator.standalone_page import render_page

_SIGNS = 1 << 22  # pairs of accuracies that are looked at at once: bounds the memory


@dataclass(frozen=True)
class Tau:
    """Kendall's tau-b of two rows of accuracies; NaN where one of them is constant."""

    value: float
    low: float  # 95 % percentile interval over resampled prompt pairs
    high: float
    n: int  # accuracies of either row that both have


@dataclass(frozen=True)
class BoardAgreement:
    """How far two boards order metrics alike."""

    boards: tuple[str, str]
    # by way: all properties and metrics as one row, as the paper has it
    overall: Mapping[str, Tau]
    by_property: Mapping[str, Mapping[str, Tau]]  # property to way to tau over metrics
    alone: tuple[tuple[str, ...], tuple[str, ...]]  # properties that the other board has not


@dataclass(frozen=True)
class Stability:
    """How far the accuracies of one synthetic board depend on a model behind it."""

    board: str
    kind: str  # of model
    models: tuple[str, str]
    tau: Tau


@dataclass(frozen=True)
class MetricAgreement:
    """Tau between each two metrics over the cells of one board (CROC, Figure 10)."""

    board: str
    metrics: tuple[str, ...]
    taus: tuple[tuple[Tau, ...], ...]
    n_cells: int


@dataclass(frozen=True)
class BoardComparison:
    """Everything that several boards say together."""

    boards: tuple[CrocBoard, ...]
    metrics: tuple[str, ...]  # that all boards have
    left_out: Mapping[str, tuple[str, ...]]  # board to its further metrics
    agreements: tuple[BoardAgreement, ...]
    stabilities: tuple[Stability, ...]
    between_metrics: tuple[MetricAgreement, ...]


def compare_boards(boards: Sequence[CrocBoard]) -> BoardComparison:
    """Compare boards on the metrics that all of them have.

    Resamples of two boards are drawn independently, also where they have prompts in common.

    Raises:
        SubmitterError: `too_few_metrics`.
    """
    metrics = tuple(
        name for name in boards[0].metrics if all(name in board.metrics for board in boards)
    )
    if len(metrics) < 2:
        told = "; ".join(f"{board.name}: {', '.join(board.metrics)}" for board in boards)
        raise SubmitterError(
            "too_few_metrics",
            f"Orders of metrics are compared, and the boards have {len(metrics)} in common ({told}).",
            "Score the same metrics on each, and give their columns the same names.",
        )
    alike = tuple(board.of_metrics(metrics) for board in boards)
    return BoardComparison(
        alike,
        metrics,
        {board.name: tuple(m for m in board.metrics if m not in metrics) for board in boards},
        tuple(_agreement(a, b) for a, b in combinations(alike, 2)),
        tuple(one for board in alike for one in _stabilities(board)),
        tuple(_between_metrics(board) for board in alike),
    )


def _agreement(a: CrocBoard, b: CrocBoard) -> BoardAgreement:
    keys = tuple(dict.fromkeys(key for key, _ in a.properties))
    others = tuple(dict.fromkeys(key for key, _ in b.properties))
    if a.synthetic and b.synthetic:
        # Both have the single properties that groups are made of.
        keys = tuple(key for key in keys if key not in a.groups)
        others = tuple(key for key in others if key not in b.groups)
    common = [key for key in keys if key in others]
    by_way = {
        way: [k for k in common if {(k, way)} <= a.properties.keys() & b.properties.keys()]
        for way in WAYS
    }
    return BoardAgreement(
        (a.name, b.name),
        {
            way: tau_of(*(Values.stacked([of.properties[k, way] for k in of_way]) for of in (a, b)))
            for way, of_way in by_way.items()
            if of_way
        },
        {
            key: {
                way: tau_of(a.properties[key, way], b.properties[key, way])
                for way in WAYS
                if key in by_way[way]
            }
            for key in common
        },
        (
            tuple(key for key in keys if key not in others),
            tuple(key for key in others if key not in keys),
        ),
    )


def _stabilities(board: CrocBoard) -> Iterator[Stability]:
    for kind, models in board.models.items():
        for first, second in combinations(models, 2):
            tau = tau_of(models[first], models[second])
            yield Stability(board.name, kind, (first, second), tau)


def _between_metrics(board: CrocBoard) -> MetricAgreement:
    cells = Values.stacked(list(board.cells.values()))
    taus = _taus(cells.value.T, cells.resamples.swapaxes(1, 2))
    return MetricAgreement(board.name, board.metrics, taus, len(board.cells))


def tau_of(a: Values, b: Values) -> Tau:
    """Tau between two equal shapes of accuracies, each as one row, with its interval."""
    value = np.stack([a.value.ravel(), b.value.ravel()])
    rows = [one.resamples.reshape(len(one.resamples), -1) for one in (a, b)]
    return _taus(value, np.stack(rows, axis=1))[0][1]


def _taus(rows: FloatArray, resamples: FloatArray) -> tuple[tuple[Tau, ...], ...]:
    """Tau between each two of M rows (M, n), with intervals from resamples (B, M, n)."""
    value, m = taus_between(rows), len(rows)
    block = max(1, _SIGNS // max(1, rows.size * (rows.shape[1] - 1) // 2))
    drawn = np.concatenate(
        [taus_between(resamples[b : b + block]) for b in range(0, len(resamples), block)]
    )
    ends = percentile(drawn.reshape(len(drawn), -1).T)
    low, high = (end.reshape(m, m) for end in ends.ends)
    there = np.isfinite(rows).astype(int)
    n = there @ there.T
    return tuple(
        tuple(
            Tau(float(value[i, j]), float(low[i, j]), float(high[i, j]), int(n[i, j]))
            for j in range(m)
        )
        for i in range(m)
    )


@dataclass(frozen=True)
class ComparisonReport:
    """What boards, models, metrics and people agree on."""

    comparison: BoardComparison
    humans: HumanCheck | None = None

    @cached_property
    def figures(self) -> dict[str, Any]:
        """Everything, as JSON has it: null where a figure is undefined."""
        found = self.comparison
        boards = [
            {
                "name": board.name,
                "title": board.title,
                "synthetic": board.synthetic,
                "prompt_pairs": board.n_clusters,
                "cells": len(board.cells),
                "missing_scores": board.n_missing,
                "incomplete_models": board.incomplete,
                "further_metrics": found.left_out[board.name],
            }
            for board in found.boards
        ]
        people = self.humans and asdict(self.humans) | {
            "figures": [asdict(one) | {"scaled": one.scaled} for one in self.humans.figures]
        }
        told = {
            "metrics": found.metrics,
            "boards": boards,
            "agreements": [asdict(one) for one in found.agreements],
            "stabilities": [asdict(one) for one in found.stabilities],
            "between_metrics": [asdict(one) for one in found.between_metrics],
            "people": people,
        }
        return {key: finite(value) for key, value in told.items()}

    @property
    def html(self) -> str:
        """The page; it needs nothing from elsewhere."""
        return render_page("evaluator.croc", "comparison.html", report=self.figures)
