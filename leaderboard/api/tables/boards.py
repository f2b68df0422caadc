"""Rankings of a benchmark, the tests between its metrics, their values by skill, and what papers print."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from operator import itemgetter
from typing import Annotated, Any

from fastapi import Path

from benchmarks.errata import errata
from benchmarks.published import PublishedCell, papers
from leaderboard.api.replies import RefusedError, bad_query, not_found
from leaderboard.api.schemas import model_of
from leaderboard.api.serving import TableRouter
from leaderboard.api.source import Source
from leaderboard.publication.entries import Entry
from leaderboard.publication.measure_names import skill_title, token
from leaderboard.publication.pairs_file import read_tests
from leaderboard.publication.reader import BoardIndex, View
from leaderboard.ranking.cells import Cell
from leaderboard.store.interface import Repository
from leaderboard.tables import Table, Type, Value, columns_of
from leaderboard.views.benchmark_board import (
    SkillColumn,
    all_printed,
    in_shown_order,
    is_stored,
    printed_of,
    ranking_of,
    ranking_with_tests,
    ranks_among,
    skill_columns,
)
from leaderboard.views.board_tables import Pair, board_table, pairs, pairs_table, table_name
from leaderboard.views.boards import BoardQuery, Choice, layout_of, resolve

MOST_RANKED = 300
"""Entries that are ranked and tested for a request; more only as they stand in the snapshot."""
MOST_IN_SKILLS = 100  # Entries that are tested within every skill for a request
MOST_PAIRS = 50_000  # Tests of one answer: those of three hundred entries are 44,850

_SKILLS = (
    "metric", "version", "entry_id", "skill", "skill_title", "measure", "variant", "split", "facet",
    "value", "ci_low", "ci_high", "n_items", "n_clusters", "n_missing", "rank_low", "rank",
    "rank_high", "maybe_best", "p_against_best", "note", "kind",
)  # fmt: skip
_SKILLS_TYPES = {
    Type.NUMBER: "value ci_low ci_high p_against_best",
    Type.COUNT: "n_items n_clusters n_missing rank_low rank rank_high",
    Type.FLAG: "maybe_best",
}
_SKILLS_MEANINGS = {
    "skill": "Missing: all skills.",
    "kind": "metric: run by Assay; scores: as submitted or released, not re-run.",
    "variant": "Skills may have another variant of the measure than the whole.",
    "maybe_best": "The best of its skill, or no significant difference from it at 5%.",
    "p_against_best": "After Benjamini and Hochberg's correction over all pairs of all columns.",
}

_PUBLISHED = (
    "kind", "metric", "benchmark", "measure", "variant", "split", "facet", "skill", "value",
    "printed", "in_percent", "table", "paper", "citation", "url", "n_errata",
)  # fmt: skip
_PUBLISHED_TYPES = {Type.NUMBER: "value", Type.FLAG: "in_percent", Type.COUNT: "n_errata"}
_PUBLISHED_MEANINGS = {
    "kind": "as published: not computed here, and in no ranking.",
    "value": "In the unit of the board: 67.9 % is 0.679.",
    "printed": "With the digits of the paper.",
    "table": "Of the paper.",
    "n_errata": "Known of the paper, all in all; see the page of errata.",
}

router = TableRouter()

EntryId = Annotated[
    str,
    Path(
        description="`<submission id>/<metric>`; the slash may stand as it is.",
        examples=["grey-0123456789/grey"],
    ),
]
Benchmark = Annotated[
    str,
    Path(description="Name of a benchmark, as /v1/benchmarks lists them.", examples=["demo_croc"]),
]


_SLICE = ("skill", "measure", "benchmark")
_RANKING = (*_SLICE, "kind", "untrained", "search", "within")
RankingParameters = model_of(BoardQuery, *_RANKING)


@dataclass(frozen=True)
class Chosen:
    """What a request asks for."""

    view: View  # what is published
    choice: Choice  # board, skills, measure and filters
    shown: Collection[str] | None  # entries that the filters keep; None where there are none

    @property
    def empty(self) -> bool:
        """Whether there is nothing to rank."""
        return self.choice.selector is None or (self.shown is not None and not self.shown)

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
            "measure_title": choice.measure_title or None,
            "higher_is_better": card.higher_is_better(selector.measure) if selector else None,
            "skills": list(choice.skills),
            "filters": {k: v for k, v in choice.filters.to_params().items() if v},
            "licence": card.licence,
            "page": choice.query.to_link(),
        }


def as_of(view: View) -> str | None:
    """When what is published was made; None where nothing is."""
    return view.built_at.isoformat() if view.built_at else None


def entry_of(view: View, entry_id: str) -> Entry:
    """A metric on the boards."""
    found = view.entries.get(entry_id)
    if found is None:
        raise not_found(
            "unknown_entry", "There is no such entry on the boards.", "See /v1/entries."
        )
    return found


def of_benchmark(view: View, name: str) -> BoardIndex:
    """The board of a benchmark."""
    if name not in view.boards:
        raise not_found(
            "unknown_benchmark", "There is no such benchmark here.", "See /v1/benchmarks."
        )
    return view.boards[name]


def chosen(source: Source, benchmark: str, query: BoardQuery) -> Chosen:
    """What a request asks for: all of it, or an error."""
    view = source.reader.view()
    of_benchmark(view, benchmark)
    if query.benchmark not in {"", benchmark}:
        raise bad_query("The query names another benchmark than the address.")
    choice = resolve(replace(query, benchmark=benchmark), view.boards)
    refuse(choice.remarks)
    everyone = choice.entry_ids()
    return Chosen(view, choice, choice.filters.kept(everyone, view.entries, choice.board.card))


def refuse(remarks: Collection[str]) -> None:
    """Where a page shows something else and says so, a program is told and given nothing."""
    if remarks:
        raise bad_query(" ".join(remarks), "See /v1/benchmarks/{benchmark} for what there is.")


@router.table("/boards/{benchmark}", takes=model_of(BoardQuery, *_RANKING, "columns", "sort"))
def board(source: Source, benchmark: Benchmark, query: BoardQuery) -> Table:
    """The ranking of a benchmark by one measure, best first, with intervals and rank ranges."""
    found = chosen(source, benchmark, query)
    layout = layout_of(found.choice, found.view)
    cells = in_shown_order(_ranked_cells(source, found), layout)
    # A column may be sorted by without being shown.
    keys = found.choice.arranged.columns
    further = [values for values in layout.columns if values.column.key in keys]
    about = found.about() | {"sort": found.choice.arranged.sort or None}
    places = None if found.shown is None else ranks_among(cells)
    return board_table(cells, found.view.entries, found.choice.board, about, further, places=places)


@router.table("/boards/{benchmark}/pairs", takes=RankingParameters)
def board_pairs(source: Source, benchmark: Benchmark, query: BoardQuery) -> Table:
    """Every test between two metrics of a ranking, with corrected p-values."""
    found = chosen(source, benchmark, query)
    every = _pairs(source, found)
    kept = found.shown
    tests = tuple(one for one in every if kept is None or (one.a in kept and one.b in kept))
    of = [cells[0] for cells in found.choice.slices()[:1] if cells]
    about = found.about() | {"correction": "joint", "n_tests": len(every)}
    name = table_name(of, found.choice.board, "pairs")
    return pairs_table(tests, found.view.entries, name, about)


@router.table("/boards/{benchmark}/skills", takes=RankingParameters)
def board_skills(source: Source, benchmark: Benchmark, query: BoardQuery) -> Table:
    """One measure of every metric by skill, and which may be the best of a skill."""
    found = chosen(source, benchmark, query)
    choice, view = found.choice, found.view
    if choice.selector is None:
        return heat_table(choice, view, None, found.about())
    bounded(len(choice.entry_ids()), MOST_IN_SKILLS)
    shown = choice.filters.kept(view.entries, view.entries, choice.board.card)
    with source.turn():
        return heat_table(choice, view, shown, found.about(), within=choice.filters.within)


@router.table("/boards/{benchmark}/published", takes=model_of(BoardQuery, *_SLICE))
def board_published(source: Source, benchmark: Benchmark, query: BoardQuery) -> Table:
    """What papers print for a ranking; not computed here and in no ranking."""
    found = chosen(source, benchmark, query)
    choice, card = found.choice, found.choice.board.card
    if choice.selector is None:
        cells = all_printed(card)
    else:
        # Nobody prints the mean of whichever skills a visitor chooses.
        several = len(choice.skills) > 1
        cells = () if several else printed_of(card, choice.selector, choice.skill)
    rows = [_published_row(cell) for cell in cells]
    about = {name: said for name, said in found.about().items() if name != "filters"}
    columns = columns_of(_PUBLISHED, _PUBLISHED_TYPES, _PUBLISHED_MEANINGS)
    return Table(f"{card.name}-as-published", columns, rows, about)


def _published_row(cell: PublishedCell) -> dict[str, Value]:
    paper = papers()[cell.paper]
    return {
        "kind": "as published",
        **{name: getattr(cell, name) for name in _PUBLISHED if name in PublishedCell.model_fields},
        "in_percent": cell.in_percent,
        "paper": paper.name,
        "citation": paper.citation,
        "url": paper.url,
        "n_errata": sum(one.paper == cell.paper for one in errata()),
    }


def heat_table(
    choice: Choice,
    view: View,
    entry_ids: Collection[str] | None,
    about: Mapping[str, Any],
    *,
    tested: bool = True,
    within: bool = False,
) -> Table:
    """Metrics by skills for one measure; skills without the measure have no rows."""
    board = choice.board
    columns = skill_columns(choice, view, entry_ids if within else None, tested=tested)
    rows = [
        {**_skills_row(cell, column, view), "skill_title": skill_title(board.card, column.skill)}
        for column in columns
        for cell in column.cells.values()
        if entry_ids is None or cell.entry_id in entry_ids
    ]
    of_table = columns_of(_SKILLS, _SKILLS_TYPES, _SKILLS_MEANINGS)
    return Table(f"{board.card.name}-skills", of_table, rows, about)


def _skills_row(cell: Cell, column: SkillColumn, view: View) -> dict[str, Value]:
    entry = view.entries[cell.entry_id]
    return {
        **cell.model_dump(),
        "metric": entry.metric,
        "version": entry.version,
        "kind": entry.kind.value,
        "maybe_best": cell.value is not None and column.may_be_best(cell),
        "p_against_best": column.tests.corrected.get(cell.entry_id),
    }


def published_pairs(public: Repository, choice: Choice) -> tuple[Pair, ...]:
    """The tests of a headline as they are published, in board order; none where there are none."""
    place = {cell.entry_id: i for i, cell in enumerate(choice.slices()[0])}
    found: list[tuple[int, int, Pair]] = []
    for row in read_tests(public, choice.board.card):
        a, b = row["entry_a"], row["entry_b"]
        if a not in place or b not in place:
            continue
        first, second = sorted((a, b), key=place.__getitem__)
        difference = row["difference"] if first == a else -row["difference"]
        rest = row["p_corrected"], row["n_units"], row["n_patterns"], row["exact"]
        found.append((place[first], place[second], Pair(first, second, difference, *rest)))
    return tuple(pair for *_, pair in sorted(found, key=itemgetter(0, 1)))


def _ranked_cells(source: Source, found: Chosen) -> tuple[Cell, ...]:
    """As the page ranks; pages and requests remember it together."""
    choice = found.choice
    if found.empty:
        return ()
    if is_stored(choice):
        return ranking_of(choice, found.view).shown
    bounded(len(choice.entry_ids()))
    with source.turn():
        return ranking_of(choice, found.view).shown


def _pairs(source: Source, found: Chosen) -> tuple[Pair, ...]:
    choice = found.choice
    if found.empty:
        return ()
    everyone = choice.entry_ids()
    asked = len(everyone if found.shown is None else found.shown)
    if asked * (asked - 1) // 2 > MOST_PAIRS:
        raise _too_large(f"{asked:,} entries have too many pairs for one answer.")
    if is_stored(choice) and (published := published_pairs(source.store.public, choice)):
        return published
    bounded(len(everyone))
    with source.turn():
        return pairs(ranking_with_tests(choice, found.view), None)


def bounded(entries: int, most: int = MOST_RANKED) -> None:
    """That a request is no more work than it may be."""
    if entries > most:
        raise _too_large(f"{entries:,} entries are too many to rank and test for a request.")


def _too_large(message: str) -> RefusedError:
    return RefusedError(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "too_many_entries",
        message,
        "Take the files of the store: snapshot.parquet has every value, boards/*.pairs.parquet the tests.",
    )
