"""Published results in the store: rows, per-pair scores, cluster values and resamples of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from io import BytesIO

import numpy as np
import pandas as pd

from benchmarks.rows import Measured
from benchmarks.schema import Benchmark, ScoreTable
from benchmarks.scores import write_scores
from leaderboard.records import RunResult, Status, Submission
from leaderboard.snapshot import Published
from leaderboard.store.interface import NotFoundError, Repository


def result_files(
    result: RunResult, measured: Measured, scores: ScoreTable, *, answers_public: bool
) -> dict[str, bytes]:
    """The public files of one run, by path.

    `<benchmark>.json` holds the rows and what is needed to compute them again, `.scores.parquet`
    the score of every pair, `.clusters.parquet` the value of every cluster behind every row, and
    `.resamples.parquet` one column per row with its value in each resample. Where a benchmark's
    answers are not public, scores and cluster values are left out: they could carry a message.
    """
    stem = f"results/{result.submission_id}/{result.benchmark}"
    files = {
        f"{stem}.json": result.model_dump_json(indent=1).encode(),
        f"{stem}.resamples.parquet": _parquet(
            pd.DataFrame(measured.resamples.T, columns=[str(i) for i in range(len(result.rows))])
        ),
    }
    if answers_public:
        files[f"{stem}.scores.parquet"] = write_scores(scores)
        files[f"{stem}.clusters.parquet"] = _parquet(measured.clusters)
    return files


def read_published(repository: Repository, statuses: Iterable[Status]) -> list[Published]:
    """Every published run of these submissions, in their order."""
    found: list[Published] = []
    for status in statuses:
        if not status.on_boards:
            continue
        submission = status.submission
        for path in repository.list(f"results/{submission.submission_id}/"):
            if path.endswith(".json"):
                result = RunResult.model_validate_json(repository.read(path))
                resamples = pd.read_parquet(
                    BytesIO(repository.read(path.removesuffix(".json") + ".resamples.parquet"))
                )
                found.append(Published(submission, result, resamples.to_numpy(dtype=np.float32).T))
    return found


def stale_benchmarks(
    repository: Repository, submission: Submission, registry: Mapping[str, Benchmark]
) -> tuple[str, ...]:
    """Benchmarks of a submission whose published result is missing or of another revision."""
    stale: list[str] = []
    for name in submission.benchmarks:
        try:
            content = repository.read(f"results/{submission.submission_id}/{name}.json")
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
