"""Trust checks of a scorer before it may rank, and their results."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer

from benchmarks.statistics.content_effect import ChangeVerdict
from benchmarks.statistics.prompt_effect import Verdict

CheckName = Literal["repeat", "order", "batch", "alone", "reencoded", "one_pixel", "run", "places"]

LIMITS = {"float32": 0.01, "bfloat16": 0.05, "float16": 0.05}
"""By precision, the difference that is put down to rounding, in standard deviations of the scores."""

SCORED_SHARE = 0.25
"""A metric is tested only if it scores at least this share of the pairs; of a run half must be scored,
and of some 36 drawn from that a quarter are but by a rare chance."""

LOOKUP_SHARE = 0.5
"""A lookup is suspected where one grey level moves scores by more than this share of their spread,"""
LOOKUP_IMAGES = 8
"""on at least so many images."""

TITLES: dict[CheckName, str] = {
    "repeat": "the same batch once more",
    "order": "the same pairs in reverse order",
    "batch": "the same pairs in batches of other sizes",
    "alone": "each pair by itself",
    "reencoded": "the same pixels in another lossless file",
    "one_pixel": "every channel value raised by one",
    "run": "the same pairs as the run itself asked them",
    "places": "the two images of each comparison exchanged",
}
"""What is changed, for people."""

CONSEQUENCES: dict[CheckName, str] = {
    "repeat": "changes when repeated",
    "order": "depends on the order",
    "batch": "depends on the batch",
    "alone": "depends on the other pairs of its batch",
    "reencoded": "depends on the file format",
    "one_pixel": "turns on one grey level (a lookup is suspected)",
    "run": "was another when it was tested",
    "places": "is decided by which image comes first",
}
"""What a failed check says of a score."""


Figure = Annotated[
    float,
    BeforeValidator(lambda found: math.nan if found is None else found),
    PlainSerializer(
        lambda figure: figure if math.isfinite(figure) else None,
        return_type=float | None,
        when_used="json",
    ),
]
"""A measured figure; NaN, in JSON null, where it is withheld."""


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Example(_Model):
    """The pair whose score moved most."""

    pair_id: str
    before: float | None
    after: float | None


class Check(_Model):
    """One way of asking again, and how far the scores moved: |after - before|."""

    name: CheckName
    n_pairs: int
    mean: Figure
    """Mean over the pairs with both scores, in units of the score."""
    largest: Figure
    """Largest of all pairs."""
    n_lost: int = 0
    """Pairs with a score in one of the two only."""
    passed: bool | None
    """None where it is only measured: one grey level of few images, and in older reports."""
    example: Example | None = None
    """None where nothing moved."""

    @property
    def verdict(self) -> str:
        """What came out, in a word."""
        if self.passed is None:
            return "measured"
        if not self.passed:
            return "differs"
        return "small" if self.name == "one_pixel" else "same"


class PrecisionBand(_Model):
    """How far scores lie from those in float32 on the CPU: |score - reference|."""

    n_pairs: int
    mean: float | None
    """In units of the score; None where no pair has both scores."""
    largest: float | None
    n_lost: int = 0
    """Pairs with a score in one of the two only."""
    reference: dict[str, str] = Field(default_factory=dict)
    """Device, precision and versions of the reference."""


class AreaFigures(_Model):
    """Share of wrong prompts that score below the right one of the same image; ties count half."""

    value: float
    """0..1, 0.5 by chance."""
    low: float
    """Lower limit, one-sided, 95 %."""
    high: float
    """Upper limit, likewise."""


class PromptControl(_Model):
    """What a score is about: every prompt of a sample put to every image of it.

    `benchmarks.statistics.prompt_effect` has the method and the limits of the verdict. Figures are
    None where there is too little to tell, and where they are withheld.
    """

    verdict: Verdict
    """`blind`: to the score, the right prompt is as good as any other."""
    why_not: str = ""
    """Why there are no figures, in a few words; empty where there are."""
    n_prompts: int = 0
    """With a score of their own image."""
    n_images: int = 0
    """With a score of their own prompt."""
    n_cells: int = 0
    """Of prompts with images that were asked, the own ones included."""
    n_missing: int = 0
    """Those without a score."""
    prompt_share: float | None = None
    """Of the variance between cells that do not match, what prompts explain."""
    image_share: float | None = None
    """What images explain."""
    both_share: float | None = None
    """What neither explains alone."""
    match: float | None = None
    """What a match adds to a score, in units of the score, positive where it is better."""
    match_se: float | None = None
    """Its standard error."""
    raw: AreaFigures | None = None
    """Of the scores as they are."""
    centred: AreaFigures | None = None
    """After the level of each prompt is taken off: the verdict rests on it."""
    within: AreaFigures | None = None
    """Centred, against wrong prompts of a common skill alone; None where skills are not known: to a
    worker that scores they are not, since they are of the answers."""
    empty_change: float | None = None
    """Mean change of an image's score where an empty prompt takes the place of its own, in units of
    the score, negative where it is worse."""
    n_empty: int = 0
    """Images that were asked with an empty prompt."""
    n_empty_missing: int = 0
    """Those without a score, so that nothing is known of a change."""


ChangeName = Literal["brightness", "saturation", "jpeg", "resize", "border", "watermark", "length"]

CHANGES: dict[ChangeName, str] = {
    "brightness": "25% brighter, or as much darker",
    "saturation": "50% more saturated, or as much less",
    "jpeg": "JPEG of quality 50",
    "resize": "half as wide and high",
    "border": "a border in one grey",
    "watermark": "a half-transparent mark in one corner",
    "length": "a prompt half as long again, by a sentence that says nothing",
}
"""What is done to an image or its prompt, for people; the content stays."""


class ChangeFigures(_Model):
    """Effect of one change that leaves the content, in units of the spread of the control.

    The mean of after - before over images, positive where the score is better; for brightness and
    saturation with its sign turned where there is less of them.
    """

    name: ChangeName
    """What is changed."""
    verdict: ChangeVerdict
    """`moved`: the whole interval lies beyond the limit."""
    value: float | None
    """None where fewer than 20 images have both scores."""
    low: float | None
    """Lower end of its interval; those of all changes hold together in 95 of 100 samples."""
    high: float | None
    """Upper end."""
    n_images: int
    """With both scores."""
    n_missing: int
    """Without one of the two."""


class ContentControl(_Model):
    """What a score owes to changes that leave the content: of the images that prompts are put to.

    `benchmarks.statistics.content_effect` has the method and the limit of the verdict. Figures are
    None, and `changes` are empty, where there is too little to tell, and where they are withheld.
    """

    verdict: ChangeVerdict
    """`moved` where one of the changes moves the score, `steady` where none does."""
    why_not: str = ""
    """Why there are no figures, in a few words; empty where there are."""
    spread: float | None = None
    """Standard deviation of right and of wrong pairs, half of the weight each, in units of the
    score."""
    changes: tuple[ChangeFigures, ...] = ()
    """One of each kind."""

    @property
    def moved_by(self) -> tuple[ChangeName, ...]:
        """The changes that move the score."""
        return tuple(one.name for one in self.changes if one.verdict == "moved")


class TrustReport(_Model):
    """The checks of one run.

    A score may move by rounding, `limit` x `spread`, and by no more; a missing score may not come
    or go. The one-pixel change is that of Re-Thinking (every channel value below 255 plus one): it
    may move scores by half of their spread on average, the lowest and the highest tenth of changes
    counting as the next, and a score that comes or goes as one that moved without bound. Beyond
    that a lookup is suspected, on 8 images or more, until an operator clears the submission.
    """

    schema_version: Literal[1] = 1
    benchmark: str
    """Where the pairs are from."""
    n_pairs: int
    n_images: int
    n_scored: int | None = None
    """Of the pairs, with a score when they were asked first; None in older reports."""
    spread: Figure
    """Standard deviation of the scores of these pairs, in units of the score; the lowest and the
    highest tenth count as the next value, so that no single score makes room for the others."""
    limit: float
    """What is put down to rounding, in units of `spread`."""
    environment: dict[str, str] = Field(default_factory=dict)
    """Device, precision and versions."""
    checks: tuple[Check, ...]
    precision: PrecisionBand | None = None
    """None where the scores are in float32 on the CPU themselves, or cannot be had so."""
    prompt: PromptControl | None = None
    """Whether the score is about the prompt; None in reports that are older than that."""
    content: ContentControl | None = None
    """Whether changes that leave the content move the score; None in older reports."""
    cleared: str = ""
    """Why an operator has cleared it of the suspicion of a lookup; empty where none has. Results do
    not hold it: it is of the submission."""

    @property
    def blind(self) -> bool:
        """Whether the score is blind to the prompt."""
        return self.prompt is not None and self.prompt.verdict == "blind"

    @property
    def moved_by_changes(self) -> bool:
        """Whether a change that leaves the content moves the score."""
        return self.content is not None and self.content.verdict == "moved"

    @property
    def failed(self) -> tuple[Check, ...]:
        """The checks that keep the scorer from ranking."""
        return tuple(
            check
            for check in self.checks
            if check.passed is False and not (check.name == "one_pixel" and self.cleared)
        )

    @property
    def untested(self) -> bool:
        """Whether too few pairs had a score when they were asked first, so that checks say nothing."""
        scored = self.n_scored
        return scored is not None and (not scored or scored < SCORED_SHARE * self.n_pairs)

    @property
    def pardoned(self) -> bool:
        """Whether one grey level moves scores as of a lookup, and an operator has cleared it."""
        return bool(self.cleared) and any(
            check.name == "one_pixel" and check.passed is False for check in self.checks
        )

    @property
    def suspected(self) -> bool:
        """Whether one grey level moves scores as of a lookup, and no operator has cleared it."""
        return any(check.name == "one_pixel" for check in self.failed)

    @property
    def why_not(self) -> str:
        """Why it may not rank, in a few words; empty where it may."""
        untested = ["is missing where it was tested"] if self.untested else []
        said = untested + [CONSEQUENCES[check.name] for check in self.failed]
        if not said:
            return ""
        return f"score {' and '.join([', '.join(said[:-1]), said[-1]] if said[1:] else said)}"

    @property
    def band(self) -> float:
        """The largest difference that batch, order or repetition made, in units of the score."""
        measured = [check.largest for check in self.checks if check.name != "one_pixel"]
        return max(measured, default=0.0)
