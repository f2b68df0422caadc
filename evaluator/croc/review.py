"""Review of CROC images by several raters: what each sees next, what stands, and what they agree on."""

from __future__ import annotations

import hashlib
import json
import random
from dataclasses import dataclass
from functools import lru_cache
from math import ceil

from evaluator.croc.decisions import DecisionLog, RaterDecisions, ShownImage, decided
from evaluator.croc.review_set import ReviewImage, ReviewPair, ReviewSet

NEAREST, FARTHEST = 10, 40
"""Rows between a row and its repetition."""


@dataclass(frozen=True)
class ReviewRow:
    """What a rater sees at once: an image of either side of a pair, or of one side alone."""

    pair: ReviewPair
    images: tuple[ReviewImage | None, ...]  # of either side
    repeat: bool

    @property
    def shown_images(self) -> tuple[ShownImage, ...]:
        """Its images, as decisions name them."""
        there = (image for image in self.images if image is not None)
        return tuple((self.pair.key, image.path, self.repeat) for image in there)

    @property
    def digest(self) -> str:
        """Tells it from every other row, in whatever order or folder."""
        paths = [image and image.path for image in self.images]
        said = json.dumps([self.pair.key, self.pair.texts, paths, self.repeat])
        return hashlib.sha256(said.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Progress:
    """How far a rater is."""

    rater: str
    done: int  # rows decided
    rows: int
    kept: int  # images kept
    images: int  # images decided
    same: int  # images that were decided alike when they were shown again
    repeated: int  # images decided twice


class Review:
    """The images, the decisions, and the order in which each rater sees them."""

    def __init__(
        self, images: ReviewSet, log: DecisionLog, *, seed: int = 0, repeats: float = 0.05
    ) -> None:
        self.images = images
        self.log = log
        self.n_gone = 0  # images in the last `votes` that are in the folder no longer
        self._seed, self._repeats = seed, repeats
        self.rows_of = lru_cache(maxsize=64)(self._rows_of)

    def _rows_of(self, rater: str) -> tuple[ReviewRow, ...]:
        """The rows in the rater's own order, pair by pair; some come again later."""
        drawn = _random(self._seed, rater)
        pairs = [pair for pair in self.images.pairs if pair.rows]
        drawn.shuffle(pairs)
        rows: list[ReviewRow] = []
        for pair in pairs:
            sides = [_shuffled(side, pair.rows, drawn) for side in pair.images]
            rows += [ReviewRow(pair, images, False) for images in zip(*sides, strict=True)]
        again = drawn.sample(range(len(rows)), ceil(self._repeats * len(rows)))
        placed = [(float(place), row) for place, row in enumerate(rows)]
        for place in again:
            row = ReviewRow(rows[place].pair, rows[place].images, True)
            placed.append((place + drawn.randint(NEAREST, FARTHEST) + 0.5, row))
        return tuple(row for _, row in sorted(placed, key=lambda one: one[0]))

    def next_place(self, rater: str, after: int = -1) -> int | None:
        """Place of the next row that the rater has not decided; after the last comes the first."""
        stays = self.of(rater).stays.keys()
        left = [n for n, row in enumerate(self.rows_of(rater)) if not stays >= {*row.shown_images}]
        return next((place for place in left if place > after), left[0] if left else None)

    def decide(self, rater: str, place: int, keep: tuple[bool | None, ...]) -> None:
        """Record what stays of a row; None for a side without an image."""
        row = self.rows_of(rater)[place]
        said = {i.path: k for i, k in zip(row.images, keep, strict=True) if i is not None}
        self.log.add(decided(rater, row.pair.key, said, repeat=row.repeat))

    def undo(self, rater: str) -> int | None:
        """Take the rater's last decision back; returns its place, None where there is none."""
        places = {one: n for n, row in enumerate(self.rows_of(rater)) for one in row.shown_images}
        known = [images for images in self.of(rater).rows if images[0] in places]
        if not known:
            return None
        pair, _, repeat = known[-1][0]
        back = dict.fromkeys(path for _, path, _ in known[-1])
        self.log.add(decided(rater, pair, back, repeat=repeat))
        return places[known[-1][0]]

    def progress(self, rater: str) -> Progress:
        """How far a rater is."""
        stands, rows = self.of(rater), self.rows_of(rater)
        first, second = stands.of(repeat=False), stands.of(repeat=True)
        twice = first.keys() & second.keys()
        return Progress(
            rater,
            done=sum(stands.stays.keys() >= {*row.shown_images} for row in rows),
            rows=len(rows),
            kept=sum(first.values()),
            images=len(first),
            same=sum(first[one] == second[one] for one in twice),
            repeated=len(twice),
        )

    def votes(self) -> dict[tuple[str, str], dict[str, bool]]:
        """Pair and path of each decided image to what each rater said when it was first shown."""
        self.log.refresh()
        found: dict[tuple[str, str], dict[str, bool]] = {}
        for rater, decisions in self.log.raters.items():
            for image, stays in decisions.of(repeat=False).items():
                found.setdefault(image, {})[rater] = stays
        there = {image: said for image, said in found.items() if image in self.images.known}
        self.n_gone = len(found) - len(there)
        return there

    def of(self, rater: str) -> RaterDecisions:
        """What stands of a rater's decisions."""
        self.log.refresh()
        return self.log.raters.get(rater, RaterDecisions())


def _random(seed: int, rater: str) -> random.Random:
    digest = hashlib.sha256(f"{seed}/{rater}".encode()).digest()
    return random.Random(int.from_bytes(digest[:8], "big"))  # noqa: S311 (an order, no secret)


def _shuffled(
    side: tuple[ReviewImage, ...], rows: int, drawn: random.Random
) -> list[ReviewImage | None]:
    """The images in some order, and nothing where the other side has more."""
    images: list[ReviewImage | None] = list(side)
    drawn.shuffle(images)
    return images + [None] * (rows - len(images))
