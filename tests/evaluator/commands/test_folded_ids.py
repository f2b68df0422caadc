"""The list of submissions is for copying from: an id is folded where it is narrow, never cut."""

from __future__ import annotations

import pytest
from rich.console import Console

from evaluator.commands.shown import status_table
from leaderboard.records import Status
from tests.leaderboard.house import House

WIDE = "a-metric-of-a-rather-long-name"


def first_column(status: Status, width: int) -> list[str]:
    """What stands in the first column, line by line, the head left out."""
    house = House()
    console = Console(width=width, legacy_windows=False)
    with console.capture() as captured:
        console.print(status_table([status], house.clock()))
    lines = [line for line in captured.get().splitlines() if line.startswith("│")]
    return [line.split("│")[1].strip() for line in lines]


@pytest.fixture
def status() -> Status:
    house = House()
    return house.ledger.status(house.send(name=WIDE))


@pytest.mark.parametrize("width", [40, 60, 80])
def test_in_a_narrow_terminal_all_of_an_id_is_there(status: Status, width: int) -> None:
    parts = first_column(status, width)
    assert len([part for part in parts if part]) > 1
    assert "".join(parts) == status.submission.submission_id


def test_in_a_wide_terminal_an_id_is_one_word(status: Status) -> None:
    assert first_column(status, 200)[0] == status.submission.submission_id
