"""The protocol of T2IScoreScore: scores and semantic error graphs in, rows out.

Two variants stand side by side. `paper` is the computation that reproduces the published table to
its last digit; `equation` is what Eqs. 1-5 of the paper say. Saxon et al. 2024, arXiv:2404.04251.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import compress

import numpy as np
import pandas as pd

from benchmarks.arrays import BoolArray, FloatArray
from benchmarks.rows import Measured, MeasuredBuilder, Row
from benchmarks.schema import ScoreTable
from benchmarks.statistics.resampling import ResamplingPlan, resampled_mean
from benchmarks.ts2.answers import Ts2Answers
from benchmarks.ts2.graph_measures import KEYS, Graph, MeasureKey


@dataclass(frozen=True)
class GraphValues:
    """Every measure of every metric on every graph; C graphs, M metrics.

    Attributes:
        graphs: ids of the graphs, length C.
        metrics: names of the metrics, length M.
        values: per measure and variant an array (C, M), NaN where a metric has no score in a
            graph; delta in units of the score.
        sigma: per variant the spread of each metric, shape (M,); see `score_spread`.
        images: shape (C,), images of each graph.
        scored: shape (C, M), images of each graph for which the metric gave a score.
    """

    graphs: tuple[str, ...]
    metrics: tuple[str, ...]
    values: Mapping[MeasureKey, FloatArray]
    sigma: Mapping[str, FloatArray]
    images: FloatArray
    scored: FloatArray

    def normalised(self, key: MeasureKey) -> FloatArray:
        """Shape (C, M): the values that are averaged, delta in units of sigma."""
        measure, variant = key
        return self.values[key] / self.sigma[variant] if measure == "delta" else self.values[key]


@dataclass(frozen=True)
class _Part:
    """The graphs (C,) of one split or skill."""

    split: str
    skill: str | None
    graphs: BoolArray


@dataclass(frozen=True)
class _Average:
    """One measure over one part, for all metrics; P graphs, M metrics, B resamples.

    Attributes:
        part: the split or skill.
        key: measure and variant.
        graphs: ids of the graphs, length P.
        values: shape (P, M), what is averaged.
        resamples: shape (B, M), its mean in each resample.
        images: shape (P,), images of each graph.
        scored: shape (P, M), images for which the metric gave a score.
    """

    part: _Part
    key: MeasureKey
    graphs: tuple[str, ...]
    values: FloatArray
    resamples: FloatArray
    images: FloatArray
    scored: FloatArray


def measure(
    scores: ScoreTable, answers: Ts2Answers, plan: ResamplingPlan, benchmark: str, revision: str
) -> Measured:
    """Rank, separation and delta of every metric, in both variants, over all graphs and by part.

    A value is the plain mean over the graphs of a part; graphs in which a metric scored nothing
    are left out and named in the note. Intervals resample graphs. Sigma, by which delta is
    divided, is held fixed in the resamples: it is a property of the metric's scale, taken from
    all images, and not of the part that is measured.

    Args:
        scores: the metrics' scores.
        answers: any graphs with any names of splits; `skill` may be empty.
        plan: the resampling plan, whose clusters are the graphs.
        benchmark: name for the rows.
        revision: revision for the rows.

    Returns:
        Rows for split `all` and each named split, and for split `all` each named skill.
    """
    builder = MeasuredBuilder(plan.n_resamples)
    add_rows(
        builder,
        graph_values(scores, answers),
        answers,
        plan,
        benchmark=benchmark,
        revision=revision,
    )
    return builder.build()


def graph_values(scores: ScoreTable, answers: Ts2Answers) -> GraphValues:
    """The per-graph values behind all rows."""
    table = scores.oriented().loc[list(answers.nodes["pair_id"])].to_numpy(dtype=np.float64)
    n_metrics = len(scores.metrics)
    shape = (len(answers.clusters), n_metrics)
    values = {key: np.empty(shape) for key in KEYS}
    images = np.zeros(len(answers.clusters))
    scored = np.zeros(shape)
    rows_of = answers.nodes.groupby("graph").indices
    levels = answers.nodes["level"].to_numpy(dtype=np.intp)
    labels = answers.nodes["label"].to_numpy(dtype=object)
    for position, graph in enumerate(answers.clusters):
        rows = rows_of[graph]
        block = table[rows]
        for key, found in Graph(levels[rows], labels[rows].tolist()).measures(block).items():
            values[key][position] = found
        images[position] = len(rows)
        scored[position] = np.isfinite(block).sum(axis=0)
    mended = _mended(scores, answers)
    return GraphValues(
        graphs=answers.clusters,
        metrics=scores.metrics,
        values=values,
        sigma={
            "paper": score_spread(np.where(mended, np.nan, table)),
            "equation": score_spread(table),
        },
        images=images,
        scored=scored,
    )


def score_spread(scores: FloatArray) -> FloatArray:
    """Sample standard deviation (ddof 1) of each metric over all images; delta's unit.

    In variant `paper` the cells that had to be mended are NaN here, because the published figures
    rest on a column without them.

    Args:
        scores: shape (N, M); NaN is left out.

    Returns:
        Shape (M,); NaN where fewer than two scores differ, or the spread is no positive number.
    """
    spread = np.full(scores.shape[1], np.nan)
    for column, values in enumerate(scores.T):
        finite = values[np.isfinite(values)]
        # Rounding can give equal scores a spread, and huge ones an infinite one.
        if finite.size > 1 and finite.min() < finite.max():
            with np.errstate(over="ignore"):
                deviation = finite.std(ddof=1)
            if 0 < deviation < np.inf:
                spread[column] = deviation
    return spread


def add_rows(
    builder: MeasuredBuilder,
    values: GraphValues,
    answers: Ts2Answers,
    plan: ResamplingPlan,
    *,
    benchmark: str,
    revision: str,
) -> None:
    """Average the values of the graphs and append a row per metric, part and measure."""
    averages = list(_averages(values, answers, plan))
    for column, metric in enumerate(values.metrics):
        for average in averages:
            found = average.values[:, column]
            scored = average.scored[:, column]
            defined = np.isfinite(found)
            row = Row(
                benchmark=benchmark,
                revision=revision,
                metric=metric,
                measure=average.key[0],
                value=float(found[defined].mean()) if defined.any() else np.nan,
                split=average.part.split,
                skill=average.part.skill,
                variant=average.key[1],
                n_items=int(scored[defined].sum()),
                n_clusters=int(defined.sum()),
                n_missing=int((average.images - scored).sum()),
                note=_note(defined, scored),
            )
            # One graph varies with nothing: an interval of no width would promise too much.
            resamples = average.resamples[:, column] if defined.sum() > 1 else None
            graphs = list(compress(average.graphs, defined))
            members = plan.positions(average.graphs)
            builder.add(row, resamples, graphs, found[defined], members=members)


def _averages(values: GraphValues, answers: Ts2Answers, plan: ResamplingPlan) -> Iterator[_Average]:
    counts = plan.counts_of(values.graphs)
    published = np.array([graph not in answers.not_in_paper for graph in values.graphs])
    for part in _parts(answers):
        for key in KEYS:
            kept = part.graphs & published if key[1] == "paper" else part.graphs
            found = values.normalised(key)[kept]
            yield _Average(
                part=part,
                key=key,
                graphs=tuple(compress(values.graphs, kept)),
                values=found,
                resamples=resampled_mean(found, counts[:, kept]),
                images=values.images[kept],
                scored=values.scored[kept],
            )


def _note(defined: BoolArray, scored: FloatArray) -> str:
    """Why a value is undefined or rests on fewer graphs than its part has; empty as a rule."""
    if defined.size == 0:
        return "Undefined: the published table evaluates none of these graphs."
    if not scored.any():
        return "Undefined: the metric gave no score here."
    if not defined.any():
        return "Undefined: too few different scores."
    left_out = f"{(~defined).sum()} of {defined.size} graphs left out for want of scores."
    alone = "One graph only, hence no interval."
    return " ".join(
        [left_out] * (not defined.all()) + [alone] * (int(defined.sum()) == 1),
    )


def _mended(scores: ScoreTable, answers: Ts2Answers) -> BoolArray:
    """Shape (N, M): cells that were malformed in the source."""
    pair_ids = answers.nodes["pair_id"]
    columns = [pair_ids.isin(scores.repaired.get(name, frozenset())) for name in scores.metrics]
    shape = (len(pair_ids), len(scores.metrics))
    return np.stack(columns, axis=1) if columns else np.zeros(shape, dtype=bool)


def _parts(answers: Ts2Answers) -> Iterator[_Part]:
    """All graphs, then each named split, then each named skill, in order of appearance."""
    of_graph = answers.nodes.drop_duplicates("graph").set_index("graph").loc[list(answers.clusters)]
    yield _Part("all", None, np.ones(len(of_graph), dtype=bool))
    for split in _names(of_graph["split"]):
        yield _Part(split, None, (of_graph["split"] == split).to_numpy(dtype=bool))
    for skill in _names(of_graph["skill"]):
        yield _Part("all", skill, (of_graph["skill"] == skill).to_numpy(dtype=bool))


def _names(column: pd.Series) -> list[str]:
    return [str(name) for name in dict.fromkeys(column) if name]
