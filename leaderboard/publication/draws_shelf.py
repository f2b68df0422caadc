"""Keeps the draws that boards were ranked from, so that one more run costs one run's reading.

What is kept is known by the hash of the result it stands behind: it is right or it is not used.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import zipfile
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.schema import Card
from leaderboard.publication.origins import RunOrigin
from leaderboard.publication.ranked_boards import RunDraws
from leaderboard.ranking.cells import Cell
from leaderboard.ranking.draws import read_draws
from leaderboard.store.interface import Store

IN_MEMORY = 512 << 20
ON_DISK = 4 << 30
"""A run of sixty rows takes 240 KB."""
_SUFFIX = ".npz"


class DrawsShelf:
    """The draws of runs: from memory, else from a folder of this machine, else from the store.

    Args:
        store: where they are published.
        folder: of this machine, whose files may be removed at any time; None: memory alone.
        in_memory: bytes kept in memory.
        on_disk: bytes kept in the folder.
    """

    def __init__(
        self,
        store: Store,
        folder: Path | None = None,
        *,
        in_memory: int = IN_MEMORY,
        on_disk: int = ON_DISK,
    ) -> None:
        self._store = store
        self._folder = folder
        self._in_memory, self._on_disk = in_memory, on_disk
        self._held: OrderedDict[str, RunDraws] = OrderedDict()
        self._bytes = 0
        self.read_from_store = 0
        """Runs whose draws were read from the store, for reports."""

    def draws(
        self, card: Card, submission_id: str, origin: RunOrigin, cells: Sequence[Cell]
    ) -> RunDraws:
        """The draws of a published run.

        Args:
            card: the benchmark.
            submission_id: whose run.
            origin: the result they stand behind.
            cells: its rows, in their order.
        """
        key = _key(card, submission_id, origin)
        found = self._held.get(key) or self._from_folder(key)
        if found is None:
            found = RunDraws.of(read_draws(self._store, card, cells), cells, card)
            self.read_from_store += 1
            if found.resamples.size:  # Else there are none yet, which is nothing to remember.
                self._to_folder(key, found)
        if found.resamples.size:
            self._hold(key, found)
        return found

    def put(self, card: Card, submission_id: str, origin: RunOrigin, draws: RunDraws) -> None:
        """Keep the draws of a run that is being published."""
        key = _key(card, submission_id, origin)
        self._hold(key, draws)
        self._to_folder(key, draws)

    def tidy(self) -> None:
        """Remove what was used longest ago from the folder, as far as there is too much."""
        if self._folder is None or not self._folder.is_dir():
            return
        files = [(path, path.stat()) for path in self._folder.glob(f"*{_SUFFIX}")]
        total = sum(state.st_size for _, state in files)
        for path, state in sorted(files, key=lambda file: file[1].st_mtime):
            if total <= self._on_disk:
                return
            path.unlink(missing_ok=True)
            total -= state.st_size

    def _hold(self, key: str, draws: RunDraws) -> None:
        if (old := self._held.pop(key, None)) is not None:
            self._bytes -= old.nbytes
        self._held[key] = draws
        self._bytes += draws.nbytes
        while self._bytes > self._in_memory:
            self._bytes -= self._held.popitem(last=False)[1].nbytes

    def _from_folder(self, key: str) -> RunDraws | None:
        if self._folder is None:
            return None
        path = self._folder / f"{key}{_SUFFIX}"
        try:
            with np.load(path, allow_pickle=False) as found:
                rows = found["rows"].tolist()
                tested = dict(zip(rows, found["contributions"], strict=True))
                draws = RunDraws(found["resamples"], tested)
            os.utime(path)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            # A copy that cannot be read, of what the store has: it is read there again.
            path.unlink(missing_ok=True)
            return None
        return draws

    def _to_folder(self, key: str, draws: RunDraws) -> None:
        """Keep a copy, as a whole or not at all; where the disk is full there is none."""
        if self._folder is None:
            return
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self._folder, suffix=".part")
            try:
                with os.fdopen(handle, "wb") as file:
                    np.savez(
                        file,
                        resamples=draws.resamples,
                        rows=np.array(list(draws.contributions), np.int64),
                        contributions=np.array(list(draws.contributions.values()), np.float64),
                    )
                Path(name).rename(self._folder / f"{key}{_SUFFIX}")
            finally:
                Path(name).unlink(missing_ok=True)


def _key(card: Card, submission_id: str, origin: RunOrigin) -> str:
    # The headline decides which contributions are kept.
    words = (card.name, card.headline.model_dump_json(), submission_id, origin.sha256)
    return hashlib.sha256("\n".join(words).encode()).hexdigest()
