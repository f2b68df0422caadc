"""Scores files: columns, cells, and the table of scores they become.

A scores file is CSV or Parquet with a `pair_id` column and either one `score` column or one column
per metric. Every pair of the benchmark is there exactly once; an empty cell says that the metric
gave no score for that pair, which is counted and shown, never dropped.

Element scores come as further rows: columns `element_id` and `element_score` beside `pair_id` (a
row with an element id carries an element score, a row without one the score of the whole pair).

Files come from untrusted users: what one may take in memory is known before it is read.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.errors import SubmitterError
from benchmarks.parquet import is_stored, parquet_file, read_margins, widened
from benchmarks.problems import Problem, one_error
from benchmarks.schema import Answers, Benchmark, ScoreTable

MAX_METRICS = 200
METRIC_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")
RESERVED_NAMES = frozenset(
    {"pair_id", "element_id", "element_score", "score", "other_id", "margin"}
)
"""Columns of a scores file, which no metric may be named after."""
NOT_METRICS = RESERVED_NAMES - {"score"}
"""Columns that hold no metric's scores."""
MOST_MISSING = 0.5
"""Share of the pairs that may have no score, for the rest to be published at all."""


def check_metric_name(name: str, *, reserved: Collection[str] = RESERVED_NAMES) -> str:
    """The name, if a metric may have it."""
    if not METRIC_NAME.fullmatch(name):
        raise SubmitterError(
            "bad_metric_name",
            f"{name[:80]!r} cannot name a metric.",
            "Use letters, digits and . _ + - (at most 64), beginning with a letter or digit.",
        )
    if name in reserved:
        raise SubmitterError(
            "bad_metric_name",
            f"{name!r} cannot name a metric: it is a column of every scores file's form.",
            "Choose a name that says which metric it is.",
        )
    return name


def name_for(name: str, folder: Path) -> str:
    """The name on the boards of what a folder holds: as given, else that of the folder."""
    try:
        return check_metric_name(name or folder.resolve().name)
    except SubmitterError as error:
        if name:
            raise
        raise SubmitterError(
            error.code,
            f"The folder's name is none for a board: {error.message}",
            f"Give the name with --name. {error.hint}",
        ) from error


def column_problems(name: str, columns: Sequence[str], metric: str) -> tuple[Problem, ...]:
    """Everything that is wrong with the header of a scores file."""
    metrics = metric_columns(columns)
    if len(metrics) > MAX_METRICS:
        raise too_many_metrics(name, len(metrics))
    return (
        *_without_columns(name, columns, metrics),
        *_doubled_columns(name, columns, metric),
        *_odd_columns(name, columns, metrics),
    )


def _without_columns(
    name: str, columns: Sequence[str], metrics: Sequence[str]
) -> Iterator[Problem]:
    if "pair_id" not in columns:
        yield Problem(
            "no_pair_id",
            f"{name} has no column pair_id (its columns: {some([c[:60] for c in columns])}).",
            "Name the first column pair_id and the others after the metrics.",
        )
    if not metrics:
        yield Problem(
            "no_scores",
            f"{name} has no score column beside pair_id.",
            "Add a column score, or one column per metric.",
        )


def _odd_columns(name: str, columns: Sequence[str], metrics: Sequence[str]) -> Iterator[Problem]:
    odd = tuple(repr(c[:60]) for c in metrics if not METRIC_NAME.fullmatch(c))
    if odd:
        yield Problem(
            "bad_metric_name",
            f"{name} has columns that cannot name a metric.",
            "Use letters, digits and . _ + - (at most 64), beginning with a letter or digit.",
            count=len(odd),
            examples=odd,
        )
    if "element_score" in columns and "element_id" not in columns:
        yield Problem(
            "unknown_elements",
            f"{name} has a column element_score, but no column element_id.",
            "Say in element_id which element each row scores, or leave element_score out.",
        )


def _doubled_columns(name: str, columns: Sequence[str], metric: str) -> Iterator[Problem]:
    counts = Counter(metric if c == "score" else c for c in columns)
    doubled = tuple(repr(title[:60]) for title, times in counts.items() if times > 1)
    if doubled:
        renamed = f" The column score is to be named {metric!r}." if "score" in columns else ""
        yield Problem(
            "duplicate_columns",
            f"{name} has more than one column for {some(doubled)}.{renamed}",
            "Give every column a name of its own.",
            count=len(doubled),
        )


