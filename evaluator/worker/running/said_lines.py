"""Passes the output of a running scorer on, as far as it is new."""

from __future__ import annotations

import logging
from collections.abc import Callable

from benchmarks.errors import TransientError
from leaderboard.store.live.interface import Live

LONGEST_LINE = 300
_FIRST_SEEN = 4096
"""Of output that does not go on from what was seen, this much of its end is passed on."""

log = logging.getLogger(__name__)


class SaidLines:
    """What one scorer said so far.

    Args:
        live: where it is told.
        submission_id: whose scorer it is.
        may_tell: whether its output may be told at all; otherwise nothing is.
    """

    def __init__(self, live: Live, submission_id: str, *, may_tell: bool) -> None:
        self._live = live
        self._submission_id = submission_id
        self._may_tell = may_tell
        self._seen = ""

    @property
    def last(self) -> str:
        """The last line with anything in it, cut to a length that can be shown."""
        lines = (line.strip() for line in reversed(self._seen.splitlines()))
        return next((line[:LONGEST_LINE] for line in lines if line), "")

    def heard(self, output: Callable[[], str]) -> None:
        """Pass on what is new; what cannot be told now is lost, and nothing else.

        Args:
            output: gives all that was kept of the output so far.
        """
        if not self._may_tell:
            return
        text = output()
        new, self._seen = after(self._seen, text), text
        if not new:
            return
        try:
            self._live.say(self._submission_id, new)
        except (OSError, TransientError) as error:
            log.debug("Output is not told: %s", error)

    def forget(self) -> None:
        """Nobody is to read it any more."""
        try:
            self._live.forget(self._submission_id)
        except (OSError, TransientError) as error:
            log.debug("Output is not forgotten: %s", error)


def after(seen: str, text: str) -> str:
    """What a text has beyond what was seen of it.

    Of long output only the first part and the last are kept, so the end of what was seen is looked
    for; where it is not found any more, the end of the text is all new.
    """
    if text.startswith(seen):
        return text[len(seen) :]
    end = seen[-200:]
    place = text.rfind(end)
    return text[place + len(end) :] if place >= 0 else text[-_FIRST_SEEN:]
