"""What is remembered stays within its bytes; what was used last stays longest."""

from __future__ import annotations

from leaderboard.ranking.remembered import Remembered


def test_what_was_used_longest_ago_makes_room() -> None:
    kept: Remembered[bytes] = Remembered(10, 9, len)
    kept.put("a", bytes(4))
    kept.put("b", bytes(4))
    assert kept.get("a") is not None
    kept.put("c", bytes(4))
    assert kept.get("b") is None
    assert kept.get("a") is not None
    assert kept.nbytes == 8


def test_a_value_takes_the_place_of_the_one_before() -> None:
    kept: Remembered[bytes] = Remembered(10, 9, len)
    kept.put("a", bytes(8))
    kept.put("a", bytes(3))
    assert kept.nbytes == 3
    assert kept.get("a") == bytes(3)


def test_what_is_larger_than_everything_is_given_and_not_kept() -> None:
    kept: Remembered[bytes] = Remembered(10, 9, len)
    assert kept.of("a", lambda: bytes(11)) == bytes(11)
    assert kept.get("a") is None
    assert kept.nbytes == 0


def test_small_values_are_bounded_in_number() -> None:
    kept: Remembered[bytes] = Remembered(10, 2, len)
    for key in "abc":
        kept.put(key, b"")
    assert kept.get("a") is None
    assert kept.get("c") == b""