def metric_columns(columns: Sequence[str] | pd.Index) -> tuple[str, ...]:
    """The columns that hold a metric's scores."""
    return tuple(str(c) for c in columns if c not in NOT_METRICS)


def too_many_metrics(name: str, number: int) -> SubmitterError:
    """The error of a file with more metrics than are read at once."""
    return SubmitterError(
        "too_many_metrics",
        f"{name} has {number} metric columns.",
        f"Send at most {MAX_METRICS} metrics in one file.",
    )


def check_mostly_scored(
    scored: int, pairs: int, what: str, why: Mapping[str, int] | None = None
) -> None:
    """Refuse scores of which most are missing: no measure of the rest tells of the metric.

    Args:
        scored: pairs with a score.
        pairs: all that were asked.
        what: they are of.
        why: code of a finding to the number of pairs without a score for that reason.

    Raises:
        SubmitterError: `mostly_missing`.
    """
    if pairs - scored <= MOST_MISSING * pairs:
        return
    reasons = ", ".join(f"{code} {n:,}" for code, n in sorted((why or {}).items()))
    raise SubmitterError(
        "mostly_missing",
        f"{pairs - scored:,} of {pairs:,} pairs of {what} have no score"
        f"{f' ({reasons})' if reasons else ''}.",
        "Give each pair a number; `python -m evaluator check` shows which have none, and why.",
    )


def some(values: Sequence[object] | pd.Index, most: int = 5) -> str:
    """The first few values, and how many more there are."""
    shown = [str(v) for v in list(values)[:most]]
    more = len(values) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


MAX_CELLS = 16_000_000
"""Of one file; as text they take some hundred bytes each while they are read."""
MAX_LINE = 1 << 20
MAX_INFLATED = 1 << 30
MAX_FOOTER = 4 << 20
_PANDAS_INDEX = re.compile(r"__index_level_\d+__")
"""An index without a name, as pandas writes it; nobody meant to send it."""


