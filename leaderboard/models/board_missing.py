"""Why a model has no rank: too many of its images lack a score, so it might have chosen its own."""

from __future__ import annotations

import math

from benchmarks.arrays import IntArray
from leaderboard.models.board_columns import JudgeColumns
from leaderboard.publication.model_entries import ModelEntry

MAX_MISSING = 0.01
"""Of the images of a whole set: with more missing a model could choose the prompts it is ranked by."""
MAX_MISSING_IN_SLICE = 0.05
"""Of the images of one slice: a hundredth of a set may be most of a small skill."""


def why_unranked(
    entry: ModelEntry,
    columns: JudgeColumns,
    place: int,
    prompts: IntArray,
    judge: str,
) -> str:
    """Why a model has no rank on a slice; empty where it may have one."""
    images, wanted = columns.images[:, place], int(columns.wanted[place])
    if not wanted:
        return "It has fewer seeds."
    if not images.any():
        return f"{judge} has not scored it."
    if not images[prompts].any():
        return f"{judge} gave no score on these prompts."
    of_set = _missing(images, wanted)
    if of_set > MAX_MISSING:
        withheld = sum(entry.images.withheld.values())
        told = f"; its maker withheld {withheld:,}" if withheld else ""
        return (
            f"{_percent(of_set)} of its images have no score from {judge}, and at most "
            f"{MAX_MISSING:.0%} may lack one{told}."
        )
    of_slice = _missing(images[prompts], wanted)
    if of_slice > MAX_MISSING_IN_SLICE:
        return (
            f"{_percent(of_slice)} of its images of these prompts have no score from {judge}, and "
            f"at most {MAX_MISSING_IN_SLICE:.0%} may lack one."
        )
    return ""


def _missing(images: IntArray, wanted: int) -> float:
    """Share of the images of some prompts that have no score."""
    every = wanted * len(images)
    return (every - int(images.sum())) / every


def _percent(share: float) -> str:
    """Rounded up, so that it never reads as the limit it exceeds."""
    return f"{math.ceil(share * 1000.0) / 10.0:.1f} %"
