"""What is known of models on these prompts from elsewhere: printed tables, and released ratings.

The figures of a table are those of its metric, its images and its time. They stand beside a board,
never on it: no interval belongs to them, and their order is the order of rounded means.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType

import pandas as pd

from benchmarks.prompt_sets.recomputed_means import genai_means, tifa160_means
from benchmarks.prompt_sets.reference_rows import ReferenceRow, ranked
from benchmarks.published import PublishedCell, papers, published
from benchmarks.statistics.seeds import SeedStability, seed_stability

SEED = "seed "
"""How a facet of the printed cells begins that names a seed."""


@dataclass(frozen=True)
class ReferenceTable:
    """Figures of several models from one place.

    Attributes:
        paper: key in `benchmarks.published.papers()`.
        table: its name there, or of the released ratings.
        title: what it shows.
        note: what a reader must know before comparing; empty as a rule.
        rows: one per model and column.
        recomputed: whether the figures follow from released ratings here, instead of being copied
            from print.
        errata: ids of entries of `benchmarks.errata` about it.
    """

    paper: str
    table: str
    title: str
    note: str
    rows: tuple[ReferenceRow, ...]
    recomputed: bool = False
    errata: tuple[str, ...] = ()

    @property
    def source(self) -> str:
        """Short reference, e.g. `EvalMuse-40K, Table 10`."""
        return f"{papers()[self.paper].name}, {self.table}"

    @property
    def models(self) -> tuple[str, ...]:
        """In the order of the table."""
        return tuple(dict.fromkeys(row.model for row in self.rows))

    def stability(self, metric: str) -> SeedStability:
        """Whether the models keep their order over the seeds of the table (Re-Thinking).

        Args:
            metric: one of the table that was printed for several seeds.

        Raises:
            ValueError: the metric has no figure of some model with some seed.
        """
        found = {(row.seed, row.model): row.value for row in self.rows if row.metric == metric}
        seeds = [seed for seed in dict.fromkeys(seed for seed, _ in found) if seed is not None]
        absent = [(s, m) for s in seeds for m in self.models if (s, m) not in found]
        if not seeds or absent:
            raise ValueError(f"{self.source} does not print {metric!r} for every model and seed")
        return seed_stability([[found[seed, model] for model in self.models] for seed in seeds])

    def frame(self) -> pd.DataFrame:
        """One line per model: `model`, then `figure (rank)` for each column of the table."""
        lines: dict[str, dict[str, str]] = {model: {"model": model} for model in self.models}
        for row in self.rows:
            lines[row.model][row.column] = f"{row.printed} ({row.rank})"
        return pd.DataFrame(list(lines.values())).fillna("")


@dataclass(frozen=True)
class _Printed:
    """Which printed cells make a table for a prompt set.

    Attributes:
        paper: key of the paper.
        table: its name there.
        measure: of the figures; those of `model_rank` are the printed ranks.
        note: what a reader must know before comparing.
        split: the cells' own; None: any.
        skill_is_split: whether what the cells call skill is a part of the set.
        errata: ids of entries about it.
    """

    paper: str
    table: str
    measure: str
    note: str = ""
    split: str | None = None
    skill_is_split: bool = False
    errata: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Recomputed:
    """Means that follow from released ratings.

    Attributes:
        paper: key of the paper that rated.
        title: what the table shows.
        note: what a reader must know.
        means: its rows, from the folder of data; none where the ratings are not there.
    """

    paper: str
    title: str
    note: str
    means: Callable[[Path | None], tuple[ReferenceRow, ...]]


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
_RATED = "released ratings"
_RECOMPUTED: Mapping[str, _Recomputed] = MappingProxyType(
    {
        "genai_prompts": _Recomputed(
            "genai_bench",
            "Mean human rating (1-5) of six models, by tag",
            "One image of each prompt, three ratings each, two of which lie outside the scale "
            "and count as released. Prompts without a tag count in the overall mean.",
            genai_means,
        ),
        "tifa160_prompts": _Recomputed(
            "tifa",
            "Mean human rating (1-5) of five models: two ratings of TIFA, five of DSG",
            "One image of each prompt.",
            tifa160_means,
        ),
    }
)


def references_of(name: str, data: Path | None = None) -> tuple[ReferenceTable, ...]:
    """What is known from elsewhere of models on the prompts of a set.

    Args:
        name: of the prompt set.
        data: folder of data; tables that rest on released ratings are there only if these are.

    Raises:
        SubmitterError: `data_malformed`, where the ratings are not the released ones.
    """
    tables = [_table(one) for one in _PRINTED.get(name, ())]
    if name in _RECOMPUTED:
        rated = _RECOMPUTED[name]
        rows = rated.means(data)
        if rows:
            tables.append(
                ReferenceTable(rated.paper, _RATED, rated.title, rated.note, rows, recomputed=True)
            )
    return tuple(tables)


def other_references() -> tuple[ReferenceTable, ...]:
    """Printed tables of models on prompts that are none of the sets here."""
    return tuple(map(_table, _OTHERS))


def reference_frames(name: str, data: Path | None = None) -> dict[str, pd.DataFrame]:
    """The tables of `references_of` by what they show, for `describe --facts`."""
    return {
        f"{one.source}: {one.title}; with rank. {one.note}".strip(): one.frame()
        for one in references_of(name, data)
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
