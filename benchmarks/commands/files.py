"""Commands `fetch`, `pairs`, `prompts` and `questions`: files of a benchmark, and what is made of them."""

from __future__ import annotations

import io
import shlex
import sys
from collections.abc import Iterator, Set
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from benchmarks.command_line import CommandConsole, DataOption, JsonOption, errors
from benchmarks.commands.common import (
    Name,
    known,
    known_sets,
    named,
    print_json,
    set_line,
    sets_table,
)
from benchmarks.errors import SubmitterError
from benchmarks.fetch import FetchReport
from benchmarks.fetch import fetch as fetch_files
from benchmarks.prompt_sets.folder_template import MANIFEST, TABLE, FolderTemplate, template_files
from benchmarks.prompt_sets.prompt_set import IMAGES, SEEDS, PromptSet, parse_seeds
from benchmarks.questions import QuestionFolder, Tell, export_questions, key_path
from benchmarks.registry import find
from benchmarks.schema import Benchmark
from benchmarks.scores import name_for
from benchmarks.sources.output import check_output, write_new, write_whole
from benchmarks.sources.remote import Hub
from benchmarks.sources.transfer import as_bytes, meter_for


def fetch(
    name: Name,
    *,
    data: DataOption = None,
    answers_only: Annotated[
        bool, typer.Option("--answers-only", help="Leave the images out.")
    ] = False,
    subset: Annotated[
        int | None,
        typer.Option(
            "--subset", min=1, help="Take the images of about so many prompts only, to try out."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Download a benchmark's files: continued after a cut, checked, each only once.

    HF_TOKEN opens repositories whose terms you accepted. What was fetched first is what every
    later fetch takes: commit and hashes are kept in pins.json beside the files.

    Example: python -m benchmarks fetch ts2 --data data
    """
    benchmark = named(name)
    if data is None:
        raise SubmitterError(
            "no_folder",
            "There is no folder for the files.",
            "Name one with --data or ASSAY_DATA; it is made if needed.",
        )
    if answers_only and subset is not None:
        raise typer.BadParameter("--answers-only and --subset exclude each other")
    console = errors()
    with meter_for(console) as meter:
        done = fetch_files(
            benchmark, data, Hub(), answers_only=answers_only, subset=subset, meter=meter
        )
    if as_json:
        print_json(asdict(done))
        return
    optional = {file.path for file in benchmark.card.files if file.optional}
    for line in _closing(done, optional):
        console.print(line, markup=False, highlight=False)


def _closing(done: FetchReport, optional: Set[str]) -> list[str]:
    """Closing lines for a person."""
    lines = [f"{repo} at commit {commit}" for repo, commit in done.commits.items()]
    for path, how in done.supplied.items():
        duty = "May be supplied" if path in optional else "Still to be supplied"
        lines.append(f"{duty}: {path}. {how}")
    if done.trial:
        lines.append(
            f"These images are for trying things out; {done.benchmark} itself still needs all of "
            f"them: python -m benchmarks fetch {done.benchmark} --data {done.data}"
        )
    if not (done.downloaded or done.there or done.supplied or done.trial):
        lines.append(f"{done.benchmark} needs no files.")
    return lines


class Format(StrEnum):
    """File formats of the table of prompts."""

    CSV = "csv"
    JSONL = "jsonl"
    PARQUET = "parquet"


def prompts(
    name: Annotated[
        str, typer.Argument(help="Prompt set or benchmark; without it, the prompt sets are listed.")
    ] = "",
    *,
    data: DataOption = None,
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
    as_json: JsonOption = False,
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
    """A benchmark's prompts to be exported, and their format."""

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
    console = CommandConsole()
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
    wanted = FolderTemplate(
        list(zip(table["prompt_id"], table["prompt"], strict=True)),
        seeds or (drawing.seeds if drawing else SEEDS),
        benchmark.name,
        benchmark.card.revision,
        drawing,
    )
    prompts_file = f"prompts.{export.form}"
    files = {**template_files(title, wanted), prompts_file: _encoded(table, export.form)}
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


def pairs(
    name: Name,
    *,
    data: DataOption = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="CSV file to write; without it, standard output.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
    as_json: JsonOption = False,
) -> None:
    """List the pairs that a scores file must hold; their images need not be there.

    The columns are pair_id, image_id and prompt. Ids and prompts that the files at hand do not tell
    are empty; of a benchmark that keeps its answers and whose images are not there, only the pair ids
    are listed, sorted.

    Example: python -m benchmarks pairs ts2
    """
    if out is not None and as_json:
        raise typer.BadParameter("--json goes to standard output", param_hint="--out")
    if out is not None:
        check_output(out, force=force)
    table = pair_table(find(known(), name), data)
    if as_json:
        print_json(table.to_dict("records"))
        return
    content = _encoded(table, Format.CSV)
    if out is None:
        sys.stdout.buffer.write(content)
        sys.stdout.flush()
        return
    write_whole(out, lambda place: place.write_bytes(content))
    _say(f"{len(table)} pairs in {out}")


def pair_table(benchmark: Benchmark, data: Path | None) -> pd.DataFrame:
    """Columns `pair_id`, `image_id`, `prompt` of each pair; nothing of what people said of it."""
    columns = ["pair_id", "image_id", "prompt"]
    if benchmark.has_questions(data):
        asked = benchmark.questions(data)
        rows = [(pair.pair_id, pair.image_id, asked.texts[pair.text_id]) for pair in asked.pairs]
        return pd.DataFrame(rows, columns=columns)
    answers = benchmark.answers(data)
    if not benchmark.card.answers_public:
        # Their order could tell what is kept.
        return pd.DataFrame(
            {"pair_id": sorted(answers.pair_ids), "image_id": "", "prompt": ""}, columns=columns
        )
    known_pairs = benchmark.cases(answers, data)
    told = (
        pd.DataFrame(columns=columns)
        if known_pairs is None
        else known_pairs[columns].drop_duplicates("pair_id")
    )
    return pd.DataFrame({"pair_id": answers.pair_ids}).merge(told, how="left").fillna("")


_LINES = 10
"""Lines of progress in a log."""


def questions(
    name: Name,
    *,
    data: DataOption = None,
    out: Annotated[Path, typer.Option("--out", help="Holds the exported folders and their keys.")],
    force: Annotated[
        bool,
        typer.Option("--force", help="Replace an export of another revision, and draw a new key."),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Write images, prompts and pairs under opaque ids, without answers, for a scoring host.

    OUT/NAME goes to the scoring host. OUT/NAME.key.parquet says what the ids stand for: it stays
    with the judge.

    Example: python -m benchmarks questions ts2 --data data --out questions
    """
    benchmark, console = named(name), errors()
    with _progress(console) as tell:
        folder = export_questions(benchmark, data, out, tell, force=force)
    about, key = QuestionFolder(out).about(benchmark.name), key_path(out, benchmark.name)
    if as_json:
        whole = about.model_dump(include={"name", "revision", "tag", "counts"})
        print_json({**whole, "folder": str(folder), "key": str(key)})
        return
    size = as_bytes(about.counts["bytes"])
    for line in (
        f"{about.counts['pairs']} pairs, {about.counts['images']} images, {size} in {folder}",
        f"The scoring host needs {folder} alone; {key} stays with the judge.",
    ):
        console.print(line, markup=False, highlight=False)


@contextmanager
def _progress(console: Console) -> Iterator[Tell]:
    """A bar where someone looks, a few lines elsewhere."""
    if not (console.is_terminal and sys.stderr.isatty()):
        yield lambda done, total: _line(console, done, total)
        return
    columns = (TextColumn("images"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def _line(console: Console, done: int, total: int) -> None:
    if done * _LINES // total > (done - 1) * _LINES // total:
        console.print(f"image {done} of {total}", markup=False, highlight=False)
