"""Tables that give way to lines where the terminal is narrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

Heads = Sequence[tuple[str, str]]
"""Name of each column, and on which side its cells stand: `left` or `right`."""
_UNBOUNDED = Console(width=100_000)


def table_or_lines(
    heads: Heads, lines: Sequence[Sequence[str]], width: int
) -> Iterator[RenderableType]:
    """A table where it fits; else a few lines for each row. No number is ever cut."""
    table = plain_table(heads, lines)
    if fits(table, width):
        yield table
        return
    names = [name for name, _ in heads]
    for line in lines:
        yield Text(line[0], style="bold")
        said = ", ".join(f"{n} {cell}" for n, cell in zip(names[1:], line[1:], strict=True))
        yield Padding(Text(said), (0, 0, 0, 2), expand=False)
    yield Text("")


def plain_table(heads: Heads, lines: Sequence[Sequence[str]]) -> Table:
    """Columns named and aligned by `heads`, without lines between rows."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name, justify in heads:
        table.add_column(Text(name), justify=justify, overflow="fold")  # type: ignore[arg-type]
    for line in lines:
        table.add_row(*map(Text, line))
    return table


def fits(table: Table, width: int) -> bool:
    """Whether the table needs no more than so many characters a line."""
    return Measurement.get(_UNBOUNDED, _UNBOUNDED.options, table).maximum <= width
