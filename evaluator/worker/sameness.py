"""Finds what somebody else sent before: the very same content, or the very same scores.

Both are flags for readers, never a verdict: two people may share a baseline in good faith.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from benchmarks.schema import ScoreTable
from benchmarks.stored_scores import read_overall
from evaluator.submission.receiving.labels import owner_of
from leaderboard.desk import UNNAMED
from leaderboard.governance.accounts import ASSAY
from leaderboard.publication.score_hash import scores_sha256
from leaderboard.records import Kind, RunResult, Status, Submission
from leaderboard.store.interface import NotFoundError, Store


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


def same_scores(
    store: Store,
    submission: Submission,
    result: RunResult,
    hashes: dict[str, str],
    statuses: Iterable[Status],
) -> tuple[str, ...]:
    """Ids of submissions by others whose published scores on this benchmark are the same.

    Args:
        store: where their results are.
        submission: whose run is compared.
        result: of that run.
        hashes: of its scores.
        statuses: all submissions, as everyone may see them.

    Returns:
        None for Assay's own, as `same_content`.
    """
    if owner_of(submission) == ASSAY.key:
        return ()
    wanted = set(hashes.values())
    return tuple(
        status.submission.submission_id
        for status in statuses
        if status.on_boards
        and owner_of(status.submission) != owner_of(submission)
        and wanted & set(_published(store, status.submission, result))
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
