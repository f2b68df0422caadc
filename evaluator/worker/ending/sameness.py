"""Finds what somebody else sent before: the very same content, or the very same scores.

Both are flags for readers, never a verdict: two people may share a baseline in good faith.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping

import pyarrow as pa

from benchmarks.schema import ScoreTable
from benchmarks.stored_scores import read_overall
from evaluator.submission.receiving.labels import owner_of
from leaderboard.accounts import ASSAY
from leaderboard.desk import UNNAMED
from leaderboard.publication.origins import Origin, scores_sha256
from leaderboard.records import Kind, RunResult, Status, Submission
from leaderboard.store.interface import NotFoundError, Store

log = logging.getLogger(__name__)


def same_content(
    kind: Kind, content_sha256: str, owner: str, statuses: Iterable[Status]
) -> tuple[str, ...]:
    """Ids of earlier submissions by others with the very same content.

    Args:
        kind: of submission.
        content_sha256: of its content.
        owner: key of the account that sends it.
        statuses: all submissions, private ones with their whole record.

    Returns:
        Public ones by id, oldest first; all private ones together are one `UNNAMED`. None for
        Assay's own: whoever sends a copy of those first has not made them.
    """
    if owner == ASSAY.key:
        return ()
    found = [
        status.submission
        for status in statuses
        if (status.submission.kind, status.submission.content_sha256) == (kind, content_sha256)
        and owner_of(status.submission) != owner
    ]
    public = tuple(s.submission_id for s in found if not s.private)
    return (*public, UNNAMED) if len(public) < len(found) else public


def score_hashes(table: ScoreTable) -> dict[str, str]:
    """Metric to the hash of its scores."""
    return {name: scores_sha256(table.overall[name]) for name in table.metrics}


class PublishedHashes:
    """Hashes of the scores behind published results.

    The snapshot says them of most runs, so that a publication reads no more files the more there
    are. The others are of results whose answers are private, or that are older than that: each is
    read once.

    Args:
        store: where results and scores are.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._read: dict[tuple[str, str, str], frozenset[str]] = {}

    def on(
        self, like: RunResult, origins: Mapping[str, Origin]
    ) -> Callable[[Submission], frozenset[str]]:
        """From a published submission to the hashes of its scores on the benchmark of a run.

        Args:
            like: the run; scores on another revision are other scores.
            origins: what the published snapshot shows.
        """

        def hashes(other: Submission) -> frozenset[str]:
            name = other.submission_id
            if name not in origins:
                return self._found(other, like)
            run = origins[name].runs.get(like.benchmark)
            if run is None or run.revision != like.revision:
                return frozenset()
            key = name, like.benchmark, run.sha256
            if not run.scores and key not in self._read:
                self._read[key] = self._found(other, like)
            return frozenset(run.scores) or self._read[key]

        return hashes

    def _found(self, other: Submission, like: RunResult) -> frozenset[str]:
        """The same from the files of a run; none where they cannot be read."""
        try:
            return frozenset(_published(self._store, other, like))
        except (pa.ArrowException, OSError, ValueError, KeyError) as error:
            # It is another's run that is damaged, and a flag that is missing: no reason to fail.
            log.warning("Scores of %s are not compared: %s", other.submission_id, error)
            return frozenset()


def same_scores(
    submission: Submission,
    hashes: Mapping[str, str],
    statuses: Iterable[Status],
    published: Callable[[Submission], frozenset[str]],
) -> tuple[str, ...]:
    """Ids of submissions by others whose published scores on this benchmark are the same.

    Args:
        submission: whose run is compared.
        hashes: of its scores.
        statuses: all submissions, as everyone may see them.
        published: the hashes of another's scores on the same benchmark.

    Returns:
        None for Assay's own, as `same_content`.
    """
    if owner_of(submission) == ASSAY.key:
        return ()
    wanted = frozenset(hashes.values())
    return tuple(
        status.submission.submission_id
        for status in statuses
        if status.on_boards
        and owner_of(status.submission) != owner_of(submission)
        and wanted & published(status.submission)
    )


def same_among(
    submission: Submission,
    result: RunResult,
    hashes: Mapping[str, str],
    earlier: Iterable[tuple[Submission, RunResult, Mapping[str, str]]],
) -> tuple[str, ...]:
    """Ids of submissions by others with the same scores that are published in the same commit.

    Args:
        submission: whose run is compared.
        result: of that run.
        hashes: of its scores.
        earlier: submissions that come before it in that commit, their runs, and the hashes of
            those.
    """
    if owner_of(submission) == ASSAY.key:
        return ()
    wanted = set(hashes.values())
    return tuple(
        other.submission_id
        for other, theirs, found in earlier
        if not other.private
        and owner_of(other) != owner_of(submission)
        and (theirs.benchmark, theirs.revision) == (result.benchmark, result.revision)
        and wanted & set(found.values())
    )


def _published(store: Store, other: Submission, like: RunResult) -> Iterator[str]:
    """Hashes of the scores that another submission published on the benchmark of a run."""
    stem = f"results/{other.submission_id}/{like.benchmark}"
    try:
        theirs = RunResult.model_validate_json(store.public.read(f"{stem}.json"))
    except NotFoundError:
        return
    if theirs.revision != like.revision:
        return
    yield from theirs.scores_sha256.values() or _recomputed(store, f"{stem}.scores.parquet")


def _recomputed(store: Store, path: str) -> Iterator[str]:
    """Hashes that no result names: it is older than they are, or its answers are private."""
    for repository in (store.public, store.private):
        try:
            scores = read_overall(repository.read(path))
        except NotFoundError:
            continue
        for metric in scores.columns:
            yield scores_sha256(scores[metric])
