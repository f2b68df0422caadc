"""Cards for small trees in a benchmark's layout: other counts, nothing pinned."""

from __future__ import annotations

from benchmarks.schema import Card


def trial_card(card: Card, **counts: int) -> Card:
    """The card of a small copy: no hash is pinned, and it must hold these counts only."""
    files = tuple(file.model_copy(update={"sha256": ""}) for file in card.files)
    return card.model_copy(update={"files": files, "counts": counts})
