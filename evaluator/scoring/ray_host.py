"""ScorerClient in an actor: the thread that asks it, and threads that make images ready for it."""

from __future__ import annotations

import sys
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import ExitStack

from evaluator.scoring.asking import Answered, Batch, ClientSource, ScorerClient
from evaluator.scoring.batch_work import ReadyBatch, Room, ask_ready, made_ready


class ClientHost:
    """Takes calls from several threads at once.

    One thread opens, asks and closes the client: what it starts may belong to the thread that
    started it. While it asks for one batch, the images of the next are made ready by others.
    """

    def __init__(self, threads: int, ready_threads: int) -> None:
        self._threads = threads
        self._asking = ThreadPoolExecutor(1, thread_name_prefix="asking")
        self._pool = ThreadPoolExecutor(ready_threads, thread_name_prefix="ready")
        self._opened = ExitStack()
        self._room = Room()
        self._closing = False

    def open(self, source: ClientSource) -> None:
        """Start the client."""
        self._client: ScorerClient = self._asking.submit(self._open, source).result()

    def answer(self, batch: Batch) -> Answered:
        """Make a batch ready, and ask when it is its turn."""
        ready = made_ready(self._client, batch, self._pool)
        return self._asking.submit(self._answer, batch, ready).result()

    def close(self) -> None:
        """End the client, after what is asked just now; batches that wait are dropped."""
        self._closing = True
        self._asking.submit(self._opened.close).result()

    def _open(self, source: ClientSource) -> ScorerClient:
        client = self._opened.enter_context(source.open())
        # Only if the client uses it; loading it takes seconds.
        if torch := sys.modules.get("torch"):
            torch.set_num_threads(self._threads)
        return client

    def _answer(self, batch: Batch, ready: ReadyBatch) -> Answered:
        if self._closing:
            ready.cancel()
            raise CancelledError
        return ask_ready(self._client, batch, ready, self._room)
