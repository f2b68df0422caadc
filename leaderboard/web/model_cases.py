"""Images of models as tiles, by prompt or by seed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.prompt_sets.prompt_set import SetPrompt
from leaderboard.publication.model_entries import ModelEntry
from leaderboard.text import number
from leaderboard.views.addresses import model_address, picture_address
from leaderboard.views.models import Drawn, plain_name

MOST_SEEDS = 16
"""Images of one model and prompt that are shown."""
NO_SCORE = "no score"


@dataclass(frozen=True)
class ImageTile:
    """An image with what stands below it."""

    model: str  # that generated it, and the seed where several are shown
    prompt: str  # it was generated for
    label: str  # below it: the model or the seed
    score: str  # below it
    src: str = ""  # its address; empty where it is not published
    href: str = ""  # of the model


@dataclass(frozen=True)
class ModelImages:
    """The images of one model for one prompt; `left` seeds are not shown."""

    entry: ModelEntry
    mean: str
    tiles: tuple[ImageTile, ...]
    left: int = 0


def by_model(drawn: Sequence[Drawn], prompt: SetPrompt, judge: str = "") -> tuple[ImageTile, ...]:
    """One image of each model, that of its first seed, with its mean score."""
    return tuple(
        ImageTile(
            plain_name(one.entry, 40),
            prompt.text,
            plain_name(one.entry, 40),
            _score(one.mean),
            _address(one.entry, prompt, one.seeds[0]) if one.seeds else "",
            model_address(one.entry.submission_id, judge=judge),
        )
        for one in drawn
    )


def by_seed(drawn: Drawn, prompt: SetPrompt, *, named: bool = False) -> ModelImages:
    """The images of one model with its seeds."""
    name = plain_name(drawn.entry, 40)
    shown = list(zip(drawn.seeds, drawn.scores, strict=True))[:MOST_SEEDS]
    tiles = tuple(
        ImageTile(
            f"{name}, seed {seed}",
            prompt.text,
            f"{name}, seed {seed}" if named else f"seed {seed}",
            _score(score),
            _address(drawn.entry, prompt, seed),
        )
        for seed, score in shown
    )
    mean = "" if math.isnan(drawn.mean) else number(drawn.mean)
    return ModelImages(drawn.entry, mean, tiles, len(drawn.seeds) - len(shown))


def _score(score: float) -> str:
    return NO_SCORE if math.isnan(score) else number(score)


def _address(entry: ModelEntry, prompt: SetPrompt, seed: int) -> str:
    if not entry.pictures:
        return ""
    return picture_address(entry.submission_id, prompt.prompt_id, seed)
