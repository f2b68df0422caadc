"""Chance that comparisons of scores all hold when every order of the scores is as likely."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache


def chance_of_order(comparisons: Sequence[tuple[int, int]]) -> float:
    """Share of the orders of scores, none of them equal, in which all comparisons hold.

    The number of linear extensions of the partial order over the factorial of its size, counted
    from the lowest score up. It takes a time that grows with 2 to the number of scores.

    `comparisons`: which of two scores is the higher one, and which the lower one.

    Returns: 0..1; 1 where nothing is compared, 0 where the comparisons contradict each other.
    """
    place = {score: at for at, score in enumerate(dict.fromkeys(sum(comparisons, ())))}
    size = len(place)
    below = [0] * size
    for higher, lower in comparisons:
        below[place[higher]] |= 1 << place[lower]

    @cache
    def count_orders(placed: int) -> int:
        if placed == (1 << size) - 1:
            return 1
        following = (at for at in range(size) if not placed >> at & 1)
        return sum(count_orders(placed | 1 << at) for at in following if below[at] & ~placed == 0)

    return count_orders(0) / math.factorial(size)
