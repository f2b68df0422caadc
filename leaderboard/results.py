"""Published results in the store: rows, per-pair scores, cluster values and draws of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from io import BytesIO
from typing import NamedTuple

import pandas as pd

from benchmarks.rows import Measured
from benchmarks.schema import Benchmark, Card, ScoreTable
from benchmarks.scores import write_scores
from leaderboard.draws import draws_files, read_draws
from leaderboard.records import RunResult, Status, Submission
from leaderboard.snapshot import Published
from leaderboard.store.interface import NotFoundError, Store


class ResultFiles(NamedTuple):
    """The files of one run, by path, in each of the two repositories."""

    public: dict[str, bytes]
    private: dict[str, bytes]


def result_files(
    result: RunResult, measured: Measured, scores: ScoreTable, *, answers_public: bool
) -> ResultFiles:
    """The files of one run.

    `<benchmark>.json` holds the rows and what is needed to compute them again, `.scores.parquet`
    the score of every pair, `.clusters.parquet` the value of every cluster behind every row,
    `.resamples.parquet` one column per row with its value in each resample and
    `.influence.parquet` one with what each block of clusters adds to it. Where a benchmark's
    answers are not public, only the rows are: the rest could carry a message, and the answers
    could be solved for.
    """
    stem = f"results/{result.submission_id}/{result.benchmark}"
    rows = {f"{stem}.json": result.model_dump_json(indent=1).encode()}
    behind = {
        f"{stem}.scores.parquet": write_scores(scores),
        f"{stem}.clusters.parquet": _parquet(measured.clusters),
        **draws_files(stem, measured.resamples, measured.contributions),
    }
    return ResultFiles({**rows, **behind}, {}) if answers_public else ResultFiles(rows, behind)


def read_published(
    store: Store, statuses: Iterable[Status], cards: Mapping[str, Card]
) -> list[Published]:
    """Every published run of these submissions on the benchmarks known here, in their order."""
    found: list[Published] = []
    for status in statuses:
        if not status.on_boards:
            continue
        submission = status.submission
        for path in store.public.list(f"results/{submission.submission_id}/"):
            if not path.endswith(".json"):
                continue
            result = RunResult.model_validate_json(store.public.read(path))
            if result.benchmark in cards:
                bare = Published(submission, result)
                draws = read_draws(store, cards[result.benchmark], bare.values())
                found.append(Published(submission, result, draws))
    return found


def stale_benchmarks(
    store: Store, submission: Submission, registry: Mapping[str, Benchmark]
) -> tuple[str, ...]:
    """Benchmarks of a submission whose published result is missing or of another revision."""
    stale: list[str] = []
    for name in submission.benchmarks:
        try:
            content = store.public.read(f"results/{submission.submission_id}/{name}.json")
        except NotFoundError:
            stale.append(name)
            continue
        result = RunResult.model_validate_json(content)
        if name in registry and result.revision != registry[name].card.revision:
            stale.append(name)
    return tuple(stale)


def _parquet(frame: pd.DataFrame) -> bytes:
    buffer = BytesIO()
    frame.to_parquet(buffer, index=False)
    return buffer.getvalue()
