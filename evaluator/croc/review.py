"""Review of CROC images by several raters: what each sees next, what stands, and what they agree on."""

from __future__ import annotations

import hashlib
import json
import random
from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from pathlib import Path

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
        # Of the last `votes`: images that went or were replaced since a rater decided them, and
        # images decided with an earlier version, which kept nothing to tell a replaced one by.
        self.n_gone = self.n_unhashed = 0
        self._seed, self._repeats = seed, repeats
        # By pair and path, of what was looked at; anew where a row is shown or decided, or votes counted.
        self._hashes: dict[tuple[str, str], str] = {}
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
        seen = {path: self._look_at(row.pair.key, path) for path in said}
        self.log.add(decided(rater, row.pair.key, said, seen, repeat=row.repeat))

    def digest(self, row: ReviewRow) -> str:
        """Tells what a row shows from all else, in whatever order or folder."""
        key = row.pair.key
        hashes = [image and (image.path, self._look_at(key, image.path)) for image in row.images]
        said = json.dumps([key, row.pair.texts, hashes, row.repeat])
        return hashlib.sha256(said.encode()).hexdigest()[:16]

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
        self._hashes.clear()
        found: dict[tuple[str, str], dict[str, bool]] = {}
        gone: set[tuple[str, str]] = set()
        unhashed: set[tuple[str, str]] = set()
        for rater, decisions in self.log.raters.items():
            counting = decisions.only(self._counts)
            of_rater = counting.of(repeat=False)
            gone |= decisions.of(repeat=False).keys() - of_rater.keys()
            unhashed |= {(pair, path) for pair, path, _ in counting.stays.keys() - counting.seen}
            for image, stays in of_rater.items():
                found.setdefault(image, {})[rater] = stays
        self.n_gone, self.n_unhashed = len(gone), len(unhashed)
        return found

    def of(self, rater: str) -> RaterDecisions:
        """What stands of a rater's decisions about the images as they are."""
        self.log.refresh()
        return self.log.raters.get(rater, RaterDecisions()).only(self._counts)

    def _counts(self, shown: ShownImage, seen: str | None) -> bool:
        """Whether an image is in the folder, and is what the rater saw as far as that is known."""
        pair, path, _ = shown
        if (pair, path) not in self.images.known:
            return False
        return seen is None or seen == (self._hashes.get((pair, path)) or self._look_at(pair, path))

    def _look_at(self, pair: str, path: str) -> str:
        """Hash of an image as it is now, and of the texts that it is seen with."""
        said = json.dumps([_file_hash(self.images.root / path), self.images.texts[pair]])
        self._hashes[pair, path] = found = hashlib.sha256(said.encode()).hexdigest()[:16]
        return found


def _file_hash(place: Path) -> str:
    """SHA-256 of a file, which is read where it changed; empty where it cannot be."""
    try:
        there = place.stat()
        return _content_hash(place, there.st_mtime_ns, there.st_size)
    except OSError:
        return ""


@lru_cache(maxsize=1 << 18)
def _content_hash(place: Path, *_: int) -> str:
    with place.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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
