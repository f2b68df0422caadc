"""The scores of an earlier result, to compute its measures from again: no code is run for that."""

from __future__ import annotations

from pathlib import Path

from benchmarks.errors import PlatformError, SubmitterError
from benchmarks.schema import Benchmark
from benchmarks.scores import parse_scores
from evaluator.worker.ending.judging import Scored
from leaderboard.ledger.private_records import results_folder
from leaderboard.publication.results import read_result
from leaderboard.records import Submission
from leaderboard.store.interface import NotFoundError, Store


def kept_scores(
    store: Store, submission: Submission, benchmark: Benchmark, data: Path | None
) -> Scored:
    """The scores behind a submission's latest result on a benchmark, and how they came about.

    Args:
        store: where the result is.
        submission: the whole record of a scoring module.
        benchmark: on which; its pairs are those of the result.
        data: folder of benchmark data, if there is one.

    Raises:
        PlatformError: `scores_missing`, or `scores_damaged` where they are not of its pairs.
        SubmitterError: the benchmark's answers are not here.
    """
    result = read_result(store, submission, benchmark.name)
    if result is None:
        raise _missing(submission, benchmark)
    content, answers = _content(store, submission, benchmark), benchmark.answers(data)
    try:
        table = parse_scores(
            content,
            f"{benchmark.name}.scores.parquet",
            benchmark,
            answers,
            metric=submission.metrics[0],
            lower_is_better=submission.lower_is_better,
        )
    except SubmitterError as error:
        raise PlatformError(
            "scores_damaged",
            f"The scores of {submission.submission_id} on {benchmark.name} cannot be judged "
            f"again: {error.message}",
            "Have the submission run again: python -m evaluator rerun",
        ) from error
    return Scored(
        benchmark.name,
        table,
        result.isolation,
        result.cost,
        result.findings,
        result.trust,
        contract=result.contract,
    )


def _content(store: Store, submission: Submission, benchmark: Benchmark) -> bytes:
    name, file = submission.submission_id, f"{benchmark.name}.scores.parquet"
    places = (
        [(store.private, f"{results_folder(name)}{file}")]
        if submission.private
        else [(store.public, f"results/{name}/{file}"), (store.private, f"results/{name}/{file}")]
    )
    for repository, path in places:
        try:
            return repository.read(path)
        except NotFoundError:
            continue
    raise _missing(submission, benchmark)


def _missing(submission: Submission, benchmark: Benchmark) -> PlatformError:
    return PlatformError(
        "scores_missing",
        f"The scores of {submission.submission_id} on {benchmark.name} are not in the store.",
        "Have the submission run again: python -m evaluator rerun",
    )
