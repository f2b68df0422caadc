"""Trust in a metric, skill by skill: its figures on boards, from released scores, and in papers."""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.published import PublishedCell, papers, published
from benchmarks.registry import load_registry
from benchmarks.released.bundle import ReleasedScores, read_manifest, released_bytes
from benchmarks.released.verification import references
from benchmarks.rows import Row
from benchmarks.schema import Benchmark, Card, Selector
from benchmarks.scores import parse_scores
from benchmarks.settings.model import value_of
from leaderboard.accounts import ASSAY
from leaderboard.publication.entries import count_ranked
from leaderboard.publication.measure_names import skill_title
from leaderboard.publication.snapshot import read_snapshot
from leaderboard.ranking.cells import Cell
from leaderboard.store.opening import StoreName
from leaderboard.views.addresses import board_address

NAMES = Path(__file__).parent / "scorers" / "published_as.toml"
_WHOLE = "all"


@dataclass(frozen=True)
class SkillTrust:
    """One figure of how far a metric follows people, or a known order, at a skill."""

    skill: str  # for people; `all` over all of them
    benchmark: str
    measure: str  # for people
    value: float
    low: float | None = None  # 95 % interval; None where none is known
    high: float | None = None
    chance: float | None = None  # what a guess reaches; None where the card does not say
    place: str = ""  # among how many it is where; empty where that is not known
    source: str = ""  # board, released scores or paper

    @property
    def above_chance(self) -> bool | None:
        """Whether the interval lies above chance; None where that cannot be told."""
        if self.low is None or self.chance is None:
            return None
        return self.low > self.chance

    @property
    def cells(self) -> tuple[str, str, str, str, str, str]:
        """For a table: skill, benchmark, measure, value, place and source."""
        span = "" if self.low is None else f" [{self.low:.3f}, {self.high:.3f}]"
        doubt = " not better than chance" if self.above_chance is False else ""
        value = f"{self.value:.3f}{span}{doubt}"
        return self.skill, self.benchmark, self.measure, value, self.place, self.source

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return {**vars(self), "above_chance": self.above_chance, "board": boards_at(self.benchmark)}


def trust_of(
    metric: str, store: StoreName | None = None, *, built_in: bool = True
) -> list[SkillTrust]:
    """What is known of a metric: of the boards of a store first, then of what ships with Assay.

    A scoring module that is named like a built-in metric has nothing of it.
    """
    named = _names().get(metric, {}) if built_in else {}
    registry = load_registry()
    found = _on_boards(metric, named, store, built_in=built_in) if store is not None else ()
    on_boards = list(found)
    there = {one.benchmark for one in on_boards}
    released = [
        one
        for scores in read_manifest().scores
        if scores.paper in named and scores.benchmark not in there
        for one in _released(scores, named[scores.paper], registry[scores.benchmark])
    ]
    there |= {one.benchmark for one in released}
    printed = [one for one in _printed(named, registry) if one.benchmark not in there]
    return [*on_boards, *released, *printed]


def no_figures(metric: str, *, built_in: bool) -> str:
    """What is said where nothing is known."""
    test = (
        f"scorers run {metric} --benchmark NAME --out scores.parquet"
        if built_in
        else "submit FOLDER"
    )
    return (
        f"No figure is known of {metric}: nothing says how far it may be trusted. "
        f"Test it: python -m evaluator {test}."
    )


def boards_at(benchmark: str) -> str:
    """Where the board of a benchmark is: on the site that is set, or as `assay demo` serves it."""
    site = value_of("live", os.environ) or f"http://127.0.0.1:{value_of('port', os.environ)}"
    return f"{site.rstrip('/')}/{board_address(benchmark).removeprefix('./')}"


@cache
def _names() -> Mapping[str, Mapping[str, str]]:
    """The names of each row in papers and in the scores that were released with them."""
    found: dict[str, dict[str, str]] = tomllib.loads(NAMES.read_text("utf-8"))
    for row, reference in references().items():
        if not reference.figures_of:
            found.setdefault(row, {})[reference.paper] = reference.column
    return found


