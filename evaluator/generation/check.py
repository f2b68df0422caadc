"""Report of a check of generations: everything that is wrong, and how much is right.

The check itself is `evaluator.submission.generations`, for `check`, the page and the desk alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Kind = Literal[
    "missing",
    "extra",
    "corrupt",
    "blank",
    "duplicate",
    "wrong_size",
    "wrong_prompt",
    "bad_row",
    "unsafe_name",
]


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong."""

    # `missing` (no row, or no file), `extra` (a row or a file nobody asked for), `corrupt` (not the
    # bytes the row names, or no image), `blank` (one colour), `duplicate` (the same picture as
    # another of them), `wrong_size` (other than the row says or than is allowed), `wrong_prompt`
    # (drawn for another text), `bad_row` (a line of the table that cannot be used), `unsafe_name`
    # (a file's, in an archive)
    kind: Kind
    where: str  # file, or prompt id and seed, or line of the table
    message: str  # what is wrong, in words


@dataclass(frozen=True)
class GenerationsReport:
    """What a check found."""

    wanted: int  # images that should be there
    usable: int  # images that are, and are right
    # why the maker withheld images, to how many: stated, hence no problem
    withheld: Mapping[str, int]
    # what is wrong, in the order of the wanted images, extras last; of very many, the first that
    # were found
    problems: tuple[Problem, ...]
    counts: Mapping[str, int]  # how many problems of each kind there are, all of them

    @property
    def complete(self) -> bool:
        """Whether nothing is wrong."""
        return not self.counts

    @property
    def n_withheld(self) -> int:
        """Images that are withheld, for whatever reason."""
        return sum(self.withheld.values())


class Findings:
    """Gathers problems as they are found, and puts them in order."""

    def __init__(self, most: int = 10_000) -> None:
        self._most = most
        self._found: list[tuple[tuple[int, int], Problem]] = []
        self._counts: Counter[str] = Counter()

    def add(self, problem: Problem, phase: int, place: int = 0) -> None:
        """Note a problem."""
        self._counts[problem.kind] += 1
        if len(self._found) < self._most:
            self._found.append(((phase, place), problem))

    @property
    def any(self) -> bool:
        """Whether something is wrong."""
        return bool(self._counts)

    def report(self, wanted: int, usable: int, withheld: Mapping[str, int]) -> GenerationsReport:
        """All of it."""
        in_order = sorted(self._found, key=lambda found: found[0])
        problems = tuple(problem for _, problem in in_order)
        kinds = dict.fromkeys(problem.kind for problem in problems)
        counts = {kind: self._counts[kind] for kind in [*kinds, *self._counts]}
        return GenerationsReport(wanted, usable, withheld, problems, counts)