@dataclass(frozen=True)
class Cells:
    """The cells of a scores file as text or numbers."""

    name: str  # of the file
    cells: pd.DataFrame  # its index tells where in the file each row stands
    place: Literal["line", "row"]  # what the index counts, lines or rows
    problems: tuple[Problem, ...] = ()  # what is wrong with its columns

    def overall_rows(self) -> pd.DataFrame:
        """Rows of whole pairs."""
        if "element_id" not in self.cells:
            return self.cells
        return self.cells[self.cells["element_id"].map(_is_null)]

    def pair_problems(
        self, rows: pd.DataFrame, expected: Sequence[str], benchmark: str
    ) -> Iterator[Problem]:
        """Doubled, unknown and missing pairs."""
        ids = rows["pair_id"].astype(str)
        doubled = ids[ids.duplicated()]
        if len(doubled):
            yield Problem(
                "duplicate_pairs",
                f"{self.name} has {_counted(len(doubled), 'duplicate pair_id')}.",
                "Keep one row per pair.",
                count=len(doubled),
                examples=self.located(doubled),
            )
        known = set(expected)
        unknown = ids[~ids.isin(known)]
        if len(unknown):
            yield Problem(
                "unknown_pairs",
                f"{self.name} has {_counted(len(unknown), 'pair_id')} that {benchmark} does not have.",
                f"Pair ids of {benchmark} look like {expected[0]!r}.",
                count=len(unknown),
                examples=self.located(unknown),
            )
        missing = known - set(ids)
        if missing:
            yield Problem(
                "missing_pairs",
                f"{self.name} lacks {len(missing):,} of the {len(expected):,} pairs of {benchmark}.",
                "Add a row for each; leave the score empty where the metric gave none.",
                count=len(missing),
                examples=tuple(pair for pair in expected if pair in missing),
            )

    def numbers(
        self, rows: pd.DataFrame, column: str, benchmark: Benchmark
    ) -> tuple[pd.Series, frozenset[str], tuple[Problem, ...]]:
        """A metric's column indexed by pair id, the mended pairs, and cells that are no numbers."""
        values, bad = _to_float(rows[column])
        mended = {
            position: number
            for position in bad
            if (number := benchmark.repair_cell(column, str(rows[column].loc[position])))
            is not None
        }
        left = [position for position in bad if position not in mended]
        wrong = (self.not_numeric(column, rows[column].loc[left]),) if left else ()
        values = values.fillna(pd.Series(mended, dtype="float64"))
        pair_ids = rows["pair_id"].astype(str)
        repaired = frozenset(pair_ids.loc[list(mended)])
        return pd.Series(values.to_numpy(), index=pair_ids.to_numpy()), repaired, wrong

    def element_rows(self) -> pd.DataFrame:
        """Rows of single elements."""
        if "element_id" not in self.cells:
            return self.cells.iloc[:0]
        return self.cells[~self.cells["element_id"].map(_is_null)]

    def element_problems(
        self, expected: Sequence[str], benchmark: str, metrics: Sequence[str]
    ) -> Iterator[Problem]:
        """What is wrong with the element scores; a file with them describes a single metric."""
        rows = self.element_rows()
        if rows.empty:
            return
        if len(metrics) != 1 or "element_score" not in rows:
            yield Problem(
                "unknown_elements",
                f"{self.name} has element ids, but "
                + ("no column element_score." if len(metrics) == 1 else "several metrics."),
                "Send element scores as pair_id, score, element_id, element_score, for one metric.",
            )
            return
        unknown = rows["pair_id"][~rows["pair_id"].astype(str).isin(set(expected))]
        if len(unknown):
            yield Problem(
                "unknown_pairs",
                f"{self.name} has element rows of {_counted(len(unknown), 'pair_id')} that "
                f"{benchmark} does not have.",
                f"Pair ids of {benchmark} look like {expected[0]!r}.",
                count=len(unknown),
                examples=self.located(unknown.astype(str)),
            )
        _, bad = _to_float(rows["element_score"])
        if bad:
            yield self.not_numeric("element_score", rows["element_score"].loc[bad])
        doubled = rows.astype({"pair_id": str, "element_id": str}).duplicated(
            ["pair_id", "element_id"]
        )
        if doubled.any():
            again = rows[doubled]
            yield Problem(
                "duplicate_pairs",
                f"{self.name} has {_counted(len(again), 'element row')} that stood before.",
                "Keep one row per pair and element.",
                count=len(again),
                examples=tuple(
                    f"{str(pair)[:60]!r}, element {str(element)[:60]!r} ({self.place} {place})"
                    for place, pair, element in zip(
                        again.index, again["pair_id"], again["element_id"], strict=True
                    )
                ),
            )

    def elements(self, metrics: Sequence[str]) -> dict[str, pd.DataFrame]:
        """Element scores of a file without problems."""
        rows = self.element_rows()
        if rows.empty:
            return {}
        values, _ = _to_float(rows["element_score"])
        frame = pd.DataFrame(
            {
                "pair_id": rows["pair_id"].astype(str).to_numpy(),
                "element_id": rows["element_id"].astype(str).to_numpy(),
                "score": values.to_numpy(),
            }
        )
        return {metrics[0]: frame}

    def not_numeric(self, column: str, cells: pd.Series) -> Problem:
        """The problem of cells that are no finite numbers."""
        return Problem(
            "not_numeric",
            f"{self.name}, column {column!r}: {_counted(len(cells), 'cell')} "
            f"{'is no finite number' if len(cells) == 1 else 'are no finite numbers'}.",
            "Write a number with a decimal point, or leave the cell empty.",
            count=len(cells),
            examples=self.located(cells.astype(str)),
        )

    def located(self, cells: pd.Series) -> tuple[str, ...]:
        """The first cells with the line or row they stand on."""
        first = cells.iloc[:_MOST_LOCATED]
        return tuple(
            f"{value[:60]!r} ({self.place} {position})" for position, value in first.items()
        )


_MOST_LOCATED = 20
_NO_ROWS = frozenset({"no_pair_id", "no_scores", "duplicate_columns"})
"""Problems of a header whose rows cannot be told apart."""


def _readable(name: str, columns: Sequence[str], metric: str) -> tuple[Problem, ...]:
    """What is wrong with the columns of a file whose rows can be checked all the same."""
    found = column_problems(name, columns, metric)
    if any(problem.code in _NO_ROWS for problem in found):
        raise one_error(found)
    return found


