"""Published results in the store: rows, per-pair scores, cluster values and draws of a run."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from benchmarks.errors import PlatformError
from benchmarks.rows import Measured
from benchmarks.schema import Card, ScoreTable
from benchmarks.stored_scores import write_stored
from leaderboard.ledger.held import results_folder
from leaderboard.publication.published import Published
from leaderboard.ranking.draws import draws_files, read_draws
from leaderboard.records import Kind, RunResult, Submission
from leaderboard.store.interface import NotFoundError, Store


class ResultFiles(NamedTuple):
    """The files of one run, by path, in each of the two repositories."""

    public: Mapping[str, bytes | Path]
    private: Mapping[str, bytes | Path]

    @property
    def held(self) -> dict[str, bytes | Path]:
        """All of them, as the private repository keeps them while their author holds them back."""
        return {
            f"{results_folder(path.split('/')[1])}{path.split('/')[2]}": content
            for path, content in {**self.public, **self.private}.items()
        }


class HeldFiles(NamedTuple):
    """What held results become when they are published, in each of the two repositories."""

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
    rows: dict[str, bytes | Path] = {f"{stem}.json": result.model_dump_json(indent=1).encode()}
    behind: dict[str, bytes | Path] = {
        f"{stem}.scores.parquet": write_stored(
            scores,
            submission_id=result.submission_id,
            benchmark=result.benchmark,
            revision=result.revision,
        ),
        f"{stem}.clusters.parquet": _parquet(measured.clusters),
        **draws_files(stem, measured.resamples, measured.contributions),
    }
    return ResultFiles({**rows, **behind}, {}) if answers_public else ResultFiles(rows, behind)


def with_draws(
    store: Store, submission: Submission, result: RunResult, cards: Mapping[str, Card]
) -> Published:
    """A run on one of these benchmarks as the snapshot is built from it; a model's has no draws."""
    if submission.kind is Kind.GENERATIONS:
        return Published(submission, result)
    values = Published(submission, result).values()
    return Published(submission, result, read_draws(store, cards[result.benchmark], values))


def read_results(store: Store, submission: Submission) -> tuple[RunResult, ...]:
    """The latest results of a submission, held ones too, in the order of its benchmarks."""
    found = (read_result(store, submission, name) for name in submission.benchmarks)
    return tuple(result for result in found if result is not None)


def read_result(store: Store, submission: Submission, benchmark: str) -> RunResult | None:
    """The latest result of a submission on a benchmark, held or published; None: there is none."""
    name = submission.submission_id
    path = f"{results_folder(name) if submission.private else f'results/{name}/'}{benchmark}.json"
    repository = store.private if submission.private else store.public
    try:
        return RunResult.model_validate_json(repository.read(path))
    except NotFoundError:
        return None


def held_results(store: Store, submission: Submission, cards: Mapping[str, Card]) -> HeldFiles:
    """What a submission's held results become when it is published.

    Args:
        store: where they are held.
        submission: the private submission.
        cards: the benchmarks; where answers are not public, only rows become public.

    Raises:
        PlatformError: `unknown_benchmark` where this machine cannot say whether they are.
    """
    name = submission.submission_id
    files, of_model = HeldFiles({}, {}), submission.kind is Kind.GENERATIONS
    for benchmark in submission.benchmarks:
        if benchmark not in cards and not of_model:
            raise PlatformError(
                "unknown_benchmark",
                f"The results of {name} on {benchmark} cannot be published from here, where that "
                "benchmark is not known.",
                "Publish them from a machine with the same benchmarks as the worker.",
            )
        kept = results_folder(name)
        for path in (
            *store.private.list(f"{kept}{benchmark}."),
            *store.private.list(f"{kept}pictures-{benchmark}-"),
        ):
            file = path.rpartition("/")[2]
            # Prompts have no answers to keep.
            public = of_model or cards[benchmark].answers_public or file == f"{benchmark}.json"
            part = files.public if public else files.private
            part[f"results/{name}/{file}"] = store.private.read(path)
    return files


def _parquet(frame: pd.DataFrame) -> bytes:
    buffer = BytesIO()
    frame.to_parquet(buffer, index=False)
    return buffer.getvalue()
