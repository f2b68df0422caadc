"""`prompts`: the prompt set of a benchmark, for those who generate images."""

from __future__ import annotations

import io
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

from benchmarks.command_line import errors
from benchmarks.commands.common import Data, Name, named
from benchmarks.sources.output import check_output, write_whole


class Format(StrEnum):
    """How the table is written."""

    CSV = "csv"
    JSONL = "jsonl"
    PARQUET = "parquet"


def prompts(
    name: Name,
    *,
    data: Data = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="File to write; without it, standard output.")
    ] = None,
    form: Annotated[
        Format | None,
        typer.Option("--format", help="Without it, by the ending of --out, else csv."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
) -> None:
    """Write the prompt set: prompt_id, prompt, split, skills (joined by `;`).

    Example: python -m benchmarks prompts gecko --data data --out prompts.csv
    """
    chosen = form or _by_ending(out)
    if out is None and chosen is Format.PARQUET:
        raise typer.BadParameter("Parquet is not text: name a file with --out.")
    benchmark = named(name)
    if out is not None:
        declared = (data / file.path for file in benchmark.card.files) if data else ()
        check_output(out, force=force, inputs=declared)
    table = benchmark.prompts(data)[["prompt_id", "prompt", "split", "skills"]]
    content = _encoded(table, chosen)
    if out is None:
        sys.stdout.buffer.write(content)
        sys.stdout.flush()
        return
    write_whole(out, lambda place: place.write_bytes(content))
    errors().print(f"{len(table)} prompts in {out}", markup=False, highlight=False)


def _by_ending(out: Path | None) -> Format:
    ending = out.suffix.lower().lstrip(".") if out else ""
    return Format(ending) if ending in set(Format) else Format.CSV


def _encoded(table: pd.DataFrame, form: Format) -> bytes:
    if form is Format.PARQUET:
        buffer = io.BytesIO()
        table.to_parquet(buffer, index=False)
        return buffer.getvalue()
    if form is Format.JSONL:
        text = table.to_json(orient="records", lines=True, force_ascii=False)
        return str(text).encode()
    return str(table.to_csv(index=False)).encode()
