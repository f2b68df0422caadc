"""What a board costs the Hub: the same requests for one submission as for many."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.errors import TransientError
from leaderboard.pages.reading import Reader
from leaderboard.store.hub.creating import create
from leaderboard.store.hub.hub_store import HubParts
from leaderboard.store.interface import Store
from leaderboard.store.memory import memory_store
from tests.hub.server import HubServer, running_hub
from tests.leaderboard.house import CARDS
from tests.leaderboard.publication.counting import noisy_house

NAME = "lab/board"


def store_of(hub: HubServer, folder: Path) -> Store:
    """The store as a process sees it whose folder is empty."""
    parts = HubParts(
        NAME,
        folder,
        endpoint=hub.endpoint,
        token=hub.token,
        fresh_for_s=0.0,
        sleep=lambda _: None,
        pauses=(0.0,),
    )
    return replace(memory_store(), public=parts.public, private=parts.private)


def filled(hub: HubServer, folder: Path, submissions: int) -> None:
    list(create(HubParts(NAME, folder, endpoint=hub.endpoint, token=hub.token)))
    with noisy_house(store=store_of(hub, folder)) as house:
        for place in range(submissions):
            house.done(name=f"metric{place}")


def requests_of_a_cold_board(hub: HubServer, folder: Path, submissions: int) -> int:
    hub.tally.reset()
    reader = Reader(store_of(hub, folder), CARDS)
    board = reader.view().boards["open"]
    assert len(board.cells(board.card.headline, None)) == submissions
    assert len(reader.statuses()) == submissions
    return hub.tally.requests()


def test_a_board_costs_the_hub_the_same_however_many_submissions_there_are(
    tmp_path: Path,
) -> None:
    counted: list[int] = []
    for submissions in (1, 6):
        folder = tmp_path / str(submissions)
        with running_hub() as hub:
            filled(hub, folder / "writer", submissions)
            counted.append(requests_of_a_cold_board(hub, folder / "visitor", submissions))
    assert counted[0] == counted[1]
    assert counted[0] <= 12


def test_the_last_boards_stay_while_the_hub_fails(tmp_path: Path) -> None:
    with running_hub() as hub:
        filled(hub, tmp_path / "writer", 1)
        reader = Reader(store_of(hub, tmp_path / "visitor"), CARDS)
        before = reader.view()
        hub.spoil("", method="", times=1000, status=503)
        assert reader.view() is before
        assert reader.trouble
        with pytest.raises(TransientError):
            Reader(store_of(hub, tmp_path / "another"), CARDS).view()
