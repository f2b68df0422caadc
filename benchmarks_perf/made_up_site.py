"""Serves a made-up store as a process of its own, for measurements from outside.

    python -m benchmarks_perf.made_up_site FOLDER PORT SUBMISSIONS

The folder is filled and published if it is empty. A line that begins with "Serving" is printed once
visitors may come.
"""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks_perf.made_up_store import NOW, Size, cards_of_size, fill
from evaluator.submission.receiving.desk import SubmissionDesk
from leaderboard.api.source import Source
from leaderboard.desk import Gate
from leaderboard.pages.reading import Reader
from leaderboard.pages.site import create_app, launch_options
from leaderboard.publication.publisher import Publisher
from leaderboard.publication.snapshot_file import PATH
from leaderboard.service.memory import keep_small
from leaderboard.store.folder import folder_store

BOARDS, SLICES = 2, 60


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def served(folder: Path, submissions: int) -> Iterator[tuple[str, int]]:
    """The site in a process of its own: its address and the id of the process.

    Args:
        folder: of the store; filled if it is empty.
        submissions: how many it gets then.

    Raises:
        RuntimeError: it did not start.
    """
    port = free_port()
    words = [sys.executable, "-m", "benchmarks_perf.made_up_site", str(folder), str(port)]
    with subprocess.Popen([*words, str(submissions)], stdout=subprocess.PIPE, text=True) as site:
        assert site.stdout is not None
        try:
            if not site.stdout.readline().startswith("Serving"):
                raise RuntimeError("the site did not start")
            yield f"http://127.0.0.1:{port}", site.pid
        finally:
            site.terminate()


def main(arguments: Sequence[str]) -> int:
    """Serve until terminated."""
    keep_small()
    folder, port, submissions = Path(arguments[0]), int(arguments[1]), int(arguments[2])
    size = Size(submissions, BOARDS, SLICES)
    cards, store = cards_of_size(size), folder_store(folder)
    if not store.public.has(PATH):
        fill(store, size)
        Publisher(store, cards).publish_cards(NOW)
    desk = SubmissionDesk(store, {}, None, lambda: Gate(ok=True), store.clock)
    source = Source(Reader(store, cards, clock=store.clock), store, cards, store.clock)
    app = create_app(store, desk, cards, clock=store.clock, source=source)
    app.launch(
        server_name="127.0.0.1",
        server_port=port,
        prevent_thread_lock=True,
        quiet=True,
        **launch_options(source=source),
    )
    sys.stdout.write("Serving\n")
    sys.stdout.flush()
    app.block_thread()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
