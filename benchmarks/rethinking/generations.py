"""Scored generations: one image per prompt, model and seed, scored by one or more metrics.

The table has one row per score and the columns

- `metric`, `model`, `seed`, `prompt_id`: names, not empty;
- `score`: a number, or empty where the metric gave none;
- `perturbed_score` (optional): the score of the image whose channel values below 255 were all
  raised by one (see `benchmarks.rethinking.perturbation`), or empty.

For each metric every model is scored on the same prompts with every seed.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.arrays import FloatArray
from benchmarks.errors import SubmitterError

KEYS = ("metric", "model", "seed", "prompt_id")
REQUIRED = (*KEYS, "score")
PERTURBED = "perturbed_score"


@dataclass(frozen=True)
class MetricScores:
    """The scores of one metric; M models, S seeds, P prompts, in order of first appearance.

    Attributes:
        metric: its name.
        models: names, length M.
        seeds: names, length S.
        prompts: ids, length P.
        scores: shape (S, M, P), higher is better; NaN where the metric gave no score.
        perturbed: shape (S, M, P), the same for the perturbed images; NaN where not scored.
    """

    metric: str
    models: tuple[str, ...]
    seeds: tuple[str, ...]
    prompts: tuple[str, ...]
    scores: FloatArray
    perturbed: FloatArray


def read_generations(path: Path) -> tuple[MetricScores, ...]:
    """Read a CSV file of scored generations.

    Raises:
        SubmitterError: `file_missing`, `file_unreadable`, `duplicate_columns`, `uneven_lines`, or
            what `tabulate` raises.
    """
    if not path.is_file():
        raise SubmitterError("file_missing", f"There is no file {path}.", "Check the path.")
    try:
        _check_lines(path)
        frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    except (ValueError, OSError, csv.Error) as error:
        raise SubmitterError(
            "file_unreadable",
            f"{path.name} is not a CSV file: {error}.",
            f"Write a header with the columns {', '.join(REQUIRED)} and one line per score.",
        ) from error
    return tabulate(frame)


def _check_lines(path: Path) -> None:
    """What pandas would let pass: it renames a second column, fills up short lines, shifts long."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        lines = csv.reader(file)
        header = next(lines, [])
        twice = [name for i, name in enumerate(header) if name in header[:i]]
        if twice:
            raise SubmitterError(
                "duplicate_columns",
                f"The column {twice[0]!r} occurs more than once.",
                "Keep one of them.",
            )
        for cells in lines:
            if cells and len(cells) != len(header):
                raise SubmitterError(
                    "uneven_lines",
                    f"Line {lines.line_num} has {len(cells)} cells, the header {len(header)}.",
                    "Write one cell per column, empty where the metric gave no score; quote names "
                    "that contain a comma.",
                )


def tabulate(frame: pd.DataFrame) -> tuple[MetricScores, ...]:
    """Check a table of scored generations and arrange it by metric.

    Args:
        frame: the columns of this module's docstring; further ones are ignored.

    Returns:
        One table per metric, in order of first appearance.

    Raises:
        SubmitterError: `missing_columns`, `no_scores`, `empty_name`, `bad_score`,
            `duplicate_scores` or `different_prompts`; lines are counted from 2, as in the file.
    """
    missing = [name for name in REQUIRED if name not in frame.columns]
    if missing:
        raise SubmitterError(
            "missing_columns",
            f"The table lacks the columns {', '.join(missing)}; it has "
            f"{', '.join(map(str, frame.columns)) or 'none'}.",
            f"It needs {', '.join(REQUIRED)}, and {PERTURBED} for the perturbation.",
        )
    if frame.empty:
        raise SubmitterError("no_scores", "The table has no scores.", "Add one line per score.")
    named = frame[list(KEYS)].astype(str).reset_index(drop=True)
    _check_names(named)
    named["score"] = _numbers(frame, "score")
    named[PERTURBED] = _numbers(frame, PERTURBED) if PERTURBED in frame.columns else np.nan
    return tuple(_of_metric(metric, part) for metric, part in _groups(named, "metric"))


def _check_names(named: pd.DataFrame) -> None:
    for column in KEYS:
        empty = np.flatnonzero(named[column].str.strip() == "")
        if empty.size:
            raise SubmitterError(
                "empty_name",
                f"Line {empty[0] + 2} has no {column}.",
                f"Every line names its {', '.join(KEYS)}.",
            )
    twice = np.flatnonzero(named.duplicated(list(KEYS)))
    if twice.size:
        keys = ", ".join(f"{key} {named[key].iloc[twice[0]]!r}" for key in KEYS)
        raise SubmitterError(
            "duplicate_scores",
            f"{twice.size} lines repeat an earlier one, the first is line {twice[0] + 2}: {keys}.",
            "Keep one score per metric, model, seed and prompt.",
        )


def _numbers(frame: pd.DataFrame, column: str) -> FloatArray:
    cells = frame[column].reset_index(drop=True)
    blank = (cells.isna() | (cells.astype(str).str.strip() == "")).to_numpy()
    values = pd.to_numeric(cells.where(~blank), errors="coerce").to_numpy(np.float64)
    bad = np.flatnonzero(~blank & ~np.isfinite(values))
    if bad.size:
        raise SubmitterError(
            "bad_score",
            f"Line {bad[0] + 2}: {column} {cells.iloc[bad[0]]!r} is not a finite number.",
            "Leave the cell empty where the metric gave no score.",
        )
    return values


def _of_metric(metric: str, rows: pd.DataFrame) -> MetricScores:
    models, seeds, prompts = (tuple(rows[key].unique()) for key in ("model", "seed", "prompt_id"))
    grid = pd.MultiIndex.from_product([seeds, models, prompts])
    found = rows.set_index(["seed", "model", "prompt_id"])
    absent = grid[~grid.isin(found.index)]
    if len(absent):
        seed, model, prompt = absent[0]
        raise SubmitterError(
            "different_prompts",
            f"Metric {metric!r} has no line for prompt {prompt!r} of model {model!r} with seed "
            f"{seed!r} ({len(absent)} such lines are missing), but scores it elsewhere.",
            "Score every model with every seed on the same prompts; a line with an empty score "
            "stands for an image that the metric could not score.",
        )
    shape = (len(seeds), len(models), len(prompts))
    in_order = found.loc[grid]
    return MetricScores(
        metric,
        models,
        seeds,
        prompts,
        in_order["score"].to_numpy(np.float64).reshape(shape),
        in_order[PERTURBED].to_numpy(np.float64).reshape(shape),
    )


def _groups(frame: pd.DataFrame, column: str) -> Iterator[tuple[str, pd.DataFrame]]:
    for name, part in frame.groupby(column, sort=False):
        yield str(name), part
