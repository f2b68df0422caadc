"""Order of the queue, in words for the pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from leaderboard.pages.page import Context
from leaderboard.records import Status
from leaderboard.store.live.interface import Pulse
from leaderboard.views.queue import Outlook, measured_s, outlooks


def turns_of(
    context: Context, pulses: Sequence[Pulse], whole: Iterable[Status] = ()
) -> dict[str, Outlook]:
    """Submission id to its place and expected wait, of all that wait.

    Args:
        context: where submissions are read, and what was measured.
        pulses: the latest of every worker.
        whole: those whose whole records the reader may see: in public, a private one is nobody's.
    """
    known = {status.submission.submission_id: status for status in whole}
    every = [known.get(s.submission.submission_id, s) for s in context.reader.statuses()]
    each_s = measured_s(context.reader.view().entries.values())
    return outlooks(every, pulses, context.clock(), each_s)
