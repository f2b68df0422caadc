"""The public, append-only record of everything that was done: one line for each event and act.

Each line holds the hash of the line before it and of the record it stands for, so a line that is
changed, missing, moved or put in is found by anyone who reads the files. Whoever can write to the
store could still compute the whole chain anew: against that, note `last_hash` elsewhere from time
to time. Private submissions appear by their opaque id only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from leaderboard.ledger import editions, policy
from leaderboard.ledger import judge_pins as pins
from leaderboard.records import Event
from leaderboard.states import State
from leaderboard.store.interface import NotFoundError, Repository

FOLDER = "chronicle/"
SEGMENT_LINES = 1000
BAN, UNBAN, POLICY, JUDGES = "ban", "unban", "policy", "judges"
"""Actions that are no events of submissions."""
BEGAN = "began"
"""Action of the first line, whose record is the hash of all events that are older than it."""
FIRST = "0" * 64  # Stands for the line before the first
REASON_CHARS = 500  # The event or record itself has the whole reason
_STATES = frozenset(str(state) for state in State)
_LOOKS = 5
_NONE = (
    "There is no chronicle, though something was done here. In a store that is older than "
    "chronicles it begins with the next thing that is done; in any other it was removed."
)


class Line(BaseModel):
    """One thing that was done."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: Literal[1] = 1
    n: int
    """Its number, from 1."""
    at: AwareDatetime
    by: str
    """Who did it: an account, a submitter, a worker."""
    action: str
    """The state a submission went to; `ban`, `unban`, `policy`, `judges`, `began`, `new_edition`,
    `new_scorer`."""
    subject: str
    """The submission, account, benchmark or judging metric it was done to."""
    reason: str = ""
    record: str
    """SHA-256 of what it stands for: the event's line in `events.jsonl`, the ban, the policy."""
    before: str
    """SHA-256 of the line before."""


def sha256(content: bytes) -> str:
    """As lines state hashes."""
    return hashlib.sha256(content).hexdigest()


def segment_path(number: int) -> str:
    """Path of a segment, from 1."""
    return f"{FOLDER}{number:06d}.jsonl"


def segment_number(path: str) -> int:
    """Which segment a path is of."""
    return int(path.removeprefix(FOLDER).removesuffix(".jsonl"))


def segments(public: Repository) -> tuple[str, ...]:
    """Paths of all segments, in order."""
    return public.list(FOLDER)


def in_short(reason: str) -> str:
    """A reason as a line has it."""
    return reason if len(reason) <= REASON_CHARS else f"{reason[: REASON_CHARS - 1]}…"


def event_files(public: Repository) -> tuple[str, ...]:
    """Paths of the events of all submissions, in order."""
    return tuple(p for p in public.list("submissions/") if p.endswith("/events.jsonl"))


def read_lines(public: Repository, subject: str | None = None) -> tuple[Line, ...]:
    """The lines of the chronicle, oldest first; only those about a subject, if one is given."""
    raw = (line for path in segments(public) for line in public.read(path).splitlines())
    lines = (Line.model_validate_json(line) for line in raw)
    return tuple(line for line in lines if subject is None or line.subject == subject)


def last_hash(public: Repository) -> str:
    """Hash of the newest line, which stands for the whole chronicle; for keeping elsewhere."""
    paths = segments(public)
    return sha256(public.read(paths[-1]).splitlines()[-1]) if paths else FIRST


def broken_links(raw: Sequence[bytes], known: int) -> tuple[str, ...]:
    """What is wrong with new lines by themselves: they are no lines, or do not follow."""
    return tuple(_chained(raw, known)[1])


def verify(public: Repository) -> tuple[str, ...]:
    """What is wrong with a store's chronicle, in sentences; nothing where it holds.

    The chain of lines, the events of all submissions (each has its line since the chronicle began,
    and each line its event), the bans, the policy and the decisions about judges are compared.
    """
    problems: tuple[str, ...] = ()
    for _ in range(_LOOKS):
        head = public.head()
        try:
            problems = _problems(public)
        except NotFoundError:
            problems = ("A file went away while it was read.",)
        if not problems or public.head() == head:
            break  # Otherwise files of two versions may have been compared.
    return problems


