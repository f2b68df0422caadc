"""Layout of a box, by the names that things have inside: the same for every backend."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from evaluator.isolation.interpreter import (
    BUNDLE,
    BUNDLE_FOLDER,
    Interpreter,
    runner_arguments,
)
from evaluator.isolation.job import Job
from evaluator.isolation.limits import MIB, Limits

SUBMISSION = "/submission"
RUNNER = "/runner"
SCRATCH = "/scratch"
MODELS = "/models"
"""Models of the Hub, as the Hub's own client keeps them, so that it finds them without network."""

TMP_BYTES = 64 * MIB
MEMORY_FOLDERS = ("/dev/shm", "/tmp", SCRATCH)  # noqa: S108 - names inside a box
"""All that can be written to inside."""


@dataclass(frozen=True, slots=True)
class Bind:
    """A file or folder of this machine that a box sees, read-only.

    Attributes:
        source: here.
        target: inside.
    """

    source: Path
    target: str


def memory_folders(limits: Limits) -> Mapping[str, int]:
    """Writable folders inside, all of them memory, and how many bytes each may hold."""
    sizes = (limits.shm_bytes, TMP_BYTES, limits.scratch_bytes)
    return dict(zip(MEMORY_FOLDERS, sizes, strict=True))


def binds(interpreter: Interpreter, job: Job | None) -> Iterator[Bind]:
    """All of this machine that a box sees beside `/usr` and the loader's cache.

    Args:
        interpreter: by the names it has inside.
        job: what is run; None for a box that is only looked at.
    """
    for folder, name in interpreter.binds:
        yield Bind(folder, name)
    for name in BUNDLE:
        yield Bind(BUNDLE_FOLDER / name, f"{RUNNER}/{name}")
    if job is None:
        return
    yield Bind(job.folder.resolve(), SUBMISSION)
    for model in job.models:
        yield Bind(model.folder.resolve(), f"{MODELS}/{model.folder_inside}")


def variables(interpreter: Interpreter, limits: Limits) -> dict[str, str]:
    """All that a process in the box finds in its environment."""
    found = interpreter.environment(threads=limits.threads, home=SCRATCH)
    return found | {"HF_HUB_CACHE": MODELS}


def runner_command(interpreter: Interpreter, job: Job) -> list[str]:
    """What is run in the box of a job."""
    words = runner_arguments(
        submission=SUBMISSION,
        entry_point=job.entry_point,
        weights=job.weights,
        device=job.device,
        site=interpreter.site,
        models={model.repo: f"{MODELS}/{model.snapshot_inside}" for model in job.models},
    )
    return interpreter.command(RUNNER, "runner", words)


def inspection_command(
    interpreter: Interpreter, hidden: tuple[Path, ...], limits: Limits | None = None
) -> list[str]:
    """What is run in a box that is only looked at.

    Args:
        interpreter: by the names it has inside.
        hidden: folders of this machine that must not be seen.
        limits: that the box was given; the usual ones where None.
    """
    site = [word for folder in interpreter.site for word in ("--site", folder)]
    sizes = memory_folders(limits or Limits()).items()
    sized = [word for folder, size in sizes for word in ("--sized", f"{folder}={size}")]
    return interpreter.command(RUNNER, "inspection", [*site, *sized, *map(str, hidden)])
