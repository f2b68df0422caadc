"""Paths that begin at somebody's home, `~/x` or `~ada/x`."""

from __future__ import annotations

from pathlib import Path


def at_home(given: str) -> Path:
    """The path that is meant; one that begins at no home is left as it is.

    Raises:
        ValueError: there is no such home.
    """
    try:
        return Path(given).expanduser()
    except RuntimeError:
        raise ValueError(f"there is no home {given.partition('/')[0][:80]!r} here") from None