def _on_boards(
    metric: str, named: Mapping[str, str], store: StoreName, *, built_in: bool
) -> Iterator[SkillTrust]:
    shown = read_snapshot(store.open().public)
    if shown is None:
        return
    known = papers()
    released = {(known[paper].citation, name) for paper, name in named.items()}
    wanted = {
        entry.entry_id: entry.released_with or entry.submitter
        for entry in shown.entries.values()
        if (entry.released_with, entry.metric) in released
        or (
            (entry.released_with, entry.metric) == ("", metric)
            and (entry.account == ASSAY.key) == built_in
        )
    }
    for board in shown.boards.values():
        cells = [cell for cell in board.cells if _as_headline(board.card, cell.selector)]
        for cell in cells:
            if cell.entry_id in wanted and cell.value is not None and not cell.distrust:
                among = count_ranked([one for one in cells if _same(cell, one)], shown.entries)
                place = "" if cell.rank is None else f"{cell.rank_low}-{cell.rank_high} of {among}"
                yield SkillTrust(
                    _part(board.card, cell.skill, cell.split),
                    board.card.name,
                    _measure(board.card, cell.measure, cell.facet),
                    cell.value,
                    cell.ci_low,
                    cell.ci_high,
                    _chance(board.card, cell.measure),
                    place,
                    f"board of {store}, sent by {wanted[cell.entry_id]}",
                )


def _same(one: Cell, other: Cell) -> bool:
    return (one.selector, one.skill) == (other.selector, other.skill)


def _released(scores: ReleasedScores, metric: str, benchmark: Benchmark) -> Iterator[SkillTrust]:
    answers, content = benchmark.answers(None), released_bytes(scores.path)
    lower = tuple(name for name in scores.lower_is_better if name == metric)
    table = parse_scores(content, Path(scores.path).name, benchmark, answers, lower_is_better=lower)
    if metric not in table.overall:  # It is printed, and no scores of it were released.
        return
    one = type(table)(table.overall[[metric]], directions=table.directions)
    for row in benchmark.evaluate(one, answers).rows:
        if _as_headline(benchmark.card, row) and math.isfinite(row.value):
            known = math.isfinite(row.ci_low)
            yield SkillTrust(
                _part(benchmark.card, row.skill, row.split),
                benchmark.name,
                _measure(benchmark.card, row.measure, row.facet),
                row.value,
                row.ci_low if known else None,
                row.ci_high if known else None,
                _chance(benchmark.card, row.measure),
                source=f"scores released with {scores.printed_in.name}",
            )


def _printed(named: Mapping[str, str], registry: Mapping[str, Benchmark]) -> Iterator[SkillTrust]:
    for name, benchmark in registry.items():
        cells = [cell for cell in published(name) if cell.model is None]
        own = [
            cell
            for cell in cells
            if named.get(cell.paper) == cell.metric and _is_agreement(benchmark.card, cell.measure)
        ]
        # Of the measure that the board ranks by, where a paper prints it.
        headline = [cell for cell in own if cell.measure == benchmark.card.headline.measure]
        for cell in headline or own:
            yield SkillTrust(
                _part(benchmark.card, cell.skill, cell.split),
                name,
                _measure(benchmark.card, cell.measure, cell.facet),
                cell.value,
                chance=_chance(benchmark.card, cell.measure),
                place=_place(cell, cells),
                source=f"printed: {papers()[cell.paper].name}, {cell.table}",
            )


def _place(cell: PublishedCell, cells: Iterable[PublishedCell]) -> str:
    beside = [
        other
        for other in cells
        if (other.paper, other.table) == (cell.paper, cell.table)
        and other.matches(cell.measure, cell.split, cell.skill, cell.variant, cell.facet)
        and not other.metric.startswith("human")
    ]
    return f"{1 + sum(other.value > cell.value for other in beside)} of {len(beside)}"


def _as_headline(card: Card, of: Selector | Row) -> bool:
    """Whether this is what the board ranks by, in whatever part of the benchmark."""
    wanted = card.headline
    return (of.measure, of.variant, of.facet) == (
        wanted.measure,
        wanted.variant,
        wanted.facet,
    )


def _part(card: Card, skill: str | None, split: str | None) -> str:
    inside = "" if split in (None, _WHOLE) else card.splits.get(str(split), str(split))
    if skill is None:
        return inside or _WHOLE
    return f"{skill_title(card, skill)} ({inside})" if inside else skill_title(card, skill)


def _is_agreement(card: Card, measure: str) -> bool:
    return measure in card.measures and card.measures[measure].higher_is_better


def _measure(card: Card, measure: str, facet: str | None) -> str:
    title = card.measures[measure].title
    return f"{title}, {card.facets.get(facet, facet)}" if facet else title


def _chance(card: Card, measure: str) -> float | None:
    return card.measures[measure].chance