def read_cells(content: bytes, name: str, metric: str, most_rows: int) -> Cells:
    """The cells of a file, with its columns checked."""
    try:
        if content[:4] == b"PAR1":
            return _read_parquet(content, name, metric, most_rows)
        return _read_csv(content, name, metric, most_rows)
    except (pa.ArrowException, csv.Error, ValueError, OSError) as error:
        first_line = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise SubmitterError(
            "unreadable_scores",
            f"{name} is neither CSV nor Parquet: {first_line[:300].rstrip('.')}.",
            "Send a comma-separated file with a header line, in UTF-8, or Parquet.",
        ) from error


def _read_csv(content: bytes, name: str, metric: str, most_rows: int) -> Cells:
    # As text, so that a cell which is not a number can be named as it was written.
    if max(content.count(b"\n"), content.count(b"\r")) > 2 * most_rows + 2:
        raise _too_many_rows(name, "more lines", most_rows)
    lines = _csv_lines(content)
    header = [cell.strip() for cell in next(lines, (1, []))[1]]
    if not header:
        raise ValueError("it is empty")
    problems = _readable(name, header, metric)
    places: list[int] = []
    rows: list[list[str]] = []
    for number, row in lines:
        if len(row) > len(header):
            raise ValueError(f"line {number} has more cells than the header line")
        places.append(number)
        rows.append(row + [""] * (len(header) - len(row)))
        _check_size(name, len(rows), len(header), most_rows)
    cells = pd.DataFrame(rows, index=pd.Index(places), columns=header, dtype=str)
    return Cells(name, cells, "line", problems)


def _csv_lines(content: bytes) -> Iterator[tuple[int, list[str]]]:
    """The lines that are not blank, numbered and cut into cells.

    No cell of a scores file needs a line break, so each line is read on its own: the numbers are
    right, and a quote that is never closed is found where it was opened.
    """
    text = TextIOWrapper(BytesIO(content), encoding="utf-8-sig", newline="")
    for number, line in enumerate(iter(lambda: text.readline(MAX_LINE + 1), ""), start=1):
        if len(line) > MAX_LINE:
            raise ValueError(f"line {number} has more than {MAX_LINE} characters")
        if line.strip():
            try:
                yield number, next(csv.reader((line,), strict=True))
            except csv.Error as error:
                raise ValueError(f"line {number}: {error}") from error


def _read_parquet(content: bytes, name: str, metric: str, most_rows: int) -> Cells:
    schema, problems = _parquet_schema(content, name, metric, most_rows)
    columns = schema.names
    # Texts as dictionaries: what is repeated is held once until its full size is known.
    texts = [c for c in columns if _is_text(_value_type(schema.field(c).type))]
    file = parquet_file(content, texts)
    batches = [_plain(schema.empty_table())]
    size = 0
    for batch in file.iter_batches(columns=columns, use_threads=False):
        size += batch.nbytes + sum(_text_bytes(column) for column in batch.columns)
        if size > MAX_INFLATED:
            raise _inflates(name)
        batches.append(_plain(pa.Table.from_batches([batch])))
    table = pa.concat_tables(batches)
    table.validate(full=True)
    # Without pandas' own notes in the file, which would make an index of some columns.
    cells = table.rename_columns([c.strip() for c in columns]).to_pandas(ignore_metadata=True)
    if is_stored(columns):
        cells = widened(cells, name, MAX_CELLS)
        problems = _readable(name, list(cells.columns), metric)
    return Cells(name, cells.set_axis(range(1, len(cells) + 1)), "row", problems)


