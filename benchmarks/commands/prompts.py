"""`prompts`: what model developers draw: the prompts, and a folder that says which images go where."""

from __future__ import annotations

import io
import shlex
import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer
from rich.console import Console

from benchmarks.command_line import errors
from benchmarks.commands.common import AsJson, Data, known_sets, named, print_json
from benchmarks.commands.prompt_set_lines import set_line, sets_table
from benchmarks.prompt_sets.image_names import IMAGES
from benchmarks.prompt_sets.prompt_set import SEEDS, PromptSet
from benchmarks.prompt_sets.seeds import parse_seeds
from benchmarks.prompt_sets.wanted import MANIFEST, TABLE, Wanted, wanted_files
from benchmarks.schema import Benchmark
from benchmarks.sources.new_folder import name_for, write_new
from benchmarks.sources.output import check_output, write_whole


class Format(StrEnum):
    """How the table is written."""

    CSV = "csv"
    JSONL = "jsonl"
    PARQUET = "parquet"


def prompts(
    name: Annotated[
        str, typer.Argument(help="Prompt set or benchmark; without it, the prompt sets are listed.")
    ] = "",
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
    manifest: Annotated[
        bool,
        typer.Option(
            "--manifest", help="--out is a new folder: prompts, assay.toml and images.jsonl."
        ),
    ] = False,
    seeds: Annotated[
        str | None,
        typer.Option("--seeds", help="For --manifest; without it, those that the set proposes."),
    ] = None,
    model: Annotated[
        str,
        typer.Option(
            "--name", help="For --manifest: the model's name on boards, if not the folder's."
        ),
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Write the prompts that models draw, or a folder to draw into; without a name, list the sets.

    The columns are prompt_id, prompt, split and skills (joined by `;`). With --manifest, --out is
    a new folder that holds them beside assay.toml, which you complete with what you know of the
    model, and images.jsonl, which names the file of every wanted image. With the images in their
    places it can be submitted.

    Example: python -m benchmarks prompts gecko_s --data data --manifest --out my-model
    """
    _check_options(name, out, seeds, model, manifest=manifest, force=force, as_json=as_json)
    if not name:
        _list(data, as_json=as_json)
        return
    chosen = form or _by_ending(None if manifest else out)
    if out is None and chosen is Format.PARQUET:
        raise typer.BadParameter("Parquet is not text: name a file with --out.")
    benchmark = named(name)
    if out is None:
        sys.stdout.buffer.write(_encoded(_table(benchmark, data), chosen))
        sys.stdout.flush()
    elif manifest:
        asked = parse_seeds(seeds) if seeds is not None else None
        _write_folder(out, name_for(model, out), _Export(benchmark, data, chosen), asked)
    else:
        _write_file(out, _Export(benchmark, data, chosen), force=force)


@dataclass(frozen=True)
class _Export:
    """What is exported, and in which form."""

    benchmark: Benchmark
    data: Path | None
    form: Format


def _check_options(
    name: str,
    out: Path | None,
    seeds: str | None,
    model: str,
    *,
    manifest: bool,
    force: bool,
    as_json: bool,
) -> None:
    if name and as_json:
        raise typer.BadParameter("--json is for the list; --format jsonl gives the prompts as JSON")
    if not name and (out is not None or manifest):
        raise typer.BadParameter("name the prompt set")
    if manifest and force:
        raise typer.BadParameter("--manifest replaces no folder", param_hint="--force")
    if manifest and out is None:
        raise typer.BadParameter("--manifest needs a new folder", param_hint="--out")
    if (seeds is not None or model) and not manifest:
        raise typer.BadParameter("--seeds and --name go with --manifest")


def _list(data: Path | None, *, as_json: bool) -> None:
    lines = [set_line(one, data) for _, one in sorted(known_sets().items())]
    if as_json:
        print_json(lines)
        return
    console = Console()
    console.print(sets_table(lines))
    for line in lines:
        for fault in line["problems"].values():
            text = f"{line['name']}: {fault['text']}"
            console.print(text, markup=False, highlight=False, soft_wrap=True)


def _write_file(out: Path, export: _Export, *, force: bool) -> None:
    data, files = export.data, export.benchmark.card.files
    declared = (data / file.path for file in files) if data else ()
    check_output(out, force=force, inputs=declared)
    table = _table(export.benchmark, data)
    content = _encoded(table, export.form)
    write_whole(out, lambda place: place.write_bytes(content))
    _say(f"{len(table)} prompts in {out}")


def _write_folder(folder: Path, title: str, export: _Export, seeds: tuple[int, ...] | None) -> None:
    benchmark, table = export.benchmark, _table(export.benchmark, export.data)
    # A benchmark of metrics proposes nothing of its own.
    drawing = benchmark.drawing if isinstance(benchmark, PromptSet) else None
    wanted = Wanted(
        list(zip(table["prompt_id"], table["prompt"], strict=True)),
        seeds or (drawing.seeds if drawing else SEEDS),
        benchmark.name,
        benchmark.card.revision,
        drawing,
    )
    prompts_file = f"prompts.{export.form}"
    files = {**wanted_files(title, wanted), prompts_file: _encoded(table, export.form)}
    write_new(folder, files, (IMAGES,))
    _say(f"{folder}: {len(table)} prompts in {prompts_file}, {wanted.n_images} images in {TABLE}.")
    _say(f"Put each image where {TABLE} says, and what you know of the model into {MANIFEST}.")
    _say(f"What is missing or wrong: python -m evaluator check {shlex.quote(str(folder))}")


def _table(benchmark: Benchmark, data: Path | None) -> pd.DataFrame:
    return benchmark.prompts(data)[["prompt_id", "prompt", "split", "skills"]]


def _say(text: str) -> None:
    errors().print(text, markup=False, highlight=False)


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
