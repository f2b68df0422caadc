"""Recent changes: publications, and events of the ledger on boards and entries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from leaderboard.ledger.chronicle import Line
from leaderboard.ledger.history import ANNOUNCED
from leaderboard.pages.shown.markup import ago, text
from leaderboard.pages.shown.metric_names import metric_name
from leaderboard.pages.shown.signatures import signature
from leaderboard.publication.reader import View, headline_cells
from leaderboard.publication.snapshot import Entry
from leaderboard.states import State
from leaderboard.text import count
from leaderboard.views.addresses import board_address
from leaderboard.views.audit_log import LedgerQuery
from leaderboard.views.changes import moved_address

MOST_LINES = 6
_MOST_BOARDS = 3
_TAKEN_OFF = {State.WITHDRAWN.value: "withdrawn by its author", State.HIDDEN.value: "hidden"}
_Change = tuple[datetime, str]


def lately(
    view: View, lines: Sequence[Line], earlier: Iterable[str], now: datetime, most: int = MOST_LINES
) -> str:
    """The newest changes, one line each; empty where nothing was ever published.

    Args:
        view: what is published.
        lines: of the ledger, oldest first.
        earlier: benchmarks of which boards before their last change are kept.
        now: the current time.
        most: lines that are shown.
    """
    moved = frozenset(earlier)
    changes = [*_published(view), *_from_ledger(view, lines[::-1], moved, most)]
    newest = sorted(changes, key=lambda change: change[0], reverse=True)[:most]
    shown = "".join(
        f'<li>{said}<span class="as-muted">{ago(at, now)}</span></li>' for at, said in newest
    )
    return f'<ul class="as-feed">{shown}</ul>' if shown else ""


def _published(view: View) -> list[_Change]:
    by_submission: dict[str, list[Entry]] = {}
    for entry in view.entries.values():
        by_submission.setdefault(entry.submission_id, []).append(entry)
    boards = _boards_of(view)
    found = []
    for name, own in by_submission.items():
        first = own[0]
        more = f" and {count(len(own) - 1, 'more metric')}" if len(own) > 1 else ""
        where = _where(boards.get(name, ()), view)
        said = (
            f"<span>{metric_name(first)}{more} published</span>"
            f'<span class="as-muted">{f"on {where}" if where else "on no board"}, by '
            f"{signature(first.submitter, first.account)}</span>"
        )
        found.append((first.published_at, said))
    return found


def _where(boards: Sequence[str], view: View) -> str:
    if len(boards) > _MOST_BOARDS:
        return count(len(boards), "board")
    return ", ".join(
        f'<a href="{text(board_address(name))}">{text(view.boards[name].card.title)}</a>'
        for name in boards
    )


def _from_ledger(
    view: View, newest: Iterable[Line], moved: frozenset[str], most: int
) -> list[_Change]:
    """Re-evaluations of benchmarks, and entries taken off the boards."""
    found: list[_Change] = []
    for line in newest:
        if len(found) == most:
            break
        there = text(LedgerQuery(subject=line.subject).to_link())
        ledger = f'<a href="{there}">in the ledger</a>'
        if line.action == ANNOUNCED and line.subject in view.boards:
            title = text(view.boards[line.subject].card.title)
            moves = text(moved_address(line.subject))
            what = f', <a href="{moves}">what moved</a>' if line.subject in moved else ""
            found.append(
                (line.at, f"<span><b>{title}</b> re-evaluated</span>"
                          f'<span class="as-muted">{text(line.reason, limit=120)} {ledger}{what}</span>')
            )  # fmt: skip
        elif line.action in _TAKEN_OFF:
            found.append(
                (line.at, f"<span><code>{text(line.subject, limit=60)}</code> "
                          f"{_TAKEN_OFF[line.action]}</span>"
                          f'<span class="as-muted">{text(line.reason, limit=120)} {ledger}</span>')
            )  # fmt: skip
    return found


def _boards_of(view: View) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, board in view.boards.items():
        on_it = {view.entries[cell.entry_id].submission_id for cell in headline_cells(board)}
        for submission_id in on_it:
            found.setdefault(submission_id, []).append(name)
    return found
