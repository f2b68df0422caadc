"""What is kept for no submission is removed, and never what one needs or is about to."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from benchmarks.errors import SubmitterError
from leaderboard.ledger.orphans import sweep
from leaderboard.store.interface import transact
from tests.leaderboard.house import ADA, T0, House

LATER = T0 + timedelta(days=1, minutes=1)


@pytest.fixture
def house() -> House:
    return House()


def refused_in_the_end() -> Callable[[], None]:
    """A check that finds nothing before the content is kept, and something in the commit."""
    calls = iter((False, True))

    def check() -> None:
        if next(calls):
            raise SubmitterError("quota_exceeded", "Too many.")

    return check


def lose(house: House, *, private: bool, digest: str = "f" * 64) -> str:
    """A request that kept its content, and then lost its race to the last free place."""
    wanted = house.send(private=private)
    found = house.ledger.whole(wanted)
    lost = found.model_copy(
        update={
            "submission_id": "private-ffffffffff" if private else "grey-ffffffffff",
            "content_sha256": digest,
            "archive": f"uploads/{digest}.zip",
        }
    )
    with pytest.raises(SubmitterError):
        house.ledger.receive(lost, b"lost", house.ledger.events(wanted), check=refused_in_the_end())
    return lost.archive


def files(house: House) -> set[str]:
    return set(house.store.private.list())


@pytest.mark.parametrize("private", [False, True])
def test_what_a_lost_race_left_is_gone_a_day_later_and_all_else_is_kept(
    house: House, private: bool
) -> None:
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


def test_a_sweep_with_nothing_to_do_commits_nothing(house: House) -> None:
    house.done(private=True)
    head = house.store.private.head()
    sweep(house.store, T0)
    sweep(house.store, LATER)
    assert house.store.private.head() == head


def test_whoever_sends_the_same_content_meanwhile_keeps_it(house: House) -> None:
    archive = lose(house, private=False)
    sweep(house.store, T0)
    commit = house.store.public.commit

    def swept_in_between(*args: object, **named: object) -> str:
        house.store.public.commit = commit  # type: ignore[method-assign]
        sweep(house.store, LATER)
        return commit(*args, **named)  # type: ignore[arg-type]

    house.store.public.commit = swept_in_between  # type: ignore[method-assign]
    digest = archive.removeprefix("uploads/").removesuffix(".zip")
    again = house.send(archive=archive, content_sha256=digest)
    assert house.ledger.upload(house.ledger.whole(again)) == b"lost"
    sweep(house.store, LATER + timedelta(days=2))
    assert house.ledger.upload(house.ledger.whole(again)) == b"lost"


def test_content_sent_between_a_look_and_the_removal_is_not_removed(house: House) -> None:
    archive = lose(house, private=False)
    sweep(house.store, T0)
    commit = house.store.private.commit
    digest = archive.removeprefix("uploads/").removesuffix(".zip")
    sent: list[str] = []

    def sent_in_between(*args: object, **named: object) -> str:
        house.store.private.commit = commit  # type: ignore[method-assign]
        sent.append(house.send(archive=archive, content_sha256=digest))
        return commit(*args, **named)  # type: ignore[arg-type]

    house.store.private.commit = sent_in_between  # type: ignore[method-assign]
    sweep(house.store, LATER)
    assert house.ledger.upload(house.ledger.whole(sent[0])) == b"lost"


def test_a_store_whose_public_part_is_missing_loses_nothing(house: House) -> None:
    transact(house.store.private, lambda: {"uploads/a.zip": b"a"}, "kept")
    sweep(house.store, T0)
    sweep(house.store, LATER)
    assert files(house) == {"uploads/a.zip"}
