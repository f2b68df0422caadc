"""Built-in metrics as submissions: what is kept of one, and its run in the worker's own process.

What is kept names a row of the table, and never holds code: a worker runs the row that it has
itself, and only where that is still the one that was sent. Weights are read at the commits that
were found then, as safetensors, and code of their repositories is never run.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, ValidationError

from benchmarks.errors import PlatformError, SubmitterError
from benchmarks.problems import Problem, problems_of
from evaluator.environments.naming import builtin_lock, recorded_lock
from evaluator.scorers.endpoints import find_endpoint
from evaluator.scorers.fitting import (
    Capacity,
    RowWeights,
    WeightsLookup,
    capacity_of,
    library_problem,
    usual_device,
    wanted_bytes,
)
from evaluator.scorers.questions.files import check_questions
from evaluator.scorers.registry import Frozen, Runtime, ScorerRow, find_row, load_rows
from leaderboard.records import BUILTIN, Submission
from leaderboard.submission_service import BuiltinForm, Plan, ValidationReport

if TYPE_CHECKING:
    from evaluator.scorers.in_process import ModelSource
    from evaluator.scoring.asking import ScorerClient

LAYERS = ("built-in metric, in the worker's process: no submitted code is run",)
_PROSE: Any = {
    **dict.fromkeys(("title", "summary", "formula", "source", "low", "high", "notes"), True),
    **dict.fromkeys(("parameters", "flops_per_pair"), True),
    "checkpoints": {"__all__": {"licence"}},
}


class KeptQuestions(Frozen):
    """The file of questions that a metric asks."""

    name: str  # of the file
    text: str  # its content


class BuiltinManifest(Frozen):
    """What is kept of a built-in metric that was submitted."""

    schema_version: Literal[1] = 1
    row: dict[str, Any]  # what of the row can change a score or what is said of it on boards
    commits: dict[str, str] = Field(default_factory=dict)  # by role of its checkpoints
    questions: KeptQuestions | None = None  # None where it asks none, or writes its own
    environment: str = ""  # `NamedLock.record` of the row's environment; empty where it names none

    @property
    def name(self) -> str:
        """Of the row."""
        return str(self.row.get("name", ""))

    @property
    def version(self) -> str:
        """For boards: of the row, its weights and its questions together."""
        return self.sha256[:8]

    @property
    def content(self) -> bytes:
        """As it is kept; equal manifests have equal bytes."""
        unused = set() if self.environment else {"environment"}
        return _canonical(self.model_dump(mode="json", exclude=unused))

    @property
    def sha256(self) -> str:
        """Of its content."""
        return hashlib.sha256(self.content).hexdigest()

    @classmethod
    def of(
        cls,
        row: ScorerRow,
        commits: Mapping[str, str],
        questions: Path | None = None,
        environment: str = "",
    ) -> BuiltinManifest:
        """That of a row with its weights at these commits."""
        kept = None
        if questions is not None:
            kept = KeptQuestions(name=questions.name, text=questions.read_text(encoding="utf-8"))
        ordered = dict(sorted(commits.items()))
        return cls(row=facts_of(row), commits=ordered, questions=kept, environment=environment)

    @classmethod
    def read(cls, file: Path) -> BuiltinManifest:
        """What is kept in a file."""
        try:
            return cls.model_validate_json(file.read_bytes())
        except ValidationError as error:
            raise PlatformError(
                "upload_changed",
                f"What is kept of a built-in metric cannot be read: {error.errors()[0]['msg']}.",
                "Send it again: python -m evaluator submit builtin:METRIC",
            ) from error

    def renewed(self, row: ScorerRow, commits: Mapping[str, str]) -> BuiltinManifest:
        """The same questions to a row as it is now."""
        named = builtin_lock(row.environment).record if row.environment else ""
        made = BuiltinManifest.of(row, commits, environment=named)
        return made.model_copy(update={"questions": self.questions})


def facts_of(row: ScorerRow) -> dict[str, Any]:
    """A row without what only describes it."""
    unused = {} if row.environment else {"environment": True}
    return row.model_dump(mode="json", exclude=_PROSE | unused)


def digest_of(row: ScorerRow) -> str:
    """Tells a row from what it was before: SHA-256 of `facts_of`, as 64 hex digits."""
    return hashlib.sha256(_canonical(facts_of(row))).hexdigest()


def source_of(row: ScorerRow) -> str:
    """How a record names it; see `Submission.builtin`."""
    return f"{BUILTIN}{row.name}@{digest_of(row)}"


def is_outdated(submission: Submission, rows: Mapping[str, ScorerRow]) -> bool:
    """Whether the row of a built-in metric is another now; one that is gone is not."""
    row = rows.get(submission.builtin)
    return row is not None and source_of(row) != submission.source


def current_row(submission: Submission) -> ScorerRow:
    """The row that was submitted, where this release has it as it was then."""
    name = submission.builtin
    row = load_rows().get(name)
    if row is None:
        raise PlatformError(
            "builtin_row_gone",
            f"The built-in metric {name} is not part of this release of Assay.",
            "Withdraw it, or run a worker of a release that has it.",
        )
    if source_of(row) != submission.source:
        raise PlatformError(
            "builtin_row_changed",
            f"The row of {name} has changed since {submission.submission_id} was sent.",
            f"Send it as it is now: python -m evaluator submit {BUILTIN}{name}",
        )
    return row


@dataclass(frozen=True)
class ExaminedBuiltin:
    """What is known of a built-in metric that somebody wants to submit."""

    report: ValidationReport  # everything that is wrong with it, or what would be done
    row: ScorerRow | None = None  # None where there is none of that name
    manifest: BuiltinManifest | None = None  # None where something is wrong

    def with_problems(self, problems: tuple[Problem, ...]) -> ExaminedBuiltin:
        """With further problems."""
        every = (*self.report.problems, *problems)
        return replace(self, report=replace(self.report, problems=every), manifest=None)

    def on(self, benchmarks: tuple[str, ...]) -> ExaminedBuiltin:
        """With the benchmarks that it would be run on."""
        return replace(self, report=replace(self.report, benchmarks=benchmarks))


def examine(wanted: BuiltinForm, weights: WeightsLookup) -> ExaminedBuiltin:
    """Everything that can be said of a row before it is queued, but for its benchmarks."""
    try:
        row = find_row(wanted.name, load_rows())
        capacity = capacity_of(wanted.gpu)
    except SubmitterError as error:
        return ExaminedBuiltin(ValidationReport(problems_of(error), name=wanted.name))
    found = weights.of(row)
    problems = found.problems
    further = [
        capacity.problem(row, found.weights),
        library_problem(row) if capacity.here else None,
    ]
    if row.endpoint and capacity.here:
        problems += _endpoint_problems(row)
    try:
        environment = builtin_lock(row.environment).record if row.environment else ""
        check_questions(row, wanted.questions)
        manifest = BuiltinManifest.of(row, found.commits, wanted.questions, environment)
    except SubmitterError as error:
        manifest = BuiltinManifest.of(row, found.commits)
        problems += problems_of(error)
    problems += tuple(one for one in further if one is not None)
    report = ValidationReport(
        problems,
        name=row.name,
        version="" if problems else manifest.version,
        notes=tuple(_needs(row, found, capacity)),
        plan=None
        if problems
        else Plan(
            metrics=(row.name,),
            marks=tuple(f"trained on {name}" for name in row.trained_on),
        ),
    )
    return ExaminedBuiltin(report, row, None if problems else manifest)


def _endpoint_problems(row: ScorerRow) -> tuple[Problem, ...]:
    """What of its endpoint is missing on this machine."""
    try:
        endpoint = find_endpoint(row.endpoint)
        endpoint.model(str(row.options.get("model", "")))
        endpoint.key()
    except SubmitterError as error:
        return problems_of(error)
    return ()


def _needs(row: ScorerRow, found: RowWeights, capacity: Capacity) -> Iterator[str]:
    if row.endpoint:
        yield f"It asks the endpoint {row.endpoint}, which is paid for, and needs no memory."
        return
    wanted = wanted_bytes(row, found.weights)
    size = "nobody counted how much" if wanted is None else f"about {wanted / 1e9:.1f} GB"
    yield f"Memory: {size}; {capacity.title} has {capacity.memory_bytes / 1e9:.1f} GB."
    if found.commits:
        named = (f"{row.checkpoints[role].id}@{commit}" for role, commit in found.commits.items())
        yield f"Weights: {', '.join(dict.fromkeys(named))}."


def _canonical(values: Mapping[str, Any]) -> bytes:
    return json.dumps(values, sort_keys=True, ensure_ascii=False, indent=1).encode()


@dataclass(frozen=True)
class BuiltinSource:
    """Opens a built-in metric wherever its batches are asked; see `ClientSource`."""

    row: ScorerRow  # of this release's table
    manifest: BuiltinManifest  # what was submitted

    @cached_property
    def fingerprint(self) -> str:
        """See `ClientSource`; of the device of the machine where it is first asked for."""
        with self._model() as model:
            return model.fingerprint

    @contextmanager
    def open(self) -> Iterator[ScorerClient]:
        """See `ClientSource`."""
        with self._model() as model, model.open() as client:
            yield client

    @contextmanager
    def _model(self) -> Iterator[ModelSource]:
        from evaluator.scorers.in_process import ModelSource  # noqa: PLC0415 (only where it is run)

        runtime = Runtime(device=usual_device(), revisions=self.manifest.commits)
        source = ModelSource(self.row, runtime, environment=self.manifest.environment)
        if (asked := self.manifest.questions) is None:
            yield source
            return
        with TemporaryDirectory(prefix="assay-") as place:
            file = Path(place) / Path(asked.name).name
            file.write_text(asked.text, encoding="utf-8")
            yield replace(source, runtime=replace(runtime, questions=file))


def source_from(submission: Submission, upload: Path) -> BuiltinSource:
    """What opens a submission, from what is kept of it."""
    row = current_row(submission)
    if hashlib.sha256(upload.read_bytes()).hexdigest() != submission.content_sha256:
        raise PlatformError(
            "upload_changed",
            f"What is kept of {submission.submission_id} is not what was submitted. "
            "Its content has another hash.",
        )
    manifest = BuiltinManifest.read(upload)
    if manifest.environment:
        recorded_lock(manifest.environment, upload.parent)
    return BuiltinSource(row, manifest)
