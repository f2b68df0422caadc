"""Ranking of a benchmark: its verdict, what a filter keeps, its order, skills, and what papers print.

Ranks, tiers and p-values are the whole board's, whatever is filtered: a filter shows fewer rows and
the rank among them. Only where it is asked for are those that are kept ranked and tested anew.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil

import numpy as np

from benchmarks.published import PublishedCell, published
from benchmarks.schema import Card, Selector
from benchmarks.statistics.joint_tests import LEVEL
from leaderboard.publication.entries import Entry, is_trained_on
from leaderboard.publication.index import leading_cells, nobody_leads
from leaderboard.publication.measure_names import info, nearest
from leaderboard.publication.metric_facts import metric_name
from leaderboard.publication.reader import BoardIndex, View
from leaderboard.ranking.cells import Cell, cell_at_or_below_chance, too_few
from leaderboard.ranking.skill_tests import TestedColumn
from leaderboard.ranking.slices import Basis, Ranked, groups
from leaderboard.text import clean, count, number, rate
from leaderboard.views.boards import OWN, Arrangement, Choice, Filters, Layout
from leaderboard.views.figures import Verdict, by_value, estimate, rank_range
from leaderboard.views.skills import GIGA

STORED_ABOVE = 60
"""Entries of a board above which its headline is shown as the snapshot has it, without its tests."""
_LONGEST_NAME = 60
_MOST_AHEAD = 3


@dataclass(frozen=True)
class Ranking:
    """A ranking, and which of its rows are shown."""

    cells: tuple[Cell, ...]  # all that were ranked together, in board order
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
class BoardVerdict(Verdict):
    """What a board says, made from its tests alone."""

    answers: tuple[Answer, ...] = ()  # to common questions


def ranking_of(choice: Choice, view: View) -> Ranking:
    """The ranking that is asked for."""
    card, everyone = choice.board.card, choice.entry_ids()
    kept = choice.filters.kept(everyone, view.entries, card)
    if choice.filters.within and kept:
        found = view.orders.ranked(card, choice.slices(), kept)
        return Ranking(
            found.cells, found.cells, Basis.of(found), found, everyone=len(everyone), within=True
        )
    if is_stored(choice):
        tested, cells = None, choice.slices()[0]
        basis = stored_basis(cells, view.entries, card)
    else:
        tested = view.orders.ranked(card, choice.slices())
        cells, basis = tested.cells, Basis.of(tested)
    shown = cells if kept is None else tuple(one for one in cells if one.entry_id in kept)
    places = {} if kept is None else ranks_among(shown)
    return Ranking(cells, shown, basis, tested, places, len(everyone))


def ranking_with_tests(choice: Choice, view: View) -> Ranked:
    """The tests behind a ranking; they are made where the snapshot's ranks were shown at first."""
    card = choice.board.card
    kept = choice.filters.kept(choice.entry_ids(), view.entries, card)
    within = kept if choice.filters.within and kept else None
    return view.orders.ranked(card, choice.slices(), within)


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
    return f"{choice.board.card.title}: {choice.measure_title}, {choice.title}"


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
    ordered = sorted(ranks.values())
    return {entry_id: 1 + bisect_left(ordered, rank) for entry_id, rank in ranks.items()}


def verdict_of(choice: Choice, view: View) -> BoardVerdict:
    """What the whole board says by the chosen measure and skills; a filter does not change it."""
    card, entries = choice.board.card, view.entries
    if choice.selector is None:
        return BoardVerdict(f"No metric has results on {card.title} yet.")
    whole = ranking_of(replace(choice, filters=Filters()), view)
    if few := too_few(whole.cells, card.cluster):
        return BoardVerdict(f"{few[:1].upper()}{few[1:]}.")
    leading = leading_cells(card, whole.cells, entries)
    able = [one for one in leading if not is_trained_on(entries[one.entry_id], card)]
    if not able:
        trained = "Every metric that could rank first was trained on this benchmark."
        nobody = nobody_leads(card, whole.cells) or "No metric on this board has a rank."
        return BoardVerdict(trained if leading else nobody)
    first = min(able, key=lambda cell: cell.rank or 0)
    equal = equal_to(first, whole)
    scope = f"{card.title}, {choice.title}" if choice.skills else card.title
    ahead = [one for one in whole.cells if one.rank is not None and one.rank < (first.rank or 0)]
    place = "is the highest-ranked qualified metric" if ahead else "ranks first"
    sentence = (
        f"{_name(entries, first)} {place} on {scope} by {choice.measure_title}: "
        f"{estimate(first.value, first.ci_low, first.ci_high)}. "
        f"{_others(first, whole, equal)}"
    )
    among = [one for one in able if one.entry_id in equal or one == first]
    return BoardVerdict(
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
        f"{_name(entries, cell)} ({estimate(cell.value, cell.ci_low, cell.ci_high)}; "
        f"{_why_not(entries[cell.entry_id], card, cell)})"
        for cell in ahead[:_MOST_AHEAD]
    ]
    left = len(ahead) - len(said)
    more = f" and {count(left, 'more', 'more')}" if left > 0 else ""
    return f"Ranked above it and not recommended: {', '.join(said)}{more}."


