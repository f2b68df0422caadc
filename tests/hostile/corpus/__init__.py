"""Every hostile submission we know of, by what it is after."""

from __future__ import annotations

from tests.hostile.case import Case, Category
from tests.hostile.corpus import (
    cheating,
    endings,
    exhaustion,
    imports,
    injection,
    reaching,
    survival,
    values,
    wire,
)
from tests.hostile.corpus.archives import ARCHIVES

CASES: tuple[Case, ...] = (
    *reaching.CASES,
    *exhaustion.CASES,
    *survival.CASES,
    *wire.CASES,
    *values.CASES,
    *endings.CASES,
    *cheating.CASES,
    *imports.CASES,
    *injection.CASES,
)

__all__ = ["ARCHIVES", "CASES", "of"]


def of(*categories: Category) -> tuple[Case, ...]:
    """The submissions of some categories."""
    return tuple(case for case in CASES if case.category in categories)
