"""Tile of one case: its images, its human ratings, and the metrics' scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.arrays import FloatArray, IntArray
from leaderboard.pages.items.cases import CaseSet, Standing

MOST_TILES = 6
"""Images of a case in a list; the case by itself shows more."""
MOST_TILES_ALONE = 60


@dataclass(frozen=True)
class Came:
    """How comparisons came out.

    Attributes:
        right: as people have it.
        wrong: the other way round.
        tied: with equal scores, which count a half.
    """

    right: int
    wrong: int
    tied: int

    @classmethod
    def of(cls, outcome: FloatArray) -> Came:
        """Count outcomes: 1 right, 0 wrong, a half for equal scores, NaN not compared."""
        return cls(
            int((outcome == 1).sum()), int((outcome == 0).sum()), int((outcome == 0.5).sum())
        )

    @property
    def compared(self) -> int:
        """All of them."""
        return self.right + self.wrong + self.tied

    @property
    def share(self) -> float:
        """Right among all, ties counting a half; NaN where there is none."""
        return (self.right + self.tied / 2) / self.compared if self.compared else float("nan")


@dataclass(frozen=True)
class Scored:
    """What one metric made of one pair.

    Attributes:
        score: as the metric gave it, larger for a better match; NaN where it gave none.
        came: how its comparisons came out.
    """

    score: float
    came: Came


@dataclass(frozen=True)
class PairShown:
    """One pair: which of the case's prompts, what people say, and each metric's score."""

    prompt: int
    said: str
    scored: tuple[Scored, ...]


@dataclass(frozen=True)
class Tile:
    """One image of a case, with its pairs.

    Attributes:
        number: of the image within its case, from 1, in the order of what people say.
        image_id: of the question side.
        pairs: one for each prompt that it is scored with.
    """

    number: int
    image_id: str
    pairs: tuple[PairShown, ...]


@dataclass(frozen=True)
class Verdict:
    """How one metric does on a case.

    Attributes:
        came: how the comparisons came out of which it scored both pairs.
        n_missing: pairs without a score.
    """

    came: Came
    n_missing: int


@dataclass(frozen=True)
class Mistake:
    """A comparison that a metric gets wrong: it scores `above` over `below`.

    Attributes:
        above: number of the image, prompt, what people say and the score of what it prefers.
        below: the same of what people prefer.
    """

    above: tuple[int, int, str, float]
    below: tuple[int, int, str, float]


@dataclass(frozen=True)
class CaseShown:
    """All that is shown of a case.

    Attributes:
        case_id: its id.
        prompts: its prompts; most cases have one.
        skills: keys of its skills.
        tiles: its images, as many as are shown.
        n_images: how many it has.
        verdicts: of each metric.
        mistake: the gravest of the first metric; None where it makes none.
    """

    case_id: str
    prompts: tuple[str, ...]
    skills: tuple[str, ...]
    tiles: tuple[Tile, ...]
    n_images: int
    verdicts: tuple[Verdict, ...]
    mistake: Mistake | None


def case_shown(
    cases: CaseSet, case: int, standings: Sequence[Standing], most: int = MOST_TILES
) -> CaseShown:
    """Gather what is shown of a case.

    Args:
        cases: all of them.
        case: position of the one.
        standings: of the metrics that are looked at.
        most: images to show. Of more, those are shown that the first metric misjudges most.
    """
    rows = cases.rows_of(case)
    frame = cases.frame.iloc[rows]
    prompts = tuple(dict.fromkeys(frame["prompt"].astype(str)))
    inside = np.flatnonzero(cases.case_of_comparison == case)
    images = _by_expectation([str(i) for i in frame["image_id"]], frame["expected"].to_numpy(float))
    tallies = [_tallies(cases, standing, rows, inside) for standing in standings]
    tiles = tuple(
        Tile(
            number,
            image,
            tuple(
                PairShown(
                    prompts.index(str(frame["prompt"].iloc[k])),
                    str(frame["said"].iloc[k]),
                    tuple(tally[k] for tally in tallies),
                )
                for k in places
            ),
        )
        for number, (image, places) in enumerate(images.items(), start=1)
    )
    pair_at = {
        int(rows[place]): (tile.number, pair)
        for tile, places in zip(tiles, images.values(), strict=True)
        for place, pair in zip(places, tile.pairs, strict=True)
    }
    mistake = _gravest(cases, standings[0], inside, pair_at) if standings else None
    return CaseShown(
        case_id=cases.comparisons.case_ids[case],
        prompts=prompts,
        skills=cases.skills[case],
        tiles=_worst(tiles, most, mistake),
        n_images=len(tiles),
        verdicts=tuple(verdict(cases, case, standing) for standing in standings),
        mistake=mistake,
    )


def verdict(cases: CaseSet, case: int, standing: Standing) -> Verdict:
    """How a metric does on one case."""
    outcome = standing.outcome[cases.case_of_comparison == case]
    return Verdict(Came.of(outcome), int(standing.n_missing[case]))


def _by_expectation(image_ids: Sequence[str], expected: np.ndarray) -> dict[str, list[int]]:
    """Image to the places of its pairs: what people find best first, else as it comes."""
    places: dict[str, list[int]] = {}
    for place, image in enumerate(image_ids):
        places.setdefault(image, []).append(place)
    # By the first prompt alone: the sum over both sides of a contrast is the same for all images.
    best = np.nan_to_num(expected, nan=-np.inf)
    return dict(sorted(places.items(), key=lambda item: -best[item[1][0]]))


def _tallies(
    cases: CaseSet, standing: Standing, rows: IntArray, inside: IntArray
) -> tuple[Scored, ...]:
    """What the metric made of each row of a case."""
    outcome = standing.outcome[inside]
    start, size = int(rows.min()), int(rows.max() - rows.min() + 1)
    counts = np.zeros((3, size), np.intp)
    for side in (cases.comparisons.better, cases.comparisons.worse):
        of = side[inside] - start
        for k, value in enumerate((1.0, 0.0, 0.5)):
            counts[k] += np.bincount(of[outcome == value], minlength=size)
    return tuple(
        Scored(float(standing.score[row]), Came(*map(int, counts[:, row - start]))) for row in rows
    )


def _gravest(
    cases: CaseSet, standing: Standing, inside: IntArray, pair_at: dict[int, tuple[int, PairShown]]
) -> Mistake | None:
    """Where people are most sure and the metric is most wrong.

    Args:
        cases: all of them.
        standing: of the metric.
        inside: the comparisons of the case.
        pair_at: row of the case to the number of its image, and its pair.
    """
    wrong = inside[standing.outcome[inside] == 0.0]
    if not wrong.size:
        return None
    better, worse = cases.comparisons.better[wrong], cases.comparisons.worse[wrong]
    expected = cases.frame["expected"].to_numpy(float)
    sure, off = expected[better] - expected[worse], standing.score[worse] - standing.score[better]
    gravest = np.lexsort((-off, -sure))[0]

    def told(row: int) -> tuple[int, int, str, float]:
        number, pair = pair_at[row]
        return number, pair.prompt, pair.said, float(standing.score[row])

    return Mistake(told(int(worse[gravest])), told(int(better[gravest])))


def _worst(tiles: tuple[Tile, ...], most: int, mistake: Mistake | None) -> tuple[Tile, ...]:
    """As many as are shown, in the order of all: those of the mistake, and the most misjudged."""
    if len(tiles) <= most:
        return tiles
    named = {mistake.above[0], mistake.below[0]} if mistake else set()

    def wrong(tile: Tile) -> float:
        of = [pair.scored[0] for pair in tile.pairs if pair.scored]
        return sum(one.came.wrong + one.came.tied / 2 for one in of)

    ranked = sorted(tiles, key=lambda tile: (tile.number not in named, -wrong(tile), tile.number))
    return tuple(sorted(ranked[:most], key=lambda tile: tile.number))
