"""Commits of votes while a site is served: all that came, together, now and then."""

from __future__ import annotations

import logging
import threading

from leaderboard.votes.service import VotingService

log = logging.getLogger(__name__)


class VoteCommitter:
    """Thread that brings votes to the store, and once more when it ends."""

    def __init__(self, service: VotingService, every_s: float) -> None:
        self._service, self._every_s = service, every_s
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="votes", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, when all that is there is stored or refused."""
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(self._every_s):
            self._commit()
        self._commit()

    def _commit(self) -> None:
        try:
            self._service.commit()
        except Exception:
            log.exception("Votes wait in their journals: the next commit takes them.")
