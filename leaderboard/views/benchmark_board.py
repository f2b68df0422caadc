"""Ranking of a benchmark with its verdict, and what a filter keeps of it.

Ranks, tiers and p-values are the whole board's, whatever is filtered: a filter shows fewer rows and
the rank among them. Only where it is asked for are those that are kept ranked and tested anew.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from benchmarks.schema import Card
from leaderboard.publication.flags import is_trained_on
from leaderboard.publication.measure_names import title
from leaderboard.publication.reader import View
from leaderboard.publication.recommending import leading_cells, nobody_leads
from leaderboard.publication.snapshot import Entry
from leaderboard.ranking.cells import Cell, too_few
from leaderboard.ranking.rank_ranges import LEVEL
from leaderboard.ranking.slices import Ranked
from leaderboard.ranking.tiers import Basis, in_tiers, kept_in_tiers
from leaderboard.text import clean, count, interval, number, rate
from leaderboard.views.boards import Arrangement, Choice, Filters
from leaderboard.views.skill_choice import GIGA

STORED_ABOVE = 60
"""Entries of a board above which its headline is shown as the snapshot has it, without its tests."""
_LONGEST_NAME = 60
_MOST_AHEAD = 3


@dataclass(frozen=True)
class Ranking:
    """A ranking, and which of its rows are shown."""

    cells: tuple[Cell, ...]  # all that were ranked together, in the order of `tiers.in_tiers`
    shown: tuple[Cell, ...]  # those of them that a filter keeps
    basis: Basis  # what ranks and tiers rest on
    # the ranking with its tests; None where it is the one of the snapshot
    tested: Ranked | None = None
    # entry id to its rank among those shown; empty where nothing is filtered
    places: Mapping[str, int] = field(default_factory=dict)
    everyone: int = 0  # entries of the board
    within: bool = False  # whether those that are shown were ranked and tested among themselves


@dataclass(frozen=True)
class Answer:
    """An answer to a common question about a board."""

    question: str  # what was asked
    entry_id: str  # of the metric
    figure: str  # what makes it the answer


@dataclass(frozen=True)
class Verdict:
    """What a board says, made from its tests alone."""

    sentence: str  # who ranks first, or why nobody does
    detail: str = ""  # how the others stand to it
    answers: tuple[Answer, ...] = ()  # to common questions


def ranking_of(choice: Choice, view: View) -> Ranking:
    """The ranking that is asked for."""
    card, everyone = choice.board.card, choice.entry_ids()
    kept = choice.filters.kept(everyone, view.entries, card)
    if choice.filters.within and kept:
        found = in_tiers(view.orders.ranked(card, choice.slices(), kept))
        return Ranking(
            found.cells, found.cells, Basis.of(found), found, everyone=len(everyone), within=True
        )
    if is_stored(choice):
        tested, cells = None, kept_in_tiers(choice.slices()[0])
        basis = stored_basis(cells, view.entries, card)
    else:
        tested = in_tiers(view.orders.ranked(card, choice.slices()))
        cells, basis = tested.cells, Basis.of(tested)
    shown = cells if kept is None else tuple(one for one in cells if one.entry_id in kept)
    places = {} if kept is None else ranks_among(shown)
    return Ranking(cells, shown, basis, tested, places, len(everyone))


def ranking_with_tests(choice: Choice, view: View) -> Ranked:
    """The tests behind a ranking; they are made where the snapshot's ranks were shown at first."""
    card = choice.board.card
    kept = choice.filters.kept(choice.entry_ids(), view.entries, card)
    within = kept if choice.filters.within and kept else None
    return in_tiers(view.orders.ranked(card, choice.slices(), within))


def data_of(choice: Choice, part: str = "") -> str:
    """The address of the data of a ranking, or of a part of it."""
    # The data are all rows in the order that is shown; pins, pages and details are for the eye.
    asked = choice.arranged
    arranged = Arrangement() if part else Arrangement(asked.columns, sort=asked.sort)
    query = replace(choice.query, arranged=arranged)
    return f"./v1/boards/{choice.board.card.name}{f'/{part}' if part else ''}{query.to_query()}"


def title_of(choice: Choice) -> str:
    """What is shown, for the title of the page; empty where a query asks for what is not there."""
    if choice.remarks or choice.selector is None:
        return ""
    measure = title(choice.board.card, choice.selector, choice.board.every_selector())
    return f"{choice.board.card.title}: {measure}, {choice.title}"


def is_stored(choice: Choice) -> bool:
    """Whether a ranking is shown as the snapshot has it.

    It is the same ranking; to make it again, the draws of every run are read first.
    """
    return (
        choice.selector == choice.board.card.headline
        and not choice.skills
        and not choice.filters.within
        and len(choice.entry_ids()) > STORED_ABOVE
    )


