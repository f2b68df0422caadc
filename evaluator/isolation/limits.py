"""Limits of a scoring job."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one job; the defaults let a CPU torch scorer run.

    Attributes:
        start_s: import and constructor together.
        batch_s: one request, from its first byte sent to the last byte of the reply.
        job_s: the whole job; answers do not extend it.
        memory_bytes: resident memory of all processes of the box together, its scratch included;
            also the data segment of each process (CPU torch needs 2 GB of it).
        log_bytes: how much of the output is kept; the rest is read, counted and dropped.
        file_bytes: the largest single file.
        scratch_bytes: size of the scratch folder.
        shm_bytes: size of `/dev/shm`, which data-loader workers use.
        open_files: open files per process.
        cpu_s: CPU seconds per process.
        processes: processes of the box together.
        threads: what numerical libraries are told to use.
    """

    start_s: float = 180.0
    batch_s: float = 300.0
    job_s: float = 6 * 3600.0
    memory_bytes: int = 8192 * MIB
    log_bytes: int = 64 * 1024
    file_bytes: int = 256 * MIB
    scratch_bytes: int = 512 * MIB
    shm_bytes: int = 256 * MIB
    open_files: int = 1024
    cpu_s: int = 24 * 3600
    processes: int = 256
    threads: int = 2
