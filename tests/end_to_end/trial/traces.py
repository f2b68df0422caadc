"""What anybody can see of a trial and what it wrote down, and texts in it, also in Parquet and gzip."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pyarrow.parquet as pq

from tests.end_to_end.trial.ground import Ground, fetched
from tests.end_to_end.trial.submissions import OPEN_TO_CODE

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


def public_answers(site: str) -> Mapping[str, bytes]:
    """What the app tells anybody: the programs' side and the pages."""
    paths = ["/", "/health", "/metrics", "/as-of", "/v1/", "/v1/entries", "/v1/queue?per_page=1000"]
    paths += ["/v1/ledger?per_page=1000", "/v1/ledger.jsonl", "/v1/index", "/v1/models"]
    paths += ["/v1/models/demo_prompts", "/submit", "/ledger", "/status", "/live/pulses"]
    for board in OPEN_TO_CODE:
        paths += [f"/v1/boards/{board}", f"/v1/boards/{board}/pairs", f"/?tab=benchmark:{board}"]
    return {path: fetched(f"{site}{path}")[1] for path in paths}


def logs_of(ground: Ground) -> Iterator[Path]:
    """What processes of this machine wrote down."""
    yield from ground.place.glob("*.log")
    yield from (ground.belongings / "scratch" / "logs").rglob("*.*")
