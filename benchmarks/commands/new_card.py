"""Command `new`: a card proposed from the columns of a table."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from benchmarks.command_line import CommandConsole, JsonOption, errors
from benchmarks.commands.common import Listing, print_blocks, print_json, table_or_lines
from benchmarks.errors import SubmitterError
from benchmarks.families import headline_of
from benchmarks.named_cards import CARD, load_named
from benchmarks.problems import Problem, problems_of
from benchmarks.proposal import PROPOSED, Proposal, SourceFile, card_text, propose
from benchmarks.sources.output import check_output
from benchmarks.sources.remote import Hub
from benchmarks.table_sample import SampledTable, sample_file, sample_hub

_HERE = "It lies beside the card."


def new(
    table: Annotated[
        str,
        typer.Argument(
            help="CSV, TSV, JSON, JSON Lines, Parquet or xlsx file, or hub:OWNER/NAME[@REVISION]."
        ),
    ],
    *,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Folder of the card; without it, one named for the table."),
    ] = None,
    family: Annotated[
        str, typer.Option(help=f"If known: {', '.join(PROPOSED)}; without it, it is guessed.")
    ] = "",
    config: Annotated[str, typer.Option(help="Of a data set of the Hub.")] = "",
    split: Annotated[str, typer.Option(help="Of a data set of the Hub.")] = "test",
    as_json: JsonOption = False,
) -> None:
    """Propose a card for a table of human labels: a folder with card.toml and a copy of the table.

    Family and columns are guessed from names and values; each line says why, and what could not be
    guessed is FILL IN, which is told with its line. Of a data set of the Hub, which is pinned by its
    commit, only columns and first rows are read; the card names its files, and nothing is copied.

    Example: python -m benchmarks new votes.csv --out boards/my_votes
    """
    chosen = next((one for one in PROPOSED if one == family), None)
    if family and chosen is None:
        raise typer.BadParameter(f"one of {', '.join(PROPOSED)}", param_hint="--family")
    sampled = (
        sample_hub(table, Hub(), config, split) if table.startswith("hub:") else sample_file(table)
    )
    folder = out or Path(_name_of(sampled.name))
    name = _name_of(folder.resolve().name)
    card = folder / CARD
    check_output(card, force=False)
    made = propose(sampled.rows, chosen)
    text = card_text(made, name, _source(sampled, name), headline_of(made.family), sampled.n_rows)
    folder.mkdir(parents=True, exist_ok=True)
    if sampled.file is not None and not (folder / sampled.file.name).exists():
        shutil.copyfile(sampled.file, folder / sampled.file.name)
    card.write_text(text, encoding="utf-8")
    problems = _problems(card)
    if as_json:
        print_json(_for_programs(card, made, problems))
    else:
        _for_people(card, made, problems, fetched=sampled.file is None)


def _name_of(text: str) -> str:
    """A name as a card may have it."""
    return (re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_") or "mine")[:60]


def _source(sampled: SampledTable, name: str) -> SourceFile:
    if sampled.file is None:
        base = sampled.origin["name"].rpartition("/")[2]
        return SourceFile(f"{name}/{base}", sampled.origin, sampled.revision)
    origin = {**sampled.origin, "beside": True, "supplied": _HERE}
    path = f"{name}/{sampled.file.name}"
    return SourceFile(path, origin, sampled.revision, records=sampled.records)


def _problems(card: Path) -> tuple[Problem, ...]:
    """What is left to do in the card, and in data that are at hand."""
    try:
        benchmark = load_named(card)
        if all(file.beside for file in benchmark.card.files):
            benchmark.answers(None)
    except SubmitterError as error:
        return problems_of(error)
    return ()


def _for_programs(card: Path, made: Proposal, problems: tuple[Problem, ...]) -> dict[str, Any]:
    guesses = [{"column": one.column, "role": one.role, "why": one.why} for one in made.guesses]
    left = [{"line": one.line, "message": one.message, "hint": one.hint} for one in problems]
    return {
        "card": str(card),
        "family": made.family,
        "guesses": guesses,
        "unknown": made.unknown,
        "problems": left,
    }


def _for_people(
    card: Path, made: Proposal, problems: tuple[Problem, ...], *, fetched: bool
) -> None:
    console = CommandConsole()
    lines = [tuple(map(_printable, (one.column, one.role, one.why))) for one in made.guesses]
    listing = Listing(f"{card}: family {made.family}", ("column", "taken for", "because"), lines)
    print_blocks(table_or_lines(listing, console.width), console)
    for text in made.unknown:
        console.print(Text(f"Not known: {_printable(text)}"))
    for one in problems:
        place = f"{one.place}: " if one.place else ""
        errors().print(f"To do: {place}{one.message}", markup=False, highlight=False)
    if fetched:
        console.print(
            Text(
                f"Its files: ASSAY_BENCHMARKS={card.parent} python -m benchmarks fetch {card.parent.name}"
            )
        )
    console.print(Text(f"Next: python -m benchmarks check {card.parent}"))


def _printable(text: str) -> str:
    return "".join(sign if sign.isprintable() else "?" for sign in text)
