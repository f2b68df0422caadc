"""What the columns of a scores file may be, and how metrics may be named."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence

import pandas as pd

from benchmarks.errors import SubmitterError

MAX_METRICS = 200
METRIC_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")
RESERVED_NAMES = frozenset({"pair_id", "element_id", "element_score", "score"})
"""Columns of a scores file, which no metric may be named after."""
NOT_METRICS = RESERVED_NAMES - {"score"}
"""Columns that hold no metric's scores."""


def check_metric_name(name: str, *, reserved: Collection[str] = RESERVED_NAMES) -> str:
    """The name, if a metric may have it.

    Raises:
        SubmitterError: `bad_metric_name`.
    """
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


def check_columns(name: str, columns: Sequence[str], metric: str) -> None:
    """Refuse columns that no scores file has.

    Args:
        name: of the file.
        columns: their titles, in order.
        metric: what the column `score` is named.

    Raises:
        SubmitterError: `too_many_metrics`, `no_pair_id`, `duplicate_columns`, `no_scores`,
            `bad_metric_name` or `unknown_elements`.
    """
    metrics = metric_columns(columns)
    if len(metrics) > MAX_METRICS:
        raise too_many_metrics(name, len(metrics))
    if "pair_id" not in columns:
        raise SubmitterError(
            "no_pair_id",
            f"{name} has no column pair_id (its columns: {some([c[:60] for c in columns])}).",
            "Name the first column pair_id and the others after the metrics.",
        )
    _check_titles(name, columns, metric)
    if not metrics:
        raise SubmitterError(
            "no_scores",
            f"{name} has no score column beside pair_id.",
            "Add a column score, or one column per metric.",
        )
    odd = [c for c in metrics if not METRIC_NAME.fullmatch(c)]
    if odd:
        raise SubmitterError(
            "bad_metric_name",
            f"{name} has columns that cannot name a metric: {some([repr(c[:60]) for c in odd])}.",
            "Use letters, digits and . _ + - (at most 64), beginning with a letter or digit.",
        )
    if "element_score" in columns and "element_id" not in columns:
        raise SubmitterError(
            "unknown_elements",
            f"{name} has a column element_score, but no column element_id.",
            "Say in element_id which element each row scores, or leave element_score out.",
        )


def _check_titles(name: str, columns: Sequence[str], metric: str) -> None:
    counts = Counter(metric if c == "score" else c for c in columns)
    doubled = [repr(title[:60]) for title, times in counts.items() if times > 1]
    if doubled:
        renamed = f" The column score is to be named {metric!r}." if "score" in columns else ""
        raise SubmitterError(
            "duplicate_columns",
            f"{name} has more than one column for {some(doubled)}.{renamed}",
            "Give every column a name of its own.",
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


def some(values: Sequence[object] | pd.Index, most: int = 5) -> str:
    """The first few values, and how many more there are."""
    shown = [str(v) for v in list(values)[:most]]
    more = len(values) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")