def _parquet_schema(
    content: bytes, name: str, metric: str, most_rows: int
) -> tuple[Any, tuple[Problem, ...]]:
    """The columns to read and what is wrong with them, as far as it is told without reading them.

    A few values, and how often each stands there, can be millions of rows.
    """
    if content.endswith(b"PAR1") and int.from_bytes(content[-8:-4], "little") > MAX_FOOTER:
        raise ValueError(f"its footer has more than {MAX_FOOTER >> 20} MB")
    file = parquet_file(content)
    groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
    # A column of lists or records counts several times here.
    if file.metadata.num_columns > 2 * MAX_METRICS:
        raise too_many_metrics(name, file.metadata.num_columns)
    schema = pa.schema([f for f in file.schema_arrow if not _PANDAS_INDEX.fullmatch(f.name)])
    n_rows = max(file.metadata.num_rows, sum(group.num_rows for group in groups))
    problems: tuple[Problem, ...] = ()
    if is_stored(schema.names):
        # Each row of this form is one cell of the other.
        _check_size(name, n_rows, 1, most_rows * MAX_METRICS)
    else:
        problems = _readable(name, [c.strip() for c in schema.names], metric)
        _check_size(name, n_rows, len(schema), most_rows)
    _check_types(name, schema)
    if sum(group.total_byte_size for group in groups) > MAX_INFLATED:
        raise _inflates(name)
    return schema, problems


def _check_types(name: str, schema: Any) -> None:
    wrong = [
        Problem(
            "not_numeric",
            f"{name}, column {field.name[:60]!r}: its cells are of the type {str(kind)[:60]}.",
            "Write ids as strings and scores as floating-point numbers.",
        )
        for field in schema
        if not (_is_number(kind := _value_type(field.type)) or _is_text(kind))
    ]
    if wrong:
        raise one_error(wrong)


def _value_type(kind: Any) -> Any:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _is_number(kind: Any) -> bool:
    types = pa.types
    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_decimal(kind)
        or types.is_null(kind)
    )


def _is_text(kind: Any) -> bool:
    types = pa.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _text_bytes(column: Any) -> int:
    """Bytes of a dictionary column's texts when each row has its own."""
    if not pa.types.is_dictionary(column.type) or not _is_text(column.type.value_type):
        return 0
    lengths = pc.binary_length(column.dictionary.cast(pa.large_string()))
    return pc.sum(pc.take(lengths, column.indices)).as_py() or 0


def _plain(table: Any) -> Any:
    """Ids as text and scores as float64 or text, whatever width and encoding they came in."""

    def plain(column: str, values: Any) -> Any:
        ids = column.strip() in ("pair_id", "element_id", "metric")
        number = _is_number(_value_type(values.type)) and not ids
        return values.cast(pa.float64() if number else pa.large_string(), safe=False)

    names = table.schema.names
    arrays = [plain(n, c) for n, c in zip(names, table.columns, strict=True)]
    return type(table).from_arrays(arrays, names=names)


def _check_size(name: str, n_rows: int, n_columns: int, most_rows: int) -> None:
    if n_rows > most_rows:
        raise _too_many_rows(name, "more rows", most_rows)
    if n_rows * n_columns > MAX_CELLS:
        raise SubmitterError(
            "too_many_rows",
            f"{name} has more than {MAX_CELLS} cells.",
            "Send fewer metrics in one file.",
        )


def _too_many_rows(name: str, what: str, most: int) -> SubmitterError:
    return SubmitterError(
        "too_many_rows",
        f"{name} has {what} than this benchmark can need (at most {most} rows are read).",
        "Keep one row per pair, and one per element where there are element scores.",
    )


def _inflates(name: str) -> SubmitterError:
    return SubmitterError(
        "file_too_large",
        f"{name} takes more than {MAX_INFLATED >> 20} MB when it is decompressed.",
        "Send fewer metrics in one file.",
    )


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
    """Read and check a scores file, with the margins beside it of metrics that compare.

    Margins of `NAME.parquet`, `NAME.csv` or `NAME.scores.parquet` stand in `NAME.margins.parquet`, as
    `benchmarks.parquet.write_margins` writes them.

    Raises:
        SubmitterError: what is wrong with the scores; `bad_margins`: with the margins;
            `margins_missing`: the record of the run says that the metric compares, and there are none.
    """
    table = parse_scores(
        load_bytes(path),
        path.name,
        benchmark,
        answers,
        metric=metric,
        lower_is_better=lower_is_better,
    )
    return replace(table, margins=margins_beside(path, table))


