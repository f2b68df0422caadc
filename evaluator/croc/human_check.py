"""Agreement of people with the intended sides of CROC pairs, in the paper's three set-ups.

Set-up 1 shows both texts and the images of both; set-up 2 the tested property, and asks for an image that
matches and one that contrasts; set-up 3 asks which text fits an image. Image-based figures are the mean
of set-ups 1 and 2, text-based ones are of set-up 3 (CROC, Table 3).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.arrays import FloatArray
from benchmarks.errors import SubmitterError
from benchmarks.sources.folder import data_row
from benchmarks.statistics.intervals import percentile
from benchmarks.statistics.resampling import (
    DEFAULT_RESAMPLES,
    ResamplingPlan,
    mean_of_defined,
    resampled_mean,
)
from benchmarks.tables import read_table
from evaluator.croc.agreement import Alpha, alpha_of

COLUMNS = ("setup", "item", "rater", "intended", "chosen")
SETUPS = ("1", "2", "3")
CHOICES = {"prompt": "forward", "contrast": "inverse"}
"""Sides, and the direction that is asked where a side is intended."""
PARTS: dict[str, tuple[str, ...]] = {"text": ("3",), "image": ("1", "2")}
"""Way to the set-ups whose mean it is."""
_CHANCE = 0.5


@dataclass(frozen=True)
class HumanFigure:
    """How often the majority of raters chose what is intended."""

    name: str  # `setup 1, forward`, `text, inverse` and so on
    accuracy: float  # a majority's choice is right or wrong, a tie is half right; NaN without items
    low: float  # 95 % percentile interval over resampled items
    high: float
    items: int
    ties: int

    @property
    def scaled(self) -> float:
        """The accuracy on the scale of the paper: 0 is a guess between two, 1 always right."""
        return (self.accuracy - _CHANCE) / (1.0 - _CHANCE)


@dataclass(frozen=True)
class HumanCheck:
    """What people chose."""

    raters: int
    choices: int
    figures: tuple[HumanFigure, ...]
    alpha: Alpha  # over items of all set-ups
    alphas: dict[str, Alpha]  # by set-up
    planted: (
        HumanFigure | None
    )  # items that were planted to see who pays attention; in no other figure


def read_human_check(path: Path, n_resamples: int = DEFAULT_RESAMPLES) -> HumanCheck:
    """Read choices of raters: CSV with the columns `COLUMNS`, and perhaps `planted` (yes, no).

    A row is one choice: `intended` and `chosen` are `prompt` or `contrast`; `item` names what several
    raters saw, within its set-up.

    Raises:
        SubmitterError: `bad_labels`: everything that is wrong with it, by row.
    """
    table = _read(path)
    real, planted = table[~table["planted"]], table[table["planted"]]
    outcomes = {
        (setup, side): _outcomes(real[(real["setup"] == setup) & (real["intended"] == side)])
        for setup in SETUPS
        for side in CHOICES
    }
    figures = [
        _figure(f"setup {setup}, {CHOICES[side]}", [found], n_resamples)
        for (setup, side), found in outcomes.items()
        if found.size
    ]
    for way, setups in PARTS.items():
        for side, direction in CHOICES.items():
            parts = [outcomes[setup, side] for setup in setups if outcomes[setup, side].size]
            if parts:
                figures.append(_figure(f"{way}, {direction}", parts, n_resamples))
    return HumanCheck(
        table["rater"].nunique(),
        len(table),
        tuple(figures),
        _alpha(real, n_resamples),
        {
            s: _alpha(real[real["setup"] == s], n_resamples)
            for s in SETUPS
            if s in set(real["setup"])
        },
        _figure("planted", [_outcomes(planted)], n_resamples) if len(planted) else None,
    )


def _read(path: Path) -> pd.DataFrame:
    table = read_table(path, COLUMNS)
    if table.empty:
        raise _bad(path, ["it has no rows"])
    if "planted" not in table:
        table["planted"] = "no"
    sides = set(CHOICES)
    allowed = {"setup": set(SETUPS), "intended": sides, "chosen": sides, "planted": {"yes", "no"}}
    wrong = [
        f"{data_row(n)}: {column} is {table[column][n]!r}; expected one of {', '.join(sorted(known))}"
        for column, known in allowed.items()
        for n in np.flatnonzero(~table[column].isin(known))
    ]
    wrong += [
        f"{data_row(n)}: no {column}"
        for column in ("item", "rater")
        for n in np.flatnonzero(table[column].str.strip() == "")
    ]
    seen = table.duplicated(["setup", "item", "rater"])
    wrong += [f"{data_row(n)}: the rater's second choice of the item" for n in np.flatnonzero(seen)]
    sides_of = table.groupby(["setup", "item"])[["intended", "planted"]].transform("nunique")
    mixed = np.flatnonzero((sides_of > 1).any(axis=1) & ~table.duplicated(["setup", "item"]))
    wrong += [f"{data_row(n)}: other rows of the item have another intended side" for n in mixed]
    if wrong:
        raise _bad(path, wrong)
    return table.assign(planted=table["planted"] == "yes")


_MOST = 8
"""Problems that are told one by one."""


def _bad(path: Path, wrong: Sequence[str]) -> SubmitterError:
    more = f"; and {len(wrong) - _MOST} more" if len(wrong) > _MOST else ""
    return SubmitterError(
        "bad_labels",
        f"{path}: {'; '.join(wrong[:_MOST])}{more}.",
        f"Expected CSV with columns {', '.join(COLUMNS)}, a row for each choice of a rater.",
    )


def _outcomes(rows: pd.DataFrame) -> FloatArray:
    """1, 0 or, for a tie, 1/2 of each item."""
    right = (rows["intended"] == rows["chosen"]).astype(float)
    share = right.groupby([rows["setup"], rows["item"]], sort=False).mean().to_numpy(np.float64)
    outcomes: FloatArray = (np.sign(share - 0.5) + 1.0) / 2.0
    return outcomes


def _figure(name: str, parts: Sequence[FloatArray], n_resamples: int) -> HumanFigure:
    """Mean of the means of parts, each resampled on its own."""
    drawn = []
    for number, part in enumerate(parts):
        plan = ResamplingPlan(tuple(map(str, range(part.size))), number, n_resamples)
        drawn.append(resampled_mean(part, plan.counts))
    several = sum(part.size for part in parts) > 1
    ends = percentile(mean_of_defined(np.stack(drawn))[None, :])
    return HumanFigure(
        name,
        float(np.mean([part.mean() for part in parts])),
        float(ends.low[0]) if several else math.nan,
        float(ends.high[0]) if several else math.nan,
        sum(part.size for part in parts),
        int(sum((part == 0.5).sum() for part in parts)),
    )


def _alpha(rows: pd.DataFrame, n_resamples: int) -> Alpha:
    """Alpha over the chosen sides; items are resampled."""
    wide = rows.assign(code=(rows["chosen"] == "prompt").astype(float)).pivot_table(
        index=["setup", "item"], columns="rater", values="code", sort=False
    )
    items = [f"{setup}/{item}" for setup, item in wide.index]
    return alpha_of(wide.to_numpy(np.float64), items, n_resamples)
