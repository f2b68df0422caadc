"""How pages read a store: a constant number of requests, and what stays while it is away."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from benchmarks.errors import TransientError
from leaderboard.ledger.queue_file import INBOX, QUEUE
from leaderboard.publication import reader as reading
from leaderboard.publication.reader import RETRY_AFTER_S, Reader
from leaderboard.publication.snapshot import PATH
from leaderboard.store.interface import Store, transact
from tests.kit.governed import CARDS, House, NoisyHouse
from tests.kit.hub.server import HubServer, running_hub
from tests.kit.hub_store import created, parts_of, store_of
from tests.kit.store import Counting, counted

START = datetime(2026, 1, 1, tzinfo=UTC)


class Flaky(Counting):
    """A repository that can be away, or hang until it is let go."""

    away = False
    gate: threading.Event | None = None
    waiting = threading.Event()

    def head(self) -> str:
        if self.gate is not None:
            self.waiting.set()
            assert self.gate.wait(60)
        if self.away:
            raise TransientError("hub_down", "The Hub gave 503.")
        self.asked["head"] += 1
        return self._under.head()


class Times:
    """A clock and a steady one that move by hand."""

    def __init__(self) -> None:
        self.passed = 0.0

    def now(self) -> datetime:
        return START + timedelta(seconds=self.passed)

    def steady(self) -> float:
        return self.passed


@pytest.fixture
def house() -> House:
    house = NoisyHouse()
    house.done(name="one")
    return house


@pytest.fixture
def times() -> Times:
    return Times()


def flaky(store: Store, times: Times) -> tuple[Reader, Flaky]:
    public = Flaky(store.public)
    store = replace(store, public=public)
    return Reader(store, CARDS, clock=times.now, steady=times.steady), public


@pytest.mark.slow
@pytest.mark.parametrize("submissions", [1, 12])
def test_a_board_costs_the_same_requests_however_many_submissions_there_are(
    submissions: int,
) -> None:
    house = NoisyHouse()
    for place in range(submissions):
        house.done(name=f"metric{place}")
    store, public, private = counted(house.store)
    reader = Reader(store, CARDS)
    board = reader.view().boards["open"]
    assert len(board.cells(board.card.headline, None)) == submissions
    assert len(reader.statuses()) == submissions
    assert sorted(public.paths) == sorted([PATH, QUEUE])
    assert public.asked["list"] == public.asked["has"] == 0
    assert public.asked["head"] <= 4
    assert private.paths == [INBOX]
    assert set(private.asked) == {"head", "read"}
    public.forget()
    private.forget()
    reader.view()
    reader.statuses()
    assert set(public.asked) == set(private.asked) == {"head"}


def test_a_ranking_reads_two_files_for_each_run_in_it(house: House) -> None:
    house.done(name="two", benchmarks=("open",))
    store, public, _ = counted(house.store)
    view = Reader(store, CARDS).view()
    public.forget()
    board = view.boards["open"]
    view.orders.ranked(board.card, [board.cells(board.card.headline, None)])
    assert len(public.paths) == 2 * 2
    assert public.asked["list"] == 0


def test_results_of_one_submission_are_read_without_a_listing(house: House) -> None:
    store, public, _ = counted(house.store)
    name = house.ledger.statuses()[0].submission.submission_id
    kept = {f"results/{name}/at/2025-01-01/open.json": b"an older revision's"}
    transact(house.store.public, lambda: kept, "kept")
    runs = Reader(store, CARDS).runs(name)
    assert [run.benchmark for run in runs] == ["open", "closed"]
    assert public.asked["list"] == 0
    assert Reader(store, CARDS).runs("nobody-0000") == ()


def test_what_was_read_last_stays_while_the_store_cannot_be_read(
    house: House, times: Times
) -> None:
    reader, public = flaky(house.store, times)
    assert not reader.as_of
    before, statuses = reader.view(), reader.statuses()
    assert str(reader.as_of) == str(START)
    assert not reader.trouble

    public.away = True
    times.passed = 60.0
    assert reader.view() is before
    assert reader.statuses() == statuses
    assert reader.as_of == START
    assert "The Hub gave 503." in reader.trouble

    public.away = False
    house.done(name="two")
    times.passed += RETRY_AFTER_S
    assert len(reader.view().entries) == 2
    assert str(reader.as_of) == str(times.now())
    assert not reader.trouble


def test_a_store_that_is_away_is_not_asked_for_every_page(house: House, times: Times) -> None:
    reader, public = flaky(house.store, times)
    reader.view()
    public.away = True
    asked: list[int] = []
    head = public.head

    def counted_head() -> str:
        asked.append(1)
        return head()

    public.head = counted_head  # type: ignore[method-assign]
    for second in range(int(RETRY_AFTER_S) + 1):
        times.passed = float(second)
        reader.view()
        reader.statuses()
    assert len(asked) == 2


def test_a_store_that_was_never_read_is_an_error_and_no_empty_board(
    house: House, times: Times
) -> None:
    reader, public = flaky(house.store, times)
    public.away = True
    for _ in range(2):
        with pytest.raises(TransientError, match="503"):
            reader.view()
    public.away = False
    assert reader.view().entries


def test_pages_do_not_wait_long_for_a_refresh_that_hangs(
    house: House, times: Times, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "REFRESH_WAIT_S", 0.05)
    reader, public = flaky(house.store, times)
    before = reader.view()
    public.waiting.clear()
    public.gate = threading.Event()
    hanging = threading.Thread(target=reader.view)
    hanging.start()
    try:
        assert public.waiting.wait(60)
        assert reader.view() is before
    finally:
        public.gate.set()
        hanging.join(60)
    assert not hanging.is_alive()


def test_queue_events_leave_the_view_as_it_is(house: House) -> None:
    reader = Reader(house.store, CARDS)
    before = reader.view()
    house.send(name="waits")
    assert reader.view() is before
    assert len(reader.statuses()) == 2


# From the Hub.


def hub_store_of(hub: HubServer, folder: Path) -> Store:
    """The store as a process sees it whose folder is empty."""
    return store_of(parts_of(hub, folder, sleep=lambda _: None, pauses=(0.0,)))


def fill_hub(hub: HubServer, folder: Path, submissions: int) -> None:
    created(hub, folder)
    house = NoisyHouse(hub_store_of(hub, folder))
    for place in range(submissions):
        house.done(name=f"metric{place}")


def requests_of_a_cold_board(hub: HubServer, folder: Path, submissions: int) -> int:
    hub.tally.reset()
    reader = Reader(hub_store_of(hub, folder), CARDS)
    board = reader.view().boards["open"]
    assert len(board.cells(board.card.headline, None)) == submissions
    assert len(reader.statuses()) == submissions
    return hub.tally.requests()


def test_a_board_costs_the_hub_the_same_however_many_submissions_there_are(tmp_path: Path) -> None:
    requests: list[int] = []
    for submissions in (1, 6):
        folder = tmp_path / str(submissions)
        with running_hub() as hub:
            fill_hub(hub, folder / "writer", submissions)
            requests.append(requests_of_a_cold_board(hub, folder / "visitor", submissions))
    assert requests[0] == requests[1]
    assert requests[0] <= 14


def test_the_last_boards_stay_while_the_hub_fails(tmp_path: Path) -> None:
    with running_hub() as hub:
        fill_hub(hub, tmp_path / "writer", 1)
        reader = Reader(hub_store_of(hub, tmp_path / "visitor"), CARDS)
        before = reader.view()
        hub.spoil("", method="", times=1000, status=503)
        assert reader.view() is before
        assert reader.trouble
        with pytest.raises(TransientError):
            Reader(hub_store_of(hub, tmp_path / "another"), CARDS).view()
