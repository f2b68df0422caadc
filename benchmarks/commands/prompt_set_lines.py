"""What the commands say of prompt sets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Column, Table

from benchmarks.errors import AssayError
from benchmarks.prompt_sets.prompt_set import PromptSet

_COLUMNS = ("prompt set", "prompts", "seeds", "images", "title")
_NOT_THERE = frozenset({"data_missing"})
"""Codes of errors that only say that something was not supplied; all others are faults."""


def set_line(prompt_set: PromptSet, data: Path | None) -> dict[str, Any]:
    """A prompt set for programs, with how it is to be drawn; whatever is wrong stays with it.

    `n_prompts` is None where its files are not at hand or not as expected.
    """
    n_prompts: int | None = None
    problems: dict[str, dict[str, str]] = {}
    try:
        n_prompts = len(prompt_set.set_prompts(data))
    except AssayError as error:
        if error.code not in _NOT_THERE:
            problems["prompts"] = {"code": error.code, "text": str(error)}
    card = prompt_set.card
    return {
        "name": prompt_set.name,
        "title": card.title,
        "family": card.family,
        "revision": card.revision,
        "track": prompt_set.track,
        "prompts": n_prompts is not None,
        "n_prompts": n_prompts,
        **drawing_facts(prompt_set),
        "problems": problems,
    }


def drawing_facts(prompt_set: PromptSet) -> dict[str, Any]:
    """How the set is to be drawn, for programs."""
    drawing = prompt_set.drawing
    return {
        "seeds": list(drawing.seeds),
        "least_side": drawing.least_side,
        "most_side": drawing.most_side,
        "rated_by": prompt_set.rated_by or None,
    }


def drawing_words(prompt_set: PromptSet, n_prompts: int | None) -> str:
    """How the set is to be drawn, for people."""
    drawing = prompt_set.drawing
    n_seeds = len(drawing.seeds)
    asked = f"{n_seeds} images of each prompt, seeds {', '.join(map(str, drawing.seeds))}"
    if n_prompts is not None:
        asked = f"{n_prompts * n_seeds} images: {asked}"
    sides = f"sides of {drawing.least_side} to {drawing.most_side} pixels"
    rated = (
        f" People rated models on these prompts: see {prompt_set.rated_by}."
        if prompt_set.rated_by
        else ""
    )
    return f"Asked for are {asked}; {sides}.{rated}"


def sets_table(lines: Iterable[Mapping[str, Any]]) -> Table:
    """One line each; only a title may be cut."""
    table = Table(
        *(Column(key, no_wrap=True, min_width=_width(key)) for key in _COLUMNS),
        box=SIMPLE_HEAD,
        pad_edge=False,
    )
    for line in lines:
        n_prompts, n_seeds = line["n_prompts"], len(line["seeds"])
        at_hand = "broken" if line["problems"] else "no"
        table.add_row(
            line["name"],
            at_hand if n_prompts is None else str(n_prompts),
            str(n_seeds),
            "" if n_prompts is None else str(n_prompts * n_seeds),
            line["title"],
        )
    return table


def _width(column: str) -> int | None:
    return None if column == "title" else 18 if column == "prompt set" else len(column)
