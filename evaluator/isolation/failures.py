"""The errors of a scoring job, as the author of the module is told them."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from benchmarks.errors import AssayError, PlatformError, SubmitterError, TransientError
from evaluator.isolation.inside.wire_protocol import ErrorKind

_MIB = 1024 * 1024
_SIGNALLED = 128


@dataclass(frozen=True, slots=True)
class Breach:
    """Which limit was passed, and by how much."""

    what: Literal["memory", "processes"]
    seen: int
    limit: int


class Code(StrEnum):
    """Stable codes of what can go wrong with a stranger's module."""

    IMPORT_FAILED = "import_failed"
    INIT_FAILED = "init_failed"
    SCORER_RAISED = "scorer_raised"
    WRONG_COUNT = "wrong_count"
    WRONG_TYPE = "wrong_type"
    NOT_FINITE = "not_finite"
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out_of_memory"
    TOO_MANY_PROCESSES = "too_many_processes"
    CRASHED = "crashed"
    PROTOCOL = "protocol"


HINTS = {
    Code.IMPORT_FAILED: "The entry point must name a class with a method score. Import only the "
    "standard library, packages of the scoring environment and files of the submission.",
    Code.INIT_FAILED: "The constructor takes nothing, or any of the keywords device, weights and "
    "models; it has no network, and reads only files of the submission. Name models of the Hub "
    "under models in assay.toml.",
    Code.SCORER_RAISED: "Mend the line that is named, or return None for pairs that cannot be scored; "
    "the log holds the whole traceback.",
    Code.WRONG_COUNT: "Return one value per pair, in the order of the pairs; with outputs in "
    "assay.toml, a row of one value per output.",
    Code.WRONG_TYPE: "Return a flat list of floats, or an array or tensor with one dimension; "
    "None or NaN where there is no score. Several numbers per pair need outputs in assay.toml.",
    Code.NOT_FINITE: "Clip the value, or return NaN where there is no score.",
    Code.TIMEOUT: "Do less per call: load models once in the constructor, and score without "
    "gradients.",
    Code.OUT_OF_MEMORY: "Use a smaller model or half precision, score in smaller parts, and keep "
    "nothing from one batch to the next.",
    Code.TOO_MANY_PROCESSES: "Use fewer worker processes and threads.",
    Code.CRASHED: "The end of the log may say more; do not end the process from inside a scorer.",
    Code.PROTOCOL: "Leave the file descriptors alone that the scorer did not open itself.",
}

KILLED_FROM_OUTSIDE = "killed_from_outside"
"""Code of what is the platform's fault, and worth one more attempt."""
FOR_LACK_OF_PROCESSES = frozenset(
    {
        Code.IMPORT_FAILED, Code.INIT_FAILED, Code.SCORER_RAISED, Code.TIMEOUT, Code.CRASHED,
        Code.PROTOCOL,
    }
)  # fmt: skip
"""How a scorer may end that was refused a process."""

_OF_KIND = {
    ErrorKind.IMPORT_FAILED: Code.IMPORT_FAILED,
    ErrorKind.INIT_FAILED: Code.INIT_FAILED,
    ErrorKind.SCORER_RAISED: Code.SCORER_RAISED,
    ErrorKind.WRONG_COUNT: Code.WRONG_COUNT,
    ErrorKind.WRONG_TYPE: Code.WRONG_TYPE,
    ErrorKind.NOT_FINITE: Code.NOT_FINITE,
    ErrorKind.OUT_OF_MEMORY: Code.OUT_OF_MEMORY,
}


_MAY_TELL = frozenset(
    {
        Code.SCORER_RAISED, Code.WRONG_COUNT, Code.WRONG_TYPE, Code.NOT_FINITE, Code.OUT_OF_MEMORY,
        Code.PROTOCOL,
    }
)  # fmt: skip
"""Errors of a scorer that has seen questions, with words or numbers of its choosing in them."""


