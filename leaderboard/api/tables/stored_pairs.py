"""The tests of a headline as they were published with the snapshot, without making any."""

from __future__ import annotations

import numpy as np

from benchmarks.statistics.multiplicity import holm_of_pairs
from leaderboard.ranking.pairs import read_pairs
from leaderboard.ranking.tiers import kept_in_tiers
from leaderboard.store.interface import Store
from leaderboard.views.boards import Choice
from leaderboard.views.pairs import Pair


def stored_pairs(store: Store, choice: Choice) -> tuple[Pair, ...]:
    """The tests between each two ranked entries, in board order; none where none are kept.

    Args:
        store: where they are published.
        choice: the headline over all skills.
    """
    card = choice.board.card
    cells = kept_in_tiers(choice.slices()[0])
    fit = {cell.entry_id for cell in cells if cell.tier is not None}
    known = read_pairs(store.public, card.name, card.revision, fit)
    if known is None or set(known.entry_ids) != fit:
        return ()
    tests, corrected = known.tests, holm_of_pairs(known.tests.p_value)
    place = {entry_id: i for i, entry_id in enumerate(known.entry_ids)}
    ranked = [cell for cell in cells if cell.entry_id in place]
    order = np.array([place[cell.entry_id] for cell in ranked], np.intp)
    first, second = np.triu_indices(len(ranked), 1)
    at = order[first], order[second]
    columns = (tests.p_value, corrected, tests.n_units, tests.n_patterns, tests.exact)
    rows = zip(first.tolist(), second.tolist(), *(c[at].tolist() for c in columns), strict=True)
    return tuple(
        Pair(a.entry_id, b.entry_id, (a.value or 0.0) - (b.value or 0.0), *of_pair)
        for i, j, *of_pair in rows
        for a, b in [(ranked[i], ranked[j])]
    )
