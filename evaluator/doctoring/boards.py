"""Check and repair of queue and boards against events and results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from benchmarks.errors import PlatformError
from benchmarks.schema import Card
from evaluator.doctoring.rows import Row
from leaderboard.publication.rebuilding import (
    Difference,
    differences,
    model_differences,
    queue_differences,
    rebuilt,
    repaired,
)
from leaderboard.publication.snapshot_file import read_snapshot
from leaderboard.store.interface import Store, transact

_SHOWN = 20


def boards_rows(
    store: Store, cards: Mapping[str, Card], now: datetime, *, repair: bool
) -> Iterator[Row]:
    """What queue and boards show, against what they would show if they were built now.

    Args:
        store: whose they are.
        cards: the benchmarks known here.
        now: the store's time.
        repair: whether to write them where they differ.
    """
    found = (*_queue(store), *_boards(store, cards, now), *_models(store))
    if not found:
        yield Row("queue and boards", "as events and results add up to")
        return
    for difference in found[:_SHOWN]:
        yield Row(f"  {difference.where}", difference.what)
    if len(found) > _SHOWN:
        yield Row("  and more", f"{len(found) - _SHOWN} further differences")
    if not repair:
        advice = "write them: python -m evaluator doctor --repair"
        yield Row("queue and boards", f"{len(found)} differences", advice, broken=True)
        return
    transact(store.public, lambda: repaired(store, cards, now), "queue and boards built anew")
    yield Row("queue and boards", f"{len(found)} differences, written anew")


def _queue(store: Store) -> tuple[Difference, ...]:
    try:
        return queue_differences(store)
    except PlatformError as error:  # damaged: nothing of it can be compared
        return (Difference("queue", error.message),)


def _models(store: Store) -> tuple[Difference, ...]:
    try:
        return model_differences(store)
    except PlatformError as error:
        return (Difference("models", error.message),)


def _boards(store: Store, cards: Mapping[str, Card], now: datetime) -> tuple[Difference, ...]:
    right = rebuilt(store, cards, now)
    try:
        shown = read_snapshot(store.public)
    except PlatformError as error:
        return (Difference("snapshot", error.message),)
    if shown is None and not right.entries:
        return ()
    return differences(shown, right)