def margins_beside(path: Path, table: ScoreTable) -> dict[str, pd.DataFrame]:
    """Metric of a scores file to its margins; see `read_scores`, whose errors it has."""
    stem = path.stem.removesuffix(".scores")
    beside = path.with_name(f"{stem}.margins.parquet")
    if not beside.is_file():
        if _compares(path.with_name(f"{stem}.record.json")):
            raise SubmitterError(
                "margins_missing",
                f"{path.name} is of a metric that compares images, and {beside.name} is not beside it.",
                "Put it there: without it, scores of different prompts would be compared.",
            )
        return {}
    try:
        margins = read_margins(load_bytes(beside))
    except (pa.ArrowException, OSError, ValueError) as error:
        why = f"cannot be read: {str(error)[:300]}"
    else:
        why = "; ".join(_wrong_margins(margins, table))
    if why:
        raise SubmitterError(
            "bad_margins",
            f"{beside.name}, beside {path.name}: {why}.",
            "Run the metric again, or move the file away if it belongs to other scores.",
        )
    return margins


def _wrong_margins(margins: Mapping[str, pd.DataFrame], table: ScoreTable) -> Iterator[str]:
    if others := sorted(set(margins) - set(table.metrics)):
        yield f"the scores have no metric {some(others)}"
    for metric, rows in margins.items():
        pairs = rows[["pair_id", "other_id"]]
        if not pairs.isin(set(table.overall.index)).all(axis=None) or pairs.duplicated().any():
            yield f"{metric} has pairs that the scores have not, or twice"
        if not pd.api.types.is_float_dtype(rows["margin"]):
            yield f"{metric} has margins that are no numbers"


def _compares(record: Path) -> bool:
    """Whether the record of a run says that its metric compares two images."""
    try:
        scorer = json.loads(record.read_bytes())["scorer"]
        return bool(scorer["options"].get("method") == "compare")
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return False  # of no run, or of one that says no method


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
    source = read_cells(content, name, metric, most_rows)
    rows = source.overall_rows()
    problems = [
        *source.problems,
        *source.pair_problems(rows, answers.pair_ids, benchmark.name),
    ]
    columns: dict[str, pd.Series] = {}
    repaired: dict[str, frozenset[str]] = {}
    for column in metric_columns(source.cells.columns):
        title = metric if column == "score" else column
        columns[title], mended, wrong = source.numbers(rows, column, benchmark)
        problems += wrong
        if mended:
            repaired[title] = mended
    metrics = tuple(columns)
    problems += source.element_problems(answers.pair_ids, benchmark.name, metrics)
    problems += _unknown_metrics(name, metrics, lower_is_better)
    if problems:
        raise one_error(problems)
    overall = pd.DataFrame(columns).loc[list(answers.pair_ids)]
    overall.index.name = "pair_id"
    return ScoreTable(
        overall,
        elements=source.elements(metrics),
        directions=_directions(metrics, lower_is_better, benchmark),
        repaired=repaired,
    )


def write_scores(table: ScoreTable) -> bytes:
    """The table without margins as a Parquet scores file, which `parse_scores` reads back."""
    buffer = BytesIO()
    score_rows(table).to_parquet(buffer, index=False)
    return buffer.getvalue()


def score_rows(table: ScoreTable) -> pd.DataFrame:
    """The rows of a scores file, those of elements after those of whole pairs."""
    frames = [table.overall.reset_index()]
    frames += [
        frame.rename(columns={"score": "element_score"}) for frame in table.elements.values()
    ]
    return pd.concat(frames, ignore_index=True)


def load_bytes(path: Path) -> bytes:
    """The content of a scores file."""
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


def _counted(quantity: int, what: str) -> str:
    return f"{quantity:,} {what}{'' if quantity == 1 else 's'}"


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


def _unknown_metrics(
    name: str, metrics: Sequence[str], lower_is_better: Sequence[str]
) -> Iterator[Problem]:
    unknown = tuple(m for m in lower_is_better if m not in metrics)
    if unknown:
        yield Problem(
            "unknown_metric",
            f"{name} has no metric {some(unknown)}, which was said to be lower-is-better.",
            f"Its metrics: {some(list(metrics))}.",
            count=len(unknown),
        )


def _directions(
    metrics: Sequence[str], lower_is_better: Sequence[str], benchmark: Benchmark
) -> dict[str, Direction]:
    directions: dict[str, Direction] = dict.fromkeys(lower_is_better, -1)
    known = benchmark.known_directions()
    return {**{m: known[m] for m in metrics if m in known}, **directions}
