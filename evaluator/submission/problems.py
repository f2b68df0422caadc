"""Several problems as one error, for callers that can tell only one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.errors import SubmitterError
from leaderboard.desk import Problem

_TOLD = 40


def one_error(
    problems: Sequence[Problem], counts: Mapping[str, int] | None = None
) -> SubmitterError:
    """All problems as one error: the problem itself, or all of them, one a line.

    Args:
        problems: those that are known one by one.
        counts: code to the number of all problems of that kind, where there may be more.
    """
    total = max(len(problems), sum((counts or {}).values()))
    if len(problems) == 1:
        (only,) = problems
        where = f"{only.place}: " if only.line is not None else ""
        return SubmitterError(only.code, f"{where}{only.message}", only.hint)
    lines = [f"{p.place or 'the whole'}: {p.message} {p.hint}".rstrip() for p in problems[:_TOLD]]
    if total > _TOLD:
        kinds = ", ".join(f"{n} {code}" for code, n in (counts or {}).items())
        lines.append(f"and {total - _TOLD} more{f'; in all {kinds}' if kinds else ''}")
    return SubmitterError(
        "several_problems",
        "\n".join([f"{total} things are wrong with it:", *lines]),
        "Mend them all and send it again.",
    )


def as_problem(error: SubmitterError) -> Problem:
    """An error about the whole as the problem it is."""
    return Problem(error.code, error.message, error.hint)
