"""Options, tables and output shared by the commands."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

from benchmarks.command_line import fits
from benchmarks.errors import AssayError
from benchmarks.prompt_sets.prompt_set import PromptSet, load_prompt_sets, with_prompt_sets
from benchmarks.registry import find, load_registry
from benchmarks.schema import Benchmark

_INDENT = 2
_BETWEEN = ", "


@dataclass(frozen=True)
class Listing:
    """Something with the same facts of each of its entries."""

    title: str  # what is listed
    heads: Sequence[str]  # names of the facts
    # per entry one cell per head; an empty cell says that the fact is not there
    lines: Sequence[Sequence[str]]
    n_names: int = 1  # so many leading facts tell an entry from the others


def table_or_lines(listing: Listing, width: int) -> Iterator[RenderableType]:
    """A table where it fits, else a block of `name value` facts for each entry.

    No fact is cut, and it is broken over two lines only if it is longer than one.

    Yields: Blocks to print one below the other.
    """
    yield Text(listing.title, style="italic")
    table = _table(listing)
    if fits(table, width):
        yield table
        yield Text("")
        return
    for line in listing.lines:
        facts = [f"{n} {cell}" for n, cell in zip(listing.heads, line, strict=True) if cell]
        n_names = sum(map(bool, line[: listing.n_names]))
        yield Text(packed(facts[:n_names], width), style="bold", overflow="fold")
        values = Text(packed(facts[n_names:], width - _INDENT), overflow="fold")
        yield Padding(values, (0, 0, 0, _INDENT), expand=False)
    yield Text("")


def packed(facts: Iterable[str], width: int) -> str:
    """Facts after one another, separated by commas, as many in a line as fit."""
    found: list[str] = []
    for fact in facts:
        # The comma that may follow must fit, too.
        if found and cell_len(found[-1] + _BETWEEN + fact) < width:
            found[-1] += _BETWEEN + fact
        else:
            found.append(fact)
    return ",\n".join(found)


def print_blocks(blocks: Iterable[RenderableType], console: Console) -> None:
    """Print blocks to standard output at once; see `write`."""
    with console.capture() as captured:
        for block in blocks:
            console.print(block, highlight=False)
    # rich fills every wrapped line with spaces.
    write("\n".join(line.rstrip(" ") for line in captured.get().split("\n")))


def write(text: str) -> None:
    """Write to standard output; that a reader has seen enough and closed the pipe is no error."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        # What Python still holds would be written, and fail, once more when it ends.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _table(listing: Listing) -> Table:
    table = Table()
    for head in listing.heads:
        table.add_column(Text(head), overflow="fold")
    for line in listing.lines:
        table.add_row(*map(Text, line))
    return table


Name = Annotated[
    str, typer.Argument(help="Benchmark or prompt set, for example ts2; `list` shows all.")
]


def known() -> Mapping[str, Benchmark]:
    """Every benchmark of metrics, by name."""
    return load_registry()


def known_sets() -> Mapping[str, PromptSet]:
    """Every prompt set, by name."""
    return load_prompt_sets()


def named(name: str) -> Benchmark:
    """The benchmark or prompt set of a name."""
    return find(with_prompt_sets(known(), known_sets()), name)


def print_json(content: object) -> None:
    """Print for programs."""
    typer.echo(json.dumps(content, indent=1, ensure_ascii=False))


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
    """Drawing settings of a prompt set, for programs."""
    drawing = prompt_set.drawing
    return {
        "seeds": list(drawing.seeds),
        "least_side": drawing.least_side,
        "most_side": drawing.most_side,
        "rated_by": prompt_set.rated_by or None,
        "judge": prompt_set.judge.model_dump(mode="json") if prompt_set.judge else None,
    }


def drawing_words(prompt_set: PromptSet, n_prompts: int | None) -> str:
    """Drawing settings of a prompt set, in words."""
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
    return f"Asked for are {asked}; {sides}.{rated}{_judge_words(prompt_set)}"


def _judge_words(prompt_set: PromptSet) -> str:
    judge = prompt_set.judge
    if judge is None:
        return ""
    metrics = f" Built-in metrics: {', '.join(judge.metrics)}." if judge.metrics else ""
    return f" Its authors' judge: {judge.title}.{metrics} {judge.note}".rstrip()


def sets_table(lines: Iterable[Mapping[str, Any]]) -> Table:
    """Table of prompt sets, a line each; only a title may be cut."""
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
