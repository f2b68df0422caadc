"""What moved between two boards: values, ranks, who came and who left."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from benchmarks.schema import Selector
from leaderboard.publication.entries import Entry
from leaderboard.ranking.cells import Cell
from leaderboard.records import Kind
from leaderboard.reevaluation.moved import Movement, Ranking, movement

MEAN = Selector(measure="mean")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def entry(name: str, *, submission: str = "", account: str = "", days: int = 0) -> Entry:
    submission_id = submission or f"{name}-0123456789"
    return Entry(
        entry_id=f"{submission_id}/{name}",
        submission_id=submission_id,
        metric=name,
        kind=Kind.METRIC,
        submitter="",
        account=account,
        received_at=NOW + timedelta(days=days),
        published_at=NOW,
    )


def cell(of: Entry, value: float | None, ranks: tuple[int, int, int] | None = None) -> Cell:
    rank_low, rank, rank_high = ranks or (None, None, None)
    return Cell(
        entry_id=of.entry_id,
        measure="mean",
        variant=None,
        split=None,
        facet=None,
        skill=None,
        value=value,
        ci_low=None if value is None else value - 0.1,
        ci_high=None if value is None else value + 0.1,
        n_items=10,
        n_clusters=10,
        n_missing=0,
        note="",
        rank=rank,
        rank_low=rank_low,
        rank_high=rank_high,
    )


def board(*rows: tuple[Entry, float | None, tuple[int, int, int] | None]) -> Ranking:
    return Ranking(
        tuple(cell(one, value, ranks) for one, value, ranks in rows),
        {one.entry_id: one for one, _, _ in rows},
    )


A, B, C = entry("a"), entry("b"), entry("c")


def found(*, higher: bool = True) -> Movement:
    then = board((A, 0.9, (1, 1, 1)), (B, 0.5, (2, 2, 3)), (C, 0.4, (2, 3, 3)))
    now = board((B, 0.8, (1, 1, 1)), (A, 0.6, (2, 2, 3)), (C, 0.5, (2, 3, 3)))
    return movement(then, now, MEAN, higher_is_better=higher)


def test_values_ranks_and_their_overlap_stand_side_by_side() -> None:
    b, a, c = found().moved
    assert (b.then.value, b.now.value) == (0.5, 0.8)
    assert b.difference == pytest.approx(0.3)
    assert (b.better, b.intervals_overlap, b.ranks_overlap) == (True, False, False)
    assert (a.better, a.ranks_overlap) == (False, False)
    assert (c.better, c.intervals_overlap, c.ranks_overlap) == (True, True, True)


def test_a_lower_value_is_better_where_the_measure_says_so() -> None:
    b, a, _ = found(higher=False).moved
    assert (b.better, a.better) == (False, True)


def test_kendall_counts_the_pairs_that_changed_their_order() -> None:
    assert found().kendall == pytest.approx(1 / 3), "one of three pairs"
    same = board((A, 0.9, None), (B, 0.5, None))
    assert movement(same, same, MEAN).kendall == pytest.approx(1.0)
    turned = board((A, 0.1, None), (B, 0.5, None))
    assert movement(same, turned, MEAN).kendall == pytest.approx(-1.0)


def test_kendall_is_undefined_for_fewer_than_two_or_all_equal() -> None:
    one = board((A, 0.9, None), (B, None, None))
    assert movement(one, one, MEAN).kendall is None
    equal = board((A, 0.5, None), (B, 0.5, None))
    assert movement(equal, equal, MEAN).kendall is None


def test_who_came_and_who_left_are_named() -> None:
    moved = movement(
        board((A, 0.9, None), (B, 0.5, None)), board((B, 0.6, None), (C, 1.0, None)), MEAN
    )
    assert [one.after.metric for one in moved.moved] == ["b"]
    assert moved.came == (C,)
    assert moved.left == (A,)


def test_what_still_stands_waits_and_has_not_left() -> None:
    moved = movement(
        board((A, 0.9, None), (B, 0.5, None)), board(), MEAN, standing={A.submission_id}
    )
    assert (moved.waiting, moved.left) == ((A,), (B,))


def test_a_newer_version_by_the_same_account_is_the_same_metric() -> None:
    old = entry("a", submission="old-0123456789", account="hub:ada")
    new = entry("a", submission="new-0123456789", account="hub:ada", days=3)
    (one,) = movement(board((old, 0.5, None)), board((new, 0.7, None)), MEAN).moved
    assert (one.before, one.after) == (old, new)


def test_the_same_name_by_another_account_is_another_metric() -> None:
    old = entry("a", submission="old-0123456789", account="hub:ada")
    new = entry("a", submission="new-0123456789", account="hub:bob")
    moved = movement(board((old, 0.5, None)), board((new, 0.7, None)), MEAN)
    assert (moved.moved, moved.came, moved.left) == ((), (new,), (old,))


def test_what_is_undefined_has_no_difference_and_no_overlap() -> None:
    (one,) = movement(board((A, None, None)), board((A, 0.5, (1, 1, 2))), MEAN).moved
    assert (one.difference, one.better, one.intervals_overlap, one.ranks_overlap) == (None,) * 4


def test_it_is_said_in_words_and_in_json() -> None:
    words = found().words("r1", "r2")
    assert words.startswith("From r1 to r2: 3 metrics on both boards.")
    assert "0.33" in words
    record = json.loads(json.dumps(found().to_json()))
    assert record["kendall_tau_b"] == pytest.approx(1 / 3)
    assert record["moved"][0]["rank_ranges_overlap"] is False
    assert record["moved"][0]["before"]["rank_high"] == 3
