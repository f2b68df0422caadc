"""Protocol of T2IScoreScore: from scores and semantic error graphs to rows.

Two variants stand side by side. `paper` is the computation that reproduces the published table to
its last digit; `equation` is what Eqs. 1-5 of the paper say. Saxon et al. 2024, arXiv:2404.04251.

Erratum: the delta cells of Table 2 for Synth, Nat and Real are not means over those subsets. All of
them follow from one average that was filled downwards in a spreadsheet with relative references:
for each cell the window slides down by one row over the per-graph values, then over the cell that
holds sigma, then over the results above, while the divisor stays 164. In addition the cells of
`llmscore_ec` and `llmscore_over` changed places. The cause is inferred; the arithmetic reproduces
all 76 cells to their eight digits. Variant `paper` of `delta` is the corrected figure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from benchmarks.arrays import BoolArray, FloatArray
from benchmarks.cases import image_cases
from benchmarks.rows import Measured, MeasuredBuilder, Row
from benchmarks.schema import Benchmark, Card, Questions, ScoreTable
from benchmarks.statistics.resampling import ResamplingPlan, resampled_mean
from benchmarks.ts2.load import (
    IMAGES,
    METADATA,
    Ts2Answers,
    load_answers,
    load_questions,
    load_texts,
    released_answers,
)
from benchmarks.ts2.measures import KEYS, MEASURES, Graph, MeasureKey


@dataclass(frozen=True)
class GraphValues:
    """Every measure of every metric on every graph; C graphs, M metrics."""

    graphs: tuple[str, ...]  # ids of the graphs, length C
    metrics: tuple[str, ...]  # names of the metrics, length M
    # per measure and variant an array (C, M), NaN where a metric has no score in a graph; delta in
    # units of the score
    values: Mapping[MeasureKey, FloatArray]
    # per variant the spread of each metric, shape (M,); see `score_spread`
    sigma: Mapping[str, FloatArray]
    images: FloatArray  # shape (C,), images of each graph
    scored: FloatArray  # shape (C, M), images of each graph for which the metric gave a score

    def normalised(self, key: MeasureKey) -> FloatArray:
        """Shape (C, M): the values that are averaged, delta in units of sigma."""
        measure, variant = key
        return self.values[key] / self.sigma[variant] if measure == "delta" else self.values[key]


@dataclass(frozen=True)
class _Average:
    """Mean of a measure over one part, for all metrics; P graphs, M metrics, B resamples."""

    split: str  # of the part
    skill: str | None  # of the part; None: all
    key: MeasureKey  # measure and variant
    graphs: tuple[str, ...]  # ids of the graphs, length P
    values: FloatArray  # shape (P, M), what is averaged
    resamples: FloatArray  # shape (B, M), its mean in each resample
    images: FloatArray  # shape (P,), images of each graph
    scored: FloatArray  # shape (P, M), images for which the metric gave a score


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
    template: Row,
) -> None:
    """Average the values of the graphs and append a row per metric, part and measure."""
    averages = list(_averages(values, answers, plan))
    for column, metric in enumerate(values.metrics):
        for average in averages:
            found = average.values[:, column]
            scored = average.scored[:, column]
            defined = np.isfinite(found)
            row = replace(
                template,
                metric=metric,
                measure=average.key[0],
                value=float(found[defined].mean()) if defined.any() else np.nan,
                split=average.split,
                skill=average.skill,
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
    for split, skill, graphs in _parts(answers):
        for key in KEYS:
            kept = graphs & published if key[1] == "paper" else graphs
            found = values.normalised(key)[kept]
            yield _Average(
                split=split,
                skill=skill,
                key=key,
                graphs=tuple(compress(values.graphs, kept)),
                values=found,
                resamples=resampled_mean(found, counts[:, kept]),
                images=values.images[kept],
                scored=values.scored[kept],
            )


def _note(defined: BoolArray, scored: FloatArray) -> str:
    """Reason why a value is undefined or rests on fewer graphs than its part has; empty as a rule."""
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


def _parts(answers: Ts2Answers) -> Iterator[tuple[str, str | None, BoolArray]]:
    """Split, skill and graphs (C,) of each part: all graphs, then each named split, then each named skill, in order of appearance."""
    of_graph = answers.nodes.drop_duplicates("graph").set_index("graph").loc[list(answers.clusters)]
    yield "all", None, np.ones(len(of_graph), dtype=bool)
    for split in _names(of_graph["split"]):
        yield split, None, (of_graph["split"] == split).to_numpy(dtype=bool)
    for skill in _names(of_graph["skill"]):
        yield "all", skill, (of_graph["skill"] == skill).to_numpy(dtype=bool)


def _names(column: pd.Series) -> list[str]:
    return [str(name) for name in dict.fromkeys(column) if name]


N_GRAPHS = 164
"""Graphs 0-163, those of the published table."""

PUBLISHED_DELTA: dict[str, float] = {
    "alignscore": 0.95623015,
    "clipscore": 0.89709405,
    "fuyu_dsg": 0.37668021,
    "instruct_blip_tifa": 0.99842180,
    "llava-alt_dsg": 1.01971628,
    "llava_tifa": 0.97505471,
    "mplug_tifa": 0.92405198,
    "blip1_dsg": 1.03668474,
    "gpt4v_tifa": 0.92320135,
    "viescore": 0.45903568,
    "llmscore_ec": 0.56308507,
    "llmscore_over": 0.66850128,
    "fuyu_tifa": 0.43898852,
    "instruct_blip_dsg": 1.10577501,
    "llava-alt_tifa": 0.97080935,
    "llava_dsg": 1.04713647,
    "mplug_dsg": 0.94246665,
    "blip1_tifa": 0.93996753,
    "gpt4v_dsg": 1.10173034,
}
"""Published delta over all graphs, under the name it belongs to: tells the released scores of a
metric from others that have its name."""
_AS_PRINTED = 5e-8
_EXCHANGED = {"llmscore_ec": "llmscore_over", "llmscore_over": "llmscore_ec"}
_NOTE_SUBSET = (
    "Spreadsheet slip in Table 2: this cell averages graphs of all subsets with sigma and other "
    "cells, and says nothing about the subset. Variant paper holds the corrected figure."
)
_NOTE_ALL = "Computed as in Table 2; equal to variant paper."
_NOTE_EXCHANGED = " The table also prints the delta of {other} here."
_NOTE_ABSENT = "Undefined: Table 2 prints the delta of {other} here, which is not in these scores."


def printed_delta(deltas: FloatArray, sigma: float) -> dict[str, float]:
    """The four delta cells of one column of Table 2, before two columns change places.

    `deltas` (164,): delta of graphs 0-163 in units of the score, not oriented: raw scores, whether
    or not higher is better.

    The cells for `all`, `synth`, `nat` and `real`.
    """
    cells = [*deltas.tolist(), sigma]
    printed: dict[str, float] = {}
    for top, split in enumerate(("all", "synth", "nat", "real")):
        window = [*cells, *printed.values()][top : top + N_GRAPHS]
        printed[split] = float(np.sum(window)) / N_GRAPHS / sigma
    return printed


def printed_deltas(
    deltas: Mapping[str, FloatArray], sigma: Mapping[str, float]
) -> dict[str, dict[str, float]]:
    """The delta cells of Table 2 under the name they stand under; see `printed_delta`.

    A column whose figures belong to a metric that is not in `deltas` is absent.
    """
    return {
        name: printed_delta(deltas[source], sigma[source])
        for name in deltas
        if (source := _EXCHANGED.get(name, name)) in deltas
    }


def add_printed_rows(
    builder: MeasuredBuilder,
    values: GraphValues,
    scores: ScoreTable,
    template: Row,
) -> None:
    """Append `delta`, variant `as_printed`, for the released scores among the scores.

    Other scores get no such rows, even under a released name: nothing was printed of them. The
    rows have no interval: there is nothing they estimate.
    """
    graphs = list(map(str, range(N_GRAPHS)))
    if not set(graphs) <= set(values.graphs):
        return
    positions = [values.graphs.index(graph) for graph in graphs]
    released = _released(values, positions)
    column = {name: values.metrics.index(name) for name in released}
    sign = {name: scores.directions.get(name, 1) for name in released}
    delta = values.values["delta", "paper"]
    printed = printed_deltas(
        {name: sign[name] * delta[positions, column[name]] for name in released},
        {name: sign[name] * float(values.sigma["paper"][column[name]]) for name in released},
    )
    scored = values.scored[positions]
    for name in released:
        source = _EXCHANGED.get(name, name)
        for top, split in enumerate(("all", "synth", "nat", "real")):
            behind = scored[top:, column[source]] if source in column else np.zeros(0)
            value = printed[name][split] if name in printed else np.nan
            builder.add(
                replace(
                    template,
                    metric=name,
                    measure="delta",
                    value=value,
                    split=split,
                    variant="as_printed",
                    n_items=int(behind.sum()),
                    n_clusters=len(behind),
                    n_missing=int((values.images[positions][top:] - behind).sum())
                    if len(behind)
                    else 0,
                    note=_delta_note(name, split, known=name in printed),
                )
            )


def _released(values: GraphValues, positions: list[int]) -> list[str]:
    """Metrics whose delta over all graphs is the published one, to its eight digits."""
    deltas = values.normalised(("delta", "paper"))[positions].mean(axis=0)
    return [
        name
        for name, delta in zip(values.metrics, deltas, strict=True)
        if abs(delta - PUBLISHED_DELTA.get(name, np.nan)) < _AS_PRINTED
    ]


def _delta_note(name: str, split: str, *, known: bool) -> str:
    other = _EXCHANGED.get(name)
    if other and not known:
        return _NOTE_ABSENT.format(other=other)
    if other and split == "all":
        return (
            f"Table 2 prints the delta of {other} here. Variant paper holds the corrected figure."
        )
    exchanged = _NOTE_EXCHANGED.format(other=other) if other else ""
    return (_NOTE_ALL if split == "all" else _NOTE_SUBSET) + exchanged


# Cases of TS2: a semantic error graph, whose images have more and more errors.


def cases(answers: Ts2Answers, texts: Mapping[str, str]) -> pd.DataFrame:
    """The images of each graph: the fewer errors, the better."""
    nodes = answers.nodes
    by_graph = nodes.drop_duplicates("graph").set_index("graph")
    return image_cases(
        nodes["pair_id"].tolist(),
        nodes["graph"].tolist(),
        0.0 - nodes["level"].to_numpy(np.float64),
        [_node_label(*node) for node in zip(nodes["level"], nodes["label"], strict=True)],
        texts=texts,
        skills={graph: [skill] for graph, skill in by_graph["skill"].items() if skill},
        splits=by_graph["split"].to_dict(),
    )


def _node_label(errors: int, label: str) -> str:
    """`2 errors (2b)`; the label is left out where it says no more than the number."""
    number = "no error" if errors == 0 else f"{errors} error{'s' if errors > 1 else ''}"
    return number if label == str(errors) else f"{number} ({label})"


CARD = Card.read(Path(__file__).parent / "card.toml", MEASURES)

_STRAY_QUOTE = re.compile(r'"(\d+)')


class Ts2(Benchmark):
    """T2IScoreScore: 165 semantic error graphs, 2840 images."""

    card = CARD
    asked_from = (METADATA, IMAGES)

    def answers(self, data: Path | None) -> Ts2Answers:
        """Read the graphs from `<data>/ts2/metadata.csv`, else from the bundle."""
        folder = self.folder(data)
        return load_answers(folder) if folder.has(METADATA) else released_answers()

    def questions(self, data: Path | None) -> Questions:
        """Read the images from `<data>/ts2/images`; see `load_questions`."""
        return load_questions(self.folder(data))

    def cases(self, answers: Ts2Answers, data: Path | None) -> pd.DataFrame:
        """Graphs to look at; see `benchmarks.ts2.cases`."""
        return cases(answers, self.texts(data))

    def texts(self, data: Path | None) -> Mapping[str, str]:
        """Graph to the prompt of its images; the bundle has none."""
        folder = self.folder(data)
        return load_texts(folder) if folder.has(METADATA) else {}

    @property
    def compares_images(self) -> bool:
        """All its rows do."""
        return True

    def within_text(self, row: Row) -> bool:
        """Always: the images of a graph have one prompt."""
        del row
        return True

    def measure(self, scores: ScoreTable, answers: Ts2Answers, plan: ResamplingPlan) -> Measured:
        """Rank, separation and delta of every metric, in both variants, in all and by part.

        A value is the plain mean over the graphs of a part; graphs in which a metric scored nothing
        are left out and named in the note. Intervals resample graphs. Sigma, by which delta is
        divided, is held fixed in the resamples: it is a property of the metric's scale, taken from
        all images, and not of the part that is measured. Of the paper's graphs there are the delta
        cells as printed, too.
        """
        values = graph_values(scores, answers)
        builder = MeasuredBuilder(plan.n_resamples)
        template = Row(self.name, self.card.revision, "", "", np.nan)
        add_rows(builder, values, answers, plan, template)
        add_printed_rows(builder, values, scores, template)
        return builder.build()

    def repair_cell(self, metric: str, cell: str) -> float | None:
        """Mend the one known defect: in `llmscore_over`, six numbers follow a stray quote."""
        found = _STRAY_QUOTE.fullmatch(cell)
        return float(found[1]) if found and metric == "llmscore_over" else None

    def known_directions(self) -> Mapping[str, Literal[1, -1]]:
        """Both LLMScore columns grow with the errors; all others fall."""
        return {"llmscore_ec": -1, "llmscore_over": -1}


BENCHMARKS = (Ts2(),)
