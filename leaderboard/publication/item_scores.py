"""Cases and rated images of a benchmark, and the published scores of its items."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.compute as pc

from benchmarks.arrays import BoolArray, FloatArray, IntArray
from benchmarks.cases import BETWEEN_SKILLS, Comparisons, cases_path, read_cases, write_cases
from benchmarks.parquet import is_stored, parquet_file, read_overall
from benchmarks.rated_images import RatedImages, ratings_path
from benchmarks.schema import Benchmark, Card
from benchmarks.statistics.best_of_n import GainCurve, gain_curve
from benchmarks.statistics.resampling import ResamplingPlan
from leaderboard.cache import MemoryCache
from leaderboard.publication.entries import Entry
from leaderboard.store.interface import NotFoundError, Repository


@dataclass(frozen=True)
class CaseSet:
    """All cases of one revision of a benchmark."""

    benchmark: str  # registry name
    revision: str  # of its data
    frame: pd.DataFrame  # one row for each pair of a case; see `benchmarks.cases.SCHEMA`
    comparisons: Comparisons  # what a metric has to get right

    @classmethod
    def of(cls, benchmark: str, revision: str, frame: pd.DataFrame) -> CaseSet:
        """Index the cases of a file."""
        return cls(benchmark, revision, frame, Comparisons.of(frame))

    @cached_property
    def has_prompts(self) -> bool:
        """Whether any prompt is known: released answers come without."""
        return bool((self.frame["prompt"] != "").any())

    @property
    def size(self) -> int:
        """How many cases there are."""
        return len(self.comparisons.case_ids)

    @property
    def bytes(self) -> int:
        """About how much memory it takes, with all that is worked out from it."""
        own = int(self.frame.memory_usage(deep=True).sum())
        return own + 16 * len(self.comparisons.better) + 8 * 1000 * len(self.clusters)

    @cached_property
    def case_of_comparison(self) -> IntArray:
        """Shape (k,): case of each comparison."""
        found: IntArray = self.comparisons.of_row[self.comparisons.better]
        return found

    @cached_property
    def compared(self) -> IntArray:
        """Shape (C,): comparisons of each case, scored or not."""
        return np.bincount(self.case_of_comparison, minlength=self.size)

    @cached_property
    def _first(self) -> pd.DataFrame:
        """The first row of each case, in their order."""
        return self.frame.drop_duplicates("case_id")

    @cached_property
    def clusters(self) -> tuple[str, ...]:
        """Every cluster, in the order of their first case."""
        return tuple(dict.fromkeys(self._first["cluster"].astype(str)))

    @cached_property
    def cluster_of(self) -> IntArray:
        """Shape (C,): cluster of each case, as its place in `clusters`."""
        place = {name: k for k, name in enumerate(self.clusters)}
        return np.array([place[name] for name in self._first["cluster"].astype(str)], np.intp)

    @cached_property
    def plan(self) -> ResamplingPlan:
        """Resamples the clusters, the same for every metric."""
        return ResamplingPlan.for_revision(self.benchmark, self.revision, self.clusters)

    @cached_property
    def skills(self) -> tuple[tuple[str, ...], ...]:
        """Of each case."""
        return tuple(map(_parts, self._first["skills"].astype(str)))

    @cached_property
    def splits(self) -> tuple[tuple[str, ...], ...]:
        """Of each case."""
        return tuple(map(_parts, self._first["split"].astype(str)))

    @cached_property
    def every_skill(self) -> tuple[str, ...]:
        """The skills that some case has."""
        return tuple(dict.fromkeys(skill for of in self.skills for skill in of))

    @cached_property
    def every_split(self) -> tuple[str, ...]:
        """The splits that some case is in."""
        return tuple(dict.fromkeys(split for of in self.splits for split in of))

    def within(self, skill: str, split: str) -> BoolArray:
        """Shape (C,): which cases have the skill and are in the split; empty means any."""
        return np.array(
            [
                (not skill or skill in skills) and (not split or split in splits)
                for skills, splits in zip(self.skills, self.splits, strict=True)
            ],
            bool,
        )

    def rows_of(self, case: int) -> IntArray:
        """The rows of a case, in their order."""
        return np.flatnonzero(self.comparisons.of_row == case)

    def place(self, case_id: str) -> int:
        """Position of a case that exists."""
        return self.comparisons.case_ids.index(case_id)


@dataclass(frozen=True)
class CaseSummary:
    """How one metric does on every case."""

    entry_id: str  # the metric
    score: FloatArray  # shape (n,), of each row, larger for a better match; NaN is missing
    outcome: FloatArray  # shape (k,), of each comparison: 1 right, 0 wrong, a half for equal scores
    n_compared: IntArray  # shape (C,)
    n_right: FloatArray  # shape (C,)
    share: FloatArray  # shape (C,), NaN where nothing is compared
    n_missing: IntArray  # shape (C,), pairs without a score

    @classmethod
    def of(cls, entry_id: str, cases: CaseSet, score: FloatArray) -> CaseSummary:
        """Compare the scores of a metric."""
        found = cases.comparisons.agreement(score)
        columns = {
            name: found[name].to_numpy() for name in ("n_compared", "n_right", "share", "n_missing")
        }
        return cls(entry_id, score, cases.comparisons.right(score), **columns)


def _parts(joined: str) -> tuple[str, ...]:
    return tuple(part for part in joined.split(BETWEEN_SKILLS) if part)


@dataclass(frozen=True, eq=False)
class RatedSet:
    """The rated images of one revision of a benchmark."""

    benchmark: str  # registry name
    revision: str  # of its data
    images: RatedImages

    @property
    def bytes(self) -> int:
        """About how much memory it takes, with all that is worked out from it."""
        own = 300 * len(self.images.pair_ids) + self.images.ratings.nbytes
        return own + 8 * 1000 * len(self.images.cluster_names)

    @cached_property
    def plan(self) -> ResamplingPlan:
        """Resamples the clusters, the same for every metric."""
        names = self.images.cluster_names
        return ResamplingPlan.for_revision(self.benchmark, self.revision, names)

    def curve(self, gains: FloatArray) -> GainCurve:
        """Mean of gains of the choices, shape (P, S), with intervals."""
        return gain_curve(gains, self.images.sizes, self.images.cluster_of, self.plan)


CASES_KEPT_BYTES = 192 << 20
RATINGS_KEPT_BYTES = 96 << 20
SCORES_KEPT_BYTES = 64 << 20
READ_AT_ONCE = 4  # Files of scores read at the same time; on the Hub each is a download
_COLUMNS = ["metric", "pair_id", "element_id", "score"]


class ItemReader:
    """Reads cases, and scores in the order of their rows."""

    def __init__(self, public: Repository) -> None:
        self._public = public
        self._cases: MemoryCache[CaseSet | None] = MemoryCache(
            lambda cases: cases.bytes if cases else 0, CASES_KEPT_BYTES
        )
        self._rated: MemoryCache[RatedSet | None] = MemoryCache(
            lambda rated: rated.bytes if rated else 0, RATINGS_KEPT_BYTES
        )
        self._scores: MemoryCache[FloatArray] = MemoryCache(
            lambda scores: scores.nbytes, SCORES_KEPT_BYTES
        )

    def cases(self, card: Card, texts: Mapping[str, str] | None = None) -> CaseSet | None:
        """The cases of a benchmark; None where none are published or its answers are withheld."""
        if not card.answers_public:
            return None
        key = (card.name, card.revision, frozenset((texts or {}).items()))
        return self._cases.of(key, lambda: self._read_cases(card, texts or {}))

    def rated(self, card: Card) -> RatedSet | None:
        """The rated images of a benchmark; None where none are published or its answers are withheld."""
        if not card.answers_public:
            return None
        key = (card.name, card.revision)
        return self._rated.of(key, lambda: self._read_rated(card))

    def scores_of_rated(self, entry: Entry, rated: RatedSet, lower_is_better: bool) -> FloatArray:
        """Shape (n,): a metric's scores of the rated images, larger for a better match; NaN where missing."""
        key = (entry.entry_id, entry.published_at, rated.benchmark, rated.revision, "rated")
        pairs = rated.images.pair_ids
        score = self._scores.of(key, lambda: self._read_scores(entry, rated.benchmark, pairs))
        return -score if lower_is_better else score

    def standing(self, entry: Entry, cases: CaseSet, lower_is_better: bool) -> CaseSummary:
        """How a metric does on the cases; where it has no scores, all are missing."""
        # A result that is published again has another date, and scores of its own.
        key = (entry.entry_id, entry.published_at, cases.benchmark, cases.revision)
        pairs = cases.frame["pair_id"]
        score = self._scores.of(key, lambda: self._read_scores(entry, cases.benchmark, pairs))
        return CaseSummary.of(entry.entry_id, cases, -score if lower_is_better else score)

    def summaries(
        self, entries: Sequence[Entry], cases: CaseSet, lower: Mapping[str, Sequence[str]]
    ) -> tuple[CaseSummary, ...]:
        """As `standing`, of several."""

        def one(entry: Entry) -> CaseSummary:
            turned = entry.metric in lower.get(entry.submission_id, ())
            return self.standing(entry, cases, turned)

        if len(entries) < 2:
            return tuple(map(one, entries))
        with ThreadPoolExecutor(READ_AT_ONCE) as pool:
            return tuple(pool.map(one, entries))

    def _read_cases(self, card: Card, texts: Mapping[str, str]) -> CaseSet | None:
        try:
            content = self._public.read(cases_path(card.name, card.revision))
        except NotFoundError:
            return None
        return CaseSet.of(card.name, card.revision, _with_prompts(read_cases(content), texts))

    def _read_rated(self, card: Card) -> RatedSet | None:
        try:
            content = self._public.read(ratings_path(card.name, card.revision))
        except NotFoundError:
            return None
        return RatedSet(card.name, card.revision, RatedImages.from_bytes(content))

    def _read_scores(self, entry: Entry, benchmark: str, pairs: Iterable[str]) -> FloatArray:
        path = f"results/{entry.submission_id}/{benchmark}.scores.parquet"
        try:
            found = scores_of(self._public.read(path), entry.metric)
        except NotFoundError:
            found = {}
        return np.array([found.get(pair, np.nan) for pair in pairs], np.float64)


