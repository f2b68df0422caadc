"""Pool of prompts to choose from: read, made unique, with the categories of each dimension."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_scalar
from scipy.cluster.vq import ClusterError, kmeans2

from benchmarks.arrays import unit_of
from benchmarks.errors import SubmitterError
from benchmarks.problems import Problem, one_error
from benchmarks.tables import read_table
from evaluator.prompts.selection import Dimension

SEPARATOR = ";"
"""Between the labels of a cell of a CSV file."""
COLUMNS = "Its columns are prompt, prompt_id if there are ids, and one for each dimension."
CLUSTER = "cluster"
"""Dimension of the embeddings."""
SKILLS = "skills"
"""Column, or dimension, whose labels are skills as they are."""
MOST_CATEGORIES = 500
"""Of a dimension; a column with more is none of labels."""
_ID_DIGITS = 12
_STARTS = 20


@dataclass(frozen=True)
class Pool:
    """Prompts, each text once.

    Attributes:
        ids: of the prompts, each once.
        texts: the prompts, in the order of the file.
        dimensions: what they are told apart by.
        others: the cells of each other column of the file as text, those of the dimensions included;
            `skills` only where it is no dimension.
        rows: of the file.
        empty: rows without a prompt, which are left out.
        repeated: rows whose prompt was there before but for case and spaces, likewise.
    """

    ids: tuple[str, ...]
    texts: tuple[str, ...]
    dimensions: tuple[Dimension, ...]
    others: Mapping[str, tuple[str, ...]]
    rows: int
    empty: int
    repeated: int

    def skills(self, place: int) -> tuple[str, ...]:
        """What a prompt is labelled with: its skills, and `dimension:category` of other dimensions."""
        own = self.others[SKILLS][place] if SKILLS in self.others else ""
        labels = [
            one.categories[found] if one.name == SKILLS else f"{one.name}:{one.categories[found]}"
            for one in self.dimensions
            for found in np.flatnonzero(one.labels[place])
        ]
        return (own, *labels) if own else (*labels,)


def read_pool(
    file: Path,
    dimensions: Sequence[str],
    embeddings: NDArray[np.floating[Any]] | None = None,
    clusters: int = 7,
    seed: int = 0,
) -> Pool:
    """Read a table of prompts.

    Args:
        file: CSV, JSON Lines or Parquet, with a column `prompt`, ids in `prompt_id` if it has them,
            and a column of labels for each dimension: a list, or text with `;` between labels.
        dimensions: names of those columns; none are needed to read the prompts alone.
        embeddings: a vector for each row, of shape (rows, width), which are clustered (k-means) to
            one more dimension, `cluster` (`CLUSTER`); None: without it.
        clusters: how many.
        seed: of the first centres.

    Raises:
        SubmitterError: everything that is wrong with the table, at once.
    """
    table = _table(file)
    if problems := list(_problems(table, dimensions, embeddings, file.name)):
        raise one_error(problems)
    texts = table["prompt"].fillna("").astype(str).str.strip()
    filled = texts != ""
    first = filled & ~texts.where(filled).str.split().str.join(" ").str.casefold().duplicated()
    kept = np.flatnonzero(first)
    labels = {name: [_labels(cell) for cell in table[name].iloc[kept]] for name in dimensions}
    vectors = None if embeddings is None else np.asarray(embeddings, float)[kept]
    if problems := list(_unusable(labels, vectors, clusters, file.name)):
        raise one_error(problems)
    found = [_dimension(name, of) for name, of in labels.items()]
    if vectors is not None:
        found.append(_clusters(vectors, clusters, seed))
    return Pool(
        _ids(table, texts, kept),
        tuple(texts.iloc[kept]),
        tuple(found),
        {
            str(name): tuple(map(_text, table[name].iloc[kept]))
            for name in table
            if name not in {"prompt_id", "prompt"} and not (name == SKILLS and SKILLS in dimensions)
        },
        rows=len(table),
        empty=int((~filled).sum()),
        repeated=int(filled.sum()) - len(kept),
    )


def read_texts(file: Path) -> list[str]:
    """The prompt of each row of a table, as `read_pool` reads it; empty where there is none."""
    table = _table(file)
    if problems := list(_problems(table, (), None, file.name)):
        raise one_error(problems)
    return table["prompt"].fillna("").astype(str).str.strip().tolist()


def _table(file: Path) -> pd.DataFrame:
    try:
        if file.suffix == ".parquet":
            return pd.read_parquet(file)
        if file.suffix in {".jsonl", ".json"}:
            return pd.read_json(file, lines=True, dtype=False)
        return read_table(file)
    except (OSError, ValueError) as error:  # pandas' and pyarrow's own errors are ValueErrors
        raise SubmitterError(
            "bad_prompts", f"{file.name} cannot be read: {error}.", COLUMNS
        ) from error


def _problems(
    table: pd.DataFrame,
    dimensions: Sequence[str],
    embeddings: NDArray[np.floating[Any]] | None,
    file: str,
) -> Iterator[Problem]:
    if missing := [name for name in ("prompt", *dimensions) if name not in table]:
        told = f"{file} has no column {', '.join(missing)}."
        yield Problem("missing_columns", told, COLUMNS, file)
    if len(set(dimensions)) < len(dimensions):
        told = "A dimension is named twice."
        yield Problem("no_dimensions", told, COLUMNS, file)
    if embeddings is not None and CLUSTER in dimensions:
        told = f"The dimension {CLUSTER} is that of the embeddings."
        yield Problem("no_dimensions", told, f"Call the column of {file} otherwise.", file)
    if "prompt_id" in table:
        ids = table["prompt_id"].map(_label)
        if (ids == "").any() or ids.duplicated().any():
            told = f"In {file} not every prompt has an id of its own."
            yield Problem("bad_prompt_ids", told, COLUMNS, file)
    for name in dict.fromkeys(dimensions):
        cells = table.get(name, ())
        if not all(map(is_scalar, chain.from_iterable(map(_parts, cells)))):
            told = f"A label in {name} of {file} is itself a list or an object."
            hint = f"Write text: a list of labels, or labels with {SEPARATOR} between them."
            yield Problem("bad_labels", told, hint, file)
    if embeddings is None:
        return
    if embeddings.ndim != 2 or len(embeddings) != len(table):
        told = f"The embeddings have shape {embeddings.shape}, and {file} has {len(table)} rows."
        hint = "They are one vector for each row, in the order of the file."
        yield Problem("bad_embeddings", told, hint, file)
    elif embeddings.dtype.kind not in "fiu" or not np.isfinite(embeddings).all():
        told = "Some embeddings are no finite numbers."
        yield Problem("bad_embeddings", told, "Make them anew.", file)


def _unusable(
    labels: Mapping[str, Sequence[set[str]]],
    vectors: NDArray[np.float64] | None,
    clusters: int,
    file: str,
) -> Iterator[Problem]:
    """What is wrong with the labels and vectors of the prompts that count."""
    for name, of_prompts in labels.items():
        categories = set[str]().union(*of_prompts)
        if not 1 <= len(categories) <= MOST_CATEGORIES:
            told = f"The column {name} of {file} has {len(categories)} different labels."
            hint = f"A dimension has 1 to {MOST_CATEGORIES}: is it a column of labels?"
            yield Problem("bad_labels", told, hint, file)
        if any(SEPARATOR in label for label in categories):
            told = f"A label in {name} of {file} has a {SEPARATOR} in it."
            hint = "In lists each label stands alone, and it stands between labels of a skill."
            yield Problem("bad_labels", told, hint, file)
    distinct = 0 if vectors is None else len(np.unique(vectors, axis=0))
    if vectors is not None and not 2 <= clusters <= distinct:
        told = f"{distinct} different embeddings have no {clusters} clusters."
        yield Problem("bad_clusters", told, "Ask for fewer, and for two at least.", file)


def _ids(table: pd.DataFrame, texts: pd.Series[str], kept: NDArray[np.int64]) -> tuple[str, ...]:
    if "prompt_id" in table:
        return tuple(table["prompt_id"].astype(str).iloc[kept])
    return tuple(
        hashlib.sha256(text.encode()).hexdigest()[:_ID_DIGITS] for text in texts.iloc[kept]
    )


def _dimension(name: str, labels: Sequence[set[str]]) -> Dimension:
    """Of a column; its categories are all labels that stand there, in the order of the alphabet."""
    categories = tuple(sorted({one for of_prompt in labels for one in of_prompt}))
    places = {category: place for place, category in enumerate(categories)}
    matrix = np.zeros((len(labels), len(categories)), dtype=bool)
    for row, of_prompt in enumerate(labels):
        matrix[row, [places[one] for one in of_prompt]] = True
    return Dimension(name, categories, matrix)


def _labels(cell: Any) -> set[str]:
    return set(map(_label, _parts(cell))) - {""}


def _parts(cell: Any) -> Iterable[Any]:
    """What a cell of labels holds."""
    if isinstance(cell, str):
        return cell.split(SEPARATOR)
    return cell if isinstance(cell, (list, tuple, np.ndarray)) else [cell]


def _text(cell: Any) -> str:
    """A cell of CSV: labels with `;` between them, what is deeper as JSON."""
    if isinstance(cell, str):
        return cell
    parts = list(_parts(cell))
    if all(map(is_scalar, parts)):
        return SEPARATOR.join(map(_label, parts))
    return json.dumps(cell, ensure_ascii=False, default=list)


def _label(one: Any) -> str:
    """One of them as text, empty where it is none."""
    return "" if not is_scalar(one) or pd.isna(one) else str(one).strip()


def _clusters(vectors: NDArray[np.float64], count: int, seed: int) -> Dimension:
    """The nearest of k centres (k-means++, Lloyd), numbered by their size; none of them is empty.

    A start that leaves one empty is drawn anew; of the last, the empty ones are no categories.
    """
    vectors = vectors / unit_of(vectors)  # so that squares of distances are within doubles
    draw = np.random.default_rng(seed)
    for _ in range(_STARTS):
        with suppress(ClusterError):
            _, nearest = kmeans2(vectors, count, minit="++", missing="raise", rng=draw)
            break
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # Of empty clusters, which are left out.
            _, nearest = kmeans2(vectors, count, minit="++", missing="warn", rng=draw)
        _, nearest = np.unique(nearest, return_inverse=True)
        count = int(nearest.max()) + 1
    sizes = np.bincount(nearest, minlength=count)
    rank = np.empty(count, dtype=int)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(count)
    labels = np.zeros((len(vectors), count), dtype=bool)
    labels[np.arange(len(vectors)), rank[nearest]] = True
    names = tuple(str(place + 1) for place in range(count))
    return Dimension(CLUSTER, names, labels)
