"""`python -m tools.demo_split`: writes the files of the demo split, or compares them (`--check`)."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from functools import partial
from typing import Annotated

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import typer

from benchmarks.command_line import run
from benchmarks.demo.load import FOLDER, HASHES, ROWS_PER_GROUP
from benchmarks.parquet import parquet_table
from benchmarks.schema import Questions
from tools.demo_split import croc, evalmuse, gecko, ts2
from tools.demo_split.models import MODELS, depict
from tools.demo_split.pictures import chance, shoot

SEEDS = (1, 2)
"""Each simulated model draws each prompt of the prompt set with each of them."""
_ELEMENTS = pa.list_(pa.struct([("element_id", pa.string()), ("text", pa.string())]))


def main(
    check: Annotated[
        bool, typer.Option(help="Write nothing; exit with 1 where they differ.")
    ] = False,
) -> None:
    """Write the files of the demo split and their hashes, and name each that has changed.

    Example: python -m tools.demo_split --check
    """
    made = dict(tables())
    changed = [path for path, table in made.items() if not _stands(path, table)]
    changed += [str(p.relative_to(FOLDER)) for p in FOLDER.rglob("*.parquet")
                if str(p.relative_to(FOLDER)) not in made]  # fmt: skip
    for path in changed:
        typer.echo(path)
        if not check:
            _write(path, made.get(path))
    if check:
        raise typer.Exit(bool(changed))
    _write_hashes(sorted(made))


def tables() -> Iterator[tuple[str, pa.Table]]:
    """Every file of the split by its path below the folder, made anew from the seed."""
    pairs = [asdict(pair) for pair in croc.answers().prompt_pairs]
    yield "croc/prompt_pairs.parquet", pa.Table.from_pylist(pairs)
    yield "ts2/nodes.parquet", _table(ts2.answers().nodes)
    labels = evalmuse.answers()
    yield "evalmuse/images.parquet", _table(labels.images)
    yield "evalmuse/elements.parquet", _table(labels.elements)
    ratings = gecko.answers()
    yield "gecko/prompts.parquet", _table(ratings.prompts)
    yield "gecko/pairs.parquet", _table(ratings.pairs)
    yield "gecko/ratings.parquet", _table(ratings.ratings)
    for family, module in {"croc": croc, "ts2": ts2, "evalmuse": evalmuse, "gecko": gecko}.items():
        yield from _questions(family, module.questions())
    yield "models/pictures.parquet", _pictures(generations())


def generations() -> Mapping[str, Callable[[], bytes]]:
    """What each simulated model makes of the prompt set: `<model>/<prompt_id>/<seed>` to a PNG file."""
    return {
        f"{model}/{prompt.id}/{seed}": partial(_generation, prompt, model, seed)
        for model in MODELS
        for prompt in gecko.prompts()
        for seed in SEEDS
    }


def _generation(prompt: gecko.Prompt, model: str, seed: int) -> bytes:
    depiction = depict(prompt.scene, model, chance("models", prompt.id, model, seed))
    return shoot(depiction.drawn, f"models/{prompt.id}/{model}/{seed}")


def _questions(family: str, questions: Questions) -> Iterator[tuple[str, pa.Table]]:
    yield (
        f"{family}/question_pairs.parquet",
        pa.Table.from_pylist([asdict(pair) for pair in questions.pairs]),
    )
    elements = [
        [asdict(element) for element in questions.elements.get(text_id, ())]
        for text_id in questions.texts
    ]
    yield (
        f"{family}/texts.parquet",
        pa.table(
            {
                "text_id": list(questions.texts),
                "text": list(questions.texts.values()),
                "elements": pa.array(elements, _ELEMENTS),
            }
        ),
    )
    yield f"{family}/pictures.parquet", _pictures(questions.images)


def _pictures(images: Mapping[str, Callable[[], bytes]]) -> pa.Table:
    return pa.table({"image_id": list(images), "png": [encode() for encode in images.values()]})


def _table(frame: pd.DataFrame) -> pa.Table:
    return pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)


def _stands(path: str, table: pa.Table) -> bool:
    """Whether the file holds the table; its bytes may be of another version of Arrow."""
    place = FOLDER / path
    return place.is_file() and parquet_table(place.read_bytes()).equals(table)


def _write(path: str, table: pa.Table | None) -> None:
    place = FOLDER / path
    if table is None:
        place.unlink()
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    rows = ROWS_PER_GROUP if "png" in table.column_names else None
    options = {"compression": "zstd", "compression_level": 22, "row_group_size": rows}
    pq.write_table(table, place, use_dictionary=rows is None, **options)


def _write_hashes(paths: list[str]) -> None:
    lines = (
        f'"{path}" = "{hashlib.sha256((FOLDER / path).read_bytes()).hexdigest()}"' for path in paths
    )
    head = "# Written by `python -m tools.demo_split`: SHA-256 of each file of the demo split."
    HASHES.write_text("\n".join([head, "[sha256]", *lines]) + "\n", "utf-8")


if __name__ == "__main__":
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(main)
    sys.exit(run(app))
