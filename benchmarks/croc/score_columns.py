"""Score columns as the CROC authors' runner writes them: `M___orig_text___contrast_img`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.croc.answers import TEXTS, pair_id
from benchmarks.errors import SubmitterError
from benchmarks.sources.folder import data_row

_COLUMN = re.compile(r"(?P<metric>.+)___(?P<text>orig|contrast)_text___(?P<side>orig|contrast)_img")
_NO_SCORE = frozenset({"", "nan", "NaN", "NA", "N/A", "null", "NULL", "None", "none"})


def read_score_table(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    """A tab-separated file of the authors' runner, all cells as text.

    Args:
        path: the file.
        columns: columns that must be there, besides scores.

    Raises:
        SubmitterError: `unreadable_scores`, naming the file.
    """
    try:
        table = pd.read_csv(path, sep="\t", dtype=str, keep_default_na=False)
    except ValueError as error:
        raise _unreadable(path, f"cannot be read: {error}") from error
    missing = [name for name in columns if name not in table]
    if missing:
        raise _unreadable(path, f"has no column {', '.join(missing)}")
    return table


def pair_scores(
    path: Path, table: pd.DataFrame, side: str, images: Iterable[str]
) -> dict[str, pd.Series]:
    """The scores of the images of one side, with both texts.

    Args:
        path: the file the table is from, for messages.
        table: one image of that side per row.
        side: `orig` or `contrast`: whose images they are.
        images: name of the image of each row, as in pair ids.

    Returns:
        Metric to its scores (float64, NaN where there is none) by pair id.

    Raises:
        SubmitterError: `no_scores` (no column of that side, or a metric with one text only) or
            `not_numeric`, naming file, column and row.
    """
    names = list(images)
    columns = _columns_of(path, table, side)
    ids = [pair_id(name, text) for text in TEXTS for name in names]
    return {
        metric: pd.Series(
            np.concatenate([_numbers(path, table[by_text[text]]) for text in TEXTS]), index=ids
        )
        for metric, by_text in columns.items()
    }


def joined(parts: Sequence[tuple[Path, dict[str, pd.Series]]]) -> pd.DataFrame:
    """The scores of several files as one scores table.

    Args:
        parts: what `pair_scores` found, with the file it is from.

    Returns:
        `pair_id` and one column per metric.

    Raises:
        SubmitterError: `no_scores` (a file lacks a metric that the others have) or
            `duplicate_pairs` (an image stands in two rows).
    """
    wanted = {metric: path for path, found in parts for metric in found}
    for path, found in parts:
        lacking = [metric for metric in wanted if metric not in found]
        if lacking:
            raise SubmitterError(
                "no_scores",
                f"{path} has no scores of {lacking[0]}, which {wanted[lacking[0]]} has.",
                "Score all files with the same metrics, or remove the columns of the others.",
            )
    table = pd.DataFrame({m: pd.concat([found[m] for _, found in parts]) for m in wanted})
    twice = table.index[table.index.duplicated()]
    if len(twice):
        raise SubmitterError(
            "duplicate_pairs",
            f"{len(twice)} pairs of image and text stand in two rows, the first is {twice[0]!r}.",
            "Keep each image in one row of one file.",
        )
    return table.rename_axis("pair_id").reset_index()


def _columns_of(path: Path, table: pd.DataFrame, side: str) -> dict[str, dict[str, str]]:
    """Metric to its column for each text."""
    found: dict[str, dict[str, str]] = {}
    for column in map(str, table.columns):
        match = _COLUMN.fullmatch(column)
        if match and match["side"] == side:
            found.setdefault(match["metric"], {})[match["text"]] = column
    if not found:
        raise SubmitterError(
            "no_scores",
            f"{path} has no score column for the {side} images; expected names such as "
            f"VQAScore___orig_text___{side}_img.",
        )
    for metric, by_text in found.items():
        for text in TEXTS:
            if text not in by_text:
                raise SubmitterError(
                    "no_scores",
                    f"{path} has no column {metric}___{text}_text___{side}_img.",
                    "Each image needs scores with both texts; finish the run of that metric.",
                )
    return found


def _numbers(path: Path, cells: pd.Series) -> np.ndarray:
    nulls = cells.str.strip().isin(_NO_SCORE)
    values = pd.to_numeric(cells.where(~nulls), errors="coerce").to_numpy(np.float64)
    bad = ~np.isfinite(values) & ~nulls.to_numpy()
    if bad.any():
        first = int(np.flatnonzero(bad)[0])
        raise SubmitterError(
            "not_numeric",
            f"{path}, column {cells.name!r}: {int(bad.sum())} cells are not finite numbers, the "
            f"first is {cells.iloc[first][:60]!r} ({data_row(first)}).",
            "Leave a cell empty where the metric gave no score.",
        )
    return values


def _unreadable(path: Path, what: str) -> SubmitterError:
    return SubmitterError(
        "unreadable_scores",
        f"{path} {what}.",
        "Expected a tab-separated file as the CROC authors' runner writes it.",
    )
