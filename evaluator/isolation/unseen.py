"""Folders of this machine that no box may see."""

from __future__ import annotations

from pathlib import Path


def usually_hidden() -> tuple[Path, ...]:
    """The project, and the home folder unless it is one that service users have."""
    project, home = Path(__file__).resolve().parents[2], Path.home().resolve()
    if home == Path("/") or home.is_relative_to("/usr"):
        return (project,)
    return (project, home)