def _why_not(entry: Entry, card: Card, cell: Cell) -> str:
    if is_trained_on(entry, card):
        return "trained on this benchmark"
    if entry.template:
        return "an unchanged template"
    if cell_at_or_below_chance(card, cell):
        return "significantly at or below chance"
    return "not significantly above chance"


def _answers(
    first: Cell, among: Sequence[Cell], entries: Mapping[str, Entry], card: Card
) -> tuple[Answer, ...]:
    """Who ranks first, and the cheapest of those that do not differ significantly from it."""
    best = "" if first.best_share is None else f", best in {first.best_share:.0%} of resamples"
    found = [Answer("Ranks highest", first.entry_id, f"rank {rank_range(first)}{best}")]
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
    return clean(metric_name(entries[cell.entry_id]))[:_LONGEST_NAME]


PAGE_ROWS = 100  # Rows sent at a time; whatever is ranked, searched or sorted is all of them


@dataclass(frozen=True)
class Window:
    """The rows that are sent."""

    # label of each group of rows, `Tier 1` or `Pinned`, empty for none; and its rows
    parts: tuple[tuple[str, tuple[Cell, ...]], ...]
    first: int  # place of the first of them, from 1; 0 where there are none
    last: int
    total: int  # rows of the ranking without those pinned
    page: int  # which of
    pages: int  # so many


def window(cells: Sequence[Cell], layout: Layout, rows: int = PAGE_ROWS) -> Window:
    """The pinned rows, and one page of the others in tiers or sorted by a column."""
    rows = rows if layout.address is not None else max(1, len(cells))
    by_id = {cell.entry_id: cell for cell in cells}
    pins = tuple(by_id[entry] for entry in layout.arranged.pins if entry in by_id)
    pinned = frozenset(layout.arranged.pins)
    labelled = [
        (label, cell) for label, cell in _in_order(cells, layout) if cell.entry_id not in pinned
    ]
    pages = max(1, ceil(len(labelled) / rows))
    page = min(layout.arranged.page, pages)
    start = (page - 1) * rows
    shown = labelled[start : start + rows]
    parts = [("Pinned", pins)] if pins else []
    labels = dict.fromkeys(label for label, _ in shown)
    parts += [(label, tuple(cell for of, cell in shown if of == label)) for label in labels]
    if pins and len(parts) > 1 and not parts[1][0]:
        parts[1] = ("Others", parts[1][1])
    first = start + 1 if shown else 0
    return Window(tuple(parts), first, start + len(shown), len(labelled), page, pages)


def in_shown_order(cells: Sequence[Cell], layout: Layout) -> tuple[Cell, ...]:
    """All rows as they are shown where nothing is pinned."""
    return tuple(cell for _, cell in _in_order(cells, layout))


def _in_order(cells: Sequence[Cell], layout: Layout) -> list[tuple[str, Cell]]:
    """Every row with its label, in the order in which rows are shown."""
    keys, down = _sort_keys(layout)
    if keys is None:
        found = groups(cells)
        tiered = any(group.tier is not None for group in found)
        return [
            ("" if not tiered else f"Tier {group.tier}" if group.tier else "Without a rank", cell)
            for group in found
            for cell in group.cells
        ]
    # Equal values keep the order of the board.
    return [("", cell) for cell in by_value(cells, keys, down=down)]


_SortKey = Callable[[Cell], float | str | None]


def _sort_keys(layout: Layout) -> tuple[_SortKey | None, bool]:
    """What rows are sorted by, and whether it falls; None: by rank."""
    key, turned = layout.arranged.sorted_by, layout.arranged.worst_first
    own: dict[str, _SortKey] = {
        "metric": lambda cell: cell.entry_id.partition("/")[2].casefold(),
        "value": lambda cell: cell.value,
        "best_share": lambda cell: cell.best_share,
        "n": lambda cell: cell.n_clusters,
    }
    if key in own:
        falls = layout.higher_is_better if key == "value" else OWN[key].higher_is_better
        return own[key], falls is not turned
    column = next((one for one in layout.columns if one.column.key == key), None)
    if column is None:
        return None, False
    found = column
    if column.words:
        return (lambda cell: found.words.get(cell.entry_id, "").casefold() or None), turned
    return (lambda cell: found.of(cell.entry_id)), column.column.higher_is_better is not turned


