"""Which prompts are held out: a quarter of each type, drawn by the prompt's text alone."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Mapping

HELD_OUT_OF = 4
"""One prompt in so many is held out, as in the paper's own test set."""


def text_id(text: str) -> str:
    """A short id of a text: the first 16 hexadecimal digits of its SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def prompt_key(text: str) -> str:
    """An id that texts share if they differ in capitals, spacing or Unicode form only."""
    return text_id(" ".join(unicodedata.normalize("NFKC", text).casefold().split()))


def held_out(types: Mapping[str, str]) -> frozenset[str]:
    """The held-out prompts: of each type the quarter (rounded up) with the smallest keys.

    Keys are hashes, so this is a random draw; a prompt's fate depends on the set of prompts, never
    on the order of a file.

    Args:
        types: `prompt_key` of each prompt to its type (`real` or `synth`).
    """
    chosen: set[str] = set()
    for kind in set(types.values()):
        keys = sorted(key for key, of_kind in types.items() if of_kind == kind)
        chosen.update(keys[: -(-len(keys) // HELD_OUT_OF)])
    return frozenset(chosen)
