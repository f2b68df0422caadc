"""Sizes of files, for people."""

from __future__ import annotations


def bytes_of(size: int) -> str:
    """A size in the largest unit that says enough: `512 B`, `3.4 kB`, `1.2 GB`."""
    if size < 1000:
        return f"{size} B"
    shown = float(size)
    for unit in ("kB", "MB", "GB"):
        shown /= 1000
        if shown < 999.5 or unit == "GB":
            break
    return f"{shown:.1f} {unit}" if shown < 99.5 else f"{shown:,.0f} {unit}"
