"""Commits of votes while a site is served: all that came, together, now and then."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from leaderboard.votes.service import VotingService

log = logging.getLogger(__name__)

END_WITHIN_S = 4.0
"""Wait for the last commit. Connections close in 5 s, and `docker stop` kills after 10 s."""


@contextmanager
def votes_committed(
    service: VotingService, every_s: float, end_within_s: float = END_WITHIN_S
) -> Iterator[None]:
    """While this is entered, a thread brings votes to the store, and once more at the end.

    What is not stored in time then stays in its journal for the next start.
    """
    over = threading.Event()

    def run() -> None:
        while not over.wait(every_s):
            _commit(service)
        _commit(service)

    thread = threading.Thread(target=run, name="votes", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(end_within_s)


def _commit(service: VotingService) -> None:
    try:
        service.commit()
    except Exception:
        log.exception("Votes wait in their journals: the next commit takes them.")
