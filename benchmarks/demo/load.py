"""Reader of the bundled demo split: tables and pictures as Parquet, checked against their hashes.

`python -m tools.demo_split` makes the files of `files/` and writes their hashes into `files.toml`.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Callable, Mapping
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from benchmarks.croc.load import CrocAnswers, PromptPair
from benchmarks.evalmuse.load import EvalMuseAnswers
from benchmarks.gecko.load import GeckoAnswers
from benchmarks.parquet import parquet_file, parquet_frame, parquet_table
from benchmarks.schema import Answers, Element, Pair, Questions
from benchmarks.sources.pins import bundled_bytes
from benchmarks.ts2.load import Ts2Answers

FOLDER = Path(__file__).parent / "files"
HASHES = Path(__file__).with_name("files.toml")
ROWS_PER_GROUP = 16
"""Pictures that are compressed together: one is read with so many others."""


def croc_answers() -> CrocAnswers:
    """Contrast pairs of prompts, with the stems of the pictures of either side."""
    rows = _rows("croc/prompt_pairs.parquet")
    stems = ("original_images", "contrast_images")
    pairs = tuple(PromptPair(**{**row, **{k: tuple(row[k]) for k in stems}}) for row in rows)
    return CrocAnswers(_pair_ids("croc"), tuple(pair.id for pair in pairs), pairs)


def ts2_answers() -> Ts2Answers:
    """Semantic error graphs, a row for each picture of a node."""
    return Ts2Answers(_pair_ids("ts2"), _text_ids("ts2"), read_table("ts2/nodes.parquet"))


def evalmuse_answers() -> EvalMuseAnswers:
    """Means of the simulated ratings, of pictures and of elements."""
    tables = (read_table(f"evalmuse/{name}.parquet") for name in ("images", "elements"))
    return EvalMuseAnswers(_pair_ids("evalmuse"), _text_ids("evalmuse"), *tables)


def gecko_answers() -> GeckoAnswers:
    """Raw simulated ratings, a row for each rated unit."""
    tables = (read_table(f"gecko/{name}.parquet") for name in ("prompts", "pairs", "ratings"))
    return GeckoAnswers(_pair_ids("gecko"), _text_ids("gecko"), *tables)


def questions(family: str) -> Questions:
    """The question side; the bytes of a picture are read when they are asked for."""
    pairs = _rows(f"{family}/question_pairs.parquet")
    texts = _rows(f"{family}/texts.parquet")
    return Questions(
        images=pictures(family),
        texts={row["text_id"]: row["text"] for row in texts},
        pairs=tuple(Pair(row["pair_id"], row["image_id"], row["text_id"]) for row in pairs),
        elements={
            row["text_id"]: tuple(Element(e["element_id"], e["text"]) for e in row["elements"])
            for row in texts
            if row["elements"]
        },
    )


def pictures(family: str) -> Mapping[str, Callable[[], bytes]]:
    """Image id to a function that returns the PNG file."""
    path = f"{family}/pictures.parquet"
    ids = parquet_table(_checked_bytes(path), ["image_id"])["image_id"].to_pylist()
    return {image_id: partial(_picture, path, at) for at, image_id in enumerate(ids)}


def read_table(path: str) -> pd.DataFrame:
    """A table, checked."""
    return parquet_frame(_checked_bytes(path))


@cache
def hashes() -> Mapping[str, str]:
    """SHA-256 of every file, by its path below `benchmarks/demo/files/`."""
    found: dict[str, str] = tomllib.loads(HASHES.read_text("utf-8"))["sha256"]
    return found


def _rows(path: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = parquet_table(_checked_bytes(path)).to_pylist()
    return rows


def _pair_ids(family: str) -> tuple[str, ...]:
    return tuple(read_table(f"{family}/question_pairs.parquet")["pair_id"])


def _text_ids(family: str) -> tuple[str, ...]:
    return tuple(read_table(f"{family}/texts.parquet")["text_id"])


def _picture(path: str, at: int) -> bytes:
    content: bytes = _group(path, at // ROWS_PER_GROUP)[at % ROWS_PER_GROUP].as_py()
    return content


@lru_cache(maxsize=4)
def _group(path: str, number: int) -> pa.ChunkedArray:
    """Pictures that were compressed together; readers of Arrow are opened anew for each thread."""
    file = parquet_file(_checked_bytes(path))
    return file.read_row_group(number, columns=["png"], use_threads=False)["png"]


@cache
def _checked_bytes(path: str) -> bytes:
    return bundled_bytes(FOLDER / path, hashes()[path], f"benchmarks/demo/files/{path}")


# Hashes of all that the demo is made of: where they agree, two machines have the same one.


PINNED = Path(__file__).with_name("pinned.toml")
_ABOUT_FILES = frozenset({"sources", "labelled"})
"""Of answers: which files of a data folder they are from; the demo needs none."""


def fingerprint(questions: Questions, answers: Answers) -> Mapping[str, str]:
    """SHA-256 of each part of a benchmark, in hexadecimal digits; pictures are hashed as files."""
    pictures = hashlib.sha256()
    for image_id, encode in questions.images.items():
        pictures.update(image_id.encode())
        pictures.update(encode())
    tables = {
        name: value.to_dict("records") if isinstance(value, pd.DataFrame) else repr(value)
        for name, value in vars(answers).items()
        if name not in _ABOUT_FILES
    }
    return {
        "pictures": pictures.hexdigest(),
        "texts": _of(dict(questions.texts)),
        "pairs": _of([repr(pair) for pair in questions.pairs]),
        "elements": _of({text: repr(parts) for text, parts in questions.elements.items()}),
        "answers": _of(tables),
    }


@cache
def pinned() -> Mapping[str, Mapping[str, str]]:
    """Benchmark to part to the hash it has at the revision that `pinned.toml` names."""
    found: dict[str, Any] = tomllib.loads(PINNED.read_text(encoding="utf-8"))
    return found["benchmark"]  # type: ignore[no-any-return]


def pinned_revision() -> str:
    """The revision the hashes belong to."""
    return str(tomllib.loads(PINNED.read_text(encoding="utf-8"))["revision"])


def fingerprint_table(name: str, questions: Questions, answers: Answers) -> pd.DataFrame:
    """The hashes found here, and whether they are the pinned ones: `part`, `sha256`, `as pinned`."""
    known = pinned()[name]
    found = fingerprint(questions, answers)
    return pd.DataFrame(
        [(part, digest, digest == known[part]) for part, digest in found.items()],
        columns=["part", "sha256", "as pinned"],
    )


def _of(content: object) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()
