"""The scores of pairs behind published values, read for metrics whose measure has no clusters."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np

from benchmarks.schema import Card
from leaderboard.pages.compare.clusters import ClusterValues
from leaderboard.pages.items.reading import Kept, scores_of
from leaderboard.publication.entries import Entry
from leaderboard.store.interface import NotFoundError, Repository

MOST_PAIRS = 4000
"""Pairs of a benchmark that are compared: the same of every metric, however many it has."""
_KEPT_BYTES = 24 << 20
_OF_ONE = 200
"""Bytes that a pair id and its score take, about."""


class PairScoreReader:
    """Reads the scores of some pairs, and keeps what was read for the next look.

    Args:
        public: where scores are published.
    """

    def __init__(self, public: Repository) -> None:
        self._public = public
        self._kept = Kept(_KEPT_BYTES)

    def values(
        self, card: Card, entries: Sequence[Entry], lower: Mapping[str, Sequence[str]]
    ) -> ClusterValues | None:
        """The scores of metrics on pairs, larger for a better match; a pair stands for a cluster.

        Args:
            card: the benchmark.
            entries: different metrics on its board.
            lower: submission to those of its metrics whose smaller scores are better.

        Returns:
            Those that have any; None where fewer than two do, or answers are not public.
        """
        if not card.answers_public:
            return None
        found: dict[str, dict[str, float]] = {}
        for entry in entries:
            if own := self._of(card, entry):
                sign = -1.0 if entry.metric in lower.get(entry.submission_id, ()) else 1.0
                found[entry.entry_id] = {pair: sign * score for pair, score in own.items()}
        if len(found) < 2:
            return None
        # What a metric lacks makes room for other pairs in it, not in the rest.
        pairs = sampled(dict.fromkeys(pair for own in found.values() for pair in own))
        values = [[own.get(pair, np.nan) for own in found.values()] for pair in pairs]
        return ClusterValues(tuple(found), pairs, np.array(values, np.float64))

    def _of(self, card: Card, entry: Entry) -> dict[str, float]:
        # A result that is published again has another date, and scores of its own.
        key = (entry.entry_id, entry.published_at, card.name, card.revision)
        found: dict[str, float] = self._kept.get(
            key, lambda: self._read(card, entry), lambda own: 64 + _OF_ONE * len(own)
        )
        return found

    def _read(self, card: Card, entry: Entry) -> dict[str, float]:
        try:
            content = self._public.read(f"results/{entry.submission_id}/{card.name}.scores.parquet")
        except NotFoundError:
            return {}
        scores = scores_of(content, entry.metric)
        return {pair: scores[pair] for pair in sampled(scores)}


def sampled(pairs: Mapping[str, object]) -> tuple[str, ...]:
    """At most `MOST_PAIRS` of some pairs, by a hash of their ids: no sample prefers any."""
    if len(pairs) <= MOST_PAIRS:
        return tuple(pairs)
    return tuple(
        sorted(pairs, key=lambda pair: hashlib.sha256(pair.encode()).digest())[:MOST_PAIRS]
    )
