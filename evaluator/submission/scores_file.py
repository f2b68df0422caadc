"""A scores file and what is said beside it: the one validator of `check`, the page and the intake."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from benchmarks.errors import SubmitterError
from benchmarks.pooled import MAX_MISSING
from benchmarks.problems import Problem, one_error, problems_of
from benchmarks.registry import find
from benchmarks.schema import Benchmark, ScoreTable
from benchmarks.scores import (
    check_metric_name,
    check_mostly_scored,
    load_bytes,
    margins_beside,
    parse_scores,
    some,
)
from evaluator.submission.intake import checked_description, checked_version, digest, name_from
from leaderboard.publication.entries import AS_SUBMITTED
from leaderboard.submission_service import Plan, ScoresForm, ValidationReport

_Read = TypeVar("_Read")


@dataclass(frozen=True)
class ScoresFile:
    """A scores file of which nothing is wrong."""

    name: str  # on the boards, of a file with one column `score`; else of the file
    version: str  # as its author counts
    description: str  # for the boards
    benchmark: str  # the scores are for
    content: bytes  # of the file
    content_sha256: str  # of content, benchmark and directions: a file has none of these inside it
    table: ScoreTable  # the scores


def read_scores_file(
    path: Path, form: ScoresForm, registry: Mapping[str, Benchmark], data: Path | None
) -> ScoresFile:
    """Read a scores file with its form."""
    problems: list[Problem] = []

    def tried(act: Callable[[], _Read], otherwise: _Read) -> _Read:
        try:
            return act()
        except SubmitterError as error:
            problems.extend(problems_of(error))
            return otherwise

    name = tried(lambda: check_metric_name(form.name) if form.name else name_from(path.stem), "")
    version = tried(lambda: checked_version(form.version), "")
    description = tried(lambda: checked_description(form.description), "")
    read = tried(lambda: _table(path, form, name or "score", registry, data), None)
    if problems or read is None:
        raise one_error(problems)
    content, table = read
    sha256 = digest(form.benchmark.encode(), ",".join(form.lower_is_better).encode(), content)
    return ScoresFile(name, version, description, form.benchmark, content, sha256, table)


def examine_scores_file(
    path: Path, form: ScoresForm, registry: Mapping[str, Benchmark], data: Path | None
) -> tuple[ValidationReport, ScoresFile | None]:
    """Everything that can be said of a scores file, and the file where nothing is wrong."""
    try:
        found = read_scores_file(path, form, registry, data)
    except SubmitterError as error:
        return ValidationReport(problems_of(error), form.name or path.name), None
    seen = ValidationReport(
        (),
        found.name,
        found.version,
        (found.benchmark,),
        files=1,
        n_bytes=len(found.content),
        content_sha256=found.content_sha256,
        notes=tuple(_notes(found.table)),
        plan=Plan(
            metrics=found.table.metrics,
            pairs={found.benchmark: len(found.table.overall)},
            marks=(AS_SUBMITTED, "cannot judge models"),
        ),
    )
    return seen, found


def _table(
    path: Path,
    form: ScoresForm,
    name: str,
    registry: Mapping[str, Benchmark],
    data: Path | None,
) -> tuple[bytes, ScoreTable]:
    content = load_bytes(path)
    target = find(registry, form.benchmark)
    table = parse_scores(
        content,
        path.name,
        target,
        target.answers(data),
        metric=name,
        lower_is_better=form.lower_is_better,
    )
    if compared := margins_beside(path, table):
        raise SubmitterError(
            "compares_images",
            f"{path.name}: {some(list(compared))} compares images of one prompt, so that its scores "
            "tell nothing between prompts.",
            "Submit the metric itself, whose margins are kept.",
        )
    for metric in table.metrics:
        check_mostly_scored(int(table.overall[metric].notna().sum()), len(table.overall), metric)
    return content, table


def _notes(table: ScoreTable) -> Iterator[str]:
    """What stands in the way of a rank, and what was read otherwise than it was written."""
    for metric in table.metrics:
        scores = table.overall[metric]
        missing = float(scores.isna().mean())
        if missing > MAX_MISSING:
            yield (
                f"{metric}: {100 * missing:.1f}% of the scores are missing, and a ranking takes "
                f"at most {100 * MAX_MISSING:g}%: it would stand on the board without a rank."
            )
        elif missing:
            yield f"{metric}: {int(scores.isna().sum()):,} scores are missing."
        if scores.nunique() == 1:
            yield f"{metric}: every score is the same, so that no image is preferred to another."
    for metric, pairs in table.repaired.items():
        yield f"{metric}: {len(pairs):,} cells with a documented defect were read as meant."
