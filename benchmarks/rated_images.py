"""Rated images of a prompt: what people said of each, rater by rater, and what choosing the best gains."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.errors import PlatformError
from benchmarks.statistics.best_of_n import expected_gains, gains_between_raters

MOST = 16
"""Images that are chosen from, at most."""
SCHEMA = pa.schema(
    [
        pa.field("choice_id", pa.string(), nullable=False),
        pa.field("cluster", pa.string(), nullable=False),
        pa.field("pair_id", pa.string(), nullable=False),
        pa.field("mean", pa.float64()),
        pa.field("ratings", pa.list_(pa.float64()), nullable=False),
    ]
)
"""One row for each image. Those of one `choice_id` are chosen among: the images of a prompt. `mean` is
what people say of it, larger is better; null where they say nothing. `ratings` has one number for
each rater; none where only means were released. The metadata of the file count the ratings outside the
scale, which are in neither, as `n_outside`; none there: 0."""
_N_OUTSIDE = b"n_outside"


def ratings_path(benchmark: str, revision: str) -> str:
    """Where the rated images of a revision are in the public store."""
    return f"ratings/{benchmark}/{revision}.parquet"


@dataclass(frozen=True)
class RaterNumbers:
    """How many raters an image has, where half of them choose."""

    fewest: int
    usual: int  # the median, the lower of two
    most: int

    @property
    def choosing(self) -> int:
        """Of the usual number; the others value."""
        return self.usual // 2


@dataclass(frozen=True, eq=False)
class RatedImages:
    """Images of a benchmark with people's ratings, n of them."""

    choices: Sequence[str]  # id of the choice of each, the images of one prompt as a rule
    clusters: Sequence[str]  # of each, what is resampled: one for all images of a choice
    pair_ids: Sequence[str]
    means: FloatArray  # shape (n,), NaN where nobody rated
    ratings: FloatArray  # shape (n, raters), in any order and NaN where missing; no columns without
    n_outside: int = 0  # ratings outside the scale, which count in neither

    def to_bytes(self) -> bytes:
        """The file; equal images make equal bytes."""
        given = [[float(one) for one in row if math.isfinite(one)] for row in self.ratings]
        table = pa.table(
            {
                "choice_id": pa.array(map(str, self.choices), pa.string()),
                "cluster": pa.array(map(str, self.clusters), pa.string()),
                "pair_id": pa.array(map(str, self.pair_ids), pa.string()),
                "mean": pa.array(self.means, pa.float64(), from_pandas=True),
                "ratings": pa.array(given, pa.list_(pa.float64())),
            },
            SCHEMA.with_metadata({_N_OUTSIDE: str(self.n_outside)}),
        )
        buffer = BytesIO()
        pq.write_table(table, buffer, compression="zstd")
        return buffer.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes) -> RatedImages:
        """Read a file.

        Raises:
            PlatformError: `bad_ratings`: it has other columns.
        """
        table = pq.read_table(BytesIO(content), use_threads=False)
        if table.column_names != SCHEMA.names:
            raise PlatformError(
                "bad_ratings", f"A file of ratings has columns {table.column_names}."
            )
        given = table["ratings"].to_pylist()
        ratings = np.full((len(given), max(map(len, given), default=0)), np.nan)
        for row, of_image in zip(ratings, given, strict=True):
            row[: len(of_image)] = of_image
        return cls(
            choices=table["choice_id"].to_pylist(),
            clusters=table["cluster"].to_pylist(),
            pair_ids=table["pair_id"].to_pylist(),
            means=table["mean"].to_numpy().astype(np.float64),
            ratings=ratings,
            n_outside=int((table.schema.metadata or {}).get(_N_OUTSIDE, 0)),
        )

    @cached_property
    def _of_choice(self) -> list[IntArray]:
        """The rated images of each choice that has two or more, in the order of the choices."""
        found: dict[str, list[int]] = {}
        for line, (choice, mean) in enumerate(zip(self.choices, self.means, strict=True)):
            if math.isfinite(mean):
                found.setdefault(choice, []).append(line)
        return [np.array(lines, np.intp) for lines in found.values() if len(lines) > 1]

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """1, 2, ... up to the n that half of the choices have, at most `MOST`; empty without any."""
        most = sorted((len(lines) for lines in self._of_choice), reverse=True)
        return tuple(range(1, min(MOST, most[(len(most) - 1) // 2]) + 1)) if most else ()

    @cached_property
    def _groups(self) -> list[IntArray]:
        """Images of the choices that have enough of them, shape (choices, N) for each number N."""
        by_number: dict[int, list[IntArray]] = {}
        for lines in self._of_choice:
            if len(lines) >= len(self.sizes):
                by_number.setdefault(len(lines), []).append(lines)
        return [np.array(of) for of in by_number.values()]

    @property
    def n_few(self) -> int:
        """Choices of two or more rated images that have too few for the largest size."""
        return len(self._of_choice) - sum(map(len, self._groups))

    @cached_property
    def cluster_names(self) -> tuple[str, ...]:
        """The clusters of all images, each once."""
        return tuple(dict.fromkeys(map(str, self.clusters)))

    @cached_property
    def cluster_of(self) -> IntArray:
        """Shape (P,): cluster of each choice that has enough images, as its place in `cluster_names`."""
        place = {name: k for k, name in enumerate(self.cluster_names)}
        named = (str(self.clusters[lines[0]]) for of in self._groups for lines in of)
        return np.array([place[name] for name in named], np.intp)

    @cached_property
    def spread(self) -> float:
        """Standard deviation of mean ratings within a choice: the root of the mean variance (N - 1)."""
        variances = [self.means[of].var(axis=1, ddof=1) for of in self._groups]
        return math.sqrt(float(np.concatenate(variances).mean())) if variances else math.nan

    def gains(self, scores: FloatArray) -> FloatArray:
        """Gain in mean rating by the scores (n,), larger is better; shape (P, S), NaN where one is missing."""
        return self._concatenated(
            [expected_gains(scores[of], self.means[of], self.sizes) for of in self._groups]
        )

    @cached_property
    def gains_of_people(self) -> FloatArray:
        """Gain by half of the raters under the others; shape (P, S), NaN without two of each image."""
        present = np.argsort(np.isnan(self.ratings), axis=1, kind="stable")
        given = np.take_along_axis(self.ratings, present, axis=1)
        return self._concatenated(
            [gains_between_raters(given[of], self.sizes) for of in self._groups]
        )

    @cached_property
    def rater_numbers(self) -> RaterNumbers | None:
        """Of the images of all choices in which people gain something or nothing; None without any."""
        numbers = [np.isfinite(self.ratings[of]).sum(axis=2) for of in self._groups]
        found = np.sort(
            np.concatenate(
                [np.empty(0, np.intp), *(of[(of >= 2).all(axis=1)].ravel() for of in numbers)]
            )
        )
        if not len(found):
            return None
        return RaterNumbers(int(found[0]), int(found[(len(found) - 1) // 2]), int(found[-1]))

    def _concatenated(self, parts: list[FloatArray]) -> FloatArray:
        return np.concatenate([np.empty((0, len(self.sizes))), *parts])