def without_its_words(error: AssayError) -> AssayError:
    """The error without what a scorer could have put there of the questions it was shown."""
    if error.code not in _MAY_TELL or not isinstance(error, SubmitterError):
        return error
    return SubmitterError(
        error.code,
        f"The scorer failed ({error.code}). What it said is withheld, since it had been shown "
        "questions of a benchmark that keeps its answers.",
        "See what it says on the public sample: python -m evaluator check",
    )


def failure(code: Code, message: str) -> SubmitterError:
    """An error of the submission, with the remedy that belongs to its code."""
    return SubmitterError(str(code), message, HINTS[code])


def reported(kind: ErrorKind, text: str, doing: str) -> SubmitterError:
    """What the runner reported from inside."""
    return failure(_OF_KIND[kind], f"{text or kind.name} (while {doing}).")


def too_slow(doing: str, limit_s: float) -> SubmitterError:
    """A deadline that passed."""
    return failure(Code.TIMEOUT, f"{doing.capitalize()} took longer than {limit_s:g} s.")


def breached(breach: Breach, doing: str) -> SubmitterError:
    """What the watchdog saw."""
    if breach.what == "processes":
        return failure(
            Code.TOO_MANY_PROCESSES,
            f"The scorer ran {breach.seen} processes while {doing}; the limit is {breach.limit}.",
        )
    return failure(
        Code.OUT_OF_MEMORY,
        f"The scorer held {breach.seen // _MIB} MiB while {doing}; "
        f"the limit is {breach.limit // _MIB} MiB.",
    )


def out_of_processes(limit: int, doing: str, ended: str) -> SubmitterError:
    """What the kernel refused at the bound of the whole box, and what came of it."""
    return failure(
        Code.TOO_MANY_PROCESSES,
        f"The scorer reached the limit of {limit} processes and threads while {doing}, and then: "
        f"{ended}",
    )


def killed_from_outside(doing: str) -> TransientError:
    """A SIGKILL that neither the scorer nor a limit can be the reason of."""
    return TransientError(
        KILLED_FROM_OUTSIDE,
        f"The scorer's process was killed from outside while {doing}, and not for its memory.",
        "Nothing is wrong with the submission. The operator can look for what kills processes on "
        "the worker's machine: its own lack of memory, a supervisor, a person.",
    )


def kernel_out_of_memory(limit_bytes: int, doing: str) -> SubmitterError:
    """What the kernel did at the bound of the whole box."""
    return failure(
        Code.OUT_OF_MEMORY,
        f"The kernel ended a process of the scorer for lack of memory while {doing}; "
        f"the limit is {limit_bytes // _MIB} MiB for all of them together.",
    )


def ended(code: int | None, doing: str) -> SubmitterError:
    """A process that went away without an answer."""
    if code == _SIGNALLED + signal.SIGXCPU:
        return failure(Code.TIMEOUT, f"The scorer used up its CPU seconds while {doing}.")
    return failure(Code.CRASHED, f"The scorer's process {_how_it_ended(code)} while {doing}.")


def broken_protocol(doing: str, detail: str) -> SubmitterError:
    """Bytes that are no answer."""
    return failure(
        Code.PROTOCOL,
        f"What came back from the scorer's process is not an answer: {detail} (while {doing}).",
    )


def box_not_started(log: str) -> PlatformError:
    """A box that ended before anything of the submission ran."""
    last = log.strip().splitlines()[-1:] or ["nothing was printed"]
    return PlatformError(
        "box_not_started",
        f"The isolated process did not start: {last[0]}.",
        "Run `python -m evaluator doctor` on this machine.",
    )


def box_not_ended() -> PlatformError:
    """Processes that survived the end of their job."""
    return PlatformError(
        "box_not_ended",
        "Processes of a finished job are still running; no other job should start beside them.",
        "Restart the worker's machine or container.",
    )


def _how_it_ended(code: int | None) -> str:
    if code is None:
        return "closed its pipe"
    if code == _SIGNALLED + signal.SIGSYS:
        return "ended itself by SIGKILL or the exit code of that, which is told as SIGSYS,"
    if code <= _SIGNALLED:
        return f"ended by itself with exit code {code}"
    try:
        name = signal.Signals(code - _SIGNALLED).name
    except ValueError:
        return f"ended with exit code {code}"
    return f"was killed by {name}"
