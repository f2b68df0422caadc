"""Reads a scores file into a `ScoreTable`, or says exactly what is wrong with it.

A scores file is CSV or Parquet with a `pair_id` column and either one `score` column or one
column per metric. Every pair of the benchmark is there exactly once; an empty cell says that the
metric gave no score for that pair, which is counted and shown, never dropped.

Element scores, where a metric has them, come as further rows: columns `element_id` and
`element_score` beside `pair_id` (a row with an element id carries an element score, a row
without one the score of the whole pair).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Literal

import pandas as pd

from benchmarks.errors import SubmitterError
from benchmarks.schema import Answers, Benchmark, ScoreTable
from benchmarks.score_cells import Cells, read_cells
from benchmarks.score_columns import NOT_METRICS, check_metric_name, metric_columns, some

MAX_BYTES = 256 * 1024 * 1024
ROWS_PER_PAIR, LEAST_ROWS = 64, 10_000
"""A pair has one row and one for each of its elements."""
_NULLS = frozenset({"", "nan", "null", "none", "na", "n/a"})
Direction = Literal[1, -1]


def read_scores(
    path: Path,
    benchmark: Benchmark,
    answers: Answers,
    *,
    metric: str = "score",
    lower_is_better: Sequence[str] = (),
) -> ScoreTable:
    """Read and check a scores file.

    Args:
        path: CSV or Parquet file.
        benchmark: the benchmark it belongs to; its `repair_cell` may mend documented defects.
        answers: gives the pair ids the file must hold.
        metric: name for the metric of a file whose only column is `score`.
        lower_is_better: metrics of the file for which a lower score is better.

    Raises:
        SubmitterError: `file_missing`, `file_too_large`, `unreadable_scores`, `no_pair_id`,
            `no_scores`, `bad_metric_name`, `duplicate_columns`, `too_many_metrics`,
            `too_many_rows`, `unknown_metric`, `duplicate_pairs`, `unknown_pairs`,
            `missing_pairs`, `not_numeric` or `unknown_elements`; the message names the file, the
            first offenders and their lines (CSV, counted from 1 with the header and blank lines)
            or rows (Parquet, counted from 1).
    """
    return parse_scores(
        load_bytes(path),
        path.name,
        benchmark,
        answers,
        metric=metric,
        lower_is_better=lower_is_better,
    )


def parse_scores(
    content: bytes,
    name: str,
    benchmark: Benchmark,
    answers: Answers,
    *,
    metric: str = "score",
    lower_is_better: Sequence[str] = (),
) -> ScoreTable:
    """`read_scores` for the content of a file; `name` is used in messages and tells its format."""
    check_metric_name(metric, reserved=NOT_METRICS)
    special = benchmark.parse_special(content, name, answers, metric)
    if special is not None:
        return special
    most_rows = max(LEAST_ROWS, ROWS_PER_PAIR * len(answers.pair_ids))
    found = read_cells(content, name, metric, most_rows)
    source = _Source(found.name, found.cells, found.place)
    rows = source.overall_rows()
    source.check_pairs(rows, answers.pair_ids, benchmark.name)
    columns: dict[str, pd.Series] = {}
    repaired: dict[str, frozenset[str]] = {}
    for column in source.metric_columns():
        title = metric if column == "score" else column
        columns[title], mended = source.numbers(rows, column, benchmark)
        if mended:
            repaired[title] = mended
    overall = pd.DataFrame(columns).loc[list(answers.pair_ids)]
    overall.index.name = "pair_id"
    return ScoreTable(
        overall,
        elements=source.elements(answers.pair_ids, benchmark, tuple(columns)),
        directions=_directions(name, tuple(columns), lower_is_better, benchmark),
        repaired=repaired,
    )


def write_scores(table: ScoreTable) -> bytes:
    """The table as a Parquet scores file that `read_scores` reads back."""
    frames = [table.overall.reset_index()]
    frames += [
        frame.rename(columns={"score": "element_score"}) for frame in table.elements.values()
    ]
    buffer = BytesIO()
    pd.concat(frames, ignore_index=True).to_parquet(buffer, index=False)
    return buffer.getvalue()


class _Source(Cells):
    """The cells of a scores file, and checks on them."""

    def metric_columns(self) -> tuple[str, ...]:
        return metric_columns(self.cells.columns)

    def overall_rows(self) -> pd.DataFrame:
        if "element_id" not in self.cells:
            return self.cells
        return self.cells[self.cells["element_id"].map(_is_null)]

    def check_pairs(self, rows: pd.DataFrame, expected: Sequence[str], benchmark: str) -> None:
        ids = rows["pair_id"].astype(str)
        if ids.duplicated().any():
            raise SubmitterError(
                "duplicate_pairs",
                f"{self.name} has {ids.duplicated().sum()} rows whose pair_id stood before: "
                f"{some(self.located(ids[ids.duplicated()]))}.",
                "Keep one row per pair.",
            )
        known = set(expected)
        unknown = ids[~ids.isin(known)]
        if len(unknown):
            raise SubmitterError(
                "unknown_pairs",
                f"{self.name} has {len(unknown)} pair ids that {benchmark} does not have: "
                f"{some(self.located(unknown))}.",
                f"Pair ids of {benchmark} look like {expected[0]!r}.",
            )
        missing = known - set(ids)
        if missing:
            in_order = [pair for pair in expected if pair in missing]
            raise SubmitterError(
                "missing_pairs",
                f"{self.name} lacks {len(missing)} of the {len(expected)} pairs of {benchmark}: "
                f"{some(in_order)}.",
                "Add a row for each; leave the score empty where the metric gave none.",
            )

    def numbers(
        self, rows: pd.DataFrame, column: str, benchmark: Benchmark
    ) -> tuple[pd.Series, frozenset[str]]:
        """One metric column as float64 indexed by pair id, and the pairs that were mended."""
        values, bad = _to_float(rows[column])
        mended = {
            position: number
            for position in bad
            if (number := benchmark.repair_cell(column, str(rows[column].loc[position])))
            is not None
        }
        if len(mended) < len(bad):
            raise self.not_numeric(column, rows[column].loc[[p for p in bad if p not in mended]])
        values = values.fillna(pd.Series(mended, dtype="float64"))
        pair_ids = rows["pair_id"].astype(str)
        repaired = frozenset(pair_ids.loc[list(mended)])
        return pd.Series(values.to_numpy(), index=pair_ids.to_numpy()), repaired

    def elements(
        self, expected: Sequence[str], benchmark: Benchmark, metrics: Sequence[str]
    ) -> dict[str, pd.DataFrame]:
        """Element scores; a file with them describes a single metric."""
        if "element_id" not in self.cells:
            return {}
        rows = self.cells[~self.cells["element_id"].map(_is_null)]
        if rows.empty:
            return {}
        if len(metrics) != 1 or "element_score" not in rows:
            raise SubmitterError(
                "unknown_elements",
                f"{self.name} has element ids, but "
                + ("no column element_score." if len(metrics) == 1 else "several metrics."),
                "Send element scores as pair_id, score, element_id, element_score, for one metric.",
            )
        unknown = rows["pair_id"][~rows["pair_id"].astype(str).isin(set(expected))]
        if len(unknown):
            raise SubmitterError(
                "unknown_pairs",
                f"{self.name} has element rows of {len(unknown)} pairs that {benchmark.name} does "
                f"not have: {some(self.located(unknown.astype(str)))}.",
                f"Pair ids of {benchmark.name} look like {expected[0]!r}.",
            )
        values, bad = _to_float(rows["element_score"])
        if bad:
            raise self.not_numeric("element_score", rows["element_score"].loc[bad])
        frame = pd.DataFrame(
            {
                "pair_id": rows["pair_id"].astype(str).to_numpy(),
                "element_id": rows["element_id"].astype(str).to_numpy(),
                "score": values.to_numpy(),
            }
        )
        doubled = frame.duplicated(["pair_id", "element_id"])
        if doubled.any():
            first = frame[doubled].iloc[0]
            raise SubmitterError(
                "duplicate_pairs",
                f"{self.name} has {doubled.sum()} element rows that stood before, the first for "
                f"{first['pair_id']!r}, element {first['element_id']!r}.",
                "Keep one row per pair and element.",
            )
        return {metrics[0]: frame}

    def not_numeric(self, column: str, cells: pd.Series) -> SubmitterError:
        return SubmitterError(
            "not_numeric",
            f"{self.name}, column {column!r}: {len(cells)} cells are not finite numbers: "
            f"{some(self.located(cells.astype(str)))}.",
            "Write a number with a decimal point, or leave the cell empty.",
        )

    def located(self, cells: pd.Series) -> list[str]:
        """Cells with the line or row they stand on."""
        return [f"{value[:60]!r} ({self.place} {position})" for position, value in cells.items()]


def load_bytes(path: Path) -> bytes:
    """The content of a scores file.

    Raises:
        SubmitterError: `file_missing` or `file_too_large`.
    """
    if not path.is_file():
        raise SubmitterError(
            "file_missing", f"There is no scores file {path}.", "Check the path and try again."
        )
    if path.stat().st_size > MAX_BYTES:
        raise SubmitterError(
            "file_too_large",
            f"{path.name} has {path.stat().st_size // 2**20} MB.",
            f"A scores file may have {MAX_BYTES // 2**20} MB; Parquet is the smaller format.",
        )
    return path.read_bytes()


def _to_float(cells: pd.Series) -> tuple[pd.Series, list[int]]:
    """Cells as float64 with NaN for nulls, and the index of cells that are not numbers."""
    nulls = cells.map(_is_null)
    values = pd.to_numeric(cells.where(~nulls), errors="coerce").astype("float64")
    infinite = values.abs() == math.inf
    bad = (values.isna() & ~nulls) | infinite
    return values.where(~infinite), [int(p) for p in cells.index[bad]]


def _is_null(cell: object) -> bool:
    if cell is None or cell is pd.NA:
        return True
    if isinstance(cell, float):
        return math.isnan(cell)
    return isinstance(cell, str) and cell.strip().lower() in _NULLS


def _directions(
    name: str, metrics: Sequence[str], lower_is_better: Sequence[str], benchmark: Benchmark
) -> dict[str, Direction]:
    unknown = [m for m in lower_is_better if m not in metrics]
    if unknown:
        raise SubmitterError(
            "unknown_metric",
            f"{name} has no metric {some(unknown)}, which was said to be lower-is-better.",
            f"Its metrics: {some(list(metrics))}.",
        )
    directions: dict[str, Direction] = dict.fromkeys(lower_is_better, -1)
    known = benchmark.known_directions()
    return {**{m: known[m] for m in metrics if m in known}, **directions}
