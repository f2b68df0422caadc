"""Figures of a ledger that was deleted and begun again under the same paths."""

from __future__ import annotations

from datetime import timedelta

import pytest

from leaderboard.service.looking import ChronicleCounts
from leaderboard.store.interface import Repository
from tests.leaderboard.house import House


class Swapped:
    """A repository that becomes another one."""

    def __init__(self, now: Repository) -> None:
        self.now = now

    def __getattr__(self, name: str) -> object:
        return getattr(self.now, name)


def test_a_ledger_that_was_begun_again_is_counted_from_its_beginning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in ("ledger.chronicle", "ledger.chronicle_writing", "service.looking"):
        monkeypatch.setattr(f"leaderboard.{module}.SEGMENT_LINES", 3, raising=False)
    old, new = House(), House()
    for number in range(4):
        old.send(name=f"m{number}")
    at = new.clock() + timedelta(days=1)
    monkeypatch.setattr(new, "clock", lambda: at)
    for number in range(3):
        new.done(name=f"n{number}")
    public = Swapped(old.store.public)
    counts = ChronicleCounts(public)  # type: ignore[arg-type]
    assert counts.read() == ChronicleCounts(old.store.public).read()
    public.now = new.store.public
    assert counts.read() == ChronicleCounts(new.store.public).read()
    assert counts.read()[0]["published"] == 3
