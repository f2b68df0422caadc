"""Confirmation batch by batch: held-out prompts are asked in a fixed random order until it is decided.

The candidate's images of them may still be drawn. Each hit of the screening half has a confidence
sequence at its share of the confirmation's level, so that looking after every batch, and stopping,
is honest. The order is that of hashes of the prompts' texts: whoever drew the images had no say in it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import numpy as np

from benchmarks.arrays import unit_of
from benchmarks.errors import SubmitterError
from benchmarks.statistics.better_or_tied import MIN_PROMPTS, Outcome, paired_differences
from benchmarks.statistics.confidence_sequence import MIN_VALUES, confidence_sequence
from evaluator.ab.comparison import Comparison
from evaluator.ab.images import DrawnImages
from evaluator.ab.journal import (
    Compare,
    Hit,
    Inspection,
    halves,
    images_of,
    opened_journal,
    screened,
)
from evaluator.generation.prompts import Prompt

BATCH = 20
"""Prompts between two looks."""


def random_order(prompts: Sequence[Prompt]) -> tuple[Prompt, ...]:
    """The prompts in an order that is random, and the same wherever they come from."""

    def place(one: Prompt) -> bytes:
        return hashlib.sha256(b"order of batches" + one.text.encode()).digest()

    return tuple(sorted(prompts, key=place))


def look_by_batches(
    file: Path,
    compare: Compare,
    drawn: DrawnImages,
    *,
    metrics: Sequence[str],
    name: str,
    at: datetime,
) -> tuple[Comparison, Inspection]:
    """Look at a candidate as `evaluator.ab.journal.look` does, or go on with a look that is open.

    `drawn`: with no images of the candidate for held-out prompts that it has not drawn yet.

    Raises:
        SubmitterError: as by `look`; images that were asked before are others now (`other_images`);
            or the look began with another margin (`other_margin`).
    """
    screening, held_out = halves(drawn.prompts)
    part = drawn.only(screening)
    candidate = images_of(part, 1)
    with opened_journal(file, drawn, metrics) as journal:
        found = compare(part, None)
        made = journal.seen(candidate)
        if made is None:
            made = journal.begin(candidate, name, at, screened(found, held_out, MIN_VALUES))
            update = {"asked": 0, "open": made.confirmation is not None, "margin": found.margin}
            made = made.model_copy(update=update)
            journal.add(made)
        order = random_order(held_out)
        _check_unchanged(made, drawn, order, found.margin)
        if made.open:
            after = _after_batches(made, compare, drawn, order)
            if after != made:
                made = after.model_copy(update={"at": at})
                journal.add(made)
        return found, made


def prompts_to_draw(drawn: DrawnImages, made: Inspection) -> tuple[Prompt, ...]:
    """The batch that an open look asks next; none where nothing is open."""
    if not made.open:
        return ()
    order = random_order(halves(drawn.prompts)[1])
    end = ((made.asked or 0) // BATCH + 1) * BATCH
    return tuple(one for one in order[made.asked : end] if drawn.awaits(one))


def _check_unchanged(
    made: Inspection, drawn: DrawnImages, order: tuple[Prompt, ...], margin: float
) -> None:
    """Refuse other images of what was asked, and another margin than a look began with."""
    if made.confirmation is not None and made.margin != margin:
        raise SubmitterError(
            "other_margin",
            f"The look at {made.name} began with the margin {made.margin:g}, not {margin:g}.",
            f"Say --margin {made.margin:g}: no margin is chosen after a look.",
        )
    asked = order[: made.asked or 0]
    if asked and (
        any(map(drawn.awaits, asked)) or images_of(drawn.only(asked), 1) != made.asked_images
    ):
        raise SubmitterError(
            "other_images",
            f"Images of {made.name} that were asked before are others now.",
            "Bring them back: a checkpoint's images of the screening half may not go with those of another.",
        )


def _after_batches(
    made: Inspection, compare: Compare, drawn: DrawnImages, order: tuple[Prompt, ...]
) -> Inspection:
    """The look after all batches that are there, or after the one that decides."""
    asked, hits, level = made.asked or 0, made.hits, made.level or 0.0
    there = next((n for n, one in enumerate(order) if drawn.awaits(one)), len(order))
    while asked < there and _undecided(hits):
        asked = min((asked // BATCH + 1) * BATCH, there)
        so_far = compare(
            drawn.only(order[:asked]), frozenset(hit.metric for hit in _undecided(hits))
        )
        hits = tuple(
            _one_look(hit, so_far, level / len(hits), order)
            if hit.outcome is Outcome.UNDECIDED
            else hit
            for hit in hits
        )
    return made.model_copy(
        update={
            "hits": hits,
            "asked": asked,
            "asked_images": images_of(drawn.only(order[:asked]), 1) if asked else "",
            "open": bool(_undecided(hits)) and asked < len(order),
        }
    )


def _undecided(hits: Sequence[Hit]) -> list[Hit]:
    return [hit for hit in hits if hit.outcome is Outcome.UNDECIDED]


def _one_look(hit: Hit, so_far: Comparison, level: float, order: Sequence[Prompt]) -> Hit:
    """A hit after one more batch. The interval is made for half of all prompts of its skill."""
    (metric,) = (one for one in so_far.metrics if one.name == hit.metric)
    values = metric.rising[so_far.members(hit.skill)]
    both = values[np.isfinite(values).all(axis=1)]
    known = paired_differences(both[:, 0], both[:, 1])
    update: dict[str, object] = {"n": known.size, "n_missing": len(values) - known.size}
    if known.size >= MIN_VALUES and np.count_nonzero(known) >= MIN_PROMPTS:
        whole = sum(hit.skill is None or hit.skill in one.skills for one in order)
        unit = unit_of(known)
        ends = confidence_sequence(known / unit, level, whole / 2)
        low, high = (unit * float(end[-1]) for end in ends)
        update |= {
            "difference": unit * float((known / unit).mean()),
            "ci_low": low,
            "ci_high": high,
            "outcome": _outcome(low, high, hit.margin),
        }
    return hit.model_copy(update=update)


def _outcome(low: float, high: float, margin: float) -> Outcome:
    """What an interval says: all above zero, all below, all within the margin, or nothing."""
    if low > 0:
        return Outcome.BETTER
    if high < 0:
        return Outcome.WORSE
    return Outcome.TIED if -margin < low and high < margin else Outcome.UNDECIDED
