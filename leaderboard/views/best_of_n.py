"""Is it safe to optimise? What choosing the best of n images of a prompt by a metric gains.

Under people's ratings, where a benchmark has them, and under the other qualified metrics, where models
have several seeds.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.arrays import FloatArray
from benchmarks.rated_images import RaterNumbers
from benchmarks.schema import Card
from benchmarks.statistics.best_of_n import FEWEST, GainCurve
from leaderboard.models.choosing import ModelImagesGain, NoGain, Reason, model_images_gain
from leaderboard.models.reading import ModelReader
from leaderboard.publication.entries import Entry
from leaderboard.publication.item_scores import ItemReader
from leaderboard.publication.metric_facts import metric_in_words
from leaderboard.publication.reader import View
from leaderboard.records import Status
from leaderboard.tables import Table, Type, Value, columns_of
from leaderboard.text import count, interval, number
from leaderboard.views.examples import answers_are_public, lower_is_better
from leaderboard.views.metric import MetricOnBoards, OnBoard, on_boards

SAID_SIZE = 4
"""The n of sentences, where there are as many images."""
SHOWN_SIZES = (2, 4, 8, 16)
"""The n of tables on pages, and the largest."""


@dataclass(frozen=True, eq=False)
class PeopleGain:
    """What choosing by a metric gains in people's mean rating, on one benchmark."""

    card: Card  # the benchmark
    entry_id: str  # of the metric there
    curve: GainCurve  # in points of the rating
    # half of the raters choosing, under the others; None where single ratings were not published
    people: GainCurve | None
    raters: RaterNumbers | None  # as `people`
    # shape (3, S), gain as a share of that of people, over the choices that both have, with its
    # interval; NaN where there is none
    share: FloatArray
    spread: float  # standard deviation of mean ratings within a choice, in points
    n_few: int  # choices with fewer images than the largest size
    n_outside: int  # ratings outside the scale, which are left out


@dataclass(frozen=True)
class BestOfN:
    """All that is known of what choosing by a metric gains."""

    entry: Entry  # the metric
    under_people: tuple[PeopleGain, ...]  # by benchmark, real ratings before simulated ones
    under_others: tuple[ModelImagesGain, ...]  # by prompt set


def people_gain(
    items: ItemReader, entry: Entry, card: Card, lower: Mapping[str, Collection[str]]
) -> PeopleGain | None:
    """The gain of an entry on a benchmark; None where no ratings are published or it scored no choice.

    `lower`: submission to those of its metrics whose smaller scores mean a better match.
    """
    rated = items.rated(card)
    if rated is None or not rated.images.sizes:
        return None
    turned = entry.metric in lower.get(entry.submission_id, ())
    gains = rated.images.gains(items.scores_of_rated(entry, rated, turned))
    curve = rated.curve(gains)
    if not curve.n_prompts:
        return None
    of_people = rated.images.gains_of_people
    both = np.where(np.isnan(gains).any(axis=1, keepdims=True), np.nan, of_people)
    known = bool(np.isfinite(both).all(axis=1).any())
    share = np.full((3, len(curve.sizes)), np.nan)
    if known:
        own = np.where(np.isnan(both), np.nan, gains)
        share = rated.curve(own).share_of(rated.curve(both))
    people = rated.curve(of_people) if known else None
    return PeopleGain(
        card=card,
        entry_id=entry.entry_id,
        curve=curve,
        people=people,
        raters=rated.images.rater_numbers if known else None,
        share=share,
        spread=rated.images.spread,
        n_few=rated.images.n_few,
        n_outside=rated.images.n_outside,
    )


def rated_boards(
    boards: Sequence[OnBoard], items: ItemReader, here: Mapping[str, Card]
) -> tuple[OnBoard, ...]:
    """The boards of a metric whose rated images are published.

    Real ratings before simulated ones, and single ratings before means alone.
    """
    found: list[tuple[bool, bool, OnBoard]] = []
    for one in boards:
        rated = items.rated(one.card) if answers_are_public(one.card, here) else None
        if rated is not None:
            found.append((one.card.simulated, not rated.images.ratings.shape[1], one))
    return tuple(one for *_, one in sorted(found, key=lambda of: of[:2]))


