"""Families of benchmarks: protocols that a card alone can use, without any code of its own.

A family is a module of this folder with a class `FAMILY`, a `CardBenchmark`.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.families.benchmark import CardBenchmark
from benchmarks.families.card import FamilyName, read_card
from benchmarks.schema import MeasureInfo


def load_card(path: Path) -> CardBenchmark:
    """The benchmark that a card says, with files that may lie beside it.

    Raises:
        ProblemsError: `invalid_benchmark`: every problem of the card, each with its line.
    """
    card = read_card(path, _measures_of)
    return _family(card.follows).of(card, path.parent)


def _family(name: FamilyName) -> type[CardBenchmark]:
    found: type[CardBenchmark] = importlib.import_module(f"benchmarks.families.{name}").FAMILY
    return found


def _measures_of(name: FamilyName, given: Mapping[str, Any]) -> Mapping[str, MeasureInfo]:
    return _family(name).infos_of(given)


_HEADLINES = {"rating": "srcc", "preference": "accuracy", "group": "group_score", "system": "pa"}


def headline_of(name: FamilyName) -> str:
    """The measure that a board of a family is usually ordered by."""
    infos = _measures_of(name, {})
    return _HEADLINES.get(name) or next(iter(infos))
