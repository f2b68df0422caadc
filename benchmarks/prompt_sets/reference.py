"""Reference scores of prompt sets: printed figures of models from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType

import pandas as pd

from benchmarks.published import PublishedCell, papers, printed_digits, printed_figure, published
from benchmarks.statistics.concordance import SeedStability, competition_ranks, seed_stability

ALL = "all"
"""Name of the column over all prompts."""


@dataclass(frozen=True, slots=True)
class ReferenceRow:
    """Figure of a model."""

    model: str  # as its source names it
    metric: str  # that gave it, or `human`
    value: float  # in the unit of our rows: 91.18 of a metric that is printed times 100 is 0.9118
    printed: str  # the figure with the digits it is shown with
    split: str | None = None  # part of the set; None: all of it
    skill: str | None = None  # key of the set's card; None: all prompts
    facet: str | None = None  # rating template or gold; None where there is one only
    seed: int | None = None  # of the images; None where it is not said, or over several
    # among the models of the table in this column: 1 + how many are printed with more
    rank: int = 0
    printed_rank: int | None = None  # where the source prints one

    @property
    def place(self) -> tuple[str, str | None, str | None, str | None, int | None]:
        """Key of its column, shared by the rows that are ranked together."""
        return self.metric, self.split, self.skill, self.facet, self.seed

    @property
    def column(self) -> str:
        """Name of its column, e.g. `fga-blip2 counting`, `vqascore seed 42`."""
        seed = None if self.seed is None else f"seed {self.seed}"
        named = [part for part in (self.split, self.skill, self.facet, seed) if part is not None]
        return " ".join((self.metric, *(named or [ALL])))


def ranked(rows: Iterable[ReferenceRow]) -> tuple[ReferenceRow, ...]:
    """The rows in their order, each with its competition rank on the digits shown.

    A column is ranked in the unit it is shown in, so that what prints alike ties (EvalMuse-40K,
    Table 10).
    """
    rows = tuple(rows)
    columns: dict[object, list[int]] = {}
    for position, row in enumerate(rows):
        columns.setdefault(row.place, []).append(position)
    ranks: dict[int, int] = {}
    for positions in columns.values():
        shown = [rows[position].printed for position in positions]
        decimals = max(map(printed_digits, shown))
        found = competition_ranks([float(printed_figure(one)) for one in shown], decimals)
        ranks |= dict(zip(positions, map(int, found), strict=True))
    return tuple(replace(row, rank=ranks[position]) for position, row in enumerate(rows))


# Figures printed in papers.


SEED = "seed "
"""Prefix of a facet of the printed cells that names a seed."""


@dataclass(frozen=True)
class ReferenceTable:
    """Figures of several models from one place."""

    paper: str  # key in `benchmarks.published.papers()`
    table: str  # its name there
    title: str  # what it shows
    note: str  # what a reader must know before comparing; empty as a rule
    rows: tuple[ReferenceRow, ...]  # one per model and column
    errata: tuple[str, ...] = ()  # ids of entries of `benchmarks.errata` about it

    @property
    def source(self) -> str:
        """Short reference, e.g. `EvalMuse-40K, Table 10`."""
        return f"{papers()[self.paper].name}, {self.table}"

    @property
    def models(self) -> tuple[str, ...]:
        """The models, in the order of the table."""
        return tuple(dict.fromkeys(row.model for row in self.rows))

    def stability(self, metric: str) -> SeedStability:
        """Stability of the models' order over the seeds of the table (Re-Thinking)."""
        found = {(row.seed, row.model): row.value for row in self.rows if row.metric == metric}
        seeds = [seed for seed in dict.fromkeys(seed for seed, _ in found) if seed is not None]
        absent = [(s, m) for s in seeds for m in self.models if (s, m) not in found]
        if not seeds or absent:
            raise ValueError(f"{self.source} does not print {metric!r} for every model and seed")
        return seed_stability([[found[seed, model] for model in self.models] for seed in seeds])

    def frame(self) -> pd.DataFrame:
        """Table of a line per model: `model`, then `figure (rank)` for each column."""
        lines: dict[str, dict[str, str]] = {model: {"model": model} for model in self.models}
        for row in self.rows:
            lines[row.model][row.column] = f"{row.printed} ({row.rank})"
        return pd.DataFrame(list(lines.values())).fillna("")


