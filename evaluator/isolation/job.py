"""Job: code that is to be run in a box, and its limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.errors import SubmitterError
from benchmarks.settings.model import value_of

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one job; the defaults let a CPU torch scorer run."""

    start_s: float = 180.0  # import and constructor together
    batch_s: float = 300.0  # one request, from its first byte sent to the last byte of the reply
    job_s: float = 6 * 3600.0  # the whole job; answers do not extend it
    # resident memory of all processes of the box together, its scratch included; also the data
    # segment of each process (CPU torch needs 2 GB of it)
    memory_bytes: int = 8192 * MIB
    # how much of the output is kept; the rest is read, counted and dropped
    log_bytes: int = 64 * 1024
    file_bytes: int = 256 * MIB  # the largest single file
    scratch_bytes: int = 512 * MIB  # size of the scratch folder
    shm_bytes: int = 256 * MIB  # size of `/dev/shm`, which data-loader workers use
    open_files: int = 1024  # open files per process
    cpu_s: int = 24 * 3600  # CPU seconds per process
    processes: int = 256  # processes of the box together
    threads: int = 2  # what numerical libraries are told to use


def scorer_limits(environment: Mapping[str, str]) -> Limits:
    """As the settings say.

    Raises:
        SubmitterError: `bad_setting`; one of them is no such number, or they contradict each other.
    """
    start_s = value_of("scorer_start_s", environment)
    batch_s = value_of("scorer_batch_s", environment)
    job_s = value_of("scorer_job_s", environment)
    for name, seconds in (("start_s", start_s), ("batch_s", batch_s)):
        if seconds > job_s:
            raise SubmitterError(
                "bad_setting",
                f"limits.scorer_{name} ({seconds:g}) is more than limits.scorer_job_s ({job_s:g}), "
                "which holds for both together.",
                "Raise the one or lower the other: python -m evaluator settings",
            )
    usual = Limits()
    return Limits(
        start_s=start_s,
        batch_s=batch_s,
        job_s=job_s,
        memory_bytes=value_of("scorer_memory_mib", environment) * MIB,
        processes=value_of("scorer_processes", environment),
        cpu_s=max(usual.cpu_s, round(job_s * usual.threads)),
    )


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A public model of the Hub, fetched before the box starts."""

    repo: str  # `owner/name`
    revision: str  # the commit, 40 hexadecimal digits
    # here; holds `refs/main` with the revision and `snapshots/<revision>/` with the files, as a
    # cache of the Hub's client does
    folder: Path

    @property
    def folder_inside(self) -> str:
        """Name of the folder in a cache of the Hub's client."""
        return f"models--{self.repo.replace('/', '--')}"

    @property
    def snapshot_inside(self) -> str:
        """Where the model's files are in such a cache."""
        return f"{self.folder_inside}/snapshots/{self.revision}"


@dataclass(frozen=True, slots=True)
class Job:
    """One submission to be run."""

    folder: Path  # the module's, unpacked; the box sees it read-only
    entry_point: str = "scorer:Scorer"  # `module:Class`
    weights: str | None = None  # a file inside the folder, as the manifest names it, or None
    limits: Limits = field(default_factory=Limits)  # what the job may use
    device: str = "cpu"  # handed to the constructor if it names it
    models: tuple[ModelFiles, ...] = ()  # of the Hub, as the manifest names them
    environment: Path | None = None  # folder of packages in place of ours; None: ours

    @property
    def folders(self) -> tuple[Path, ...]:
        """Of this machine, beside Python and our packages, what the box sees."""
        own = () if self.environment is None else (self.environment,)
        return (self.folder, *(model.folder for model in self.models), *own)
