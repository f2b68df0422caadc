"""Judge set: metrics that score generations, their code, and their earlier scores."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa

from benchmarks.prompt_sets.prompt_set import pair_id
from benchmarks.schema import Benchmark
from benchmarks.stored_scores import read_stored
from evaluator.scoring.plan import PLAN_VERSION
from evaluator.worker.ending.judging import Scored
from leaderboard.folding import asked_by
from leaderboard.ledger.ledger import Ledger
from leaderboard.ledger.private_records import results_folder
from leaderboard.models.grid import RankedMetric, ranked_metrics
from leaderboard.models.pictures import image_hashes, images_path
from leaderboard.models.reading import scores_path
from leaderboard.publication.model_entries import ModelEntry, readable_track
from leaderboard.publication.results import read_result
from leaderboard.publication.snapshot import read_snapshot
from leaderboard.records import Submission
from leaderboard.states import NEW_METRIC
from leaderboard.store.interface import NotFoundError, Store

log = logging.getLogger(__name__)

Key = tuple[str, str]
"""Prompt id and SHA-256 of the image's file."""
_UNREADABLE = (NotFoundError, pa.ArrowException, KeyError, ValueError)
"""What comes of a file of results that somebody removed or damaged."""


class Wanted(NamedTuple):
    """What is shown in a pair."""

    image: Key
    perturbed: bool


@dataclass(frozen=True)
class Jury:
    """Reads the store for those who score generations.

    Attributes:
        store: where boards, code and results are.
    """

    store: Store

    @cached_property
    def _ledger(self) -> Ledger:
        return Ledger(self.store)

    def metrics(self) -> tuple[RankedMetric, ...]:
        """The metrics that score, in the order in which they are to be asked."""
        return ranked_metrics(read_snapshot(self.store.public), self._ledger.statuses())

    def fetch_code(self, metric: RankedMetric, target: Path) -> None:
        """Copy the module of a metric to a new file."""
        self._ledger.fetch_upload(metric.submission, target)

    def kept(self, submission: Submission, benchmark: Benchmark) -> Scored | None:
        """What metrics gave for these images before; None where all are to score them.

        What is queued for further metrics builds on it. What somebody wants to have run again, for
        a reason of theirs, does not.
        """
        events = self._ledger.whole_events(submission.submission_id)
        if asked_by(events).code != NEW_METRIC:
            return None
        result = read_result(self.store, submission, benchmark.name)
        if result is None or result.revision != benchmark.card.revision:
            return None
        name = submission.submission_id
        repository, path = self.store.public, scores_path(name, benchmark.name)
        if submission.private:
            repository = self.store.private
            path = f"{results_folder(name)}{benchmark.name}.scores.parquet"
        try:
            table = read_stored(repository.read(path))
        except (NotFoundError, pa.ArrowException, ValueError) as error:
            log.warning("The scores of %s are made anew: %s", name, error)
            return None
        return Scored(benchmark.name, table, result.isolation, judges=result.judges)

    def others(self, submission: Submission, benchmark: Benchmark) -> Reusable:
        """What metrics gave for images of other models, to be looked up by image.

        Nothing, where somebody wants to have it run again for a reason of theirs.
        """
        name = submission.submission_id
        again = self._ledger.whole_status(name).scored_at is not None
        if again and asked_by(self._ledger.whole_events(name)).code != NEW_METRIC:
            return Reusable(self.store, [])
        entries = readable_track(self.store.public).of(benchmark.name, benchmark.card.revision)
        return Reusable(self.store, [one for one in entries if one.submission_id != name])


class Reusable:
    """Scores of the very same images of the same prompts in other sets.

    Args:
        store: where they are published.
        entries: the other sets.
    """

    def __init__(self, store: Store, entries: list[ModelEntry]) -> None:
        self._store = store
        self._entries = entries
        self._hashes: dict[str, Mapping[Key, int]] = {}
        self._overall: dict[str, pd.DataFrame] = {}

    def of(self, metric: RankedMetric, wanted: Mapping[str, Wanted]) -> dict[str, float]:
        """Pair ids to scores that are known already.

        Args:
            metric: which must have been asked in the same form as now.
            wanted: pair id to what is shown in it.
        """
        found: dict[str, float] = {}
        for entry in self._entries:
            run = entry.judges.get(metric.entry_id)
            if run is None or run.failed or run.contract != PLAN_VERSION:
                continue
            here = self._seeds(entry)
            same = {
                pair: pair_id(one.image[0], here[one.image], perturbed=one.perturbed)
                for pair, one in wanted.items()
                if one.image in here
            }
            if same:
                found |= self._scores(entry, metric.entry_id, same)
        return found

    def _seeds(self, entry: ModelEntry) -> Mapping[Key, int]:
        """Image to the seed it is there with."""
        if entry.submission_id not in self._hashes:
            path = images_path(entry.submission_id, entry.prompt_set)
            try:
                table = image_hashes(self._store.public.read(path))
            except _UNREADABLE as error:
                table = _passed_over(path, error)
            self._hashes[entry.submission_id] = table
        return self._hashes[entry.submission_id]

    def _scores(self, entry: ModelEntry, judge: str, same: Mapping[str, str]) -> dict[str, float]:
        path = scores_path(entry.submission_id, entry.prompt_set)
        try:
            if path not in self._overall:
                self._overall[path] = read_stored(self._store.public.read(path)).overall
            column: pd.Series[float] = self._overall[path][judge]
        except _UNREADABLE as error:
            return _passed_over(path, error)
        known = {pair: column.get(theirs) for pair, theirs in same.items()}
        return {pair: float(s) for pair, s in known.items() if s is not None and pd.notna(s)}


def _passed_over(path: str, error: Exception) -> dict[Any, Any]:
    """Nothing: another model's broken file costs time, and is no reason for this one to fail."""
    log.warning("Nothing is taken over from %s: %s", path, error)
    return {}
