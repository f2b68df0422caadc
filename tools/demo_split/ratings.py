"""Three simulated raters. No person rated anything in the demo benchmarks.

Each "rater" knows which claims of a prompt a picture gets wrong, slips now and then, is stricter or
milder than the others and sometimes unsure. Ratings therefore agree with the truth on the whole and
disagree with each other a little, like those of people.
"""

from __future__ import annotations

from dataclasses import dataclass

from tools.demo_split.language import Word
from tools.demo_split.models import Depiction
from tools.demo_split.scenes import Aspect, Chance


@dataclass(frozen=True, slots=True)
class Rater:
    """How one simulated rater deviates from the truth."""

    id: str  # shown in the ratings
    slip: float  # probability of a wrong answer to a yes/no question
    unsure: float  # probability of no answer at all, where a template allows that
    lower: float  # probability of an overall rating one step too low
    higher: float  # probability of an overall rating one step too high


RATERS: tuple[Rater, ...] = (
    Rater("simulated-1", slip=0.02, unsure=0.02, lower=0.10, higher=0.10),
    Rater("simulated-2", slip=0.03, unsure=0.03, lower=0.25, higher=0.05),
    Rater("simulated-3", slip=0.05, unsure=0.04, lower=0.10, higher=0.25),
)


def overall(depiction: Depiction, claims: int, rater: Rater, rng: Chance) -> int:
    """An overall rating 1..5: one step down per error, a further one if half of it is wrong."""
    errors = depiction.errors
    rating = 5 - errors - (errors > 0 and 2 * errors >= claims)
    if rng.happens(rater.lower):
        rating -= 1
    elif rng.happens(rater.higher):
        rating += 1
    return min(max(rating, 1), 5)


def holds(depiction: Depiction, aspect: str, rater: Rater, rng: Chance) -> bool:
    """Whether the rater finds a claim to be true of the picture; no claim (`""`) always is."""
    if not aspect:
        return True
    return (aspect not in depiction.wrong) != rng.happens(rater.slip)


def likert(depiction: Depiction, claims: int, rater: Rater, rng: Chance) -> str:
    """`1`..`5` or `unsure`."""
    if rng.happens(rater.unsure):
        return "unsure"
    return str(overall(depiction, claims, rater, rng))


def word_label(depiction: Depiction, word: Word, rater: Rater, rng: Chance) -> str:
    """`aligned`, `not_aligned` or `unsure` for one word of the prompt."""
    if rng.happens(rater.unsure):
        return "unsure"
    return "aligned" if holds(depiction, word.aspect, rater, rng) else "not_aligned"


def answer(depiction: Depiction, aspect: Aspect, rater: Rater, rng: Chance) -> str:
    """`yes`, `no`, `invalid` or `unsure` to the question about one claim.

    A question about something that is not in the picture is called invalid half of the time.
    """
    if rng.happens(rater.unsure):
        return "unsure"
    asks_for_more = aspect.skill not in ("object", "shape")
    if aspect.group in depiction.missing and asks_for_more and rng.happens(0.5):
        return "invalid"
    return "yes" if holds(depiction, aspect.id, rater, rng) else "no"


def preference(first: Depiction, second: Depiction, rater: Rater, rng: Chance) -> str:
    """`a` or `b`, whichever has fewer errors, or `unsure`; between equals mostly unsure."""
    if rng.happens(rater.unsure):
        return "unsure"
    if first.errors == second.errors:
        return rng.pick(("a", "b", "unsure", "unsure", "unsure", "unsure"))
    better, worse = ("a", "b") if first.errors < second.errors else ("b", "a")
    return worse if rng.happens(rater.slip) else better