def stored_basis(cells: Sequence[Cell], entries: Mapping[str, Entry], card: Card) -> Basis:
    """What the ranks of a headline rest on, as its entries state it."""
    stated = (entries[cell.entry_id].provenance.get(card.name) for cell in cells)
    resamples = [one.n_resamples for one in stated if one is not None]
    tested = sum(cell.tier is not None for cell in cells)
    return Basis(max(resamples, default=0), tested * (tested - 1) // 2)


def ranks_among(cells: Iterable[Cell]) -> dict[str, int]:
    """Entry id to its rank among some rows of a board; those without a rank have none here."""
    ranks = {cell.entry_id: cell.rank for cell in cells if cell.rank is not None}
    return {
        entry_id: 1 + sum(other < rank for other in ranks.values())
        for entry_id, rank in ranks.items()
    }


def verdict_of(choice: Choice, view: View) -> Verdict:
    """What the whole board says by the chosen measure and skills; a filter does not change it."""
    card, entries, selector = choice.board.card, view.entries, choice.selector
    if selector is None:
        return Verdict(f"No metric has results on {card.title} yet.")
    whole = ranking_of(replace(choice, filters=Filters()), view)
    if few := too_few(whole.cells, card.cluster):
        return Verdict(f"{few[:1].upper()}{few[1:]}.")
    leading = leading_cells(card, whole.cells, entries)
    able = [one for one in leading if not is_trained_on(entries[one.entry_id], card)]
    if not able:
        trained = "Every metric that could rank first was trained on this benchmark."
        nobody = nobody_leads(card, whole.cells) or "No metric on this board has a rank."
        return Verdict(trained if leading else nobody)
    first = min(able, key=lambda cell: cell.rank or 0)
    equal = equal_to(first, whole)
    scope = f"{card.title}, {choice.title}" if choice.skills else card.title
    measure = title(card, selector, choice.board.every_selector())
    ahead = [one for one in whole.cells if one.rank is not None and one.rank < (first.rank or 0)]
    place = "is the highest-ranked qualified metric" if ahead else "ranks first"
    sentence = (
        f"{_name(entries, first)} {place} on {scope} by {measure}: {_value(first)}. "
        f"{_others(first, whole, equal)}"
    )
    among = [one for one in able if one.entry_id in equal or one == first]
    return Verdict(
        sentence.strip(), _ahead(ahead, entries, card), _answers(first, among, entries, card)
    )


def equal_to(first: Cell, ranking: Ranking) -> frozenset[str]:
    """Entries of a ranking that do not differ significantly from one of them.

    Where the tests are not at hand, those of its tier: no two of a tier differ significantly.
    """
    if ranking.tested is None:
        same = (cell for cell in ranking.cells if cell.tier is not None and cell.tier == first.tier)
        return frozenset(cell.entry_id for cell in same if cell.entry_id != first.entry_id)
    cells = ranking.tested.cells
    place = [cell.entry_id for cell in cells].index(first.entry_id)
    corrected = ranking.tested.ordering.corrected[place]
    return frozenset(
        cell.entry_id
        for cell, p in zip(cells, corrected, strict=True)
        if np.isfinite(p) and p >= LEVEL and cell.entry_id != first.entry_id
    )


def _others(first: Cell, ranking: Ranking, equal: Collection[str]) -> str:
    """How many of the others do not differ significantly from the first."""
    if ranking.tested is None:
        return f"It shares tier {first.tier} with {count(len(equal), 'metric')}." if equal else ""
    place = [cell.entry_id for cell in ranking.tested.cells].index(first.entry_id)
    n_tested = int(np.isfinite(ranking.tested.ordering.corrected[place]).sum())
    if not n_tested:
        return ""
    if not equal:
        return f"It differs significantly from {count(n_tested, 'other metric')}."
    verb = "does" if len(equal) == 1 else "do"
    return f"{len(equal)} of {count(n_tested, 'other metric')} {verb} not differ significantly from it."


def _ahead(ahead: Sequence[Cell], entries: Mapping[str, Entry], card: Card) -> str:
    """Which metrics rank above the one that is named, and why they are not recommended."""
    if not ahead:
        return ""
    said = [
        f"{_name(entries, cell)} ({_value(cell)}; {_why_not(entries[cell.entry_id], card)})"
        for cell in ahead[:_MOST_AHEAD]
    ]
    left = len(ahead) - len(said)
    more = f" and {count(left, 'more', 'more')}" if left > 0 else ""
    return f"Ranked above it and not recommended: {', '.join(said)}{more}."


def _why_not(entry: Entry, card: Card) -> str:
    if is_trained_on(entry, card):
        return "trained on this benchmark"
    return "an unchanged template" if entry.template else "not significantly above chance"


def _answers(
    first: Cell, among: Sequence[Cell], entries: Mapping[str, Entry], card: Card
) -> tuple[Answer, ...]:
    """Who ranks first, and the cheapest of those that do not differ significantly from it."""
    chance = "" if first.p_best is None else f", P(best) {first.p_best:.2f}"
    found = [Answer("Ranks highest", first.entry_id, f"rank {rank_range(first)}{chance}")]
    own = {cell.entry_id: entries[cell.entry_id] for cell in among}
    costs = {entry_id: entry.cost.get(card.name) for entry_id, entry in own.items()}
    speeds = {name: cost.pairs_per_s for name, cost in costs.items() if cost and cost.pairs_per_s}
    flops = {n: entry.flops_per_pair for n, entry in own.items() if entry.flops_per_pair}
    if len(speeds) > 1:
        name = max(speeds, key=speeds.__getitem__)
        found.append(
            Answer(
                "Fastest, no significant difference", name, f"{rate(speeds[name])} pairs per second"
            )
        )
    if len(flops) > 1:
        name = min(flops, key=flops.__getitem__)
        found.append(
            Answer(
                "Fewest FLOPs, no significant difference",
                name,
                f"{number(flops[name] / GIGA, 1)} G, declared",
            )
        )
    return tuple(found)


def _name(entries: Mapping[str, Entry], cell: Cell) -> str:
    return clean(entries[cell.entry_id].metric)[:_LONGEST_NAME]


def _value(cell: Cell) -> str:
    return f"{number(cell.value)} {interval(cell.ci_low, cell.ci_high)}".strip()


def rank_range(cell: Cell) -> str:
    """`1–3`, `4`, or a dash for a metric without a rank."""
    if cell.rank is None or cell.rank_low is None or cell.rank_high is None:
        return "–"
    if cell.rank_low == cell.rank_high:
        return str(cell.rank_low)
    return f"{cell.rank_low}–{cell.rank_high}"
