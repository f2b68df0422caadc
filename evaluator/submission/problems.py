"""Several problems as one error, for callers that can tell only one."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.errors import SubmitterError
from leaderboard.desk import Problem

_TOLD = 40


def one_error(problems: Sequence[Problem]) -> SubmitterError:
    """All problems as one error: the problem itself, or all of them, one a line."""
    if len(problems) == 1:
        (only,) = problems
        where = f"{only.place}: " if only.line is not None else ""
        return SubmitterError(only.code, f"{where}{only.message}", only.hint)
    lines = [f"{p.place or 'the whole'}: {p.message} {p.hint}".rstrip() for p in problems[:_TOLD]]
    if len(problems) > _TOLD:
        lines.append(f"and {len(problems) - _TOLD} more")
    return SubmitterError(
        "several_problems",
        "\n".join([f"{len(problems)} things are wrong with it:", *lines]),
        "Mend them all and send it again.",
    )


def as_problem(error: SubmitterError) -> Problem:
    """An error about the whole as the problem it is."""
    return Problem(error.code, error.message, error.hint)
