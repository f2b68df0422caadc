"""The one validator of a scoring module: `check`, the page and the worker call it.

Nothing of a stranger's source is imported or parsed: whether it runs is found out in the sandbox.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.errors import SubmitterError
from benchmarks.parsing import line_of
from benchmarks.problems import Problem, one_error, problems_of
from benchmarks.schema import Benchmark
from benchmarks.settings.model import value_of
from evaluator.environments.lock import MAX_BYTES as MAX_LOCK_BYTES
from evaluator.environments.naming import OWN, NamedLock, examined, operator_lock
from evaluator.isolation.job import MIB, scorer_limits
from evaluator.manifest import FILE, MAX_BYTES, ManifestReading, manifest_reading, nearest
from evaluator.submission.archives.archive import (
    WEIGHTS,
    Content,
    Inspection,
    inspected,
    weights_problems,
)
from evaluator.submission.archives.entries import ArchiveLimits
from evaluator.submission.manifest import Manifest
from evaluator.submission.templates import template_notes, template_of
from leaderboard.submission_service import ValidationReport

Registry = Mapping[str, Benchmark]


@dataclass(frozen=True)
class ScoringModule:
    """A scoring module whose form was checked; its code has not run."""

    manifest: Manifest  # what it says of itself
    content: Content  # its files
    # kind of the template whose code it is, unchanged; empty for code of its own
    template: str = ""
    environment: NamedLock | None = None  # packages it is run with; None: Assay's own


def validated(
    content: Content, registry: Registry, limits: ArchiveLimits | None = None
) -> ScoringModule:
    """Check manifest, entry point and weights without running anything."""
    return _module(content, _look(content, registry, limits))


@contextmanager
def validated_source(
    path: Path,
    registry: Registry,
    scratch: Path | None = None,
    limits: ArchiveLimits | None = None,
) -> Iterator[ScoringModule]:
    """`taken_in` and `validated` in one, so that whatever is wrong in either is told at once."""
    with inspected(path, scratch, limits) as looked:
        yield _module(looked.content, _look(looked.content, registry, limits, looked.problems))


def examine_source(
    path: Path,
    registry: Registry,
    scratch: Path | None = None,
    limits: ArchiveLimits | None = None,
) -> ValidationReport:
    """Everything that can be said of a scoring module without running it; all problems at once."""
    with opened_source(path, registry, scratch, limits) as (seen, _):
        return seen


@contextmanager
def opened_source(
    path: Path,
    registry: Registry,
    scratch: Path | None = None,
    limits: ArchiveLimits | None = None,
) -> Iterator[tuple[ValidationReport, ScoringModule | None]]:
    """`examine_source` and, where nothing is wrong, the module: unpacked and hashed once."""
    found: ValidationReport
    module: ScoringModule | None = None
    with ExitStack() as stack:
        try:
            looked = stack.enter_context(inspected(path, scratch, limits))
            seen = _look(looked.content, registry, limits, looked.problems)
            template = template_of(looked.content)
            found = _examination(seen, looked, registry, template)
        except SubmitterError as error:
            found = ValidationReport(problems_of(error))
        else:
            if seen.manifest is not None and not seen.problems:
                found = replace(found, notes=(*found.notes, *_limits(seen.environment)))
                module = ScoringModule(seen.manifest, looked.content, template, seen.environment)
        yield found, module


@dataclass(frozen=True)
class _Seen:
    """What a look at a module's files gave: a manifest, as far as it can be read, and problems."""

    manifest: Manifest | None
    problems: tuple[Problem, ...]
    name: str = ""
    environment: NamedLock | None = None


def _examination(
    seen: _Seen, looked: Inspection, registry: Registry, template: str
) -> ValidationReport:
    found = ValidationReport(
        seen.problems,
        files=len(looked.content.files),
        n_bytes=looked.content.n_bytes,
        content_sha256="" if looked.problems else looked.content.sha256,
        notes=template_notes(template),
    )
    manifest = seen.manifest
    if manifest is None:
        return found
    benchmarks = tuple(n for n in manifest.benchmarks or sorted(registry) if n in registry)
    return replace(found, name=seen.name, version=manifest.version, benchmarks=benchmarks)


def _limits(environment: NamedLock | None) -> Iterator[str]:
    """What a worker with the same settings gives it, in sentences."""
    given = scorer_limits(os.environ)
    yield (
        f"A worker gives it {given.memory_bytes / MIB:,.0f} MiB of memory, {given.start_s:g} s to "
        f"start, {given.batch_s:g} s for a batch, {given.job_s:g} s in all and "
        f"{given.processes} processes."
    )
    if environment is not None:
        yield (
            f"Its environment ({environment.name}, {len(environment.lock.pins)} packages) is built "
            f"within {value_of('environment_build_s', os.environ):g} s and has at most "
            f"{value_of('environment_gib', os.environ):g} GiB."
        )


