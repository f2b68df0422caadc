"""Weight files of a checkpoint, and those of them that can run code when they are read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.errors import SubmitterError

SAFE = ".safetensors"
_PICKLE_ENDINGS = frozenset({".bin", ".pt", ".pth", ".ckpt", ".pkl"})


def unsafe(name: str, files: Sequence[str]) -> SubmitterError:
    """The refusal of weights that can run code when they are read."""
    shown = ", ".join(files[:3])
    return SubmitterError(
        "checkpoint_unsafe",
        f"{name} has its weights as pickle only ({shown}), which can run code when it is read.",
        "If you trust its authors, allow it with --allow-pickle.",
    )


def names_in(place: Path) -> list[str]:
    """Every path below a folder; of a file its name."""
    if place.is_file():
        return [place.name]
    return [each.relative_to(place).as_posix() for each in place.rglob("*")]


def has_safe(names: Sequence[str]) -> bool:
    """Whether safetensors are among the files."""
    return any(name.endswith(SAFE) for name in names)


def pickled(names: Sequence[str]) -> list[str]:
    """Those of the files that are pickles."""
    return [name for name in names if Path(name).suffix in _PICKLE_ENDINGS]
