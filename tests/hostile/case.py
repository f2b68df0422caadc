"""One hostile submission as data: what is sent, how it must end, and what must not have happened."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from evaluator.isolation.job import MIB, Limits
from leaderboard.states import State

QUICK = Limits(
    start_s=30.0,
    batch_s=30.0,
    job_s=60.0,
    memory_bytes=400 * MIB,
    file_bytes=64 * MIB,
    scratch_bytes=128 * MIB,
    shm_bytes=64 * MIB,
    open_files=256,
    cpu_s=120,
    processes=64,
)
"""Of a case that says nothing else: room for a scorer without numerical libraries, and time for a
busy machine."""


class Category(StrEnum):
    """What a submission is after."""

    NETWORK = "network"
    READING = "reading"
    KERNEL = "kernel"
    WRITING = "writing"
    EXHAUSTION = "exhaustion"
    SURVIVAL = "survival"
    WIRE = "wire"
    VALUES = "values"
    ENDINGS = "endings"
    CHEATING = "cheating"
    IMPORTS = "imports"
    INJECTION = "injection"
    ARCHIVES = "archives"


@dataclass(frozen=True)
class Ending:
    """How a submission must end.

    Attributes:
        state: it ends in.
        codes: one of them is recorded; empty where it is published.
        says: each of them is in the reason.
        fault: whose it is said to be.
        unranked: part of why it has no rank; empty where it has one, or is not published.
    """

    state: State
    codes: tuple[str, ...] = ()
    says: tuple[str, ...] = ()
    fault: str = ""
    unranked: str = ""


PUBLISHED = Ending(State.PUBLISHED)


def failed(*codes: str, says: str | tuple[str, ...] = ()) -> Ending:
    """It fails by its author's fault, with one of these codes and a reason that says so much."""
    said = (says,) if isinstance(says, str) else says
    return Ending(State.FAILED, codes, said, fault="submitter")


def unranked(why: str) -> Ending:
    """It is published, and gets no rank for this reason."""
    return Ending(State.PUBLISHED, unranked=why)


@dataclass(frozen=True)
class Case:
    """One hostile submission.

    Attributes:
        name: in words; unique.
        category: what it is after.
        source: of `scorer.py`; may name `@places@` of the decoys.
        ending: how it must end.
        files: others, by name.
        manifest: further lines of `assay.toml`.
        limits: of its job.
        scores: that are published, where it is.
        prints: must be in what it printed.
        never_prints: must not be in it.
        way: tells apart cases that are after the same thing and end alike.
    """

    name: str
    category: Category
    source: str
    ending: Ending
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    manifest: str = ""
    limits: Limits = QUICK
    scores: tuple[float, ...] = ()
    prints: tuple[str, ...] = ()
    never_prints: tuple[str, ...] = ("GOT ",)
    way: str = ""

    @property
    def kind(self) -> tuple[object, ...]:
        """What the case is after, how it ends and at which limit: a run at day has one of each."""
        ending = self.ending
        return self.category, ending.state, ending.codes, ending.unranked, self.limits, self.way


@dataclass(frozen=True)
class RefusedArchive:
    """An archive that must be refused before any of it is kept.

    Attributes:
        name: in words; unique.
        build: writes it into a folder and says where.
        code: of the refusal.
        says: part of the message.
    """

    name: str
    build: Callable[[Path], Path]
    code: str
    says: str
    category: Category = Category.ARCHIVES


def within(**limits: float) -> Limits:
    """The usual limits of a case, but for these."""
    return replace(QUICK, **limits)  # type: ignore[arg-type]
