"""Index over benchmarks before its weights, and the metrics that may be recommended by it or by a board.

Recommended is what is significantly above chance, and no template.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

import numpy as np

from benchmarks.schema import Card, Scale
from leaderboard.publication.entries import (
    Entry,
    Identity,
    entries_of_each,
    latest_cells,
    latest_entries,
)
from leaderboard.publication.reader import BoardIndex, View, boards_of_one_kind
from leaderboard.ranking.cells import Cell, beats_chance, cell_beats_chance
from leaderboard.ranking.index import Comparison, Headlines, IndexRank, Interval

INSIDE = {
    "genai_527": "genai_1600",
    "genai_ranking": "genai_1600",
    "evalmuse_ntire": "evalmuse",
}
"""Benchmarks whose items are, but for a few, among those of another: both would count twice."""
NO_RESULTS = "no metric published yet"
NO_SCALE = "its card states no chance level and ceiling"
NO_HEADLINE = "no metric has a value of its headline measure over all skills"
NO_RANKS = "no metric has a rank on its headline measure: too few items, or values undefined"


@dataclass(frozen=True)
class IndexBoard:
    """One benchmark of the index."""

    card: Card  # the benchmark
    scale: Scale  # chance and ceiling of its headline
    # the headline cell of every metric that counts here: those with a rank on the board
    cells: Mapping[Identity, Cell]
    # metrics that have a headline cell, but no rank on the board, with the reason. They lack this
    # benchmark: else a metric could choose the pairs it is compared by.
    unfit: Mapping[Identity, str]
    weight: float = 1.0  # to begin with
    why_weight: str = ""  # why that is not 1; empty where it is


def rescaled(cell: Cell, scale: Scale) -> Interval:
    """(value - chance) / (ceiling - chance) with its interval; not clipped; NaN where undefined."""
    length = scale.ceiling - scale.chance
    given = (cell.value, cell.ci_low, cell.ci_high)
    value, one, other = (math.nan if n is None else (n - scale.chance) / length for n in given)
    # Where lower is better, the lower end becomes the upper one.
    return Interval(value, min(one, other), max(one, other))


def index_boards(
    every: Mapping[str, BoardIndex], entries: Mapping[str, Entry]
) -> tuple[dict[str, IndexBoard], dict[str, str]]:
    """The benchmarks of the index, and those left out with the reason."""
    boards: dict[str, IndexBoard] = {}
    left_out: dict[str, str] = {}
    of_one_kind = boards_of_one_kind(every)
    kind = next((one.card.kind for one in of_one_kind.values()), "")
    for name, board in every.items():
        found = _board(board, entries)
        if name not in of_one_kind and not board.empty:
            found = f"it is of {board.card.kind}, and this index of {kind}"
        if isinstance(found, str):
            left_out[name] = found
        else:
            boards[name] = found
    return _weighted(boards), left_out


class PlainIndex(NamedTuple):
    """The index of one metric under the starting weights."""

    value: float
    """As `leaderboard.ranking.index` gives it, without the resamples behind its interval."""
    boards: tuple[str, ...]  # The benchmarks it rests on, in the order of display


def plain_index(boards: Mapping[str, IndexBoard]) -> dict[Identity, PlainIndex]:
    """The index of every metric that has a benchmark with a starting weight."""
    values: dict[Identity, dict[str, float]] = {}
    for name, board in boards.items():
        if board.weight:  # it is 1 or 0, so the mean is a plain one
            for who, cell in board.cells.items():
                values.setdefault(who, {})[name] = rescaled(cell, board.scale).value
    return {who: PlainIndex(fmean(own.values()), tuple(own)) for who, own in values.items()}


def _board(board: BoardIndex, entries: Mapping[str, Entry]) -> IndexBoard | str:
    """The benchmark, or why it is left out."""
    if board.empty:
        return NO_RESULTS
    if board.card.headline_scale is None:
        return NO_SCALE
    cells = latest_cells(board.cells(board.card.headline, None), entries)
    if not cells:
        return NO_HEADLINE
    able = {who: cell for who, cell in cells.items() if cell.rank is not None}
    unfit = {who: c.note or c.why_unranked for who, c in cells.items() if who not in able}
    return IndexBoard(board.card, board.card.headline_scale, able, unfit) if able else NO_RANKS


def _weighted(boards: Mapping[str, IndexBoard]) -> dict[str, IndexBoard]:
    found = {}
    for name, board in boards.items():
        whole = boards.get(INSIDE.get(name, ""))
        why = ""
        if whole is not None:
            why = f"its prompts are inside {whole.card.title}, and would count twice"
        found[name] = IndexBoard(
            board.card, board.scale, board.cells, board.unfit, 0.0 if why else 1.0, why
        )
    return found


OTHER_PLAN = "its resamples cannot be joined with those of the others"
NO_DRAWS = "its resamples are not at hand"


@dataclass(frozen=True)
class Ranked:
    """One metric of the index."""

    who: Identity  # what tells it from others
    entry: Entry  # the latest of its entries
    standing: IndexRank  # under the chosen weights


class Scaled(NamedTuple):
    """A measure on a benchmark and the cells of the metrics that count there."""

    card: Card
    scale: Scale
    cells: Mapping[Identity, Cell]


@dataclass(frozen=True)
class WeighedBase:
    """Measures on benchmarks before their weights."""

    comparison: Comparison | None  # weighs them; None where there is none
    # key of a metric in the comparison to the metric and its latest entry
    entries: Mapping[str, tuple[Identity, Entry]]
    # measure to metric to its rescaled value and interval
    values: Mapping[str, Mapping[Identity, Interval]]
    # those without joint resamples, with the reason; a metric that has one of them has no interval
    unjoined: Mapping[str, str]
    sent: Mapping[Identity, tuple[Entry, ...]]  # metric to all of its entries


def weighed_base(parts: Mapping[str, Scaled], view: View) -> WeighedBase:
    """Read the draws of some measures."""
    latest = latest_entries(view.entries.values())
    keys = {who: _key(who) for part in parts.values() for who in part.cells}
    draws = {
        name: view.orders.slice(part.card, tuple(part.cells.values())).draws
        for name, part in parts.items()
    }
    lengths = Counter(n for of in draws.values() if (n := of.resamples.shape[1]))
    length = lengths.most_common(1)[0][0] if lengths else 0
    unjoined = {
        name: OTHER_PLAN if of.resamples.shape[1] else NO_DRAWS
        for name, of in draws.items()
        if of.resamples.shape[1] != length or not length
    }
    headlines = []
    for name, part in parts.items():
        drawn, cells = draws[name].resamples, part.cells.values()
        missing = np.full((len(cells), max(length, 1)), np.nan)
        headlines.append(
            Headlines(
                benchmark=name,
                scale=part.scale,
                metrics=tuple(keys[who] for who in part.cells),
                values=np.array([math.nan if c.value is None else c.value for c in cells]),
                resamples=missing
                if name in unjoined
                else np.where(np.isfinite(drawn), drawn, np.nan),
                contributions=draws[name].contributions,
                n_clusters=np.array([cell.n_clusters for cell in cells], np.intp),
            )
        )
    return WeighedBase(
        comparison=Comparison(headlines) if headlines else None,
        entries={key: (who, latest[who]) for who, key in keys.items()},
        values={
            name: {who: rescaled(cell, part.scale) for who, cell in part.cells.items()}
            for name, part in parts.items()
        },
        unjoined=unjoined,
        sent=entries_of_each(view.entries.values()),
    )


def _key(who: Identity) -> str:
    """A name in the comparison that is its own and sorts as people expect."""
    parts = (who.metric.casefold(), who.metric, who.version, who.submitter, who.kind, who.account)
    return "\x1f".join(parts)


@dataclass(frozen=True, eq=False)
class IndexBase(WeighedBase):
    """Everything the index needs but weights and order."""

    boards: Mapping[str, IndexBoard]  # the benchmarks of the index
    left_out: Mapping[str, str]  # benchmarks that are not, with the reason
    titles: Mapping[str, str]  # of both

    def index_ranks(self, weights: Mapping[str, float]) -> tuple[Ranked, ...]:
        """Every metric that has a benchmark of the index, in the order of `Comparison.index_ranks`."""
        if self.comparison is None or not any(weights.values()):
            return ()
        found = self.comparison.index_ranks(weights)
        return tuple(Ranked(*self.entries[standing.metric], standing) for standing in found)


def index_base(view: View) -> IndexBase:
    """Read the headlines and their draws."""
    view = view.group()
    boards, left_out = index_boards(view.boards, view.entries)
    parts = {name: Scaled(one.card, one.scale, one.cells) for name, one in boards.items()}
    return IndexBase(
        **vars(weighed_base(parts, view)),
        boards=boards,
        left_out=left_out,
        titles={name: board.card.title for name, board in view.boards.items()},
    )


_ABOVE = "is significantly above chance"


def nobody(*, where: str = "", but_templates: bool = False) -> str:
    """What is said in place of a recommendation, without its full stop."""
    who = "No metric but an unchanged template" if but_templates else "No metric"
    return " ".join(filter(None, (who, where, _ABOVE)))


def is_above_chance(standing: IndexRank, among: int) -> bool:
    """Whether the interval of a mean of rescaled values lies wholly above 0, which is chance."""
    index = standing.index
    return beats_chance(index.low, index.high, value=index.value, among=among)


def is_recommended(entry: Entry, standing: IndexRank, among: int) -> bool:
    """Whether a metric may be recommended: ranked, above chance, and no template."""
    ranked = standing.rank is not None
    return ranked and is_above_chance(standing, among) and not entry.template


def leading_cells(
    card: Card, cells: Iterable[Cell], entries: Mapping[str, Entry]
) -> tuple[Cell, ...]:
    """The ranked cells of a board that may be named as leading it, in the order given.

    Where the card states no chance level, all ranked ones may but templates.
    """
    return tuple(one for one in _clear(card, cells) if not entries[one.entry_id].template)


def nobody_leads(card: Card, cells: Iterable[Cell]) -> str:
    """The sentence where no cell of a board may be named; empty where none is ranked at all."""
    cells = tuple(cells)
    if all(cell.rank is None for cell in cells):
        return ""
    return f"{nobody(but_templates=bool(_clear(card, cells)))}."


def _clear(card: Card, cells: Iterable[Cell]) -> list[Cell]:
    """The ranked ones that are not known to be at chance."""
    ranked = [cell for cell in cells if cell.rank is not None]
    return [one for one in ranked if cell_beats_chance(card, one, len(ranked)) is not False]
