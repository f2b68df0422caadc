"""What a large store costs: opening its boards, and publishing one more submission.

    python -m benchmarks_perf.store_load [--submissions 2000] [--boards 8] [--slices 60]
        [--store FOLDER] [--rounds 5]

A store in a folder is filled with made-up submissions (`made_up_store`): 2,000 of them have 10,000
events and 2,400 runs, 300 on each of 8 boards with 60 slices, 1,000 resamples and 250 blocks. With
`--store` it is kept, and used again if it is there.

Opening is timed in fresh processes, from their start to the headline of a board with its entries
and the queue: the snapshot in Parquet beside that in JSON, which is parsed whole, in turns.

Publishing is timed from the queue to the files of the commit, for one more submission on two
boards: by a worker that has published before, by one that has just started, and by one that has
just started on a machine with copies of the draws. What it cost when every publication read and
ranked everything is the first row: the boards made from nothing, which a filled store needs once.

Time is printed as it passed and as the processor worked; on a machine that does other things
besides, only the second can be compared between runs. The gates: opened in 2 s of the processor,
and published by a warm worker in a tenth of the time that everything takes. They are meant for the
size that is the default.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from benchmarks.schema import Card
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
from leaderboard.ledger.batch import Batch
from leaderboard.ledger.ledger import Ledger
from leaderboard.ledger.queue_file import QUEUE
from leaderboard.ledger.submission_files import submission_file
from leaderboard.pages.reading import Reader
from leaderboard.publication.publisher import Publisher
from leaderboard.publication.snapshot_file import OLD_PATH, PATH, old_bytes, read_snapshot
from leaderboard.records import Status
from leaderboard.store.folder import folder_store
from leaderboard.store.interface import Changes, Repository, Store, transact

OPENED_IN_S = 2.0
OF_EVERYTHING = 0.1


@dataclass(frozen=True)
class Times:
    """How long something took, in seconds."""

    passed: float
    worked: float

    def __str__(self) -> str:
        return f"{self.passed:9.2f} s passed {self.worked:9.2f} s worked"


def timed(run: Callable[[], object]) -> Times:
    """How long a call takes."""
    passed, worked = time.perf_counter(), time.process_time()
    run()
    return Times(time.perf_counter() - passed, time.process_time() - worked)


class Counted:
    """A repository that counts what it is asked."""

    def __init__(self, under: Repository) -> None:
        self._under = under
        self.asked: Counter[str] = Counter()

    def __getattr__(self, name: str) -> object:
        self.asked[name] += 1
        return getattr(self._under, name)


@dataclass(frozen=True)
class Opened:
    """One opening in a process of its own."""

    passed: float
    imported: float
    worked: float
    peak_mib: float


def opened(form: str, folder: Path, cards: Path) -> Opened:
    """Open a board in a fresh process.

    Args:
        form: of the snapshot, `parquet` or `json`.
        folder: of the store.
        cards: file with a card a line.
    """
    command = [sys.executable, "-m", "benchmarks_perf.store_opened", str(folder), str(cards), form]
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    passed = time.perf_counter() - start
    _, imported, worked, peak = json.loads(done.stdout)
    return Opened(passed, imported, worked, peak)


def compare_opening(folder: Path, cards: dict[str, Card], rounds: int) -> bool:
    """Print what opening costs; whether the gate is met."""
    with tempfile.TemporaryDirectory() as scratch:
        listed = Path(scratch) / "cards.jsonl"
        listed.write_text("\n".join(card.model_dump_json() for card in cards.values()))
        before = _as_before(folder_store(folder), Path(scratch) / "before")
        found = [
            (opened("parquet", folder, listed), opened("json", before, listed))
            for _ in range(rounds)
        ]
    print(f"\nopening a board in a fresh process, median of {rounds}")
    for name, ones in zip(("Parquet", "JSON"), zip(*found, strict=True), strict=True):
        print(
            f"{name:10}{median(o.passed for o in ones):8.2f} s passed "
            f"{median(o.worked for o in ones):8.2f} s worked, of it imports "
            f"{median(o.imported for o in ones):.2f} s; peak {median(o.peak_mib for o in ones):.0f}"
            " MiB"
        )
    ratio = median(new.worked / old.worked for new, old in found)
    beyond = median((n.worked - n.imported) / (o.worked - o.imported) for n, o in found)
    print(f"Parquet of JSON: {ratio:.3f} of the work, {beyond:.4f} without imports")
    worked = median(new.worked for new, _ in found)
    met = worked <= OPENED_IN_S
    print(f"opened in {OPENED_IN_S} s: {'yes' if met else 'NO'} ({worked:.2f} s)")
    return met


def _as_before(store: Store, folder: Path) -> Path:
    """The same boards and queue as an older store has them."""
    shown = read_snapshot(store.public)
    if shown is None:
        raise ValueError("there are no boards to compare")
    files = {OLD_PATH: old_bytes(shown), QUEUE: store.public.read(QUEUE)}
    older = folder_store(folder)
    transact(older.public, lambda: files, "as before")
    sizes = {name: len(files[name]) / 1e6 for name in files}
    print(
        f"{PATH} {len(store.public.read(PATH)) / 1e6:.1f} MB, {OLD_PATH} {sizes[OLD_PATH]:.1f} MB"
    )
    return folder


def publish(store: Store, publisher: Publisher, size: Size, place: int) -> Times:
    """Publish one more submission; how long its boards took."""
    own = submission_of(size, place)
    runs = list(runs_of(size, [place], plan_of()))
    results: dict[str, bytes | None] = {}
    for run in runs:
        results |= run_files(run)
    took: list[Times] = []

    def files(after: Sequence[Status]) -> Changes:
        made: dict[str, bytes | None] = {}
        took.append(timed(lambda: made.update(publisher.snapshot_files(NOW, after, runs))))
        return {**results, **submission_file(own), **made}

    batch = Batch(
        events={own.submission_id: events_of(size, place)},
        records={own.submission_id: own},
        files=files,
    )
    Ledger(store).write(lambda: batch, "one more")
    return took[-1]


def compare_publishing(folder: Path, size: Size, cache: Path, everything: Times | None) -> bool:
    """Print what publishing costs; whether the gate is met."""
    store, cards = folder_store(folder), cards_of_size(size)
    number = len(Ledger(store).statuses())
    # Ten in a row are published; what is left of the last ten was refused.
    places = iter([p for p in range(number + 10, number + 200) if size.published(p)])
    shelved = replace(store, cache=cache)
    warm = Publisher(shelved, cards)
    publish(store, warm, size, next(places))
    for _ in range(size.boards):  # So that it has every board's draws at hand.
        publish(store, warm, size, next(places))
    found = {
        "a warm worker": publish(store, warm, size, next(places)),
        "started, no copies": publish(store, Publisher(store, cards), size, next(places)),
        "started, with copies": publish(store, Publisher(shelved, cards), size, next(places)),
        "a warm worker, again": publish(store, warm, size, next(places)),
    }
    print("\nboards of one more submission, on two of the boards")
    if everything is not None:
        print(f"{'everything, as before':24}{everything}")
    for name, times in found.items():
        of_all = f"{times.worked / everything.worked:8.3f} of everything" if everything else ""
        print(f"{name:24}{times}{of_all}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"peak of this process, with draws of every board at hand: {peak:.2f} GiB")
    warmest = found["a warm worker, again"].worked
    return everything is None or warmest <= OF_EVERYTHING * everything.worked


def count_requests(folder: Path, cards: dict[str, Card]) -> None:
    """Print what the store is asked when a visitor comes."""
    store = folder_store(folder)
    public = Counted(store.public)
    reader = Reader(replace(store, public=public), cards)  # type: ignore[arg-type]
    board = next(iter(reader.view().boards.values()))
    cells = board.cells(board.card.headline, None)
    reader.statuses()
    print(f"\nasked for boards and queue: {dict(public.asked)}")
    public.asked.clear()
    reader.view().orders.slice(board.card, cells)
    print(f"asked for the draws of {len(cells)} runs, to rank a selection: {dict(public.asked)}")


def prepare(folder: Path, size: Size) -> Times | None:
    """Fill the store where it is empty; how long all its boards took, if they were made."""
    store = folder_store(folder)
    if not store.public.has(QUEUE):
        start = time.perf_counter()
        n_events = fill(store, size)
        print(f"{n_events} events and their results in {time.perf_counter() - start:.0f} s")
    made_of = folder.with_name(f"{folder.name}.everything.json")
    if not store.public.has(PATH):
        publisher = Publisher(store, cards_of_size(size))
        took = timed(lambda: publisher.publish_cards(NOW))
        made_of.write_text(json.dumps([took.passed, took.worked]))
    return Times(*json.loads(made_of.read_text())) if made_of.exists() else None


def main() -> int:
    """Print the tables; 0 where the gates are met."""
    parser = argparse.ArgumentParser(description="What a large store costs")
    parser.add_argument("--submissions", type=int, default=2000)
    parser.add_argument("--boards", type=int, default=8)
    parser.add_argument("--slices", type=int, default=60)
    parser.add_argument("--store", type=Path, help="keep the store here, or use the one there")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    size = Size(options.submissions, options.boards, options.slices)
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder = options.store or scratch / "store"
        everything = prepare(folder, size)
        cards = cards_of_size(size)
        met = [
            compare_opening(folder, cards, options.rounds),
            compare_publishing(folder, size, scratch / "draws", everything),
        ]
        count_requests(folder, cards)
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
