"""Three or four metrics, each two compared: the same tests and intervals as for a single pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from benchmarks.comparison import Compared
from leaderboard.pages.boards.query import Choice
from leaderboard.pages.compare.rows import as_on_the_board, of_entries
from leaderboard.pages.reading import View
from leaderboard.ranking.comparing import Match, compare_cells
from leaderboard.ranking.slices import mean_over_skills


@dataclass(frozen=True)
class Several:
    """Each two of some metrics, compared by the chosen measure and skill.

    Attributes:
        pairs: entry ids of each two, in the order in which the metrics were chosen.
        rows: their comparisons, corrected as on the board (Holm).
        n_resamples: joint resamples behind the intervals; 0 where none are published.
    """

    pairs: tuple[tuple[str, str], ...]
    rows: tuple[Compared, ...]
    n_resamples: int


def several(choice: Choice, entries: Sequence[str], view: View) -> Several:
    """Compare each two of some entries of a board.

    Args:
        choice: board, skill and measure; the measure is there.
        entries: ids of entries that have cells of that slice, each once.
        view: gives the draws.

    Raises:
        ValueError: one of them has none.
    """
    card = choice.board.card
    wanted = tuple(entries)
    cells = [of_entries(of, wanted) for of in choice.slices()]
    if not cells or any(len(of_skill) != len(wanted) for of_skill in cells):
        raise ValueError("one of the metrics has no result by the chosen measure")
    whole = mean_over_skills(view.orders.slices(card, cells))
    place = {cell.entry_id: i for i, cell in enumerate(whole.cells)}
    pairs = tuple(combinations(wanted, 2))
    names = {entry: view.entries[entry].metric for entry in wanted}
    found = compare_cells([Match(whole, place[a], place[b]) for a, b in pairs], card, names)
    rows = tuple(
        as_on_the_board(row, choice, pair, view) for row, pair in zip(found, pairs, strict=True)
    )
    return Several(pairs, rows, whole.draws.resamples.shape[1])