def _module(content: Content, seen: _Seen) -> ScoringModule:
    if seen.manifest is None or seen.problems:
        raise one_error(seen.problems)
    return ScoringModule(seen.manifest, content, template_of(content), seen.environment)


def _look(
    content: Content,
    registry: Registry,
    limits: ArchiveLimits | None,
    of_files: tuple[Problem, ...] = (),
) -> _Seen:
    """Everything that is wrong with a module, beside what is known to be wrong with its files."""
    weights = weights_problems(content, limits or ArchiveLimits())
    refused = {problem.file for problem in of_files}
    if FILE not in content.files:
        own = () if FILE in refused else (_no_manifest(content),)
        return _Seen(None, (*of_files, *own, *weights))
    # A longer one is refused by its length; it is not read whole for that.
    reading = manifest_reading(content.head(FILE, MAX_BYTES + 1), Manifest)
    if reading.manifest is None:
        return _Seen(None, (*of_files, *reading.problems, *weights))
    of_manifest = (
        *reading.problems,
        *_missing_files(reading, reading.manifest, content, refused),
        *_unknown_benchmarks(reading, reading.manifest, registry),
    )
    environment, of_lock = _environment(reading, reading.manifest, content)
    in_order = sorted(of_manifest, key=lambda problem: problem.line or 0)
    name = "" if "name" in reading.wrong else reading.manifest.name
    problems = (*of_files, *in_order, *of_lock, *weights)
    return _Seen(reading.manifest, problems, name, environment)


def _environment(
    reading: ManifestReading[Manifest], manifest: Manifest, content: Content
) -> tuple[NamedLock | None, tuple[Problem, ...]]:
    """The packages a module is run with, and what is wrong with them."""
    line = line_of(reading.lines, ("environment",))
    if OWN not in content.files:
        if not manifest.environment:
            return None, ()
        try:
            return operator_lock(manifest.environment), ()
        except SubmitterError as error:
            return None, (Problem(error.code, error.message, error.hint, FILE, line),)
    lock, problems = examined(content.head(OWN, MAX_LOCK_BYTES + 1), OWN)
    if manifest.environment:
        message = (
            f"It names the environment {manifest.environment[:80]!r} and brings {OWN} as well."
        )
        problems += (Problem("two_environments", message, "Leave one of them out.", FILE, line),)
    return (None if lock is None else NamedLock(OWN, lock)), problems


def _no_manifest(content: Content) -> Problem:
    near = sorted(name for name in content.files if name.rpartition("/")[2] == FILE)
    where = f" (there is one at {near[0]!r}; it must be at the top)" if near else ""
    return Problem(
        "no_manifest",
        f"There is no {FILE} at the top of the archive{where}.",
        'The shortest one is: name = "my-metric"',
        file=FILE,
    )


def _missing_files(
    reading: ManifestReading[Manifest], manifest: Manifest, content: Content, refused: set[str]
) -> Iterator[Problem]:
    """Files that the manifest names and the submission does not hold."""
    # That the file holds the class is found out in the sandbox: nothing of a stranger's source is
    # parsed out here, where a crafted file could bring the parser down.
    here = content.files.keys() | refused
    if manifest.module_file not in here:
        yield Problem(
            "no_entry_point",
            f"The entry point {manifest.entry_point!r} needs a file {manifest.module_file}, "
            "which is missing.",
            f"{nearest(manifest.module_file, here)}The archive holds: "
            f"{', '.join(sorted(content.files)[:8])}.",
            file=FILE,
            line=line_of(reading.lines, ("entry_point",)),
        )
    if manifest.weights and manifest.weights not in here:
        yield Problem(
            "no_weights",
            f"The weights {manifest.weights!r} are not in the archive.",
            f"{nearest(manifest.weights, (n for n in here if n.endswith(WEIGHTS)))}Put the file "
            "in, or correct its path.",
            file=FILE,
            line=line_of(reading.lines, ("weights",)),
        )


def _unknown_benchmarks(
    reading: ManifestReading[Manifest], manifest: Manifest, registry: Registry
) -> Iterator[Problem]:
    # A family stands for all benchmarks over the same data, e.g. genai_bench.
    families = {benchmark.card.family for benchmark in registry.values()}
    for key, named, known in (
        ("benchmarks", manifest.benchmarks, set(registry)),
        ("trained_on", manifest.trained_on, set(registry) | families),
        *(
            (f"outputs.{name}", one.benchmarks, set(registry))
            for name, one in manifest.outputs.items()
        ),
    ):
        for name in named:
            if name not in known:
                yield Problem(
                    "unknown_benchmark",
                    f"{key} names {name[:80]!r}, which is no benchmark here.",
                    f"{nearest(name, sorted(known))}Known names: {', '.join(sorted(known))}.",
                    file=FILE,
                    line=line_of(reading.lines, tuple(key.split("."))),
                )
