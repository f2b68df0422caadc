"""Audit log by page, and recent activity: publications, and events on boards and entries."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from benchmarks.errors import TransientError
from leaderboard.ledger.audit_log import FIRST, Line, broken_links, segments, sha256, verify
from leaderboard.ledger.editions import ANNOUNCED
from leaderboard.publication.entries import Entry, signature_text
from leaderboard.publication.reader import View, headline_cells
from leaderboard.states import State
from leaderboard.store.interface import Repository
from leaderboard.text import count
from leaderboard.views.addresses import metric_address, page_number, paged, query_of, texts_of
from leaderboard.views.changes import moved_address

PER_PAGE = 50
_LONGEST = 120


@dataclass(frozen=True)
class LedgerQuery:
    """Which lines, and which page of them."""

    subject: str = ""  # submission or account that something was done to; empty for all
    account: str = ""  # who did it; empty for all
    action: str = ""  # what was done; empty for all
    page: int = 1  # from 1, newest lines first

    @classmethod
    def from_params(cls, params: Mapping[str, str]) -> LedgerQuery:
        """Read an address; what makes no sense in it is left out."""
        given = texts_of(params, "subject", "account", "action", most=_LONGEST)
        return cls(**given, page=page_number(params))

    def to_link(self) -> str:
        """The address of this view."""
        return f"./ledger{query_of(vars(self), '')}"

    def to_data(self) -> str:
        """The address of the same lines in the API."""
        return f"./v1/{self.to_link().removeprefix('./')}"

    @property
    def filtered(self) -> bool:
        """Whether some lines are left out."""
        return bool(self.subject or self.account or self.action)

    def at(self, page: int) -> LedgerQuery:
        """The same lines on another page."""
        return replace(self, page=page)

    def matches(self, line: Line) -> bool:
        """Whether a line is asked for."""
        return all(
            not wanted or wanted == found
            for wanted, found in (
                (self.subject, line.subject),
                (self.account, line.by),
                (self.action, line.action),
            )
        )


def page_of(lines: Sequence[Line], query: LedgerQuery) -> dict[str, Any]:
    """The lines of the page that is asked for, or of the last; how many are found; page and pages."""
    found = [line for line in reversed(lines) if query.matches(line)]
    shown, page, pages = paged(found, query.page, PER_PAGE)
    return {"lines": shown, "found": len(found), "page": page, "pages": pages}


VERIFY_EVERY = timedelta(minutes=2)
PATIENCE_S = 0.5
"""A request waits so long for a verification that it began: small ledgers are done by then."""
_CHANGED = "Lines that were read here before are gone or changed."


@dataclass(frozen=True)
class Verified:
    """What a verification of the whole audit log found."""

    at: datetime  # when it began
    n: int  # how many lines there were at that time
    problems: tuple[str, ...] = ()  # what is wrong; empty where the audit log holds


@dataclass(frozen=True)
class Known:
    """The audit log at one version of the store."""

    lines: tuple[Line, ...] = ()  # oldest first; those that cannot be read are left out
    head: str = FIRST  # hash of the newest line
    verified: Verified | None = None  # the latest verification; None before the first has ended
    # newer lines that do not follow from those before them, and that lines which were read
    # before are gone or changed. Remembered as long as the process runs: a chain that was
    # computed anew holds in itself
    broken: tuple[str, ...] = ()

    @property
    def problems(self) -> tuple[str, ...]:
        """All that is known to be wrong."""
        found = self.verified.problems if self.verified else ()
        return (*found, *(problem for problem in self.broken if problem not in found))


class AuditLogReader:
    """Reads the audit log once for each version of the store, and has it verified."""

    def __init__(
        self, public: Repository, clock: Callable[[], datetime], *, patience_s: float = PATIENCE_S
    ) -> None:
        self._public = public
        self._clock = clock
        self._patience_s = patience_s
        self._lock = threading.Lock()
        self._version: str | None = None
        self._raw: tuple[bytes, ...] = ()
        self._lines: tuple[Line, ...] = ()
        self._segments: dict[str, _Segment] = {}
        self._broken: tuple[str, ...] = ()
        self._verified: Verified | None = None
        self._urgent = False
        self._running: threading.Event | None = None
        self._last: Known | None = None

    def read(self) -> Known:
        """The audit log as it is now, and up to when it was verified."""
        with self._lock:
            version, due = self._public.head(), self._due()
            # Whoever writes to the files alone leaves the version as it was.
            if version != self._version or due:
                self._refresh()
                self._version = version
            running = self._running
            if running is None and (due or self._urgent):
                running = self._begin()
        if running is not None:
            running.wait(self._patience_s)
        with self._lock:
            head = sha256(self._raw[-1]) if self._raw else FIRST
            return Known(self._lines, head, self._verified, self._broken)

    def latest(self) -> Known:
        """The audit log as it is now; as it was last read while the store does not answer."""
        try:
            self._last = self.read()
        except TransientError:
            if self._last is None:
                raise
        return self._last

    def content(self) -> bytes:
        """The lines as they are kept, byte for byte, so that anyone can verify the chain."""
        return b"".join(self._public.read(path) for path in segments(self._public))

    def _due(self) -> bool:
        return self._verified is None or self._clock() - self._verified.at >= VERIFY_EVERY

    def _refresh(self) -> None:
        """Read all segments; most are known by their hash, since a full one never changes."""
        contents = [self._public.read(path) for path in segments(self._public)]
        digests = [sha256(content) for content in contents]
        self._segments = {
            digest: self._segments.get(digest) or _Segment.read(content)
            for digest, content in zip(digests, contents, strict=True)
        }
        found = [self._segments[digest] for digest in digests]
        before = self._raw
        self._raw = tuple(line for segment in found for line in segment.raw)
        self._lines = tuple(line for segment in found for line in segment.lines)
        if self._raw[: len(before)] != before:
            self._urgent = True
            self._broken = (*self._broken, _CHANGED)
        elif before:
            self._broken = (*self._broken, *broken_links(self._raw, len(before)))

    def _begin(self) -> threading.Event:
        self._urgent = False
        done = self._running = threading.Event()
        begun = Verified(self._clock(), len(self._raw))
        threading.Thread(target=self._verify, args=(begun, done), daemon=True).start()
        return done

    def _verify(self, begun: Verified, done: threading.Event) -> None:
        try:
            problems = verify(self._public)
            with self._lock:
                self._verified = replace(begun, problems=problems)
        finally:
            # An error is told by the thread; the next request has it tried again.
            with self._lock:
                self._running = None
            done.set()


@dataclass(frozen=True)
class _Segment:
    """A file of the audit log: its lines as they are kept, and those of them that can be read."""

    raw: tuple[bytes, ...]
    lines: tuple[Line, ...]

    @classmethod
    def read(cls, content: bytes) -> _Segment:
        """Verifying tells of the lines that are none."""
        raw = tuple(content.splitlines())
        return cls(raw, tuple(line for line in map(_line, raw) if line is not None))


def _line(content: bytes) -> Line | None:
    try:
        return Line.model_validate_json(content)
    except ValueError:
        return None


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
