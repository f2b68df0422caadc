"""Families of benchmarks: protocols that a card alone can use, without any code of its own.

A family is a module of this folder with a class `FAMILY`, a `CardBenchmark`. A card may also say data in
the layout of a benchmark whose protocol is code: `PROTOCOLS`.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.families.benchmark import CardBenchmark
from benchmarks.families.card import CardText, FamilyName, family_card, protocol_card
from benchmarks.schema import Benchmark, MeasureInfo

PROTOCOLS = ("croc", "croc_syn")
"""Folders of benchmarks whose layout and protocol a card of somebody's own data may name as its family."""


def load_card(path: Path) -> CardBenchmark:
    """The benchmark that a card of a family says, with files that may lie beside it.

    Raises:
        ProblemsError: `invalid_benchmark`: every problem of the card, each with its line.
    """
    return _of_family(CardText.read(path))


def load_any_card(path: Path) -> Benchmark:
    """The benchmark that a card says, of a family or in the layout of one of `PROTOCOLS`.

    Raises:
        SubmitterError: `invalid_benchmark`: every problem of the card, each with its line.
    """
    text = CardText.read(path)
    if text.given.get("family") in PROTOCOLS:
        module = importlib.import_module(f"benchmarks.{text.given['family']}.protocol")
        protocol: type[Benchmark] = module.FAMILY
        return protocol(protocol_card(text, protocol.card.measures), path.parent)
    return _of_family(text)


def _of_family(text: CardText) -> CardBenchmark:
    card = family_card(text, _measures_of)
    return _family(card.follows).of(card, text.path.parent)


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
