"""Rows: their JSON, and the intervals made from resamples."""

from __future__ import annotations

import json
import math
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from benchmarks.rows import MeasuredBuilder, PooledSample, Row
from benchmarks.statistics.intervals import percentile


def row(**more: Any) -> Row:
    return Row(
        **{"benchmark": "b", "revision": "1", "metric": "m", "measure": "x", "value": 1.0, **more}
    )


def test_unused_and_undefined_fields_are_null_in_json_and_come_back() -> None:
    record = row(value=math.nan).to_json()
    assert list(record) == [field.name for field in fields(Row)]
    assert record["value"] is record["skill"] is record["ci_low"] is None
    again = Row.from_json(json.loads(json.dumps(record)))
    assert math.isnan(again.value)
    assert again.skill is None
    with pytest.raises(TypeError):
        Row.from_json({**record, "extra": 1})


def test_a_row_gets_the_interval_of_its_resamples() -> None:
    built = MeasuredBuilder(1001)
    built.add(row(), np.linspace(0, 1, 1001), ["c1", "c2"], np.array([0.0, 2.0]))
    built.add(row())
    measured = built.build()
    assert (measured.rows[0].ci_low, measured.rows[0].ci_high) == pytest.approx((0.025, 0.975))
    assert math.isnan(measured.rows[1].ci_low)
    assert measured.resamples.shape == (2, 1001)
    assert measured.clusters.to_dict("list") == {
        "row": [0, 0],
        "cluster": ["c1", "c2"],
        "value": [0.0, 2.0],
    }


def test_pools_are_found_by_the_place_of_their_row_and_made_when_asked_for() -> None:
    asked: list[str] = []

    def pool() -> PooledSample:
        asked.append("sample")
        return PooledSample(np.zeros(2), np.ones(2), np.arange(2))

    built = MeasuredBuilder(3)
    built.add(row())
    built.add(row(), pool=pool)
    measured = built.build()
    assert (list(measured.pools), asked) == ([1], [])
    assert measured.pools[1]().ratings.tolist() == [1.0, 1.0]
    assert asked == ["sample"]


def test_an_interval_needs_half_of_the_resamples() -> None:
    resamples = np.tile(np.arange(100.0), (3, 1))
    resamples[1, :50] = np.nan
    resamples[2, :51] = np.nan
    low, high = percentile(resamples).ends
    assert low[0] == pytest.approx(np.quantile(np.arange(100), 0.025))
    assert high[1] == pytest.approx(np.quantile(np.arange(50, 100), 0.975))
    assert math.isnan(low[2])
    assert MeasuredBuilder(10).build().resamples.shape == (0, 10)
