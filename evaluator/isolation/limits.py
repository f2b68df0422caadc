"""Limits of a scoring job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.errors import SubmitterError
from benchmarks.settings.sources import value_of

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
