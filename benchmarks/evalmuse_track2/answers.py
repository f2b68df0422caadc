"""The answer side of EvalMuse-Structure, and scores that come with masks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pandas as pd

from benchmarks.evalmuse_track2.masks import PackedMask
from benchmarks.schema import Answers, ScoreTable


@dataclass(frozen=True)
class Track2Answers(Answers):
    """Human labels of distorted images. The pairs and the clusters are the images.

    Attributes:
        scores: image to its mean opinion score, in the benchmark's order.
        masks: image to its label mask.
        note: what a reader must know about the labels; empty where they are the organisers'.
    """

    scores: pd.Series
    masks: Mapping[str, PackedMask]
    note: str = ""

    def counts(self) -> dict[str, int]:
        """Images, and those with a distorted region."""
        distorted = sum(any(mask) for mask in self.masks.values())
        return {"images": len(self.pair_ids), "images with a distorted region": distorted}


@dataclass(frozen=True)
class MaskedScores(ScoreTable):
    """Scores with the regions that a metric calls distorted.

    Attributes:
        masks: metric to image to its mask, after the resize to the square of comparison; a
            metric without masks is absent.
    """

    masks: Mapping[str, Mapping[str, PackedMask]] = field(default_factory=dict)
