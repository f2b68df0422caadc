"""Seeds as people write them."""

from __future__ import annotations

from benchmarks.errors import SubmitterError

MAX_SEED = 2**64 - 1
"""Largest seed of a `torch.Generator`."""


def parse_seeds(text: str) -> tuple[int, ...]:
    """Seeds as they are given on the command line: `42,3407,5096`.

    Raises:
        SubmitterError: `bad_seeds`: none, not whole numbers from 0 to 2^64 - 1, or one twice.
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    good = all(part.isascii() and part.isdigit() and len(part) <= 20 for part in parts)
    seeds = tuple(int(part) for part in parts) if good else ()
    if not seeds or len(set(seeds)) < len(seeds) or max(seeds) > MAX_SEED:
        raise SubmitterError(
            "bad_seeds",
            f"{text[:80]!r} are no seeds: whole numbers from 0 to 2^64 - 1, each once.",
            "For example --seeds 42,3407,5096",
        )
    return seeds
