"""Metrics' records at ordering text-to-image models, held against people, where people were asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.errors import SubmitterError
from benchmarks.model_boards.estimates import PairRelation, ordering_record
from benchmarks.model_boards.rated_models import RatedModels, readers
from benchmarks.schema import Selector
from leaderboard.models.board_types import BoardQuery
from leaderboard.models.reading import ModelReader
from leaderboard.models.selection import Selection, selection
from leaderboard.publication.item_scores import scores_of
from leaderboard.publication.reader import View, headline_cells
from leaderboard.store.interface import NotFoundError

ON_BOARD = "model_pairs_right"
"""The measure of boards in the manner of Gecko, whose protocol counts the pairs itself."""


@dataclass(frozen=True)
class ModelOrdering:
    """One metric on one benchmark."""

    benchmark: str  # its name
    entry_id: str  # of the metric
    right: int  # pairs of models that it relates as people do (Wilcoxon, p < 0.001)
    of: int  # pairs that people rated
    # pairs that it orders significantly against the people's significant order; None where
    # only the count is published
    reversed: int | None = None
    pairs: tuple[PairRelation, ...] = ()  # each pair; none where only the count is published
    note: str = ""  # what a reader must know; empty as a rule


@dataclass(frozen=True)
class ModelOrderings:
    """All records of the metrics that scored the models of a set."""

    found: tuple[ModelOrdering, ...]  # by benchmark and metric, in the order of the boards
    simulated: frozenset[str]  # benchmarks among these whose people are simulated
    missing: Mapping[str, str]  # benchmark to why nothing is told of it


def model_orderings(reader: ModelReader, view: View, query: BoardQuery) -> ModelOrderings:
    """How the metrics that scored a set's models order other models, held against people.

    The ratings are read where the benchmarks' data are; elsewhere only boards whose protocol
    counts the pairs tell anything, and `missing` says so.
    """
    chosen = selection(reader, view, query)
    metrics = [one for one in chosen.metrics if query.judge in ("", one)]
    found: list[ModelOrdering] = []
    missing: dict[str, str] = {}
    rated = readers()
    for name, board in view.boards.items():
        on_board = {cell.entry_id for cell in headline_cells(board)}
        own = [one for one in metrics if one in on_board]
        if not own:
            continue
        if name in rated:
            made, why = _computed(chosen, name, own)
            found += made
            if why:
                missing[name] = why
        else:
            found += _published(view, name, own)
    names = {one.benchmark for one in found}
    simulated = frozenset(name for name in names if view.boards[name].card.simulated)
    return ModelOrderings(tuple(found), simulated, missing)


def _published(view: View, name: str, metrics: list[str]) -> list[ModelOrdering]:
    """What the benchmark's own protocol counted: the variant and split of its headline first."""
    board = view.boards[name]
    able = [s for s in board.selectors(None) if s.measure == ON_BOARD]
    if not able:
        return []
    cells = board.cells(min(able, key=_first), None)
    return [
        ModelOrdering(name, cell.entry_id, round(cell.value), cell.n_items, note=_told(cell.note))
        for cell in cells
        if cell.entry_id in metrics and cell.value is not None
    ]


def _first(selector: Selector) -> tuple[bool, bool, str, str]:
    """The paper's variant over the whole benchmark, or all its reliable prompts, before others."""
    return (
        selector.variant != "paper",
        selector.split not in (None, "all", "rel"),
        selector.split or "",
        selector.facet or "",
    )


def _told(note: str) -> str:
    """What a row's note says of the count: not how many pairs, nor that it is not tested."""
    parts = note.split("; ")
    return "; ".join(p for p in parts if not p.startswith(("of ", "no paired test", "no interval")))


def _computed(chosen: Selection, name: str, metrics: list[str]) -> tuple[list[ModelOrdering], str]:
    data = chosen.reader.data
    rated = _ratings(chosen.reader, name, data)
    if rated is None:
        return [], "Its ratings are not on this machine."
    found = []
    without = []
    for entry_id in metrics:
        record = _record(chosen, name, entry_id, rated)
        if record is None:
            without.append(chosen.view.entries[entry_id].metric)
        else:
            found.append(record)
    why = f"No published scores of {', '.join(without)}." if without else ""
    return found, why


def _ratings(reader: ModelReader, name: str, data: Path | None) -> RatedModels | None:
    def read() -> RatedModels | None:
        try:
            return readers()[name](data)
        except SubmitterError:
            return None

    found: RatedModels | None = reader.memory.once(("ratings", name, data), read)
    return found


def _record(
    chosen: Selection, name: str, entry_id: str, rated: RatedModels
) -> ModelOrdering | None:
    entry = chosen.view.entries[entry_id]

    def make() -> ModelOrdering | None:
        path = f"results/{entry.submission_id}/{name}.scores.parquet"
        try:
            scores = scores_of(chosen.reader.public.read(path), entry.metric)
        except NotFoundError:
            return None
        sign = -1.0 if _lower_is_better(chosen, entry_id) else 1.0
        record = ordering_record(rated.people, sign * rated.arranged(scores), rated.models)
        unscored = sum(pair.metric is None for pair in record.pairs)
        return ModelOrdering(
            name,
            entry_id,
            record.right,
            len(record.pairs),
            record.reversed,
            record.pairs,
            f"{unscored} pairs without scores count as wrong." if unscored else "",
        )

    found: ModelOrdering | None = chosen.reader.memory.once(
        ("ordering", name, entry_id, entry.published_at, rated.source, id(rated)), make
    )
    return found


def _lower_is_better(chosen: Selection, entry_id: str) -> bool:
    runs = (entry.judges.get(entry_id) for entry in chosen.entries)
    return any(run is not None and run.lower_is_better for run in runs)