def under_others(
    models: ModelReader, view: View, entry_ids: Collection[str]
) -> tuple[ModelImagesGain, ...]:
    """The gains of a metric, which has these entries, on every prompt set whose models it scored."""
    drawn = {one.prompt_set for one in models.track().entries.values()}
    sets = sorted(
        (name for name in models.prompt_sets if name in drawn),
        key=lambda name: models.prompt_sets[name].card.simulated,
    )
    found = (model_images_gain(models, view, name, entry_ids) for name in sets)
    return tuple(one for one in found if one is not None)


def best_of_n(
    found: MetricOnBoards,
    view: View,
    *,
    items: ItemReader,
    models: ModelReader,
    here: Mapping[str, Card],
    statuses: Sequence[Status],
) -> BestOfN:
    """Every gain of a metric, on all benchmarks with ratings and all prompt sets; `here`: the cards."""
    lower = lower_is_better(statuses)
    gains = (
        people_gain(items, view.entries[one.entry_id], one.card, lower)
        for one in rated_boards(on_boards(found, view), items, here)
    )
    return BestOfN(
        found.entry,
        tuple(one for one in gains if one is not None),
        under_others(models, view, [one.entry_id for one in found.entries]),
    )


# In words.


def place_said(curve: GainCurve) -> int:
    """Column of the size that sentences are about."""
    return min(SAID_SIZE, curve.sizes[-1]) - 1


def shown_places(sizes: Sequence[int]) -> list[int]:
    """Columns of the sizes that tables of pages show."""
    return [k for k, n in enumerate(sizes) if n in SHOWN_SIZES or 1 < n == sizes[-1]]


def gain_text(curve: GainCurve, place: int, digits: int = 2) -> str:
    """`0.31 [0.22, 0.40]`; without an interval where there is none."""
    low, high = curve.ends[:, place]
    return f"{number(float(curve.values[place]), digits)} {interval(low, high, digits)}".strip()


def share_text(share: FloatArray, place: int) -> str:
    """`39% [28%, 50%]`; empty where there is none."""
    if math.isnan(share[0, place]):
        return ""
    value, low, high = (f"{100 * one:.0f}%".replace("-", "−") for one in share[:, place])
    return f"{value} [{low}, {high}]"


def raters_text(raters: RaterNumbers) -> str:
    """Who chooses: `1 of 3 raters`; where images have unlike numbers, half of each and the usual case."""
    usual = f"{raters.choosing} of {raters.usual}"
    if raters.fewest == raters.most:
        return f"{usual} raters"
    return f"half of the {raters.fewest} to {raters.most} raters of each image (usually {usual})"


def no_gain_text(found: NoGain) -> str:
    """What a metric does, so that nothing is gained or lost under it."""
    missing = f"{count(found.n_missing, 'choice')} missing"
    if found.reason is Reason.NO_COMMON_SCORES:
        return f"shares no choice with all scores ({missing})"
    return "scores all images of a prompt alike" + (f" ({missing})" if found.n_missing else "")


def people_sentence(gain: PeopleGain, name: str) -> str:
    """What the intervals say of choosing by a metric under people's ratings."""
    place, curve = place_said(gain.curve), gain.curve
    best = f"the best of {count(curve.sizes[place], 'image')} of a prompt by {name}"
    points = f"{gain_text(curve, place)} of a rating point"
    over, against = " over a random one", " against a random one"
    said = _choosing(best, points, curve.ends[:, place], over=over, against=against)
    if gain.people is not None and gain.raters is not None:
        share = share_text(gain.share, place)
        said += f"; {raters_text(gain.raters)} choosing would gain {gain_text(gain.people, place)}"
        said += " under the others"
        said += f", of which it has {share}" if share and curve.ends[0, place] > 0.0 else ""
    return f"{said}.{_turn(curve)}"


