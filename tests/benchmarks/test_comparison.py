"""Two metrics on one measure: what counts as told apart, and correction for many looks."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from benchmarks.comparison import CORRECTIONS, LEVEL, Compared, Correction, corrected

NAN = math.nan
PLAIN = Compared(
    metric_a="a",
    metric_b="b",
    measure="srcc",
    variant=None,
    split="all",
    facet=None,
    skill=None,
    higher_is_better=True,
    value_a=0.5,
    value_b=0.4,
    difference=0.1,
    ci_low=0.02,
    ci_high=0.2,
)


def with_p(*values: float) -> tuple[Compared, ...]:
    return tuple(replace(PLAIN, p_value=value) for value in values)


def by_hand(values: list[float], method: Correction) -> list[float]:
    """The textbook's definition, one p-value after the other."""
    n = len(values)
    ascending = sorted(values)
    if method == "holm":
        return [
            max(min(1.0, (n - k) * ascending[k]) for k in range(n) if ascending[k] <= p)
            for p in values
        ]
    return [
        min(min(1.0, ascending[k] * n / (k + 1)) for k in range(n) if ascending[k] >= p)
        for p in values
    ]


@pytest.mark.parametrize("method", list(CORRECTIONS))
def test_correction_is_over_all_rows_that_have_a_test(method: Correction) -> None:
    values = [0.01, 0.04, 0.02, 0.6]
    found = corrected(with_p(0.01, NAN, 0.04, 0.02, 0.6), method)
    assert {row.n_tests for row in found} == {4}
    assert {row.correction for row in found} == {method}
    assert math.isnan(found[1].p_corrected)
    tested = [row.p_corrected for row in found if not math.isnan(row.p_value)]
    assert tested == pytest.approx(by_hand(values, method))
    assert [row.p_value for row in found if not math.isnan(row.p_value)] == values
    assert corrected((), method) == ()


def test_the_corrected_p_value_decides_where_there_is_one() -> None:
    (alone,) = with_p(0.03)
    assert alone.p_decisive == 0.03
    assert alone.told_apart
    among = corrected(with_p(0.03, 0.5, 0.6), "holm")[0]
    assert among.p_decisive == pytest.approx(0.09)
    assert not among.told_apart
    assert not replace(alone, p_value=LEVEL).told_apart
    assert not PLAIN.told_apart  # without a test nothing is


def test_the_tally_is_there_where_units_were_counted() -> None:
    counted = replace(PLAIN, n_units=9, n_better_a=5, n_tied=3, n_better_b=1)
    assert counted.tally == (5, 3, 1)
    assert PLAIN.tally is None
    assert replace(counted, n_better_a=None).tally is None
    assert replace(counted, n_tied=None).tally is None
    assert replace(counted, n_better_b=None).tally is None


def test_an_advantage_is_positive_where_a_is_better_whichever_way_is_up() -> None:
    assert PLAIN.advantage == (0.1, 0.02, 0.2)
    assert replace(PLAIN, higher_is_better=False).advantage == (-0.1, -0.2, -0.02)


def test_what_is_written_is_json_without_numbers_that_json_does_not_know() -> None:
    record = replace(PLAIN, effect=math.inf, n_units=3).to_json()
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert (record["p_value"], record["effect"], record["n_units"]) == (None, None, 3)
    assert record["difference"] == 0.1