def _problems(public: Repository) -> tuple[str, ...]:
    paths = segments(public)
    if not paths:
        acts = (policy.BANS_PATH, policy.POLICY_PATH, pins.PATH)
        begun = event_files(public) or any(public.has(path) for path in acts)
        return (_NONE,) if begun else ()
    problems = _misplaced(public, paths)
    lines, broken = _chained([line for path in paths for line in public.read(path).splitlines()])
    problems += broken
    if not problems and not lines:
        problems = ["The chronicle is empty."]
    if not problems:
        problems = [
            *_events(public, lines),
            *_bans(public, lines),
            *_policy(public, lines),
            *_judges(public, lines),
            *_editions(public, lines),
        ]
    return tuple(problems)


def _misplaced(public: Repository, paths: Sequence[str]) -> list[str]:
    """Segments that are missing, strange or of a wrong length."""
    expected = [segment_path(n) for n in range(1, len(paths) + 1)]
    if list(paths) != expected:
        return [f"The segments are {', '.join(paths)}, not {expected[0]} to {expected[-1]}."]
    return [
        f"{path} has not {SEGMENT_LINES} lines, though others follow it."
        for path in paths[:-1]
        if len(public.read(path).splitlines()) != SEGMENT_LINES
    ]


def _chained(raw: Sequence[bytes], known: int = 0) -> tuple[list[Line], list[str]]:
    """The lines after those that are known, and where one does not follow from the one before."""
    lines: list[Line] = []
    problems: list[str] = []
    before = sha256(raw[known - 1]) if known else FIRST
    for n, content in enumerate(raw[known:], start=known + 1):
        try:
            line = Line.model_validate_json(content)
        except ValidationError:
            problems.append(f"Line {n} cannot be read.")
        else:
            lines.append(line)
            if line.n != n:
                problems.append(f"Line {n} says that it is line {line.n}.")
            if line.before != before:
                problems.append(f"Line {n} does not follow from the line before it.")
            if (line.action == BEGAN) != (n == 1):
                problems.append(f"Line {n} is {line.action!r}: the first begins, and no other.")
        before = sha256(content)
    return lines, problems


def _events(public: Repository, lines: Sequence[Line]) -> list[str]:
    """Events without their line, lines without their event, and older events that were changed."""
    told: dict[str, list[Line]] = {}
    for line in lines:
        if line.action in _STATES:
            told.setdefault(line.subject, []).append(line)
    problems: list[str] = []
    older = b""
    for path in event_files(public):
        name = path.split("/")[1]
        own = told.pop(name, [])
        events = public.read(path).splitlines()
        head = max(0, len(events) - len(own))
        older += b"".join(event + b"\n" for event in events[:head])
        if len(own) > len(events):
            problems.append(f"{name} has {len(events)} events, and {len(own)} lines tell of it.")
            continue
        for number, (event, line) in enumerate(
            zip(events[head:], own, strict=True), start=head + 1
        ):
            if not _tells(line, event):
                problems.append(f"Line {line.n} is not of event {number} of {name}.")
    problems += [f"Lines tell of {name}, which has no events." for name in told]
    if sha256(older) != lines[0].record:
        problems.append("Events without a line are not those from before the chronicle began.")
    return problems


def _tells(line: Line, content: bytes) -> bool:
    """Whether a line is the one of an event."""
    try:
        event = Event.model_validate_json(content)
    except ValidationError:
        return False
    return line.record == sha256(content) and (line.at, line.by, line.action, line.reason) == (
        event.at,
        event.by,
        event.state,
        in_short(event.reason),
    )


def _bans(public: Repository, lines: Sequence[Line]) -> list[str]:
    """Bans that differ from what the lines leave in force."""
    told: dict[str, str] = {}
    for line in lines:
        if line.action == BAN:
            told[line.subject] = line.record
        elif line.action == UNBAN:
            told.pop(line.subject, None)
    try:
        found = {key: sha256(ban.record) for key, ban in policy.read_bans(public).items()}
    except (ValueError, AttributeError):
        return [f"{policy.BANS_PATH} cannot be read."]
    wrong = sorted(key for key in told.keys() | found.keys() if told.get(key) != found.get(key))
    return [f"{policy.BANS_PATH} says another thing of {key} than the lines do." for key in wrong]


