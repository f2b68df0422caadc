"""Agreement of CROC_syn with itself and with CROC_hum, as the paper reports it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from benchmarks.croc.contrasts import DIRECTIONS
from benchmarks.croc.protocol import CELLS
from benchmarks.croc_syn.answers import MODES, PROPERTIES, TEXT_MODELS, CrocSynAnswers
from benchmarks.croc_syn.groups import Grouping, compare
from benchmarks.rows import Row
from benchmarks.schema import ScoreTable
from benchmarks.statistics.correlation import kendall

SHARED_GROUPS: dict[str, tuple[str, tuple[str, ...]]] = {
    "action": (
        "action",
        (
            "Pointing",
            "Waving",
            "Facial Expression",
            "Nodding",
            "Running",
            "Dancing",
            "Jumping",
            "Swimming",
        ),
    ),
    "spatial": ("spacial_relation", ("Left-of", "Right-of", "Above", "Below", "Inside")),
    "size": ("size_relation", ("Giant Figures", "Miniature Objects")),
    "shape": ("shapes", ("Geometric", "Organic")),
    "negation": ("negation", ("Negation",)),
}
"""What both data sets test: name to the category of CROC_hum and the properties of CROC_syn."""


@dataclass(frozen=True)
class Agreement:
    """How alike two lists of accuracies are ordered.

    Attributes:
        tau: Kendall's tau-b; NaN where a side is constant or n < 2.
        p_value: of no association; NaN with tau.
        n: values on either side.
    """

    tau: float
    p_value: float
    n: int


def text_model_stability(rows: Iterable[Row]) -> Agreement:
    """Agreement between the two text models' accuracies (0.909 in the paper).

    Args:
        rows: of `croc_syn`, of any number of metrics; other rows than the accuracies per mode,
            direction and text model are passed over, as are cells that lack one of the two.
    """
    cells: dict[tuple[str, str, str], dict[str, float]] = {}
    for row in rows:
        mode, _, text_model = (row.split or "").partition(":")
        known = mode in MODES and text_model in TEXT_MODELS and row.facet in DIRECTIONS
        if row.measure == "accuracy" and known:
            cells.setdefault((row.metric, mode, str(row.facet)), {})[text_model] = row.value
    names = list(TEXT_MODELS)
    return _agreement(
        [(found.get(names[0], np.nan), found.get(names[1], np.nan)) for found in cells.values()]
    )


def shared_accuracies(scores: ScoreTable, answers: CrocSynAnswers) -> pd.DataFrame:
    """Accuracies of CROC_syn on the groups of properties that CROC_hum also has.

    Args:
        scores: must hold every pair id of the answers.
        answers: of CROC_syn.

    Returns:
        Index (facet `text` or `image`, name in SHARED_GROUPS), one column per metric: mean over
        the groups of each text model, then over text models, then over forward and inverse. NaN
        where there are no such prompts.

    Raises:
        KeyError: a pair id has no row in `scores`.
    """
    grouping = Grouping.of(answers.prompts["group"].to_numpy(np.intp))
    groups = answers.prompts.iloc[grouping.first]
    members = {
        name: {
            model: np.flatnonzero(
                groups["property"].isin([leaf.replace(" ", "_") for leaf in leaves])
                & (groups["text_model"] == model)
                & (groups["mode"] == PROPERTIES)
            )
            for model in TEXT_MODELS
        }
        for name, (_, leaves) in SHARED_GROUPS.items()
    }
    found: dict[tuple[str, str, str], float] = {}
    for column, number, outcome in compare(scores, answers, grouping):
        for name, by_model in members.items():
            means = [_mean(outcome.right[rows]) for rows in by_model.values() if len(rows)]
            found[scores.metrics[column], name, DIRECTIONS[number]] = (
                float(np.mean(means)) if means else np.nan
            )
    return pd.DataFrame(
        {
            metric: {
                (facet, name): (found[metric, name, forward] + found[metric, name, inverse]) / 2.0
                for facet, (forward, inverse) in CELLS.items()
                for name in SHARED_GROUPS
            }
            for metric in scores.metrics
        }
    ).rename_axis(["facet", "group"])


def agreement_with_hum(shared: pd.DataFrame, hum_rows: Iterable[Row], facet: str) -> Agreement:
    """Agreement between CROC_syn and CROC_hum over shared groups and metrics.

    The paper reports 0.33 text-based and 0.50 image-based.

    Args:
        shared: what `shared_accuracies` returns.
        hum_rows: rows of `croc_hum`; metrics are matched by name.
        facet: `text` or `image`.
    """
    names = {category: name for name, (category, _) in SHARED_GROUPS.items()}
    syn = {metric: shared[metric].loc[facet].to_dict() for metric in shared.columns}
    return _agreement(
        [
            (syn[row.metric][names[row.skill]], row.value)
            for row in hum_rows
            if (row.measure, row.facet, row.split) == ("scaled_accuracy", facet, None)
            and row.skill in names
            and row.metric in syn
        ]
    )


def _mean(values: np.ndarray) -> float:
    defined = values[np.isfinite(values)]
    return float(defined.mean()) if len(defined) else np.nan


def _agreement(couples: list[tuple[float, float]]) -> Agreement:
    values = np.array(couples, np.float64).reshape(-1, 2)
    x, y = values[np.isfinite(values).all(axis=1)].T
    tau = kendall(x, y)
    p_value = float(stats.kendalltau(x, y).pvalue) if np.isfinite(tau) else np.nan
    return Agreement(tau, p_value, len(x))
