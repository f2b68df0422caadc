"""Table of a model's images: ids, hashes and sizes in public, without the images."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq

SCHEMA = pa.schema(
    [
        pa.field("prompt_id", pa.string(), nullable=False),
        pa.field("seed", pa.uint64(), nullable=False),
        pa.field("sha256", pa.string()),
        pa.field("width", pa.int32()),
        pa.field("height", pa.int32()),
        pa.field("problem", pa.string()),
    ]
)
"""One row for each (prompt, seed); a withheld image has a problem and no hash. `sha256` is that of
the file as it was sent."""


def images_path(submission_id: str, prompt_set: str) -> str:
    """Where the table of a submission is."""
    return f"results/{submission_id}/{prompt_set}.images.parquet"


def image_table(rows: Iterable[Mapping[str, object]]) -> bytes:
    """The file."""
    buffer = BytesIO()
    pq.write_table(pa.Table.from_pylist(list(rows), SCHEMA), buffer, compression="zstd")
    return buffer.getvalue()


def image_hashes(content: bytes) -> dict[tuple[str, str], int]:
    """Prompt id and hash to the seed it was drawn with, of the images that are there."""
    table = pq.read_table(BytesIO(content), columns=["prompt_id", "seed", "sha256"])
    rows = zip(*(table[name].to_pylist() for name in table.column_names), strict=True)
    return {(prompt, sha256): seed for prompt, seed, sha256 in rows if sha256 is not None}


def drawn_images(content: bytes) -> list[tuple[str, int]]:
    """Prompt id and seed of every image that is there, in the order of the table."""
    table = pq.read_table(BytesIO(content), columns=["prompt_id", "seed", "sha256"])
    rows = zip(*(table[name].to_pylist() for name in table.column_names), strict=True)
    return [(prompt, seed) for prompt, seed, sha256 in rows if sha256 is not None]
