"""Places that metrics of CROC ask for, inside the box that they run in."""

from __future__ import annotations

import os
from pathlib import Path

ROOT_DIR = str(Path(__file__).resolve().parent)
CACHE_DIR = os.environ.get("HF_HUB_CACHE", "")


def join_with_root(path: str) -> str:
    """A path below the folder of the submission."""
    return str(Path(ROOT_DIR) / path)
