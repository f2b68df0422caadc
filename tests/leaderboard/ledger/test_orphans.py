"""What is kept for no submission is removed, and never what one needs or is about to."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from benchmarks.errors import SubmitterError
from leaderboard.ledger.orphans import sweep
from leaderboard.store.interface import Repository, transact
from tests.leaderboard.house import ADA, T0, House

LATER = T0 + timedelta(days=1, minutes=1)
DIGEST = "f" * 64


@pytest.fixture
def house() -> House:
    return House()


def lose(house: House, *, private: bool = False) -> str:
    """A request that kept its content, and then lost its race to the last free place."""
    wanted = house.send(private=private)
    calls = iter((False, True))  # It finds nothing before the content is kept.

    def check() -> None:
        if next(calls):
            raise SubmitterError("quota_exceeded", "Too many.")

    own = {"submission_id": f"{'private' if private else 'grey'}-ffffffffff",
           "content_sha256": DIGEST, "archive": f"uploads/{DIGEST}.zip"}  # fmt: skip
    lost = house.ledger.whole(wanted).model_copy(update=own)
    with pytest.raises(SubmitterError):
        house.ledger.receive(lost, b"lost", house.ledger.events(wanted), check=check)
    return lost.archive


def before_the_next_commit(repository: Repository, act: Callable[[], object]) -> None:
    commit = repository.commit

    def after(*args: Any, **named: Any) -> str:
        repository.commit = commit  # type: ignore[method-assign]
        act()
        return commit(*args, **named)

    repository.commit = after  # type: ignore[method-assign]


def files(house: House) -> set[str]:
    return set(house.store.private.list())


@pytest.mark.parametrize("private", [False, True])
def test_what_a_lost_race_left_is_gone_a_day_later(house: House, private: bool) -> None:
    house.done(private=True)
    house.acts.withdraw(house.done(), ADA)
    archive = lose(house, private=private)
    left = {archive, *(path for path in files(house) if "ffffffffff" in path)}
    assert len(left) == (2 if private else 1)
    needed = files(house) - left
    sweep(house.store, T0)
    sweep(house.store, T0 + timedelta(hours=23))
    assert files(house) > needed | left
    sweep(house.store, LATER)
    assert files(house) == needed
    head = house.store.private.head()
    sweep(house.store, LATER + timedelta(days=2))
    assert house.store.private.head() == head  # Nothing to do is no commit.


@pytest.mark.parametrize("sent", ["before the sweep looks", "between its look and its removal"])
def test_whoever_sends_the_same_content_meanwhile_keeps_it(house: House, sent: str) -> None:
    archive = lose(house)
    sweep(house.store, T0)
    ids: list[str] = []

    def send() -> None:
        ids.append(house.send(archive=archive, content_sha256=DIGEST))

    if sent == "before the sweep looks":
        before_the_next_commit(house.store.public, lambda: sweep(house.store, LATER))
        send()
    else:
        before_the_next_commit(house.store.private, send)
        sweep(house.store, LATER)
    own = house.ledger.whole(ids[0])
    assert house.ledger.upload(own) == b"lost"
    sweep(house.store, LATER + timedelta(days=2))
    assert house.ledger.upload(own) == b"lost"


def test_a_store_whose_public_part_is_missing_loses_nothing(house: House) -> None:
    transact(house.store.private, lambda: {"uploads/a.zip": b"a"}, "kept")
    for at in (T0, LATER):
        sweep(house.store, at)
    assert files(house) == {"uploads/a.zip"}
