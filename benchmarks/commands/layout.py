"""Tables that give way to lines where the screen is narrow, and output into a pipe that closes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

_INDENT = 2
_BETWEEN = ", "


@dataclass(frozen=True)
class Listing:
    """Something with the same facts of each of its entries.

    Attributes:
        title: what is listed.
        heads: names of the facts.
        lines: per entry one cell per head; an empty cell says that the fact is not there.
        n_names: so many leading facts tell an entry from the others.
    """

    title: str
    heads: Sequence[str]
    lines: Sequence[Sequence[str]]
    n_names: int = 1


def table_or_lines(listing: Listing, width: int) -> Iterator[RenderableType]:
    """A table where it fits, else a block of `name value` facts for each entry.

    No fact is cut, and it is broken over two lines only if it is longer than one.

    Args:
        listing: what to print; its texts are shown as they are, without markup.
        width: characters of a line.

    Yields:
        Blocks to print one below the other.
    """
    yield Text(listing.title, style="italic")
    table = _table(listing)
    if _fits(table, width):
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
    """Facts after one another, separated by commas, as many in a line as fit.

    Args:
        facts: texts; one longer than a line has a line to itself, and stays too long.
        width: characters of a line.
    """
    found: list[str] = []
    for fact in facts:
        # The comma that may follow must fit, too.
        if found and cell_len(found[-1] + _BETWEEN + fact) < width:
            found[-1] += _BETWEEN + fact
        else:
            found.append(fact)
    return ",\n".join(found)


def print_blocks(blocks: Iterable[RenderableType], console: Console) -> None:
    """Print blocks to standard output at once; see `write`.

    Args:
        blocks: what to print.
        console: says how wide the lines are and whether there are colours.
    """
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


def _fits(table: Table, width: int) -> bool:
    unbounded = Console(width=100_000)
    return Measurement.get(unbounded, unbounded.options, table).maximum <= width
