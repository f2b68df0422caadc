"""Questions as the tables of an exported folder, and back."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import pandas as pd
import pyarrow as pa

from benchmarks.errors import PlatformError
from benchmarks.parquet import parquet_frame
from benchmarks.schema import Element, Pair, Questions

PAIRS = "pairs.parquet"
TEXTS = "texts.parquet"
IMAGES = "images.parquet"
ELEMENTS = "elements.parquet"

ImageRow = tuple[str, str, str, int]
"""image_id, file, SHA-256, bytes."""


def damaged(place: Path, what: str) -> PlatformError:
    """The error for a file of an exported folder that is not as it was exported."""
    return PlatformError(
        "questions_damaged",
        f"{place} is not as it was exported: {what}.",
        "Copy the folder again from where `python -m benchmarks questions` wrote it.",
    )


def sha256(content: bytes) -> str:
    """The hash as the tables hold it."""
    return hashlib.sha256(content).hexdigest()


def to_tables(questions: Questions, images: list[ImageRow]) -> dict[str, pd.DataFrame]:
    """The tables by file name; that of elements only where there are any."""
    pairs = [(pair.pair_id, pair.image_id, pair.text_id) for pair in questions.pairs]
    elements = [(e.element_id, t, e.text) for t, many in questions.elements.items() for e in many]
    tables = {
        PAIRS: pd.DataFrame(pairs, columns=["pair_id", "image_id", "text_id"]),
        TEXTS: pd.DataFrame(list(questions.texts.items()), columns=["text_id", "prompt"]),
        IMAGES: pd.DataFrame(images, columns=["image_id", "file", "sha256", "n_bytes"]),
    }
    if elements:
        tables[ELEMENTS] = pd.DataFrame(elements, columns=["element_id", "text_id", "element"])
    return tables


def write_tables(folder: Path, tables: Mapping[str, pd.DataFrame]) -> dict[str, str]:
    """Write each table below a folder; returns the SHA-256 of each file."""
    digests = {}
    for name, table in tables.items():
        buffer = io.BytesIO()
        table.to_parquet(buffer, index=False)
        (folder / name).write_bytes(buffer.getvalue())
        digests[name] = sha256(buffer.getvalue())
    return digests


def read_tables(folder: Path, digests: Mapping[str, str]) -> Questions:
    """The questions of a folder; each image is read, and checked, when it is asked for.

    Args:
        folder: holds the tables, and the images in `images/`.
        digests: SHA-256 of each table by file name.

    Raises:
        PlatformError: `questions_damaged`, a table is missing or another one, or images are
            missing or of another size.
    """
    if not {PAIRS, TEXTS, IMAGES} <= set(digests) <= {PAIRS, TEXTS, IMAGES, ELEMENTS}:
        raise damaged(folder, f"its tables are {', '.join(sorted(digests))}")
    tables = {name: _table(folder / name, digest) for name, digest in digests.items()}
    texts, pairs, images = tables[TEXTS], tables[PAIRS], tables[IMAGES]
    return Questions(
        images=_readers(folder / "images", list(images.itertuples(index=False, name=None))),
        texts=dict(zip(texts["text_id"], texts["prompt"], strict=True)),
        pairs=tuple(Pair(*row) for row in pairs.itertuples(index=False, name=None)),
        elements=_by_text(tables[ELEMENTS]) if ELEMENTS in tables else {},
    )


def _table(path: Path, digest: str) -> pd.DataFrame:
    content = _checked_bytes(path, digest)
    try:
        return parquet_frame(content)
    except (ValueError, OSError, pa.ArrowException) as error:
        raise damaged(path, str(error)) from error


def _by_text(table: pd.DataFrame) -> dict[str, tuple[Element, ...]]:
    found: dict[str, list[Element]] = {}
    for element_id, text_id, text in table.itertuples(index=False, name=None):
        found.setdefault(text_id, []).append(Element(element_id, text))
    return {text_id: tuple(many) for text_id, many in found.items()}


def _readers(folder: Path, images: list[ImageRow]) -> dict[str, Callable[[], bytes]]:
    """Readers of the images, once all of them are known to be there."""
    sizes = dict(_sizes(folder))
    odd = [file for _, file, _, size in images if sizes.get(file) != size]
    if odd:
        raise damaged(
            folder,
            f"{len(odd)} of {len(images)} images are missing or of another size, the first is "
            f"{odd[0]}",
        )
    return {
        image: partial(_checked_bytes, folder / file, digest) for image, file, digest, _ in images
    }


def _sizes(folder: Path) -> Iterator[tuple[str, int]]:
    try:
        for file in folder.iterdir():
            yield file.name, file.stat().st_size
    except OSError as error:
        raise damaged(folder, str(error.strerror or error)) from error


def _checked_bytes(path: Path, digest: str) -> bytes:
    """A file that is as it was exported."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise damaged(path, str(error.strerror or error)) from error
    if sha256(content) != digest:
        raise damaged(path, "its SHA-256 is another")
    return content
