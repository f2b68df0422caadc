"""Images and submissions of them, made up: every picture differs from every other."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from benchmarks.prompt_sets.prompt_set import (
    Drawing,
    PromptSet,
    SetPrompt,
    image_file,
    load_prompt_sets,
)
from evaluator.submission.generations.extraction import AcceptedImages, PromptSets, take
from evaluator.submission.generations.sources import GenerationsLimits, opened_source
from tests.kit.pictures import encoded

PROMPTS = tuple(SetPrompt(f"p{i}", f"prompt {i}") for i in range(4))
SEEDS = (1, 2)
DRAWING = Drawing(seeds=SEEDS, least_side=32, most_side=256)
DEMO = load_prompt_sets()["demo_prompts"]
SET = PromptSet(DEMO.card, lambda _: list(PROMPTS), DRAWING)
SETS = {SET.name: SET}


def picture(number: int, side: int = 64) -> Image.Image:
    """A picture of coarse colours, another for each number."""
    rng = np.random.default_rng(number)
    small = Image.fromarray(rng.integers(0, 256, (8, 8, 3), dtype=np.uint8))
    return small.resize((side, side), Image.Resampling.BICUBIC)


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

    def put(self, key: tuple[str, int], data: bytes, **row: Any) -> str:
        """Put other bytes in the place of an image's; gives its file."""
        file = str(self.rows[key]["file"])
        self.files[file] = data
        sha256 = hashlib.sha256(data).hexdigest()
        self.rows[key].update(sha256=sha256, width=None, height=None, **row)
        return file

    def folder(self, path: Path) -> Path:
        for name, data in self.all_files():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_bytes(data)
        return path

    def zipped(
        self, path: Path, prefix: str = "", *, table_last: bool = False, method: int = 0
    ) -> Path:
        files = list(self.all_files())
        with zipfile.ZipFile(path, "w", method) as archive:
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

    def parquet(self, path: Path, *, nested: bool = True) -> Path:
        rows = list(self.rows.values())
        images: list[Any] = [self.files.get(row["file"] or "") for row in rows]
        kind: Any = pa.binary()
        if nested:
            kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
            images = [{"bytes": one, "path": None} for one in images]
        table = {
            "prompt_id": [row["prompt_id"] for row in rows],
            "seed": pa.array([row["seed"] for row in rows], pa.uint64()),
            "image": pa.array(images, kind),
            "problem": pa.array([row.get("problem") for row in rows], pa.string()),
        }
        pq.write_table(pa.table(table), path, row_group_size=3)
        return path


def _made(
    prompts: Sequence[Any], seeds: Sequence[int], name: str, first: int = 0, side: int = 64
) -> Made:
    said = {"kind": "generations", "name": name, "benchmark": SET.name, "seeds": list(seeds)}
    found = Made(manifest=said)
    for number, (prompt, seed) in enumerate((p, s) for p in prompts for s in seeds):
        row = {"prompt_id": prompt.prompt_id, "seed": seed}
        row |= {"file": image_file(prompt.prompt_id, seed), "prompt": prompt.text}
        found.rows[prompt.prompt_id, seed] = row
        found.put((prompt.prompt_id, seed), encoded(picture(first + number, side)))
        row.update(width=side, height=side)
    return found


def made(first: int = 0, side: int = 64, name: str = "painter") -> Made:
    """A right submission of `SET`, whose first picture has this number."""
    return _made(PROMPTS, SEEDS, name, first, side)


def made_of_demo(seeds: tuple[int, ...] = (1,)) -> Made:
    """A right submission of the bundled prompt set."""
    return _made(DEMO.set_prompts(None), seeds, "painter")


def taken(path: Path, target: Path | None = None, **options: Any) -> AcceptedImages:
    limits = options.pop("limits", GenerationsLimits())
    with opened_source(path, limits) as source:
        return take(source, PromptSets(SETS, None), target=target, limits=limits, **options)


def codes(found: AcceptedImages) -> list[str]:
    return [problem.code for problem in found.problems]
