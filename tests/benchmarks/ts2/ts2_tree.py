"""A made-up table of T2IScoreScore in its released layout."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from benchmarks.ts2.protocol import CARD, Ts2
from tests.benchmarks.contract import Case, Damage

SMALL = {"graphs": 4, "images": 70}


def metadata(graphs: int = 4, images: int = 70) -> pd.DataFrame:
    """A made-up table of graphs with 17 or 18 images each."""
    graph = [k * graphs // images for k in range(images)]
    return pd.DataFrame(
        {
            "id": [str(g) for g in graph],
            "target_prompt": "a prompt, with a comma",
            "file_name": [f"images/{g:03d}-{k:04d}.jpg" for k, g in enumerate(graph)],
            "image_source": "made up",
            "rank": [("0", "1a", "1b", "12c")[k % 4] for k in range(images)],
        }
    )


def write(folder: Path, table: pd.DataFrame | bytes) -> Path:
    (folder / "ts2").mkdir()
    content = table if isinstance(table, bytes) else table.to_csv(index=False).encode()
    (folder / "ts2" / "metadata.csv").write_bytes(content)
    return folder


def draw(folder: Path, without: str = "") -> None:
    """Every image, which holds its own name."""
    (folder / "ts2" / "images").mkdir()
    for name in metadata()["file_name"]:
        if name != without:
            (folder / "ts2" / name).write_bytes(name.encode())


def table(change: Callable[[pd.DataFrame], pd.DataFrame | bytes], *says: str) -> Damage:
    """A release with another table."""
    return Damage(lambda folder: write(folder, change(metadata())), ("metadata.csv", *says))


CASES = (
    Case(
        board=Ts2,
        card=CARD,
        held=SMALL,
        write=lambda folder: write(folder, metadata()),
        files=("ts2/metadata.csv",),
        pair_ids=("000-0000", "000-0001"),
        clusters=("0", "1", "2", "3"),
        counts=SMALL,
        draw=draw,
        question=("000-0000", b"images/000-0000.jpg", "a prompt, with a comma"),
        incomplete=Damage(
            lambda folder: draw(write(folder, metadata()), "images/000-0001.jpg"),
            ("1 of the 70", "'000-0001.jpg'"),
        ),
        damages=(
            table(lambda t: t.drop(columns=["rank", "id"]), "id, rank"),
            table(lambda t: t.iloc[:-1], "expected 70"),
            table(lambda t: t.assign(id=t["id"].replace("3", "2")), "3 graphs"),
            table(lambda t: t.assign(id=t["id"].replace("3", "x")), "from 0 on"),
            table(
                lambda t: t.assign(rank=t["rank"].replace("12c", "c12")),
                "'c12' in column rank (data row 4; ",
            ),
            table(lambda t: t.assign(file_name="images/000-00.jpg"), "once"),
            table(lambda t: b"", " read"),
            table(lambda t: b"\xff\xfe\x00", " read"),
            table(lambda t: b'a,b\n"1,2\n3,4\n', " read"),
        ),
    ),
)
