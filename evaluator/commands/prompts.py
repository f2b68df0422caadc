"""`prompts`: make synthetic prompts, and choose a balanced set out of many."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.table import Table

from benchmarks.command_line import JsonOption, errors
from benchmarks.errors import SubmitterError
from benchmarks.sources.output import check_output, write_new, write_whole
from evaluator.commands.common import console, stopped_in_words
from evaluator.commands.language_model import (
    EndpointOption,
    LanguageModelOption,
    open_language_model,
)
from evaluator.commands.progress import progress_bar
from evaluator.scorers.registry import Runtime

if TYPE_CHECKING:
    from evaluator.prompts.pool import Pool
    from evaluator.prompts.report import SelectionReport

app = typer.Typer(help="Prompt sets of your own: make prompts, label them, choose a balanced set.")


@app.command()
def build(
    pool: Annotated[Path, typer.Argument(help="Prompts with labels: CSV, JSON Lines or Parquet.")],
    out: Annotated[Path, typer.Option("--out", help="Folder to make.")],
    n: Annotated[int, typer.Option("--n", min=1, help="How many prompts to choose.")],
    *,
    dimension: Annotated[
        list[str] | None,
        typer.Option(help="Column of labels, with ; between several; repeatable."),
    ] = None,
    embeddings: Annotated[
        Path | None,
        typer.Option(help="NumPy file with a vector for each row: one more dimension, by k-means."),
    ] = None,
    clusters: Annotated[int, typer.Option(min=2, help="Of the embeddings.")] = 7,
    seed: Annotated[int, typer.Option(min=0, help="The same gives the same choice.")] = 0,
    limit_s: Annotated[
        float, typer.Option(min=1, help="Most seconds of each of two solutions.")
    ] = 30.0,
    as_json: JsonOption = False,
) -> None:
    """Choose prompts so that the categories of every dimension are as even as can be.

    As EvalMuse-40K was made: whole targets, the relaxation, then the program over what it leaves
    open. Writes prompts.csv, which `generate --prompts` takes, report.json and report.html.

    Example: python -m evaluator prompts build pool.csv --n 2000 --dimension subject --out set
    """
    from evaluator.prompts.pool import read_pool  # noqa: PLC0415 (with SciPy, where it is used)
    from evaluator.prompts.report import SelectionReport  # noqa: PLC0415
    from evaluator.prompts.selection import select  # noqa: PLC0415

    if not dimension and embeddings is None:
        raise SubmitterError(
            "no_dimensions",
            "No dimension is named in which the prompts are to be balanced.",
            "Name columns of labels with --dimension, or give --embeddings; `prompts classify` "
            "makes labels.",
        )
    vectors = None if embeddings is None else _vectors(embeddings)
    found = read_pool(pool, dimension or (), vectors, clusters, seed)
    if n >= len(found.texts):
        raise SubmitterError(
            "too_few_prompts",
            f"{pool.name} has {len(found.texts)} different prompts, and {n} are to be chosen.",
            "Choose fewer, or bring more.",
        )
    chosen = select(found.dimensions, n, seed, limit_s)
    report = SelectionReport(pool.name, seed, found, chosen)
    figures = json.dumps(report.figures, indent=1, ensure_ascii=False)
    write_new(
        out,
        {
            "prompts.csv": _csv(found, chosen.chosen.tolist()),
            "report.json": f"{figures}\n".encode(),
            "report.html": report.html.encode(),
        },
    )
    if as_json:
        typer.echo(figures)
        return
    _print(report, out)


@app.command()
def synthesise(
    out: Annotated[Path, typer.Option("--out", help="CSV file to write.")],
    n: Annotated[int, typer.Option("--n", min=1, help="How many prompts to make.")],
    *,
    kind: Annotated[
        list[str] | None, typer.Option(help="Only this kind; repeatable. Without it, all six.")
    ] = None,
    questions: Annotated[
        Path | None,
        typer.Option(help="Question file to write too: a yes-or-no question for each element."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same gives the same prompts.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace a file.")] = False,
) -> None:
    """Make prompts of six kinds from word lists: counts, colours and materials, and so on.

    As the synthetic half of EvalMuse-40K tests them. Each kind is a skill, and the elements of a
    prompt stand beside it with their types.

    Example: python -m evaluator prompts synthesise --n 600 --out synthetic.csv
    """
    from evaluator.prompts.synthesis import KINDS, synthesised  # noqa: PLC0415 (as above)
    from evaluator.scorers.questions.files import write_records  # noqa: PLC0415

    if questions is not None and questions.absolute() == out.absolute():
        raise SubmitterError("same_file", f"{out} cannot hold both.", "Name two files.")
    for file in filter(None, (out, questions)):
        check_output(file, force=force)
        _check_parent(file)
    made = synthesised(n, seed, tuple(dict.fromkeys(kind or KINDS)))
    rows = (
        (one.prompt_id, one.text, one.kind, ";".join(f"{e.text} ({e.type})" for e in one.elements))
        for one in made
    )
    content = _table(("prompt_id", "prompt", "skills", "elements"), rows)
    write_whole(out, lambda path: path.write_bytes(content))
    if questions is not None:
        write_records(questions, [asked for one in made for asked in one.questions()])
    counts = Counter(one.kind for one in made)
    told = ", ".join(f"{count} of {name}" for name, count in counts.items())
    console().print(f"{out}: {len(made)} prompts, {told}.", markup=False, highlight=False)


@app.command()
def classify(
    prompts: Annotated[Path, typer.Argument(help="Prompts: CSV, JSON Lines or Parquet.")],
    out: Annotated[
        Path, typer.Option("--out", help="JSON Lines of labels to write, or to go on with.")
    ],
    model: LanguageModelOption,
    *,
    dimensions: Annotated[
        Path | None,
        typer.Option(help="TOML file of dimensions and categories; without it, EvalMuse's three."),
    ] = None,
    endpoint: EndpointOption = None,
    revision: Annotated[str, typer.Option(help="Commit of the model.")] = "",
    device: Annotated[str, typer.Option(help="As torch names it.")] = "cpu",
    offline: Annotated[bool, typer.Option("--offline", help="Never ask the Hub.")] = False,
) -> None:
    """Label prompts with a language model, for `build`; a run that was stopped goes on where it was.

    A reply that cannot be read is asked for again, twice at most; then the prompt has no labels and
    is named with the reason. The next run tries it again; replies of an endpoint are kept, though.

    Example: python -m evaluator prompts classify pool.csv --model Qwen/Qwen2.5-7B-Instruct
    --out labelled.jsonl
    """
    from evaluator.prompts.classification import (  # noqa: PLC0415 (as above)
        DIMENSIONS,
        WORDING,
        nothing_labelled,
        read_dimensions,
    )
    from evaluator.prompts.classification import classify as label  # noqa: PLC0415
    from evaluator.prompts.pool import read_pool  # noqa: PLC0415

    check_output(out, force=True, inputs=(prompts,))
    _check_parent(out)
    wanted = read_dimensions(dimensions or DIMENSIONS)
    pool = read_pool(prompts, ())
    text_model, named = open_language_model(
        model, endpoint, revision, Runtime(device, offline=offline)
    )
    of = dict(zip(pool.ids, pool.texts, strict=True))
    with (
        stopped_in_words("The same command goes on where it was."),
        progress_bar("classifying") as bar,
    ):
        found = label(of, wanted, text_model, out, by=f"{named} ({WORDING})", listener=bar)
    for name, fault in found.failed.items():
        errors().print(f"{name}: {fault}", markup=False, highlight=False)
    console().print(
        f"{out}: {found.written} prompts labelled, {found.kept} were there, "
        f"{len(found.failed)} have no labels; {found.changed} labels of changed prompts were dropped.",
        markup=False,
        highlight=False,
    )
    if found.failed and not (found.written or found.kept):
        raise nothing_labelled(next(iter(found.failed.values())))


@app.command()
def embed(
    prompts: Annotated[Path, typer.Argument(help="Prompts: CSV, JSON Lines or Parquet.")],
    out: Annotated[Path, typer.Option("--out", help="NumPy file to write.")],
    model: Annotated[
        str, typer.Option(help="Sentence encoder: Hub id or folder of a BERT or its like.")
    ],
    *,
    revision: Annotated[str, typer.Option(help="Commit of the model.")] = "",
    device: Annotated[str, typer.Option(help="As torch names it.")] = "cpu",
    offline: Annotated[bool, typer.Option("--offline", help="Never ask the Hub.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a file.")] = False,
) -> None:
    """Write a vector for each row of a table of prompts, for `build --embeddings`.

    The mean of the states of a prompt's tokens, of length one. A row without a prompt has zeros.

    Example: python -m evaluator prompts embed pool.csv --model google-bert/bert-base-uncased
    --out vectors.npy
    """
    from evaluator.prompts.embedding import embedded  # noqa: PLC0415 (as above)
    from evaluator.prompts.pool import read_texts  # noqa: PLC0415 (as above)
    from evaluator.scorers.questions.loading import open_encoder  # noqa: PLC0415 (torch)

    check_output(out, force=force, inputs=(prompts,))
    _check_parent(out)
    texts = read_texts(prompts)
    encoder, source = open_encoder(model, Runtime(device, offline=offline), revision)
    with progress_bar("embedding") as bar:
        vectors = embedded(texts, encoder.vectors, bar)
    write_whole(out, lambda path: _save(path, vectors))
    told = "@".join(filter(None, (source.name, source.revision)))
    console().print(
        f"{out}: {len(texts)} vectors of {vectors.shape[1]} numbers, by {told}.",
        markup=False,
        highlight=False,
    )


def _check_parent(file: Path) -> None:
    if not file.absolute().parent.is_dir():
        raise SubmitterError(
            "cannot_write", f"There is no folder {file.absolute().parent}.", "Make it first."
        )


def _vectors(file: Path) -> NDArray[np.floating[Any]]:
    try:
        with file.open("rb") as stream:
            found: NDArray[np.floating[Any]] = np.lib.format.read_array(stream, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise SubmitterError(
            "bad_embeddings", f"{file.name} cannot be read: {error}.", "Write it with numpy.save."
        ) from error
    return found


def _save(path: Path, vectors: NDArray[np.float32]) -> None:
    with path.open("wb") as file:  # a path would get the ending .npy
        np.save(file, vectors, allow_pickle=False)


def _csv(pool: Pool, places: list[int]) -> bytes:
    from evaluator.prompts.pool import SKILLS  # noqa: PLC0415 (as above)

    others = {name: cells for name, cells in pool.others.items() if name != SKILLS}
    rows = (
        (
            pool.ids[one],
            pool.texts[one],
            ";".join(pool.skills(one)),
            *(cells[one] for cells in others.values()),
        )
        for one in places
    )
    return _table(("prompt_id", "prompt", SKILLS, *others), rows)


def _table(columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> bytes:
    written = io.StringIO()
    table = csv.writer(written, lineterminator="\n")
    table.writerow(columns)
    table.writerows(rows)
    return written.getvalue().encode()


def _print(report: SelectionReport, out: Path) -> None:
    figures, table = report.figures, Table("choice", "sum of deviations", "largest")
    for name, of in (
        ("this one", figures),
        ("greedy", figures["greedy"]),
        ("at random, mean", figures["random"]),
    ):
        table.add_row(name, f"{of['l1']:.0f}", f"{of['largest']:.0f}")
    console().print(table)
    proved = "no choice is better" if figures["optimal"] else f"bound {figures['bound']}"
    proved += ", time ran out" if figures["stopped"] else ""
    console().print(
        f"{figures['chosen']} of {figures['prompts']} prompts; {proved}; "
        f"{figures['shortfall']} labels are missing in the pool. See {out}/report.html."
    )