@dataclass(frozen=True)
class SkillColumn:
    """One skill."""

    skill: str | None  # its key; None: all skills together
    selector: Selector  # the measure; skills may have another variant of it than the whole
    cells: Mapping[str, Cell]  # entry id to its value
    tests: TestedColumn  # against the best of the column

    def may_be_best(self, cell: Cell) -> bool:
        """Whether it is the best of its column, or does not differ significantly from it.

        Where nothing could be tested, whether its rank range among all metrics reaches 1.
        """
        if self.tests.best is None:
            return cell.rank_low == 1
        return self.tests.as_good_as_best(cell.entry_id)


@dataclass(frozen=True)
class SkillHeat:
    """Metrics by skills."""

    columns: tuple[SkillColumn, ...]  # all skills together first, then each
    # of the rows, in the order of the first column, then those it does not have
    entry_ids: tuple[str, ...]

    @property
    def n_tests(self) -> int:
        """Tests that the correction counts."""
        return sum(column.tests.n_tests for column in self.columns)


def has_skills(board: BoardIndex, selector: Selector) -> bool:
    """Whether any skill has this measure."""
    return any(
        one.measure == selector.measure
        for skill in _whole_skills(board)
        for one in board.selectors(skill)
    )


def skill_heat(choice: Choice, view: View) -> SkillHeat | None:
    """Values by skill; None where the board has no skills for the measure.

    The tests are those of all metrics, whatever is filtered, unless they are asked for within the
    filter.
    """
    board, selector = choice.board, choice.selector
    if selector is None or not has_skills(board, selector):
        return None
    # Of all entries, since there are rows for everybody, whatever skill is ranked.
    kept = choice.filters.kept(view.entries, view.entries, board.card)
    columns = skill_columns(choice, view, kept if choice.filters.within else None)
    found = dict.fromkeys(entry_id for column in columns for entry_id in column.cells)
    return SkillHeat(columns, tuple(one for one in found if kept is None or one in kept))


def skill_columns(
    choice: Choice, view: View, among: Collection[str] | None, *, tested: bool = True
) -> tuple[SkillColumn, ...]:
    """One measure for all skills together, then for each; a skill without it has no column.

    `among` are the entries that are tested among themselves, None for all. Without tests the
    published rank ranges say which may be best, which takes no time however many there are.
    """
    board, selector = choice.board, choice.selector
    found: list[tuple[str | None, Selector, tuple[Cell, ...]]] = []
    for skill in (None, *_whole_skills(board)):
        same = [s for s in board.selectors(skill) if selector and s.measure == selector.measure]
        if selector and same:
            one = nearest(selector, same, board.card)
            found.append((skill, one, board.cells(one, skill)))
    tests: Sequence[TestedColumn] = [TestedColumn(None, {})] * len(found)
    if tested and found:
        cells = [cells for _, _, cells in found]
        tests = view.skill_tests.columns(view.orders, board.card, cells, among)
    return tuple(
        SkillColumn(skill, one, {cell.entry_id: cell for cell in cells}, of)
        for (skill, one, cells), of in zip(found, tests, strict=True)
    )


def _whole_skills(board: BoardIndex) -> list[str]:
    """Skills without their sub-skills, which rest on too few items to be taken in at a glance."""
    return [skill for skill in board.skills() if ":" not in skill]


def printed_of(card: Card, selector: Selector, skill: str | None) -> tuple[PublishedCell, ...]:
    """The printed figures of one ranking, the best first."""
    cells = _once(
        cell
        for cell in published(card.name)
        if cell.matches(selector.measure, selector.split, skill, selector.variant, selector.facet)
    )
    sign = -1.0 if info(card, selector.measure).higher_is_better else 1.0
    return tuple(sorted(cells, key=lambda cell: (sign * cell.value, cell.metric)))


def all_printed(card: Card) -> tuple[PublishedCell, ...]:
    """All printed figures over all skills, as the papers have them."""
    return tuple(
        cell
        for cell in published(card.name)
        if cell.model is None and cell.skill is None and cell.measure in card.measures
    )


def _once(cells: Iterable[PublishedCell]) -> tuple[PublishedCell, ...]:
    """Papers repeat figures from table to table: one line for each metric and figure."""
    first: dict[tuple[str, str, str], PublishedCell] = {}
    for cell in cells:
        first.setdefault((cell.paper, cell.metric, cell.printed), cell)
    return tuple(first.values())
