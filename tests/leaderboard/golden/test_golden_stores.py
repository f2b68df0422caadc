"""A whole store that an earlier release left is read, and goes on."""

from __future__ import annotations

import zipfile
from datetime import timedelta
from pathlib import Path

import pytest

from benchmarks.errors import SubmitterError
from leaderboard.governance.bans import read_bans
from leaderboard.governance.policy import read_policy
from leaderboard.ledger.chronicle import read_lines, verify
from leaderboard.ledger.held import read_marks
from leaderboard.ledger.ledger import Ledger
from leaderboard.ledger.tidying import tidy_all
from leaderboard.publication.results import read_results
from leaderboard.states import State
from leaderboard.store.folder import folder_store
from tests.leaderboard.house import ADA, BOB, OLGA, House, Ticking

STORES = Path(__file__).parent / "stores"
BEFORE_HUB = {
    "grey-f42ac9eceb": State.SUPERSEDED,
    "grey-5dece6e577": State.PUBLISHED,
    "private-0000000001": State.HELD,
    "private-0000000002": State.PUBLISHED,
    "black-7c6ff8a6e8": State.FAILED,
    "white-c1bba102c2": State.HIDDEN,
    "red-d0254a1642": State.WITHDRAWN,
    "sent-b8f71269ec": State.QUEUED,
    "work-c1ffd68b0e": State.SCORING,
}
"""As the release before stores on the Hub left it: its queue and its snapshot are JSON."""


@pytest.fixture
def house(tmp_path: Path) -> House:
    with zipfile.ZipFile(STORES / "before-hub.zip") as archive:
        archive.extractall(tmp_path)
    clock = Ticking()
    clock.time += timedelta(days=1)
    return House(store=folder_store(tmp_path), clock=clock)


def test_every_submission_is_where_it_was(house: House) -> None:
    found = {s.submission.submission_id: s.state for s in house.ledger.statuses()}
    assert found == BEFORE_HUB
    assert verify(house.store.public) == ()
    whole = house.ledger.whole("private-0000000001")
    assert (whole.name, whole.account) == ("blue", BOB.key)
    assert "Traceback" in house.ledger.whole_events("black-7c6ff8a6e8")[-1].log


def test_results_bans_policy_and_marks_are_there(house: House) -> None:
    for name in ("grey-5dece6e577", "private-0000000001", "private-0000000002"):
        results = read_results(house.store, house.ledger.whole(name))
        assert [result.benchmark for result in results] == ["open", "closed"]
        assert {row["value"] for result in results for row in result.rows} == {0.5}
    assert [ban.reason for ban in read_bans(house.store.public).values()] == ["Spam «again»."]
    assert read_policy(house.store.public).period_days == 3
    assert list(read_marks(house.store.private)) == ["uploads/left.zip"]


def test_its_boards_are_shown_as_they_were_and_with_the_next_publication(house: House) -> None:
    assert house.shown() == {"grey-5dece6e577", "private-0000000002"}
    house.done(BOB, "new")
    assert house.store.public.list("snapshot") == ("snapshot.parquet",)
    assert house.shown() == {
        "grey-5dece6e577",
        "private-0000000002",
        house.ledger.statuses()[-1].submission.submission_id,
    }


def test_what_it_had_begun_goes_on(house: House) -> None:
    lines = len(read_lines(house.store.public))
    house.claim("sent-b8f71269ec")
    assert house.store.public.list("queue") == ("queue.parquet",)
    assert [s.state for s in Ledger(house.store).statuses()].count(State.SCORING) == 2
    house.finish("work-c1ffd68b0e")
    house.acts.publish("private-0000000001", BOB)
    house.acts.show("white-c1bba102c2", OLGA)
    house.acts.withdraw("grey-5dece6e577", ADA)
    tidy_all(house.store)
    states = {s.submission.submission_id: s.state for s in house.ledger.statuses()}
    assert states == {
        **BEFORE_HUB,
        "sent-b8f71269ec": State.SCORING,
        "work-c1ffd68b0e": State.PUBLISHED,
        "private-0000000001": State.PUBLISHED,
        "white-c1bba102c2": State.PUBLISHED,
        "grey-5dece6e577": State.WITHDRAWN,
        "grey-f42ac9eceb": State.PUBLISHED,
    }
    on_boards = {n for n, state in states.items() if state is State.PUBLISHED}
    assert house.shown() == on_boards
    assert len(read_lines(house.store.public)) == lines + 9
    assert verify(house.store.public) == ()


def test_a_submission_of_it_is_still_refused_a_second_time(house: House) -> None:
    record = house.ledger.whole("sent-b8f71269ec")
    events = house.ledger.events("sent-b8f71269ec")
    with pytest.raises(SubmitterError, match="exists already"):
        house.ledger.receive(record, b"upload", events)
