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
from leaderboard.store.interface import Repository


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


def appended(public: Repository, deeds: Sequence[Deed]) -> dict[str, bytes]:
    """The files to write so that further deeds are in the chronicle.

    Only the last segment is read. In a store that has no chronicle yet it begins here, with a
    line that says how many events came before.
    """
    if not deeds:
        return {}
    paths = segments(public)
    if paths:
        content = public.read(paths[-1])
        number, lines = len(paths), content.splitlines()
        following = deeds
    else:
        number, lines = 1, []
        following = [_beginning(public, deeds[0]), *deeds]
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