def _with_prompts(cases: pd.DataFrame, texts: Mapping[str, str]) -> pd.DataFrame:
    """Cases with the prompts of their clusters, where they were published without any."""
    if not texts or (cases["prompt"] != "").any():
        return cases
    # A cluster of such cases has one prompt, so nothing else is compared than before.
    return cases.assign(prompt=cases["cluster"].astype(str).map(texts).fillna(""))


def scores_of(content: bytes, metric: str) -> dict[str, float]:
    """Pair id to the score of one metric in a stored file; those that are missing are left out."""
    file = parquet_file(content)
    if not is_stored(file.schema_arrow.names):
        overall = read_overall(content)
        if metric not in overall:
            return {}
        return {str(pair): float(score) for pair, score in overall[metric].dropna().items()}
    table = file.read(columns=_COLUMNS, use_threads=False)
    whole = pc.and_(pc.equal(table["metric"], metric), pc.is_null(table["element_id"]))
    rows = table.filter(pc.and_(whole, pc.is_valid(table["score"])))
    return dict(zip(rows["pair_id"].to_pylist(), rows["score"].to_pylist(), strict=True))


class CaseFiles:
    """Makes the files of cases and rated images that a store lacks. Several threads may share one."""

    def __init__(self, registry: Mapping[str, Benchmark], data: Path | None) -> None:
        self._registry = registry
        self._data = data
        self._lock = threading.Lock()
        self._made: dict[str, bytes | None] = {}

    def missing(self, public: Repository, benchmarks: Iterable[str]) -> dict[str, bytes]:
        """What to commit so that the store has the cases and rated images of these benchmarks.

        Where answers are not public, nothing is: they say what people answered.
        """
        found: dict[str, bytes] = {}
        for name in sorted(set(benchmarks)):
            card = self._registry[name].card
            if not card.answers_public:
                continue
            for path in (cases_path(name, card.revision), ratings_path(name, card.revision)):
                content = None if public.has(path) else self._file(path, self._registry[name])
                if content is not None:
                    found[path] = content
        return found

    def _file(self, path: str, benchmark: Benchmark) -> bytes | None:
        """The file, made once: a commit that loses its race asks again."""
        with self._lock:
            if path not in self._made:
                answers = benchmark.answers(self._data)
                if path == ratings_path(benchmark.name, benchmark.card.revision):
                    rated = benchmark.rated_images(answers)
                    self._made[path] = rated.to_bytes() if rated and rated.sizes else None
                else:
                    cases = benchmark.cases(answers, self._data)
                    self._made[path] = None if cases is None else write_cases(cases)
            return self._made[path]
