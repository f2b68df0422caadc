"""What a folder of benchmark tests says of its files, for the contract that every loader keeps.

A folder has a module `<name>_tree.py` that writes a small release in the real layout and names
`CASES`; `test_contract.py` finds it there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from benchmarks.schema import Benchmark
from tests.kit.checks import trial_card

Write = Callable[[Path], object]
"""Writes files below a folder of data."""


@dataclass(frozen=True)
class Damage:
    """A release that is refused, and parts of the message that says why."""

    write: Write
    says: tuple[str, ...]
    read: Literal["answers", "prompts"] = "answers"


@dataclass(frozen=True, kw_only=True)
class Case:
    """A small release of one benchmark and what its loader must make of it.

    Attributes:
        board: the benchmark of a card.
        card: its released card.
        held: the counts of the small release that the card states and the loader checks.
        settings: counts of the card that are no check, such as images per prompt.
        write: writes the files of answers.
        files: their places below the folder of data.
        pair_ids: the first pair ids.
        clusters: the first clusters.
        counts: some of `Answers.counts()`.
        draw: writes the images.
        question: a pair id, the bytes of its image, and its text.
        incomplete: the release without one image.
        prompts: the first rows of prompt_id, prompt, split and skills; none where the benchmark
            gives no prompts to developers of models.
        damages: releases that are refused.
    """

    board: Callable[[Any], Benchmark]
    card: Any
    held: Mapping[str, int]
    settings: Mapping[str, int] = field(default_factory=dict)
    write: Write
    files: tuple[str, ...]
    pair_ids: tuple[str, ...]
    clusters: tuple[str, ...]
    counts: Mapping[str, int]
    draw: Write
    question: tuple[str, bytes, str]
    incomplete: Damage
    prompts: tuple[tuple[str, str, str, str], ...] = ()
    damages: tuple[Damage, ...]

    def small(self, **counts: int) -> Benchmark:
        """The benchmark with the counts of the small release and nothing pinned."""
        return self.board(trial_card(self.card, **{**self.held, **self.settings, **counts}))

    def pinned(self) -> Benchmark:
        """The benchmark with the hashes of the real release and no counts."""
        return self.board(self.card.model_copy(update={"counts": dict(self.settings)}))


def all_cases() -> Iterator[Case]:
    """The cases of all folders beside this module."""
    for path in sorted(Path(__file__).parent.glob("*/*_tree.py")):
        yield from import_module(f"{__package__}.{path.parent.name}.{path.stem}").CASES
