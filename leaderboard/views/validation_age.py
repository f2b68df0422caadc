"""Validation age: models that are newer than all generators on whose images their judges were tested."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from benchmarks.generators import Generator, find_generator
from benchmarks.schema import Card, Kind
from leaderboard.models.board_types import Judge, ModelBoard
from leaderboard.models.judges import FOR
from leaderboard.publication.model_entries import ModelEntry
from leaderboard.publication.reader import View
from leaderboard.text import count
from leaderboard.views.drift import drift_of, month


@dataclass(frozen=True)
class JudgeValidation:
    """A metric that judges, and the newest generator on whose images it was tested."""

    entry_id: str
    title: str
    newest: (
        Generator | None
    )  # None where no benchmark of the kind says who made its images, or when


@dataclass(frozen=True)
class NewerModel:
    """A model that is newer than what some of its judges were tested on."""

    entry: ModelEntry
    released: date
    judges: tuple[JudgeValidation, ...]  # those of which it is true


@dataclass(frozen=True)
class ValidationAge:
    """What a board of models says of the age of its evidence."""

    judges: tuple[JudgeValidation, ...]  # every metric that judges a skill of it
    newer: tuple[NewerModel, ...]  # newest first
    n_undated: int  # models whose date is not known, of which nothing can be said

    @property
    def n_unknown(self) -> int:
        """Judges of which it is not known on whose images they were tested."""
        return sum(one.newest is None for one in self.judges)


def release_date(entry: ModelEntry) -> date | None:
    """The day that its developer declares, else the month of the generator of its name and version."""
    if entry.card.released:
        return _day(entry.card.released)
    known = (find_generator(name) for name in (entry.title, entry.card.model.rpartition("/")[2]))
    return next((one.released for one in known if one is not None), None)


def validation_age(board: ModelBoard | None, card: Card, view: View) -> ValidationAge:
    """The judges of a board and the models that are newer; dates are compared by month.

    `card`: of the prompt set; simulated models count by simulated benchmarks. A judge was tested by
    benchmarks of the kinds that qualify it: none of preference speaks for one that judges alignment.
    """
    if board is None:
        return ValidationAge((), (), 0)
    judging: dict[str, list[Judge]] = {}
    for skill in board.skills.values():
        chosen = [one for one in skill.judges if one.entry_id == board.query.judge]
        for one in chosen or skill.trusted:
            judging.setdefault(one.entry_id, []).append(one)
    judges = tuple(
        JudgeValidation(
            entry_id,
            roles[0].title,
            drift_of(view, view.entries[entry_id]).newest(
                _kinds(roles, card, view), simulated=card.simulated
            ),
        )
        for entry_id, roles in judging.items()
    )
    newer, undated = [], 0
    for entry in board.entries.values():
        released = release_date(entry)
        if released is None:
            undated += 1
            continue
        older = tuple(
            one
            for one in judges
            if one.newest is not None and one.newest.released < released.replace(day=1)
        )
        if older:
            newer.append(NewerModel(entry, released, older))
    newer.sort(key=lambda one: one.released, reverse=True)
    return ValidationAge(judges, tuple(newer), undated)


def age_note(age: ValidationAge) -> str:
    """Until when the judges were tested, and what is not known, in a sentence or two."""
    known = [one.newest.released for one in age.judges if one.newest is not None]
    said = []
    if known:
        first, last = min(known), max(known)
        until = month(last) if month(first) == month(last) else f"{month(first)} to {month(last)}"
        said.append(f"{count(len(known), 'qualified metric')} tested on generators until {until}.")
    if age.n_unknown:
        said.append(
            f"Tested on no generator with a known date: {count(age.n_unknown, 'qualified metric')}."
        )
    if age.n_undated:
        said.append(f"Without a release date: {count(age.n_undated, 'model')}.")
    return " ".join(said)


def _kinds(roles: Sequence[Judge], card: Card, view: View) -> frozenset[Kind]:
    """Of the benchmarks that speak for a judge; where none does, that of the prompt set."""
    speaking = (one.benchmark for role in roles for one in role.evidence if one.speaks == FOR)
    return frozenset(view.boards[name].card.kind for name in speaking) or frozenset({card.kind})


def _day(declared: str) -> date | None:
    try:
        return date.fromisoformat(declared)
    except ValueError:  # The record checks the form alone.
        return None
