"""Looking for a text in all that was written or told: also inside of Parquet and of gzip."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pyarrow.parquet as pq

_PARQUET = b"PAR1"
_GZIP = b"\x1f\x8b"


def files_with(texts: Iterable[str], files: Iterable[Path]) -> list[str]:
    """Names of the files that hold one of the texts, or have it in their name."""
    wanted = [text.encode() for text in texts]
    return [
        str(file)
        for file in files
        if any(text in piece for piece in _pieces(file) for text in wanted)
    ]


def answers_with(text: str, answers: Mapping[str, bytes]) -> list[str]:
    """The addresses whose answers hold a text."""
    return [path for path, body in answers.items() if text.encode() in body]


def files_below(*folders: Path) -> Iterator[Path]:
    """All files of some folders."""
    for folder in folders:
        yield from (path for path in folder.rglob("*") if path.is_file())


def _pieces(file: Path) -> Iterator[bytes]:
    yield str(file).encode()
    content = file.read_bytes()
    yield content
    if content.startswith(_GZIP):
        content = gzip.decompress(content)
        yield content
    if content.startswith(_PARQUET):
        # Columns are compressed, so that no search of the bytes would find anything.
        table = pq.read_table(io.BytesIO(content))
        yield str(table.schema.metadata).encode()
        yield str(table.to_pydict()).encode()
