"""Erratum: how the delta cells of the published Table 2 came about.

The cells for Synth, Nat and Real are not means over those subsets. All of them follow from one
average that was filled downwards in a spreadsheet with relative references: for each cell the
window slides down by one row over the per-graph values, then over the cell that holds sigma, then
over the results above, while the divisor stays 164. In addition the cells of `llmscore_ec` and
`llmscore_over` changed places. The cause is inferred; the arithmetic reproduces all 76 cells to
their eight digits. The mean over all graphs is the only one of the four that carries information
(and that under the wrong name for the two LLMScore columns); `delta`, variant `paper`, is the
corrected figure.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from benchmarks.arrays import FloatArray
from benchmarks.rows import MeasuredBuilder, Row
from benchmarks.schema import ScoreTable
from benchmarks.ts2.protocol import GraphValues

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

    Args:
        deltas: shape (164,), delta of graphs 0-163 in units of the score, not oriented: raw
            scores, whether or not higher is better.
        sigma: spread of the metric over all images; negative where a lower score is better.

    Returns:
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
    *,
    benchmark: str,
    revision: str,
) -> None:
    """Append `delta`, variant `as_printed`, for the released scores among the scores.

    Other scores get no such rows, even under a released name: nothing was printed of them. The
    rows have no interval: there is nothing they estimate.
    """
    positions = [values.graphs.index(str(number)) for number in range(N_GRAPHS)]
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
                Row(
                    benchmark=benchmark,
                    revision=revision,
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
                    note=_note(name, split, known=name in printed),
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


def _note(name: str, split: str, *, known: bool) -> str:
    other = _EXCHANGED.get(name)
    if other and not known:
        return _NOTE_ABSENT.format(other=other)
    if other and split == "all":
        return (
            f"Table 2 prints the delta of {other} here. Variant paper holds the corrected figure."
        )
    exchanged = _NOTE_EXCHANGED.format(other=other) if other else ""
    return (_NOTE_ALL if split == "all" else _NOTE_SUBSET) + exchanged
