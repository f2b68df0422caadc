"""Problems of a submission: all of them at once, grouped by kind, and as one error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.errors import SubmitterError

_MOST_EXAMPLES = 5
_MOST_KINDS = 40


@dataclass(frozen=True)
class Problem:
    """One thing, or several of one kind, wrong with what somebody wants to submit."""

    code: str  # stable, for programs
    message: str  # what is wrong, in a sentence
    hint: str = ""  # what to do about it; may be empty
    file: str = ""  # inside the submission; empty where it is about the whole
    line: int | None = None  # in that file, from 1; None where there is no line
    count: int = 1  # how many rows, cells or files it is about
    examples: tuple[str, ...] = ()  # the first of these, where the message does not name them

    @property
    def place(self) -> str:
        """`file:line`, as compilers print it; empty where it is about the whole."""
        return f"{self.file}:{self.line}" if self.line is not None else self.file

    @property
    def sentence(self) -> str:
        """The message with its examples, and how many more there are."""
        if not self.examples:
            return self.message
        shown = self.examples[:_MOST_EXAMPLES]
        more = self.count - len(shown)
        rest = f" and {more} more" if more > 0 else ""
        return f"{self.message.rstrip('.')}: {', '.join(shown)}{rest}."


@dataclass(frozen=True)
class ProblemKind:
    """Problems of one code with one remedy."""

    code: str  # of all of them
    count: int  # how many there are, those that are not listed included
    listed: tuple[Problem, ...]  # those that are known one by one; the first is the example
    hint: str = ""  # what to do about each

    @property
    def message(self) -> str:
        """Of the first; the code where none is listed."""
        return self.listed[0].message if self.listed else f"{self.code}."

    @property
    def example(self) -> str:
        """The first place or value; empty where the message says it all."""
        if not self.listed:
            return ""
        first = self.listed[0]
        return first.examples[0] if first.examples else first.place

    @property
    def sentence(self) -> str:
        """The kind on one line, as the terminal and errors print it."""
        if not self.listed:
            return f"{self.count} {self.code}."
        first = self.listed[0]
        place = f"{first.place}: " if first.place else ""
        if self.count == first.count:
            return f"{place}{first.sentence}"
        return f"{self.count:,} {self.code}, the first: {place}{first.sentence}"


class ProblemsError(SubmitterError):
    """Several problems where only one error can be raised."""

    def __init__(
        self, code: str, message: str, hint: str = "", problems: tuple[Problem, ...] = ()
    ) -> None:
        super().__init__(code, message, hint)
        self.problems = problems

    def __reduce__(self) -> tuple[type[ProblemsError], tuple[str, str, str]]:
        return type(self), (self.code, self.message, self.hint)


def problem_kinds(
    problems: Sequence[Problem], counts: Mapping[str, int] | None = None
) -> tuple[ProblemKind, ...]:
    """Problems by kind, in the order in which each kind was first found.

    What names a line of a manifest stands for itself: every key has its own remedy.
    """
    groups: dict[tuple[str, str, str], list[Problem]] = {}
    for problem in problems:
        own = f"{problem.place} {problem.message}" if problem.line is not None else ""
        groups.setdefault((problem.code, problem.hint, own), []).append(problem)
    unlisted = dict(counts or {})
    for problem in problems:
        unlisted[problem.code] = unlisted.get(problem.code, 0) - problem.count
    kinds = []
    for (code, hint, _), listed in groups.items():
        more = max(0, unlisted.pop(code, 0))
        kinds.append(ProblemKind(code, sum(p.count for p in listed) + more, tuple(listed), hint))
    kinds += [ProblemKind(code, more, ()) for code, more in unlisted.items() if more > 0]
    return tuple(kinds)


def one_error(
    problems: Sequence[Problem], counts: Mapping[str, int] | None = None
) -> ProblemsError:
    """All problems as one error: the problem itself, or one line for each kind."""
    kinds = problem_kinds(problems, counts)
    if len(kinds) == 1 and len(problems) == 1:
        (only,) = problems
        where = f"{only.place}: " if only.line is not None else ""
        return ProblemsError(only.code, f"{where}{only.sentence}", only.hint, (only,))
    total = sum(kind.count for kind in kinds)
    lines = [f"{kind.sentence} {kind.hint}".rstrip() for kind in kinds[:_MOST_KINDS]]
    if len(kinds) > _MOST_KINDS:
        lines.append(f"and {len(kinds) - _MOST_KINDS} kinds more")
    return ProblemsError(
        "several_problems",
        "\n".join([f"{total} things are wrong with it:", *lines]),
        "Correct all of them, then try again.",
        tuple(problems),
    )


def problems_of(error: SubmitterError) -> tuple[Problem, ...]:
    """The problems that an error tells; one without any is the problem itself."""
    if isinstance(error, ProblemsError) and error.problems:
        return error.problems
    return (Problem(error.code, error.message, error.hint),)
