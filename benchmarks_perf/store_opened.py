"""Opens a board of a store and says what that took; a process of its own for `store_load`.

    python -m benchmarks_perf.store_opened FOLDER CARDS parquet|json

Prints as JSON: the cells of the headline, entries and submissions that were read, seconds of the
processor until everything was imported and until everything was read, and the most memory it had.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.schema import Card
from leaderboard.ledger.ledger import Ledger
from leaderboard.pages.reading import Reader
from leaderboard.publication.snapshot_file import OLD_PATH, parse_old_snapshot
from leaderboard.ranking.cells import Cell, best_first
from leaderboard.store.folder import folder_store
from leaderboard.store.interface import Store

_IMPORTED = time.process_time()


def by_slice(store: Store, cards: Sequence[Card]) -> tuple[int, int, int]:
    """Open the first board as pages do."""
    reader = Reader(store, {card.name: card for card in cards})
    view = reader.view()
    cells = view.boards[cards[0].name].cells(cards[0].headline, None)
    entries = [view.entries[cell.entry_id] for cell in cells]
    return len(cells), len(entries), len(reader.statuses())


def whole(store: Store, cards: Sequence[Card]) -> tuple[int, int, int]:
    """Open the first board as pages did: all boards parsed, and walked through once."""
    shown = parse_old_snapshot(store.public.read(OLD_PATH))
    groups: dict[tuple[object, ...], list[Cell]] = {}
    for name, board in shown.boards.items():
        for cell in board.cells:
            key = (name, cell.measure, cell.variant, cell.split, cell.facet, cell.skill)
            groups.setdefault(key, []).append(cell)
    one = cards[0].headline
    found = groups[cards[0].name, one.measure, one.variant, one.split, one.facet, None]
    cells = best_first(found, higher_is_better=True)
    entries = [shown.entries[cell.entry_id] for cell in cells]
    return len(cells), len(entries), len(Ledger(store).statuses())


def peak_mib() -> float:
    """The most memory this process had; `getrusage` would tell of the one that started it."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def main() -> int:
    """Open the board."""
    folder, listed, form = sys.argv[1:]
    lines = Path(listed).read_text(encoding="utf-8").splitlines()
    cards = [Card.model_validate_json(line) for line in lines]
    read = (by_slice if form == "parquet" else whole)(folder_store(Path(folder)), cards)
    print(json.dumps([read, _IMPORTED, time.process_time(), peak_mib()]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
