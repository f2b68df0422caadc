"""Folders of runs: what is in them, and how they are interrupted and damaged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from evaluator.generation.folder import RunFolder
from evaluator.generation.manifest import ImageRow
from evaluator.scoring.progress import Progress


def contents(folder: Path) -> dict[str, bytes]:
    """The images of a run by their names."""
    return {path.name: path.read_bytes() for path in sorted((folder / "images").iterdir())}


def rows_of(folder: Path) -> list[ImageRow]:
    """The rows of its table, the latest of each image."""
    return RunFolder(folder).rows()


def stop_after(images: int) -> Callable[[Progress], None]:
    """Ctrl-C once so many images are done."""

    def interrupt(now: Progress) -> None:
        if now.done >= images:
            raise KeyboardInterrupt

    return interrupt


def damage(folder: Path) -> None:
    """Cut one image, remove another, and cut the table, as a kill may leave them."""
    first, second, *_ = sorted((folder / "images").iterdir())
    first.write_bytes(first.read_bytes()[:-5])
    second.unlink()
    (second.parent / f"{second.name}.1.draft").write_bytes(b"half")
    table = folder / "images.jsonl"
    table.write_bytes(table.read_bytes()[:-40])
