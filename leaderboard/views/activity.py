"""Recent activity: publications, and events of the audit log on boards and entries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from leaderboard.ledger.chronicle import Line
from leaderboard.ledger.history import ANNOUNCED
from leaderboard.publication.entries import Entry
from leaderboard.publication.identities import signature_text
from leaderboard.publication.reader import View, headline_cells
from leaderboard.states import State
from leaderboard.text import count
from leaderboard.views.addresses import metric_address
from leaderboard.views.audit_log import LedgerQuery
from leaderboard.views.changes import moved_address

MOST_LINES = 6
_TAKEN_OFF = {State.WITHDRAWN.value: "withdrawn by its author", State.HIDDEN.value: "hidden"}


@dataclass(frozen=True)
class Activity:
    """One change of what is shown."""

    at: datetime  # when
    subject: str  # what it is about, as it was submitted
    said: str  # what became of it
    more: str = ""  # by whom or why
    links: tuple[tuple[str, str], ...] = ()  # label and address of what lies behind it


def recent_activity(
    view: View, lines: Sequence[Line], earlier: Iterable[str], most: int = MOST_LINES
) -> tuple[Activity, ...]:
    """The newest changes; none where nothing was ever published."""
    found = [*_published(view), *_logged(view, lines[::-1], frozenset(earlier), most)]
    return tuple(sorted(found, key=lambda one: one.at, reverse=True)[:most])


def _published(view: View) -> list[Activity]:
    by_submission: dict[str, list[Entry]] = {}
    for entry in view.entries.values():
        by_submission.setdefault(entry.submission_id, []).append(entry)
    boards: dict[str, list[str]] = {}
    for board in view.boards.values():
        for name in {view.entries[c.entry_id].submission_id for c in headline_cells(board)}:
            boards.setdefault(name, []).append(board.card.title)
    found = []
    for name, own in by_submission.items():
        more = f" and {count(len(own) - 1, 'more metric')}" if len(own) > 1 else ""
        on = boards.get(name, [])
        where = ", ".join(on) if len(on) <= 3 else count(len(on), "board")
        found.append(
            Activity(
                own[0].published_at,
                own[0].metric,
                f"{more} published on {where or 'no board'}".strip(),
                f"by {signature_text(own[0])}",
                (("Metric page", metric_address(own[0].entry_id)),),
            )
        )
    return found


def _logged(
    view: View, newest: Iterable[Line], earlier: frozenset[str], most: int
) -> list[Activity]:
    """Re-evaluations of benchmarks, and entries taken off the boards."""
    found: list[Activity] = []
    for line in newest:
        if len(found) == most:
            break
        links = [("Audit log", LedgerQuery(subject=line.subject).to_link())]
        if line.action == ANNOUNCED and line.subject in view.boards:
            if line.subject in earlier:
                links.append(("Changes", moved_address(line.subject)))
            title = view.boards[line.subject].card.title
            found.append(Activity(line.at, title, "re-evaluated", line.reason, tuple(links)))
        elif line.action in _TAKEN_OFF:
            said = _TAKEN_OFF[line.action]
            found.append(Activity(line.at, line.subject, said, line.reason, tuple(links)))
    return found
