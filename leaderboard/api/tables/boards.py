"""Rankings of a benchmark, the tests between its metrics, and their values by skill."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any

from leaderboard.api.operations import Asked, Operation, Parameter
from leaderboard.api.problems import RefusedError, bad_query, not_found
from leaderboard.api.source import Source
from leaderboard.api.tables.heat import heat_table
from leaderboard.api.tables.stored_pairs import stored_pairs
from leaderboard.publication.measure_names import title, token
from leaderboard.publication.reader import View
from leaderboard.ranking.cells import Cell
from leaderboard.ranking.slices import Ranked
from leaderboard.ranking.tiers import in_tiers, kept_in_tiers
from leaderboard.tables import Table
from leaderboard.views.benchmark_board import ranks_among
from leaderboard.views.board_order import in_shown_order
from leaderboard.views.board_tables import board_table, pairs_table, table_name
from leaderboard.views.boards import KINDS, BoardQuery, Choice, layout_of, resolve
from leaderboard.views.pairs import Pair, pairs

MOST_RANKED = 300
"""Entries that are ranked and tested for a request; more only as they stand in the snapshot."""
STORED_ABOVE = 60
"""Entries above which the headline is answered from the snapshot: the same figures, at once."""
MOST_IN_SKILLS = 100
"""Entries that are tested within every skill for a request."""
MOST_PAIRS = 50_000
"""Tests of one answer: those of three hundred entries are 44,850."""

BENCHMARK = Parameter(
    "benchmark", "Name of a benchmark, as /v1/benchmarks lists them.", "demo_croc"
)
SLICE = (
    Parameter("skill", "Skills by key, joined by commas: their mean. Without: all skills."),
    Parameter("measure", "A measure, or a token as /v1/benchmarks/{benchmark} lists them."),
)
_FILTERS = (
    Parameter("kind", "Only entries of this kind.", "metric", tuple(KINDS)),
    Parameter("untrained", "1: without those trained on the benchmark.", "1", ("1",)),
    Parameter("search", "Only metrics or submitters with one of these texts, parted by commas."),
    Parameter("within", "1: rank and test only the entries that are kept, among themselves. That is "
              "chosen after seeing the data. Without: ranks, tiers and p-values of all entries.",
              "1", ("1",)),
)  # fmt: skip
_LAYOUT = (
    Parameter("columns", "Further columns by key, joined by commas: a token, then @ and a skill "
              "where it is of one; or cost:pairs_per_s, cost:seconds, "
              "cost:gflops_declared, cost:memory_gib; or meta:version, meta:submitter, meta:kind, "
              "meta:published."),
    Parameter("sort", "Key of a column, after - where the worst come first. Without: by rank."),
)  # fmt: skip


@dataclass(frozen=True)
class Chosen:
    """What a request asks for.

    Attributes:
        view: what is published.
        choice: board, skills, measure and filters.
        shown: entries that the filters keep; None where there are none.
    """

    view: View
    choice: Choice
    shown: Collection[str] | None

    @property
    def tested(self) -> Collection[str] | None:
        """Entries that are ranked and tested among themselves; None: all of the board."""
        return self.shown if self.choice.filters.within else None

    @property
    def is_headline(self) -> bool:
        """Whether it is the ranking of all entries by the headline, as the snapshot holds it."""
        choice = self.choice
        return (
            self.tested is None and not choice.skills
            and choice.selector == choice.board.card.headline
        )  # fmt: skip

    def keeps(self, entry_id: str) -> bool:
        """Whether the filters keep an entry."""
        return self.shown is None or entry_id in self.shown

    def about(self) -> dict[str, Any]:
        """What every table of it says of itself."""
        choice, card = self.choice, self.choice.board.card
        selector = choice.selector
        return {
            "as_of": as_of(self.view),
            "benchmark": card.name,
            "title": card.title,
            "revision": card.revision,
            "simulated": card.simulated,
            "measure": token(selector) if selector else None,
            "measure_title": title(card, selector, choice.board.every_selector())
            if selector
            else None,
            "higher_is_better": card.higher_is_better(selector.measure) if selector else None,
            "skills": list(choice.skills),
            "filters": {k: v for k, v in choice.filters.to_params().items() if v},
            "licence": card.licence,
            "page": f"./boards{choice.query.to_query()}",
        }


def as_of(view: View) -> str | None:
    """When what is published was made; None where nothing is."""
    return view.built_at.isoformat() if view.built_at else None


def chosen(source: Source, asked: Asked) -> Chosen:
    """What a request asks for: all of it, or an error.

    Raises:
        RefusedError: `unknown_benchmark`, or `bad_query` for whatever a page would remark on.
    """
    view = source.reader.view()
    name = asked.path["benchmark"]
    if name not in view.boards:
        raise not_found(
            "unknown_benchmark", "There is no such benchmark here.", "See /v1/benchmarks."
        )
    query = BoardQuery.from_params(asked.params)
    if query.benchmark not in {"", name}:
        raise bad_query("The query names another benchmark than the address.")
    choice = resolve(replace(query, benchmark=name), view.boards)
    refuse(choice.remarks)
    everyone = choice.entry_ids()
    return Chosen(view, choice, choice.filters.kept(everyone, view.entries, choice.board.card))


def refuse(remarks: Collection[str]) -> None:
    """Where a page shows something else and says so, a program is told and given nothing.

    Raises:
        RefusedError: `bad_query`.
    """
    if remarks:
        raise bad_query(" ".join(remarks), "See /v1/benchmarks/{benchmark} for what there is.")


def board(source: Source, asked: Asked) -> Table:
    """The ranking that the boards page shows for the same query."""
    found = chosen(source, asked)
    layout = layout_of(found.choice, found.view)
    cells = in_shown_order(_cells(source, found), layout)
    # A column may be sorted by without being shown.
    keys = found.choice.arranged.columns
    further = [values for values in layout.columns if values.column.key in keys]
    about = found.about() | {"sort": found.choice.arranged.sort or None}
    places = None if found.shown is None else ranks_among(cells)
    return board_table(cells, found.view.entries, found.choice.board, about, further, places=places)


def board_pairs(source: Source, asked: Asked) -> Table:
    """All tests of the ranking that the boards page shows for the same query."""
    found = chosen(source, asked)
    every = _pairs(source, found)
    tests = tuple(pair for pair in every if found.keeps(pair.a) and found.keeps(pair.b))
    of = [cells[0] for cells in found.choice.slices()[:1] if cells]
    about = found.about() | {"correction": "holm", "n_tests": len(every)}
    name = table_name(of, found.choice.board, "pairs")
    return pairs_table(tests, found.view.entries, name, about)


def board_skills(source: Source, asked: Asked) -> Table:
    """The heatmap of the boards page as one row for each value."""
    found = chosen(source, asked)
    choice, view = found.choice, found.view
    if choice.selector is None:
        return heat_table(choice, view, None, found.about())
    bounded(len(choice.entry_ids()), MOST_IN_SKILLS)
    shown = choice.filters.kept(view.entries, view.entries, choice.board.card)
    with source.turn():
        return heat_table(choice, view, shown, found.about(), within=choice.filters.within)


def _cells(source: Source, found: Chosen) -> tuple[Cell, ...]:
    if found.choice.selector is None or (found.shown is not None and not found.shown):
        return ()
    everyone = found.choice.entry_ids()
    if found.is_headline and len(everyone) > STORED_ABOVE:
        cells = kept_in_tiers(found.choice.slices()[0])
    else:
        cells = _ranked(source, found).cells
    return tuple(cell for cell in cells if found.keeps(cell.entry_id))


def _pairs(source: Source, found: Chosen) -> tuple[Pair, ...]:
    if found.choice.selector is None or (found.shown is not None and not found.shown):
        return ()
    everyone = len(found.choice.entry_ids())
    asked = everyone if found.shown is None else len(found.shown)
    if asked * (asked - 1) // 2 > MOST_PAIRS:
        raise _too_large(f"{asked:,} entries have too many pairs for one answer.")
    if found.is_headline and everyone > STORED_ABOVE:
        stored = stored_pairs(source.store, found.choice)
        if stored:
            return stored
    return pairs(_ranked(source, found), None)


def _ranked(source: Source, found: Chosen) -> Ranked:
    """As the page ranks; pages and requests remember it together."""
    bounded(len(found.choice.entry_ids()))
    with source.turn():
        choice = found.choice
        of = found.view.orders.ranked(choice.board.card, choice.slices(), found.tested)
        return in_tiers(of)


def bounded(entries: int, most: int = MOST_RANKED) -> None:
    """That a request is no more work than it may be.

    Raises:
        RefusedError: `too_many_entries`.
    """
    if entries > most:
        raise _too_large(f"{entries:,} entries are too many to rank and test for a request.")


def _too_large(message: str) -> RefusedError:
    return RefusedError(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "too_many_entries",
        message,
        "Ask for the headline over all skills, or take the files of the store.",
    )


_OF_BOARD = (BENCHMARK,)
OPERATIONS = (
    Operation(
        "/boards/{benchmark}", "board",
        "The ranking of a benchmark by one measure, best first, with intervals and rank ranges.",
        board, (*SLICE, *_FILTERS, *_LAYOUT, BENCHMARK), _OF_BOARD,
    ),
    Operation(
        "/boards/{benchmark}/pairs", "board_pairs",
        "Every test between two metrics of a ranking, with corrected p-values.",
        board_pairs, (*SLICE, *_FILTERS, BENCHMARK), _OF_BOARD,
    ),
    Operation(
        "/boards/{benchmark}/skills", "board_skills",
        "One measure of every metric by skill, and which may be the best of a skill.",
        board_skills, (*SLICE, *_FILTERS, BENCHMARK), _OF_BOARD,
    ),
)  # fmt: skip
