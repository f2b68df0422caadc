"""Reasons that people give for what they do: shown to everyone, so plain and short."""

from __future__ import annotations

import unicodedata

from benchmarks.errors import SubmitterError

MOST_CHARS = 500


def checked_reason(reason: str, *, otherwise: str = "") -> str:
    """A reason in one line, without characters that steer a terminal or the order of letters.

    Args:
        reason: as it was given.
        otherwise: stands where none was given; empty: one must be.

    Raises:
        SubmitterError: `reason_missing` or `reason_too_long`.
    """
    text = " ".join("".join(map(_plain, reason)).split()) or otherwise
    if not text:
        raise SubmitterError(
            "reason_missing", "No reason is given.", "Say why in a sentence; everyone can read it."
        )
    if len(text) > MOST_CHARS:
        raise SubmitterError(
            "reason_too_long",
            f"The reason has {len(text)} characters.",
            f"Say it in at most {MOST_CHARS}.",
        )
    return text


def _plain(character: str) -> str:
    if character in "\t\r\n" or unicodedata.category(character) in ("Zl", "Zp"):
        return " "
    return "" if unicodedata.category(character).startswith("C") else character
