"""Cases of a benchmark: what people said of its pairs, in pieces small enough to look at.

A case is what a person looks at to see whether a metric fails: the images of one prompt with their
ratings, a contrast pair of prompts with its images, a semantic error graph. It is there to find
examples; the measures of a protocol are computed elsewhere and may weigh its pairs otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.errors import PlatformError
from benchmarks.parquet import parquet_frame

BETWEEN_SKILLS = ";"
"""Joins the skills of a case, and the splits it is in."""
SCHEMA = pa.schema(
    [
        pa.field("case_id", pa.string(), nullable=False),
        pa.field("cluster", pa.string(), nullable=False),
        pa.field("split", pa.string(), nullable=False),
        pa.field("skills", pa.string(), nullable=False),
        pa.field("pair_id", pa.string(), nullable=False),
        pa.field("image_id", pa.string(), nullable=False),
        pa.field("prompt", pa.string(), nullable=False),
        pa.field("expected", pa.float64()),
        pa.field("said", pa.string(), nullable=False),
    ]
)
"""One row for each pair of a case. `image_id` is that of the question side. `expected` is what
people say of the pair, larger where the image follows the prompt better; null where they say
nothing. It is compared within a case alone. `said` is the same in words, e.g. `3.7 of 5`. A pair
may be in several cases, and a case in several splits, joined as its skills are."""


def cases_path(benchmark: str, revision: str) -> str:
    """Where the cases of a revision are in the public store."""
    return f"cases/{benchmark}/{revision}.parquet"


def write_cases(cases: pd.DataFrame) -> bytes:
    """The file of cases; equal cases make equal bytes."""
    try:
        table = pa.Table.from_pandas(cases[SCHEMA.names], SCHEMA, preserve_index=False)
    except (KeyError, pa.ArrowException) as error:
        raise PlatformError("bad_cases", f"These are no cases: {error}") from error
    buffer = BytesIO()
    pq.write_table(table.replace_schema_metadata(None), buffer, compression="zstd")
    return buffer.getvalue()


def read_cases(content: bytes) -> pd.DataFrame:
    """The cases in a file."""
    found = parquet_frame(content)
    if list(found.columns) != SCHEMA.names:
        raise PlatformError("bad_cases", f"A file of cases has columns {list(found.columns)}.")
    return found


@dataclass(frozen=True)
class Comparisons:
    """The comparisons of all cases: what a metric has to get right.

    Two pairs of a case are compared where they share the image or the prompt and people expect
    different values of them.
    """

    case_ids: tuple[str, ...]  # the C cases, in the order of their first pair
    of_row: IntArray  # shape (n,), case of each row of the cases, 0..C-1
    better: IntArray  # shape (k,), row of which people expect more, of each comparison
    worse: IntArray  # shape (k,), row of which they expect less

    @classmethod
    def of(cls, cases: pd.DataFrame) -> Comparisons:
        """The comparisons of cases; of bounded memory, and without a loop over cases."""
        case, names = pd.factorize(cases["case_id"])
        image, prompt = (pd.factorize(cases[name])[0] for name in ("image_id", "prompt"))
        expected = cases["expected"].to_numpy(np.float64)
        better, worse = [], []
        for shared, other in ((prompt, None), (image, prompt)):
            a, b = _within(case, shared)
            # Both are known and not the same.
            kept = (
                np.isfinite(expected[a]) & np.isfinite(expected[b]) & (expected[a] != expected[b])
            )
            if other is not None:  # What shares both was compared before.
                kept &= other[a] != other[b]
            a, b = a[kept], b[kept]
            first = expected[a] > expected[b]
            better.append(np.where(first, a, b))
            worse.append(np.where(first, b, a))
        return cls(
            tuple(map(str, names)),
            case.astype(np.intp),
            np.concatenate(better).astype(np.int32),
            np.concatenate(worse).astype(np.int32),
        )

    def right(self, score: FloatArray) -> FloatArray:
        """How each comparison comes out.

        `score` (n,), of each row, larger for a better match; NaN is missing.
        Returns: shape (k,): 1 right, 0 wrong, a half for equal scores, NaN where one is missing.
        """
        above, below = score[self.better], score[self.worse]
        found = 0.5 + 0.5 * ((above > below).astype(np.float64) - (above < below))
        found[np.isnan(above) | np.isnan(below)] = np.nan
        return found

    def agreement(self, score: FloatArray) -> pd.DataFrame:
        """How far a metric orders the pairs of each case as people do.

        A comparison counts 1 where the metric orders its pairs as people do, and a half where it
        gives both the same score.

        Returns: One row for each case, in the order of their first pair: `case_id`, `n_compared`
        (int), `n_right` (float, halves for ties), `share` (float in 0..1, NaN where nothing is
        compared), `n_missing` (int: pairs without a score).
        """
        outcome = self.right(score)
        known = np.isfinite(outcome)
        case, size = self.of_row[self.better[known]], len(self.case_ids)
        n_compared = np.bincount(case, minlength=size)
        n_right = np.bincount(case, weights=outcome[known], minlength=size)
        with np.errstate(invalid="ignore", divide="ignore"):
            share = n_right / n_compared
        missing = np.bincount(self.of_row[np.isnan(score)], minlength=size)
        return pd.DataFrame(
            {
                "case_id": self.case_ids,
                "n_compared": n_compared,
                "n_right": n_right,
                "share": share,
                "n_missing": missing,
            }
        )


def image_cases(
    pair_ids: Sequence[str],
    prompt_ids: Sequence[str],
    expected: FloatArray,
    said: Sequence[str],
    *,
    texts: Mapping[Any, str],
    skills: Mapping[Any, Sequence[str]] | None = None,
    splits: Mapping[Any, str] | None = None,
) -> pd.DataFrame:
    """Cases of rated images: each prompt with its images is one, and a cluster.

    The image of a pair has the pair's id, as in every benchmark that scores an image once.

    `expected` (n,), what people say; NaN where nobody rated an image; `said`: the same in words, of
    the n images; `texts`: prompt id to the prompt; one that is not known is empty; `splits`: prompt
    id to its splits, joined by `;`.
    """
    prompts = list(prompt_ids)
    joined = {prompt: BETWEEN_SKILLS.join(of) for prompt, of in (skills or {}).items()}
    return pd.DataFrame(
        {
            "case_id": prompts,
            "cluster": prompts,
            "split": [(splits or {}).get(prompt, "") for prompt in prompts],
            "skills": [joined.get(prompt, "") for prompt in prompts],
            "pair_id": list(pair_ids),
            "image_id": list(pair_ids),
            "prompt": [texts.get(prompt, "") for prompt in prompts],
            "expected": expected,
            "said": list(said),
        }
    )


def of_five(ratings: FloatArray) -> list[str]:
    """Mean ratings in words: `3.7 of 5`; `not rated` where there is none."""
    return ["not rated" if np.isnan(mean) else f"{mean:.1f} of 5" for mean in ratings]


def _within(case: IntArray, shared: IntArray) -> tuple[IntArray, IntArray]:
    """Every two rows of one case that share something, each two once."""
    order = np.lexsort((shared, case))
    same = (np.diff(case[order]) == 0) & (np.diff(shared[order]) == 0)
    group = np.concatenate([[0], np.cumsum(~same)]) if len(order) else np.empty(0, np.intp)
    first, second = [np.empty(0, np.intp)], [np.empty(0, np.intp)]
    place, lag = np.arange(len(order)), 1
    while True:  # Rows that are `lag` apart in the order; no more passes than the largest group.
        place = place[place + lag < len(order)]
        place = place[group[place] == group[place + lag]]
        if not place.size:
            return np.concatenate(first), np.concatenate(second)
        first.append(order[place])
        second.append(order[place + lag])
        lag += 1