@dataclass(frozen=True)
class _Printed:
    """Selection of printed cells that make a table for a prompt set."""

    paper: str
    table: str
    measure: str
    note: str = ""
    split: str | None = None
    skill_is_split: bool = False
    errata: tuple[str, ...] = ()


_GECKO_NOTE = (
    "Of all 1,000 prompts of the paper; the set holds those that were released. Templates have "
    "scales of their own: figures of two templates cannot be compared."
)
_PRINTED: Mapping[str, tuple[_Printed, ...]] = MappingProxyType(
    {
        "evalmuse_ranking": (
            _Printed(
                "evalmuse",
                "Table 10",
                "model_score",
                "Overall scores lie between 1 and 5, skill means between 0 and 1; four images of "
                "each prompt. Ranks follow from the printed figures. The README of the repository "
                "prints two other figures for object.",
                errata=("evalmuse-readme-table-10",),
            ),
        ),
        "gecko_s": (_Printed("gecko", "Table 3", "mean_score", _GECKO_NOTE, split="s"),),
        "gecko_r": (_Printed("gecko", "Table 3", "mean_score", _GECKO_NOTE, split="r"),),
        "dsg_1k": (
            _Printed(
                "dsg",
                "DSG-1k scores",
                "mean_score",
                "One model alone, so its ranks say nothing.",
                skill_is_split=True,
            ),
        ),
    }
)
_OTHERS = (
    _Printed(
        "rethinking",
        "Table 1",
        "model_score",
        "On 1,000 prompts of MSCOCO that were not released: none of the sets here.",
    ),
)


def references_of(name: str) -> tuple[ReferenceTable, ...]:
    """The tables that papers print of models on the prompts of a set; they never enter a board."""
    return tuple(map(_table, _PRINTED.get(name, ())))


def other_references() -> tuple[ReferenceTable, ...]:
    """Printed tables of models on prompts that are none of the sets here."""
    return tuple(map(_table, _OTHERS))


def reference_frames(name: str) -> dict[str, pd.DataFrame]:
    """The tables of `references_of` by what they show, for `describe --facts`."""
    return {
        f"{one.source}: {one.title}; with rank. {one.note}".strip(): one.frame()
        for one in references_of(name)
    }


@cache
def _table(which: _Printed) -> ReferenceTable:
    cells = [c for c in published() if (c.paper, c.table) == (which.paper, which.table)]
    chosen = [c for c in cells if which.split is None or c.split == which.split]
    ranks = {_place(c): int(c.value) for c in chosen if c.measure == "model_rank"}
    rows = [
        replace(_row(cell, which), printed_rank=ranks.get(_place(cell)))
        for cell in chosen
        if cell.measure == which.measure
    ]
    title = papers()[which.paper].tables[which.table]
    return ReferenceTable(
        which.paper, which.table, title, which.note, ranked(rows), errata=which.errata
    )


def _place(cell: PublishedCell) -> tuple[str | None, ...]:
    return cell.metric, cell.model, cell.split, cell.skill, cell.facet


def _row(cell: PublishedCell, which: _Printed) -> ReferenceRow:
    if cell.model is None:
        raise ValueError(f"a figure of {cell.source} is of no model")
    facet = cell.facet or ""
    seed = int(facet.removeprefix(SEED)) if facet.startswith(SEED) else None
    return ReferenceRow(
        model=cell.model,
        metric=cell.metric,
        value=cell.value,
        printed=cell.printed,
        split=cell.skill if which.skill_is_split else None,
        skill=None if which.skill_is_split else cell.skill,
        facet=cell.facet if seed is None else None,
        seed=seed,
    )
