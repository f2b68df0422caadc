"""Adds lines to the chronicle, in the commit of what they tell of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from leaderboard.ledger.chronicle import (
    BEGAN,
    FIRST,
    SEGMENT_LINES,
    Line,
    event_files,
    in_short,
    segment_path,
    segments,
    sha256,
)
from leaderboard.store.interface import NotFoundError, Repository


@dataclass(frozen=True)
class Deed:
    """What a line is to say; its number and chain come when it is appended.

    Attributes:
        at: when it was done.
        by: who did it.
        action: what was done.
        subject: to which submission or account.
        record: the bytes it stands for.
        reason: why.
    """

    at: datetime
    by: str
    action: str
    subject: str
    record: bytes
    reason: str = ""


def appended(public: Repository, deeds: Sequence[Deed], known: int = 0) -> dict[str, bytes]:
    """The files to write so that further deeds are in the chronicle.

    Only the last segment is read. In a store that has no chronicle yet it begins here, with a
    line that says how many events came before.

    Args:
        public: the public repository.
        deeds: what was done.
        known: how many segments there are at least; 0 where that is not known.
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


def _line(n: int, deed: Deed, before: str) -> bytes:
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


def _beginning(public: Repository, first: Deed) -> Deed:
    paths = event_files(public)
    earlier = [public.read(path) for path in paths]
    count = sum(len(content.splitlines()) for content in earlier)
    return Deed(
        at=first.at,
        by="assay",
        action=BEGAN,
        subject="",
        record=b"".join(earlier),
        reason=f"{count} events of {len(paths)} submissions came before.",
    )
