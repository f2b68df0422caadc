"""Options that say something of one checkpoint of a metric: ROLE=VALUE."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.errors import SubmitterError
from evaluator.scorers.registry import ScorerRow


def by_role(row: ScorerRow, given: Sequence[str], option: str) -> dict[str, str]:
    """ROLE=VALUE by role; a value alone is of the role `model`.

    Raises:
        SubmitterError: `unknown_role`.
    """
    found = {}
    for text in given:
        head, equals, tail = text.partition("=")
        role, value = (head, tail) if equals else ("model", text)
        if role not in row.checkpoints:
            raise SubmitterError(
                "unknown_role",
                f"{option} {text}: {row.name} has no checkpoint {role!r}.",
                f"It has: {', '.join(row.checkpoints) or 'none'}.",
            )
        found[role] = value
    return found