def _policy(public: Repository, lines: Sequence[Line]) -> list[str]:
    """A policy that is not the one the lines tell of last."""
    told = [line.record for line in lines if line.action == POLICY]
    here = sha256(public.read(policy.POLICY_PATH)) if public.has(policy.POLICY_PATH) else None
    if here == (told[-1] if told else None):
        return []
    return [f"{policy.POLICY_PATH} is not the policy that was set last."]


def _judges(public: Repository, lines: Sequence[Line]) -> list[str]:
    """Decisions about judging metrics that are not those the lines tell of last."""
    told = [line.record for line in lines if line.action == JUDGES]
    here = sha256(public.read(pins.PATH)) if public.has(pins.PATH) else None
    if here == (told[-1] if told else None):
        return []
    return [f"{pins.PATH} does not hold the decisions that were made last."]


def _editions(public: Repository, lines: Sequence[Line]) -> list[str]:
    """Announcements of editions that differ from what the lines tell."""
    told: dict[str, list[str]] = {}
    for line in lines:
        if line.action == editions.ANNOUNCED:
            told.setdefault(line.subject, []).append(line.record)
    try:
        found = {
            name: [sha256(one.record) for one in announced]
            for name, announced in editions.read_history(public).items()
        }
    except ValueError:
        return [f"{editions.EDITIONS} cannot be read."]
    wrong = sorted(name for name in told.keys() | found.keys() if told.get(name) != found.get(name))
    return [
        f"{editions.EDITIONS} says another thing of {name} than the lines do." for name in wrong
    ]


@dataclass(frozen=True)
class LogDraft:
    """What a line is to say; its number and chain come when it is appended."""

    at: datetime  # when it was done
    by: str  # who did it
    action: str  # what was done
    subject: str  # to which submission or account
    record: bytes  # the bytes it stands for
    reason: str = ""  # why


def appended(public: Repository, deeds: Sequence[LogDraft], known: int = 0) -> dict[str, bytes]:
    """The files to write so that further deeds are in the chronicle.

    Only the last segment is read. In a store that has no chronicle yet it begins here, with a
    line that says how many events came before.
    """
    if not deeds:
        return {}
    number, lines = _last_segment(public, known)
    following = deeds
    if number == 0:
        number, following = 1, [_beginning(public, deeds[0]), *deeds]
    n = (number - 1) * SEGMENT_LINES + len(lines)
    every = list(lines)
    for deed in following:
        n += 1
        every.append(_line(n, deed, sha256(every[-1]) if every else FIRST))
    files = {
        segment_path(number + start // SEGMENT_LINES): b"".join(
            line + b"\n" for line in every[start : start + SEGMENT_LINES]
        )
        for start in range(0, len(every), SEGMENT_LINES)
    }
    if len(lines) == SEGMENT_LINES:
        del files[segment_path(number)]  # It was full already.
    return files


def _last_segment(public: Repository, known: int) -> tuple[int, list[bytes]]:
    """Its number and its lines; 0 where there is none."""
    number = known or len(segments(public))
    if number == 0:
        return 0, []
    try:
        lines = public.read(segment_path(number)).splitlines()
    except NotFoundError:
        if not known:
            raise
        return _last_segment(public, 0)
    # A full one may have been followed by another since its number was noted.
    while len(lines) == SEGMENT_LINES and public.has(segment_path(number + 1)):
        number += 1
        lines = public.read(segment_path(number)).splitlines()
    return number, lines


def _line(n: int, deed: LogDraft, before: str) -> bytes:
    line = Line(
        n=n,
        at=deed.at,
        by=deed.by,
        action=deed.action,
        subject=deed.subject,
        reason=in_short(deed.reason),
        record=sha256(deed.record),
        before=before,
    )
    return line.model_dump_json().encode()


def _beginning(public: Repository, first: LogDraft) -> LogDraft:
    paths = event_files(public)
    earlier = [public.read(path) for path in paths]
    count = sum(len(content.splitlines()) for content in earlier)
    return LogDraft(
        at=first.at,
        by="assay",
        action=BEGAN,
        subject="",
        record=b"".join(earlier),
        reason=f"{count} events of {len(paths)} submissions came before.",
    )
