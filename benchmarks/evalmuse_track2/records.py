"""What a file of masks says: a score and a mask per image."""

from __future__ import annotations

from dataclasses import dataclass, field

from benchmarks.evalmuse_track2.masks import MaskFileError, PackedMask

MAX_NAME = 256
"""Longest image name, in characters."""


@dataclass
class Records:
    """Scores and masks by image, in the order of the file.

    Attributes:
        scores: image to its score; NaN where none is given.
        masks: image to its mask on the square of comparison.
    """

    scores: dict[str, float] = field(default_factory=dict)
    masks: dict[str, PackedMask] = field(default_factory=dict)

    def add(self, image: str, score: float, mask: PackedMask) -> None:
        """One more image.

        Raises:
            MaskFileError: it stood there before, or its score is infinite.
        """
        if image in self.scores:
            raise MaskFileError(f"names the image {image[:60]!r} twice")
        if score in (float("inf"), float("-inf")):
            raise MaskFileError(f"gives the image {image[:60]!r} an infinite score")
        self.scores[image] = score
        self.masks[image] = mask
