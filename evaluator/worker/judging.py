"""Judging of scores: from a run to the rows, scores and pictures that are published of it.

Runs no stranger's code and needs no GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from benchmarks.inference import versions
from benchmarks.rows import Measured
from benchmarks.schema import Benchmark, ScoreTable
from benchmarks.stored_scores import write_stored
from evaluator.generation.rows import ImageRow
from evaluator.submission.generations.archive import GenerationsArchive, opened
from evaluator.submission.runs import Scored
from leaderboard.models.pictures import (
    Image,
    image_table,
    images_path,
    pictures_path,
    write_pictures,
)
from leaderboard.models.reading import scores_path
from leaderboard.publication.origins import scores_sha256
from leaderboard.publication.results import Published, ResultFiles, result_files
from leaderboard.publication.withheld import public_result
from leaderboard.ranking.draws import Draws
from leaderboard.records import RunResult, Submission
from leaderboard.trust import TrustReport


@dataclass(frozen=True)
class Judged:
    """One run, ready to be published."""

    published: Published
    measured: Measured
    table: ScoreTable

    answers_public: bool

    def files(self) -> ResultFiles:
        """The files of the run."""
        return result_files(
            self.published.result,
            self.measured,
            self.table,
            answers_public=self.answers_public,
        )


def score_hashes(table: ScoreTable) -> dict[str, str]:
    """Metric to the hash of its scores."""
    return {name: scores_sha256(table.overall[name]) for name in table.metrics}


def judge(
    submission: Submission,
    scored: Scored,
    benchmark: Benchmark,
    data: Path | None,
    judged_at: datetime,
) -> Judged:
    """Compute every measure of one run."""
    answers = benchmark.answers(data)
    plan = benchmark.plan(answers)
    measured = benchmark.evaluate(scored.table, answers)
    result = RunResult(
        submission_id=submission.submission_id,
        benchmark=benchmark.name,
        revision=benchmark.card.revision,
        protocol=benchmark.card.protocol,
        contract=scored.contract,
        rows=tuple(row.to_json() for row in measured.rows),
        resampling_seed=plan.seed,
        n_resamples=plan.n_resamples,
        isolation=scored.isolation,
        versions=versions("pillow"),  # Scorers are given what it decodes.
        sources=dict(answers.sources),
        cost=scored.cost,
        findings=scored.findings,
        repaired={metric: len(pairs) for metric, pairs in scored.table.repaired.items()},
        trust=_of_its_own(scored.trust, benchmark),
        scores_sha256=score_hashes(scored.table),
        judged_at=judged_at,
    )
    if not benchmark.card.answers_public:
        result = public_result(result)
    return Judged(
        Published(submission, result, Draws(measured.resamples, measured.contributions)),
        measured,
        scored.table,
        benchmark.card.answers_public,
    )


def _of_its_own(trust: TrustReport | None, benchmark: Benchmark) -> TrustReport | None:
    """The checks without their examples, where these are pairs of another benchmark."""
    if trust is None or trust.benchmark == benchmark.name:
        return trust
    checks = (check.model_copy(update={"example": None}) for check in trust.checks)
    return trust.model_copy(update={"checks": tuple(checks)})


@dataclass(frozen=True)
class PublishedImages:
    """What of a model's images is published beside their scores."""

    table: bytes  # see `leaderboard.models.pictures`
    pictures: tuple[Path, ...]  # files of pictures on this machine, in their order


@dataclass(frozen=True)
class JudgedGenerations(Judged):
    """The images of one model with their scores, ready to be published."""

    shown: PublishedImages | None = None  # none where it was published before: images never change

    def files(self) -> ResultFiles:
        """The files of the run; models are compared by the scores themselves, without draws."""
        result = self.published.result
        name, prompt_set = result.submission_id, result.benchmark
        public: dict[str, bytes | Path] = {
            f"results/{name}/{prompt_set}.json": result.model_dump_json(indent=1).encode(),
            scores_path(name, prompt_set): write_stored(
                self.table, submission_id=name, benchmark=prompt_set, revision=result.revision
            ),
        }
        if self.shown is not None:
            public[images_path(name, prompt_set)] = self.shown.table
            for number, path in enumerate(self.shown.pictures):
                public[pictures_path(name, prompt_set, number)] = path
        return ResultFiles(public, {})


def judge_generations(
    submission: Submission,
    scored: Scored,
    benchmark: Benchmark,
    data: Path | None,
    judged_at: datetime,
) -> JudgedGenerations:
    """Mean scores of one model by every metric that scored it; what is shown is added later."""
    answers = benchmark.answers(data)
    plan = benchmark.plan(answers)
    measured = benchmark.evaluate(scored.table, answers)
    rows = tuple(replace(row, metric=submission.name) for row in measured.rows)
    result = RunResult(
        submission_id=submission.submission_id,
        benchmark=benchmark.name,
        revision=benchmark.card.revision,
        protocol=benchmark.card.protocol,
        rows=tuple(row.to_json() for row in rows),
        resampling_seed=plan.seed,
        n_resamples=plan.n_resamples,
        isolation=scored.isolation,
        versions=versions("pillow"),
        sources=dict(answers.sources),
        judges=dict(scored.judges),
        judged_at=judged_at,
    )
    return JudgedGenerations(
        Published(submission, result), Measured(rows, measured.resamples), scored.table, True
    )


def with_pictures(
    judged: JudgedGenerations, fetch: Callable[[Submission, Path], None], place: Path
) -> JudgedGenerations:
    """The same with what is shown of the images."""
    submission = judged.published.submission
    upload = place.with_suffix(".zip")
    upload.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    upload.unlink(missing_ok=True)
    try:
        fetch(submission, upload)
        with opened(upload) as archive:
            table = image_table(map(_line, archive.rows))
            pictures = write_pictures(_images(archive), place)
    finally:
        upload.unlink(missing_ok=True)
    result = judged.published.result.model_copy(update={"pictures": len(pictures)})
    published = replace(judged.published, result=result)
    return replace(judged, published=published, shown=PublishedImages(table, tuple(pictures)))


def kept_pictures(judged: JudgedGenerations, before: RunResult) -> JudgedGenerations:
    """The same with the pictures that an earlier result has."""
    result = judged.published.result.model_copy(update={"pictures": before.pictures})
    return replace(judged, published=replace(judged.published, result=result))


def _images(archive: GenerationsArchive) -> Iterator[Image]:
    for row in archive.images:
        yield row.prompt_id, row.seed, lambda row=row: archive.read(row)  # type: ignore[misc]


def _line(row: ImageRow) -> dict[str, object]:
    return {
        "prompt_id": row.prompt_id,
        "seed": row.seed,
        "sha256": row.sha256,
        "width": row.width,
        "height": row.height,
        "problem": row.problem,
    }