def others_sentence(gain: ModelImagesGain, name: str) -> str:
    """What the intervals say of choosing by a metric under the others."""
    if isinstance(gain.own, NoGain):
        if gain.own.reason is Reason.ALIKE:
            return f"{name} gives all images of a prompt the same score, so it chooses none."
        return f"{name} lacks a score in each of {count(gain.own.n_missing, 'choice')}."
    if gain.mean is None:
        return _nothing_to_value(gain)
    place = place_said(gain.own)
    best = f"the best of {count(gain.own.sizes[place], 'image')} of a prompt by {name}"
    n = sum(isinstance(one.curve, GainCurve) for one in gain.others)
    under = f"under {count(n, 'other qualified metric')}{' on average' if n > 1 else ''}"
    figure = f"{gain_text(gain.mean, place)} standard deviations {under}"
    own = f"under itself {gain_text(gain.own, place)}"
    said = _choosing(best, figure, gain.mean.ends[:, place])
    return f"{said}; {own}.{_turn(gain.mean)}"


def _choosing(
    best: str, figure: str, ends: FloatArray, *, over: str = "", against: str = ""
) -> str:
    """What the ends of an interval say of a gain."""
    low, high = ends
    if low > 0.0:
        return f"Choosing {best} gains {figure}{over}"
    if high < 0.0:
        return f"Choosing {best} loses: {figure}{against}"
    few = "" if math.isfinite(low) else " (too few prompts for an interval)"
    return f"Whether choosing {best} gains anything is undecided: {figure}{few}"


def _nothing_to_value(gain: ModelImagesGain) -> str:
    """Why no other metric values the choice."""
    if not gain.others:
        return "No other qualified metric scored these images."
    reasons = [one.curve.reason for one in gain.others if isinstance(one.curve, NoGain)]
    return (
        "Nothing values the choice. Of the other qualified metrics, those that score all images of a "
        f"prompt alike: {reasons.count(Reason.ALIKE)}; that share no choice with all scores: "
        f"{reasons.count(Reason.NO_COMMON_SCORES)}."
    )


def _turn(curve: GainCurve) -> str:
    """That more images make it worse, where that is sure."""
    turn, most = curve.falls_from, curve.sizes[-1]
    if turn is None or turn == 1:
        return ""
    return f" Over-optimised: the best of {most} surely gains less than the best of {turn}."


# As a table.

_COLUMNS = (
    "under", "source", "title", "simulated", "valued_by", "size", "gain", "gain_low", "gain_high",
    "share", "share_low", "share_high", "unit", "n_choices", "n_missing", "n_few", "n_clusters",
    "falls_from", "n_choosing", "n_raters", "n_outside", "no_gain",
)  # fmt: skip
_TYPES = {
    Type.NUMBER: "gain gain_low gain_high share share_low share_high",
    Type.COUNT: "size n_choices n_missing n_few n_clusters falls_from n_choosing n_raters n_outside",
    Type.FLAG: "simulated",
}
_MEANINGS = {
    "under": "What values the chosen image. people: mean rating, chosen by the metric; raters: half "
    "of the raters choose and the others value; itself, other and others: the metric itself, "
    "one other qualified metric, and the mean over all of these.",
    "source": "Benchmark (people, raters) or prompt set whose models drew the images.",
    "simulated": "Ratings, or images, do not come from people or models.",
    "valued_by": "Entry id of the metric that values; empty for people and for the mean.",
    "size": "n, images that the best is chosen from: the expectation over all subsets of n.",
    "gain": "Mean over choices of the value of the chosen image less that of a random one.",
    "gain_low": f"Of the 95 % interval over resampled prompts; missing below {FEWEST}.",
    "share": "Gain by the metric as a share of that by half of the raters, over the same choices.",
    "unit": "rating points, or sd: standard deviations of that metric's scores within a choice.",
    "n_choices": "Choices with all their scores and values: the images of a prompt, or of a prompt "
    "and model.",
    "n_missing": "Choices without one of them, which are left out.",
    "n_few": "Choices, or models, with fewer images than the largest size, which are left out.",
    "n_clusters": "Prompts that are resampled.",
    "falls_from": "The size from which on choosing from more surely gains less; 1: it loses; empty: "
    "it is not sure that any gains less.",
    "n_choosing": "Raters of an image who choose, usually: half of n_raters, rounded down.",
    "n_raters": "Raters of an image, usually: the median.",
    "n_outside": "Ratings outside the scale, which count in no mean.",
    "no_gain": "Why there is no gain, in a row without a size. alike: the metric that values scores all "
    "images of a choice alike; no common scores: no choice has all scores of both metrics.",
}


