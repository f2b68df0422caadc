"""Journal of looks at one baseline: screen each checkpoint, confirm on held-out prompts with spent level.

Looking at checkpoint after checkpoint finds a difference sooner or later where there is none. So one
half of the prompts screens, at the uncorrected level, and a hit is confirmed on the other half at the
level 6 alpha / (pi^2 j^2), where j counts the confirmations of this journal. The levels add up to
alpha, so however many checkpoints are looked at, a false confirmation has a chance of alpha at most,
as long as what the held-out half says does not steer the training.

The held-out half is asked at once, by the tests of a comparison, or batch by batch in a random order
that is fixed (`evaluator.ab.batches`), by intervals that hold however often one looks.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Literal

from filelock import FileLock, Timeout
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from benchmarks.errors import SubmitterError
from benchmarks.statistics.better_or_tied import LEVEL, MIN_PROMPTS, Outcome, PairedOutcome
from evaluator.ab.comparison import Comparison
from evaluator.ab.images import DrawnImages, fingerprint
from evaluator.generation.prompts import Prompt


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Hit(_Frozen):
    """A difference on the screening half, and what the held-out half said of it."""

    skill: str | None  # None: all prompts
    metric: str
    sign: Literal[-1, 1]  # 1: the candidate is better
    screening_p: float
    margin: float  # smaller differences are a tie; in units of the score, from the screening half
    # On the held-out half:
    n: int | None = None  # prompts that were asked and have both scores; None where none was
    n_missing: int = 0  # prompts that were asked and lack one
    p: float | None = None  # None where too few prompts differ, and in batches
    difference: float | None = None  # higher is better
    ci_low: float | None = None  # of the 95 % interval; in batches at the level of this hit
    ci_high: float | None = None
    outcome: Outcome = Outcome.UNDECIDED  # at the level of this hit

    @property
    def confirmed(self) -> bool:
        """Whether the held-out half says what the screening half said."""
        return self.outcome is (Outcome.BETTER if self.sign > 0 else Outcome.WORSE)


class Inspection(_Frozen):
    """One checkpoint against the baseline."""

    candidate: str  # hash of its images; in batches, of those of the screening half
    name: str  # of its folder
    at: AwareDatetime
    hits: tuple[Hit, ...]
    confirmation: int | None = None  # which of the journal's; None where nothing was hit
    level: float | None = None  # of that confirmation, for all its hits together
    asked: int | None = None  # held-out prompts asked so far in batches; None: all, at once
    asked_images: str = ""  # hash of the candidate's images of them
    open: bool = False  # whether more of them may still decide
    margin: float | None = None  # in batches, as a share of the spread of scores


class JournalHeader(_Frozen):
    """What all looks of a journal share."""

    schema_version: Literal[1] = 1
    baseline: str  # hash of the baseline's images and of the prompts
    metrics: tuple[str, ...]
    alpha: float = Field(default=LEVEL, gt=0, lt=1)


class Journal:
    """The looks so far, in a file of JSON Lines that is only added to.

    A line that cannot be read, as of a process that was killed, counts as a confirmation.
    """

    def __init__(self, file: Path, head: JournalHeader) -> None:
        """Open a journal, or begin one.

        Raises:
            SubmitterError: the file is none, cannot be read, or is of another baseline, prompts or
                metrics.
        """
        self._file = file
        self._alpha = head.alpha
        self.looks: list[Inspection] = []
        self._lost = 0
        try:
            lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        except (OSError, UnicodeDecodeError) as error:
            raise SubmitterError("bad_journal", f"{file} cannot be read: {error}.") from error
        if not lines:
            self._append(head)
            return
        try:
            there = JournalHeader.model_validate_json(lines[0])
        except ValidationError as error:
            raise SubmitterError(
                "bad_journal",
                f"{file} is no journal of looks.",
                "Name another file with --journal; a new one spends its level anew.",
            ) from error
        for line in lines[1:]:
            try:
                self.looks.append(Inspection.model_validate_json(line))
            except ValidationError:
                self._lost += bool(line.strip())
        if there != head:
            raise SubmitterError(
                "other_journal",
                f"{file} is of another baseline, other prompts or other metrics.",
                "Compare with the same, or begin a journal: its level is spent anew.",
            )

    def seen(self, candidate: str) -> Inspection | None:
        """The latest look at these very images, which spends nothing again."""
        return next((look for look in reversed(self.looks) if look.candidate == candidate), None)

    @property
    def next_confirmation(self) -> int:
        """Number of the next one, from 1."""
        begun = {look.confirmation for look in self.looks} - {None}
        return 1 + self._lost + len(begun)

    def begin(self, candidate: str, name: str, at: datetime, hits: tuple[Hit, ...]) -> Inspection:
        """A look with the next confirmation, where something was hit; it is not kept yet."""
        made = Inspection(candidate=candidate, name=name, at=at, hits=hits)
        if not hits:
            return made
        number = self.next_confirmation
        level = spent(number, self._alpha)
        return made.model_copy(update={"confirmation": number, "level": level})

    def add(self, look: Inspection) -> None:
        """Keep a look."""
        self._append(look)
        self.looks.append(look)

    def _append(self, record: BaseModel) -> None:
        try:
            with self._file.open("a+b") as file:
                half = file.tell() > 0 and not self._file.read_bytes().endswith(b"\n")
                file.write(b"\n" * half + record.model_dump_json().encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise SubmitterError(
                "cannot_write", f"{self._file} cannot be written: {error.strerror}."
            ) from error


@contextmanager
def one_look(file: Path) -> Iterator[None]:
    """One process at a time looks: the number of a confirmation is that of one look alone.

    Raises:
        SubmitterError: another looks, or the lock beside the file cannot be made.
    """
    lock = FileLock(file.with_name(f"{file.name}.lock"), timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        raise SubmitterError(
            "journal_busy", f"Another comparison is looking by {file}.", "Try again when it ended."
        ) from error
    except OSError as error:
        raise SubmitterError("cannot_write", f"{file} cannot be locked: {error}.") from error
    try:
        yield
    finally:
        lock.release()


def spent(confirmation: int, alpha: float = LEVEL) -> float:
    """Level of the j-th confirmation, j from 1; all of them add up to alpha."""
    return 6.0 * alpha / (math.pi**2 * confirmation**2)


def halves(prompts: Sequence[Prompt]) -> tuple[tuple[Prompt, ...], tuple[Prompt, ...]]:
    """Screening and held-out prompts, half of each skill: the same for the same texts in any order."""

    def place(one: Prompt) -> tuple[tuple[str, ...], bytes]:
        return one.skills, hashlib.sha256(one.text.encode()).digest()

    ranked = sorted(prompts, key=place)
    kept = {one.prompt_id for one in ranked[::2]}
    return (
        tuple(one for one in prompts if one.prompt_id in kept),
        tuple(one for one in prompts if one.prompt_id not in kept),
    )


Compare = Callable[[DrawnImages, frozenset[str] | None], Comparison]
"""Compares images by some metrics; None: all of them."""


def look(
    file: Path,
    compare: Compare,
    drawn: DrawnImages,
    *,
    metrics: Sequence[str],
    name: str,
    at: datetime,
) -> tuple[Comparison, Inspection]:
    """Look at a candidate: the comparison on the screening half, and what was confirmed.

    `metrics`: names and fingerprints of those that judge; `name`: of the candidate. Images that were
    looked at before spend nothing.

    Raises:
        SubmitterError: the journal is none, one of other things (`Journal`), or in use (`one_look`).
    """
    candidate = images_of(drawn, 1)
    with opened_journal(file, drawn, metrics) as journal:
        screening, held_out = halves(drawn.prompts)
        found = compare(drawn.only(screening), None)
        made = journal.seen(candidate)
        if made is None:
            hits = screened(found, held_out, MIN_PROMPTS)
            made = journal.begin(candidate, name, at, hits)
            if made.level is not None:
                asked = compare(drawn.only(held_out), frozenset(hit.metric for hit in hits))
                update = {"hits": confirmed(hits, tests_of(asked), made.level)}
                made = made.model_copy(update=update)
            journal.add(made)
        return found, made


def images_of(drawn: DrawnImages, side: int) -> str:
    """Hash of all images of one of the two models; 1: the candidate."""
    return fingerprint(
        [(one.prompt_id, drawn.digests[one.prompt_id][side]) for one in drawn.prompts]
    )


@contextmanager
def opened_journal(file: Path, drawn: DrawnImages, metrics: Sequence[str]) -> Iterator[Journal]:
    """The journal of a baseline, its prompts and metrics, for one look."""
    texts = [(one.prompt_id, one.text, one.skills) for one in drawn.prompts]
    baseline = fingerprint([images_of(drawn, 0), texts])
    head = JournalHeader(baseline=baseline, metrics=tuple(sorted(metrics)))
    with one_look(file):
        yield Journal(file, head)


Tested = tuple[str | None, str, PairedOutcome]
"""Skill, metric, and the test there."""


def tests_of(found: Comparison) -> Iterator[Tested]:
    """Every test of a comparison."""
    for one in found.skills:
        for metric, outcome in one.by_metric.items():
            yield one.skill, metric, outcome


def screened(found: Comparison, held_out: Sequence[Prompt], least: int) -> tuple[Hit, ...]:
    """Differences at the uncorrected level, of skills of which `least` prompts are held out."""
    return tuple(
        Hit(
            skill=skill,
            metric=metric,
            sign=1 if one.difference > 0 else -1,
            screening_p=one.p,
            margin=one.margin,
        )
        for skill, metric, one in tests_of(found)
        if one.p < LEVEL
        and sum(skill is None or skill in other.skills for other in held_out) >= least
    )


def confirmed(hits: Sequence[Hit], tests: Iterable[Tested], level: float) -> tuple[Hit, ...]:
    """What the held-out half says of each hit, at the level shared by all hits."""
    found = {(skill, metric): one for skill, metric, one in tests}
    made = []
    for hit in hits:
        one = found[hit.skill, hit.metric]
        update: dict[str, object] = {"n": one.n, "n_missing": one.n_missing}
        if math.isfinite(one.p):
            sides = Outcome.BETTER if one.difference > 0 else Outcome.WORSE
            update |= {
                "p": one.p,
                "difference": one.difference,
                "ci_low": one.ci_low,
                "ci_high": one.ci_high,
                "outcome": sides if one.p < level / len(hits) else Outcome.UNDECIDED,
            }
        made.append(hit.model_copy(update=update))
    return tuple(made)
