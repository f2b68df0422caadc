"""Images and submissions of them, made up: every picture differs from every other."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from benchmarks.prompt_sets.demo import PROMPT_SETS
from benchmarks.prompt_sets.prompt_set import Drawing, PromptSet, SetPrompt, image_file

PROMPTS = tuple(SetPrompt(f"p{i}", f"prompt {i}") for i in range(4))
SEEDS = (1, 2)
SET = PromptSet(
    PROMPT_SETS[0].card,
    lambda _: list(PROMPTS),
    Drawing(seeds=SEEDS, least_side=32, most_side=256),
)
SETS = {SET.name: SET}


def picture(number: int, side: int = 64) -> Image.Image:
    """A picture of coarse colours, another for each number."""
    rng = np.random.default_rng(number)
    small = Image.fromarray(rng.integers(0, 256, (8, 8, 3), dtype=np.uint8))
    return small.resize((side, side), Image.Resampling.BICUBIC)


def encoded(image: Image.Image, form: str = "PNG", **options: Any) -> bytes:
    """Its bytes."""
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


@dataclass
class Made:
    """A submission of generations, to be spoilt and packed.

    Attributes:
        rows: key to the fields of its row.
        files: path to bytes.
        manifest: of `assay.toml`.
    """

    rows: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    manifest: dict[str, Any] = field(default_factory=dict)

    @property
    def toml(self) -> bytes:
        return b"".join(f"{k} = {json.dumps(v)}\n".encode() for k, v in self.manifest.items())

    @property
    def table(self) -> bytes:
        return b"".join(json.dumps(row).encode() + b"\n" for row in self.rows.values())

    def all_files(self) -> Iterator[tuple[str, bytes]]:
        yield "assay.toml", self.toml
        yield "images.jsonl", self.table
        yield from self.files.items()

    def folder(self, path: Path) -> Path:
        for name, data in self.all_files():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_bytes(data)
        return path

    def zipped(self, path: Path, prefix: str = "", *, table_last: bool = False) -> Path:
        files = list(self.all_files())
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in reversed(files) if table_last else files:
                archive.writestr(prefix + name, data)
        return path

    def tarred(self, path: Path, mode: str = "w:gz") -> Path:
        with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
            for name, data in self.all_files():
                info = tarfile.TarInfo(f"./{name}")
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
        return path

    def parquet(self, path: Path, *, nested: bool = True, **more: Any) -> Path:
        rows = list(self.rows.values())
        images = [self.files.get(row["file"] or "") for row in rows]
        kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
        table = {
            "prompt_id": [row["prompt_id"] for row in rows],
            "seed": pa.array([row["seed"] for row in rows], pa.uint64()),
            "image": pa.array([{"bytes": one, "path": None} for one in images], kind)
            if nested
            else pa.array(images, pa.binary()),
            "problem": pa.array([row.get("problem") for row in rows], pa.string()),
            **more,
        }
        pq.write_table(pa.table(table), path, row_group_size=3)
        return path


def made(first: int = 0, side: int = 64, form: str = "PNG", name: str = "painter") -> Made:
    """A right submission of `SET`.

    Args:
        first: number of its first picture.
        side: of the pictures.
        form: of the files.
        name: of the model.
    """
    found = Made(
        manifest={
            "kind": "generations", "name": name, "benchmark": SET.name, "seeds": list(SEEDS),
        }
    )  # fmt: skip
    for number, (prompt, seed) in enumerate((p, s) for p in PROMPTS for s in SEEDS):
        data = encoded(picture(first + number, side), form)
        file = image_file(prompt.prompt_id, seed)
        found.files[file] = data
        found.rows[prompt.prompt_id, seed] = {
            "prompt_id": prompt.prompt_id,
            "seed": seed,
            "prompt": prompt.text,
            "file": file,
            "sha256": hashlib.sha256(data).hexdigest(),
            "width": side,
            "height": side,
        }
    return found


def made_of_demo(seeds: tuple[int, ...] = (1,)) -> Made:
    """A right submission of the bundled prompt set."""
    prompts = PROMPT_SETS[0].set_prompts(None)
    found = Made(
        manifest={
            "kind": "generations", "name": "painter", "benchmark": "demo_prompts",
            "seeds": list(seeds),
        }
    )  # fmt: skip
    for number, (prompt, seed) in enumerate((p, s) for p in prompts for s in seeds):
        file = image_file(prompt.prompt_id, seed)
        found.files[file] = encoded(picture(number))
        found.rows[prompt.prompt_id, seed] = {
            "prompt_id": prompt.prompt_id,
            "seed": seed,
            "file": file,
        }
    return found
