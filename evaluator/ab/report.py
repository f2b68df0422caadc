"""Report of a comparison of two folders: sentences, JSON, and a page with pictures."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.statistics.better_or_tied import LEVEL, MIN_PROMPTS, Outcome, PairedOutcome
from evaluator.ab.comparison import Comparison, SkillOutcome
from evaluator.ab.images import DrawnImages
from evaluator.ab.journal import Inspection
from evaluator.generation.prompts import Prompt
from evaluator.standalone_page import render_page
from leaderboard.thumbnails import MEDIA_TYPE, thumbnail

MOST_PROMPTS = 24
MOST_IMAGES = 2
"""Of a prompt and a model that are shown."""
_WIDTH = 320
_EQUAL_SCORES = "every score is the same, though images differ"


@dataclass(frozen=True)
class AbReport:
    """What a comparison found."""

    comparison: Comparison
    look: Inspection | None = None  # where a journal counts the looks
    to_draw: tuple[Prompt, ...] = ()  # prompts that the look asks next, in batches
    drawn: DrawnImages | None = None  # images of both halves, where a journal counts the looks

    def outcome(self, of: SkillOutcome) -> Outcome:
        """Of a skill: confirmed ones alone, where a journal counts."""
        if self.look is None:
            return of.outcome
        if self._same(of) and not of.too_few:
            return Outcome.TIED
        hits = [hit for hit in self.look.hits if hit.skill == of.skill]
        said = {hit.outcome for hit in hits} & {Outcome.BETTER, Outcome.WORSE}
        if len(said) == 1 and any(hit.confirmed for hit in hits):
            return said.pop()
        tied = {hit.metric for hit in hits if hit.outcome is Outcome.TIED}
        return Outcome.TIED if tied and tied == set(of.by_metric) else Outcome.UNDECIDED

    def _same(self, of: SkillOutcome) -> bool:
        """Whether both have the very same images of a skill, on both halves."""
        whole = self.drawn or self.comparison.drawn
        members = (one for one in whole.prompts if of.skill is None or of.skill in one.skills)
        return all(one.same for one in of.by_metric.values()) and whole.same_images(members)

    @property
    def outcomes(self) -> Mapping[str | None, Outcome]:
        """Of each skill; None stands for all prompts."""
        return {one.skill: self.outcome(one) for one in self.comparison.skills}

    def sentence(self, of: SkillOutcome) -> str:
        """What is said of a skill, in one sentence."""
        first, second = self.comparison.first, self.comparison.second
        where = "all prompts" if of.skill is None else of.skill
        outcome = self.outcome(of)
        if outcome in (Outcome.BETTER, Outcome.WORSE):
            said = f"{second} is {outcome} than {first}"
        elif outcome is Outcome.TIED:
            said = f"{second} and {first} "
            said += "have the same images" if self._same(of) else "are tied"
        else:
            said = f"{second} and {first} are not told apart"
        return f"{where}: {said}{self._why(of) if outcome is Outcome.UNDECIDED else ''}."

    def _why(self, of: SkillOutcome) -> str:
        if of.too_few:
            return f"; {of.n_prompts} prompts are too few, and {MIN_PROMPTS} are needed"
        if self.look is not None and any(hit.skill == of.skill for hit in self.look.hits):
            return self._unconfirmed(self.look)
        if of.contradicted:
            return "; metrics contradict each other"
        if all(one.identical for one in of.by_metric.values()):
            same = all(one.same for one in of.by_metric.values())
            return "; " + ("images that screen are the same" if same else _EQUAL_SCORES)
        n, differing = of.n_to_decide, max(one.n_differing for one in of.by_metric.values())
        if differing < MIN_PROMPTS:
            more = "" if n is None else f", which takes about {n:,} prompts of the kind"
            return f"; scores differ on {differing} prompts, and must on {MIN_PROMPTS}{more}"
        return "" if n is None or self.look else f"; about {n:,} prompts of the kind would decide"

    @staticmethod
    def _unconfirmed(look: Inspection) -> str:
        asked = f" by the {look.asked} held-out prompts that were asked so far" if look.open else ""
        return f"; what screening saw was not confirmed{asked}"

    def to_json(self) -> dict[str, Any]:
        """For programs; what is no number is null."""
        found = self.comparison
        return {
            "first": found.first,
            "second": found.second,
            "prompts": len(found.drawn.prompts),
            "withheld": list(found.drawn.withheld),
            "level": LEVEL,
            "margin": found.margin,
            "min_prompts": MIN_PROMPTS,
            "metrics": [
                {
                    "name": one.name,
                    "title": one.title,
                    "higher_is_better": one.higher_is_better,
                    "unscored": list(one.unscored),
                }
                for one in found.metrics
            ],
            "skills": [
                {
                    "skill": one.skill,
                    "outcome": str(self.outcome(one)),
                    "sentence": self.sentence(one),
                    "prompts": one.n_prompts,
                    "too_few": one.too_few,
                    "n_to_decide": one.n_to_decide,
                    "half": None if self.look is None else "screening",  # that `by_metric` is of
                    "by_metric": {name: _figures(of) for name, of in one.by_metric.items()},
                }
                for one in found.skills
            ],
            "differing": [self._prompt(place) for place in found.differing(MOST_PROMPTS)],
            "look": None if self.look is None else _look(self.look),
            "to_draw": [one.prompt_id for one in self.to_draw],
        }

    def _prompt(self, place: int) -> dict[str, Any]:
        found = self.comparison
        one = found.drawn.prompts[place]
        return {
            "prompt_id": one.prompt_id,
            "prompt": one.text,
            "skills": list(one.skills),
            "shift": _finite(float(found.shifts[place])),
            "scores": {
                metric.name: [_finite(float(value)) for value in metric.values[place]]
                for metric in found.metrics
            },
        }

    @property
    def html(self) -> str:
        """The page; it needs nothing from elsewhere, and holds the pictures it shows."""
        found = self.comparison
        shown = [
            self._prompt(place) | {"pictures": self._pictures(place)}
            for place in found.differing(MOST_PROMPTS)
        ]
        scales = {
            one.name: max(
                (
                    max(abs(of.ci_low), abs(of.ci_high), of.margin)
                    for skill in found.skills
                    for name, of in skill.by_metric.items()
                    if name == one.name and not skill.too_few and math.isfinite(of.ci_low)
                ),
                default=1.0,
            )
            or 1.0
            for one in found.metrics
        }
        return render_page(
            "evaluator.ab", "report.html", report=self.to_json(), shown=shown, scales=scales
        )

    def _pictures(self, place: int) -> list[list[str]]:
        """Addresses of the first model's pictures and of the second's."""
        drawn = self.comparison.drawn
        models = drawn.digests[drawn.prompts[place].prompt_id]
        return [list(self._addresses(digests[:MOST_IMAGES])) for digests in models]

    def _addresses(self, digests: Sequence[str]) -> Iterator[str]:
        for digest in digests:
            try:
                small = thumbnail(self.comparison.drawn.places[digest].read_bytes(), _WIDTH)
            except (OSError, ValueError):
                yield ""  # the page says that it cannot be shown
            else:
                yield f"data:{MEDIA_TYPE};base64,{base64.b64encode(small).decode()}"


def _look(look: Inspection) -> dict[str, Any]:
    hits = [hit.model_dump(mode="json") | {"confirmed": hit.confirmed} for hit in look.hits]
    return look.model_dump(mode="json") | {"hits": hits}


def _figures(of: PairedOutcome) -> dict[str, Any]:
    return {
        "outcome": str(of.outcome),
        "n": of.n,
        "n_missing": of.n_missing,
        "n_differing": of.n_differing,
        "difference": _finite(of.difference),
        "ci_low": _finite(of.ci_low),
        "ci_high": _finite(of.ci_high),
        "margin": _finite(of.margin),
        "p": _finite(of.p),
        "p_corrected": _finite(of.p_corrected),
        "p_tied": _finite(of.p_tied),
        "p_tied_corrected": _finite(of.p_tied_corrected),
        "wins": _finite(of.wins),
        "losses": _finite(of.losses),
        "identical": of.identical,
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
