"""Charts: labels of an axis of costs, and which points carry a name."""

from __future__ import annotations

import math

import pytest

from leaderboard.pages.shown.charts import Series, decade_ticks, scatter


def costs(*places: float) -> Series:
    nothing = [math.nan] * len(places)
    values = [0.5] * len(places)
    return Series("all", places, values, nothing, nothing, ["x"] * len(places), "#000000", "circle")


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (1.92, 22.0, [1, 2, 5, 10, 20, 50]),
        (5.0, 5.0, [5]),
        (9.9, 10.1, [5, 10, 20]),
        (0.03, 0.04, [0.02, 0.05]),
    ],
)
def test_ticks_of_a_log_axis_enclose_all_places(
    low: float, high: float, ticks: list[float]
) -> None:
    assert decade_ticks(low, high) == ticks


def test_every_tick_of_a_log_axis_says_its_whole_number() -> None:
    axis = scatter([costs(2.0, 180.0)], x="Seconds", y="Mean", log_x=True).layout.xaxis
    assert list(axis.ticktext) == ["2", "5", "10", "20", "50", "100", "200"]
    assert list(axis.tickvals) == [2, 5, 10, 20, 50, 100, 200]


def test_many_decades_have_their_powers_only() -> None:
    axis = scatter([costs(0.001, 40_000.0)], x="Seconds", y="Mean", log_x=True).layout.xaxis
    assert list(axis.ticktext) == ["0.001", "0.01", "0.1", "1", "10", "100", "1,000", "10,000"]


def test_an_axis_of_nothing_is_drawn() -> None:
    assert scatter([], x="Seconds", y="Mean", log_x=True).layout.xaxis.type == "log"
