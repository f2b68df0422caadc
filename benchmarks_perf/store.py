"""A large store: opening its boards, and publishing one more submission.

A store in a folder is filled with made-up submissions: 2,000 of them have 10,000 events and 2,400
runs, 300 on each of 8 boards with 60 slices, 1,000 resamples and 250 blocks. Limits are meant for
that size; a folder given as `store` is kept, and used again if it is filled.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median

from benchmarks_perf.made_up_store import (
    NOW,
    Size,
    cards_of_size,
    events_of,
    fill,
    plan_of,
    run_files,
    runs_of,
    submission_of,
)
from benchmarks_perf.measuring import MIB, Figure, alone, memory_bytes, seconds
from leaderboard.ledger.ledger import Batch, Ledger
from leaderboard.ledger.private_records import submission_file
from leaderboard.ledger.queue_file import QUEUE
from leaderboard.publication.publisher import Publisher
from leaderboard.publication.reader import Reader
from leaderboard.publication.snapshot import PATH
from leaderboard.records import Status
from leaderboard.store.folder import folder_store
from leaderboard.store.interface import Changes, Store


def opening(
    submissions: int = 2000, boards: int = 8, rounds: int = 5, store: Path | None = None
) -> Iterator[Figure]:
    """From the start of a process to the headline of a board, its entries and the queue."""
    size = Size(submissions, boards)
    with _filled(size, store) as folder:
        if not folder_store(folder).public.has(PATH):
            Publisher(folder_store(folder), cards_of_size(size)).publish_cards(NOW)
        found = [alone(_open, folder, size) for _ in range(rounds)]
    imported, worked, peak = (median(column) for column in zip(*found, strict=True))
    yield Figure("opened", worked, "s", at_most=2, details=f"of it imports {imported:.2f} s")
    yield Figure("opened, without imports", worked - imported, "s")
    yield Figure("memory", peak / MIB, "MiB")


def _open(folder: Path, size: Size) -> tuple[float, float, int]:
    """Seconds of this process until everything was imported and was read, and its peak."""
    imported = time.process_time()
    cards = cards_of_size(size)
    reader = Reader(folder_store(folder), cards)
    view, card = reader.view(), next(iter(cards.values()))
    cells = view.boards[card.name].cells(card.headline, None)
    entries = [view.entries[cell.entry_id] for cell in cells]
    assert entries
    assert len(reader.statuses()) == size.submissions
    return imported, time.process_time(), memory_bytes("VmHWM")


def publishing(
    submissions: int = 2000, boards: int = 8, store: Path | None = None
) -> Iterator[Figure]:
    """Boards of one more submission, from the queue to the files of the commit.

    By a worker that has published before, by one that has just started, and by one that has just
    started on a machine with copies of the draws; in parts of making all boards from nothing. The
    metrics of a board are tested together, so its headline is tested anew.
    """
    size = Size(submissions, boards)
    with _filled(size, store) as folder, tempfile.TemporaryDirectory() as cache:
        plain, cards = folder_store(folder), cards_of_size(size)
        everything = seconds(lambda: Publisher(plain, cards).publish_cards(NOW))
        number = len(Ledger(plain).statuses())
        # Ten in a row are published; what is left of the last ten was refused.
        places = iter([p for p in range(number + 10, number + 200) if size.published(p)])
        copied = replace(plain, cache=Path(cache))
        warm = Publisher(copied, cards)
        for _ in range(1 + boards):  # So that it has every board's draws at hand.
            publish(plain, warm, size, next(places))
        for name, publisher, at_most in (
            ("by a warm worker", warm, 0.25),
            ("by one that starts, no copies", Publisher(plain, cards), None),
            ("by one that starts, with copies", Publisher(copied, cards), None),
        ):
            took = publish(plain, publisher, size, next(places))
            details = f"{took:.2f} s, all boards {everything:.2f} s"
            yield Figure(name, took / everything, "x", at_most=at_most, details=details)
    yield Figure("memory, with draws of every board", memory_bytes("VmHWM") / MIB, "MiB")


def publish(store: Store, publisher: Publisher, size: Size, place: int) -> float:
    """Publish one more submission; processor seconds of its boards."""
    own = submission_of(size, place)
    runs = list(runs_of(size, [place], plan_of()))
    results: dict[str, bytes | None] = {}
    for run in runs:
        results |= run_files(run)
    took: list[float] = []

    def files(after: Sequence[Status]) -> Changes:
        made: dict[str, bytes | None] = {}
        make: Callable[[], None] = lambda: made.update(  # noqa: E731
            publisher.snapshot_files(NOW, after, runs)
        )
        took.append(seconds(make))
        return {**results, **submission_file(own), **made}

    batch = Batch(
        events={own.submission_id: events_of(size, place)},
        records={own.submission_id: own},
        files=files,
    )
    Ledger(store).write(lambda: batch, "one more")
    return took[-1]


@contextmanager
def _filled(size: Size, folder: Path | None) -> Iterator[Path]:
    """A store with submissions and results, and without boards unless it had them."""
    with tempfile.TemporaryDirectory() as scratch:
        place = folder or Path(scratch) / "store"
        store = folder_store(place)
        if not store.public.has(QUEUE):
            fill(store, size)
        yield place