def sentences(found: BestOfN) -> list[tuple[Card, str]]:
    """What is said of every benchmark and prompt set."""
    name = metric_in_words(found.entry)
    return [
        *((one.card, people_sentence(one, name)) for one in found.under_people),
        *((one.card, others_sentence(one, name)) for one in found.under_others),
    ]


def best_of_n_table(found: BestOfN, about: Mapping[str, Any]) -> Table:
    """Every gain by every size; `about` also has the sentences."""
    said = [{"source": card.name, "sentence": sentence} for card, sentence in sentences(found)]
    rows = [
        *(row for gain in found.under_people for row in _people_rows(gain)),
        *(row for gain in found.under_others for row in _others_rows(gain)),
    ]
    columns = columns_of(_COLUMNS, _TYPES, _MEANINGS)
    return Table("best-of-n", columns, rows, {**about, "sentences": said})


def _people_rows(gain: PeopleGain) -> Iterator[dict[str, Value]]:
    of = _source(gain.card) | {"unit": "rating points", "n_few": gain.n_few, "valued_by": ""}
    of |= {"n_outside": gain.n_outside}
    for place, row in enumerate(_rows(gain.curve)):
        share = dict(
            zip(("share", "share_low", "share_high"), gain.share[:, place].tolist(), strict=True)
        )
        yield {**of, "under": "people", **row, **{k: _finite(v) for k, v in share.items()}}
    if gain.people is not None and gain.raters is not None:
        numbers = {"n_choosing": gain.raters.choosing, "n_raters": gain.raters.usual}
        for row in _rows(gain.people):
            yield {**of, "under": "raters", **row, **numbers}


def _others_rows(gain: ModelImagesGain) -> Iterator[dict[str, Value]]:
    of = _source(gain.card) | {"unit": "sd", "n_few": gain.n_few}
    curves = [
        ("itself", gain.entry_id, gain.own),
        ("others", "", gain.mean),
        *(("other", one.judge.entry_id, one.curve) for one in gain.others),
    ]
    for under, valued_by, curve in curves:
        here = {**of, "under": under, "valued_by": valued_by}
        if isinstance(curve, NoGain):
            yield {
                **here,
                "n_choices": 0,
                "n_missing": curve.n_missing,
                "no_gain": curve.reason.value,
            }
        for row in _rows(curve) if isinstance(curve, GainCurve) else ():
            yield {**here, **row}


def _source(card: Card) -> dict[str, Value]:
    return {"source": card.name, "title": card.title, "simulated": card.simulated}


def _rows(curve: GainCurve) -> Iterator[dict[str, Value]]:
    for place, size in enumerate(curve.sizes):
        low, high = curve.ends[:, place].tolist()
        yield {
            "size": size,
            "gain": _finite(float(curve.values[place])),
            "gain_low": _finite(low),
            "gain_high": _finite(high),
            "n_choices": curve.n_prompts,
            "n_missing": curve.n_missing,
            "n_clusters": curve.n_clusters,
            "falls_from": curve.falls_from,
        }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
