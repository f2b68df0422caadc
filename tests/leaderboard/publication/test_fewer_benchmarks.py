"""Whoever publishes and knows fewer benchmarks than the store has leaves the other boards alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from leaderboard.publication.boards import Snapshot
from leaderboard.publication.publisher import Publisher
from leaderboard.publication.rebuilding import differences, rebuilt
from leaderboard.publication.snapshot_file import read_snapshot
from tests.leaderboard.house import ADA, BOB, CARDS, OPEN, House
from tests.leaderboard.publication.counting import noisy_house


@pytest.fixture
def house() -> Iterator[House]:
    with noisy_house() as one:
        one.done(name="one")
        one.done(BOB, "two")
        # From here on, it publishes as an installation with one benchmark does.
        one.publisher = Publisher(one.store, {"open": OPEN})
        yield one


def snapshot_of(house: House) -> Snapshot:
    found = read_snapshot(house.store.public)
    assert found is not None
    return found


def test_boards_of_benchmarks_that_are_not_known_stay_as_they_were(house: House) -> None:
    before = snapshot_of(house)
    third = house.done(name="three", benchmarks=("open",))
    after = snapshot_of(house)
    assert after.boards["closed"].card == before.boards["closed"].card
    assert after.boards["closed"].cells == before.boards["closed"].cells
    assert len(before.boards["closed"].cells) == 2
    assert third in {entry.submission_id for entry in after.entries.values()}
    assert {n: e for n, e in after.entries.items() if e.submission_id != third} == before.entries


def test_all_that_is_shown_is_what_whoever_knows_every_benchmark_would_show(house: House) -> None:
    house.done(name="three", benchmarks=("open",))
    house.acts.withdraw(house.done(name="four", benchmarks=("open",)), ADA)
    assert differences(snapshot_of(house), rebuilt(house.store, CARDS, house.clock())) == ()


def test_to_start_with_fewer_benchmarks_changes_nothing(house: House) -> None:
    head = house.store.public.head()
    house.publisher.publish_cards(house.clock())
    assert house.store.public.head() == head
