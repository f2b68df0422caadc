"""Trust checks: the same questions asked otherwise, before a metric may rank."""

from __future__ import annotations

import hashlib
import io
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from PIL import Image

from benchmarks.errors import AssayError
from benchmarks.schema import Pair, Questions
from benchmarks.statistics.intervals import wilson_low
from evaluator.scoring.asking import Batch, ClientSource, PairRequest, RawItem, ScorerClient
from evaluator.scoring.comparing import each_image, turned
from evaluator.scoring.engine import answered
from evaluator.scoring.images import ImageError, canonical_png, one_step_brighter
from leaderboard.records import OrderFigures
from leaderboard.trust import (
    LIMITS,
    LOOKUP_IMAGES,
    LOOKUP_SHARE,
    Check,
    CheckName,
    ContentControl,
    Example,
    PrecisionBand,
    PromptControl,
    TrustReport,
)


def sampled(
    questions: Questions, seed: bytes, *, n_images: int = 12, per_image: int = 3
) -> Questions:
    """A few pairs of a benchmark, chosen by a keyed hash: nobody can know them without the key."""

    def place(name: str) -> bytes:
        return hashlib.blake2b(name.encode(), key=seed, person=b"trust", digest_size=16).digest()

    by_image: dict[str, list[Pair]] = {}
    for pair in questions.pairs:
        by_image.setdefault(pair.image_id, []).append(pair)
    chosen = sorted(by_image, key=place)[:n_images]
    pairs = tuple(
        pair
        for image in chosen
        for pair in sorted(by_image[image], key=lambda one: place(one.pair_id))[:per_image]
    )
    return replace(questions, images={one: questions.images[one] for one in chosen}, pairs=pairs)


def reencoded(image: Image.Image) -> bytes:
    """The same pixels in another lossless file: WebP in place of PNG."""
    buffer = io.BytesIO()
    image.save(buffer, format="WEBP", lossless=True, exact=True, method=0)
    return buffer.getvalue()


Scores = Mapping[str, float]
Tell = Callable[[int, int], None]

_FEW_COMPARISONS = 12
"""With fewer even full agreement says little."""
_STEPS = 7
_TAIL = 0.1
_LARGEST = sys.float_info.max


@dataclass(frozen=True)
class Trial:
    """What a scorer was put through before its run."""

    report: TrustReport  # of the checks
    scores: Scores  # of its pairs when they were asked first; NaN where there was none

    def after(self, run: Scores) -> TrustReport:
        """The report with one more check: the same pairs as the run itself scored them.

        A scorer that behaves as long as it takes itself to be tested is caught by this.
        """
        last = compared("run", self.scores, run, self.rounding)
        return self.report.model_copy(update={"checks": (*self.report.checks, last)})

    def with_orders(self, margins: pd.DataFrame) -> Self:
        """The same trial of a metric that compares, with what all comparisons of the run say.

        It fails where both orders are not told to agree more often than by chance, of as many
        comparisons as can tell it.
        """
        figures = order_figures(margins)
        moved = (margins["margin"] + turned(margins)).abs()
        low = figures.alike_low
        check = Check(
            name="places",
            n_pairs=figures.comparisons,
            mean=_or_zero(moved.mean()),
            largest=_or_zero(moved.max()),
            n_lost=figures.one_order,
            passed=None if low is None or figures.comparisons < _FEW_COMPARISONS else low > 0.5,
        )
        return replace(
            self, report=self.report.model_copy(update={"checks": (*self.report.checks, check)})
        )

    @property
    def rounding(self) -> float:
        """The largest difference that is put down to rounding, in units of the score."""
        return _accepted(self.scores, self.report.spread, self.report.limit)

    def with_controls(self, prompt: PromptControl, content: ContentControl) -> Self:
        """The same trial, with what the score is about."""
        found = {"prompt": prompt, "content": content}
        return replace(self, report=self.report.model_copy(update=found))


def tried(
    client: ScorerClient,
    questions: Questions,
    benchmark: str,
    tell: Tell = lambda _done, _total: None,
) -> Trial:
    """Put a scorer through all checks but that of its run."""
    return trials(client, questions, benchmark, 1, tell)[0]


def trials(
    client: ScorerClient,
    questions: Questions,
    benchmark: str,
    outputs: int,
    tell: Tell = lambda _done, _total: None,
) -> tuple[Trial, ...]:
    """The same of each of so many outputs: asked once, and each with checks of its own."""
    items = canonical_items(questions)
    passes = _Passes(client, tell, outputs)
    before = passes.scores([items])
    # Batches of three images, strided, so that each is with others than before.
    n = max(1, -(-len(items) // 3))
    other: dict[CheckName, tuple[Scores, ...]] = {
        "repeat": passes.scores([items]),
        "order": passes.scores([[replace(one, asked=one.asked[::-1]) for one in items[::-1]]]),
        "batch": passes.scores([items[at::n] for at in range(n) if items[at::n]]),
        "alone": passes.scores(
            [[replace(one, asked=(text,))] for one in items for text in one.asked]
        ),
        "reencoded": passes.scores([_changed(items, reencoded)]),
        "one_pixel": passes.scores([_changed(items, one_step_brighter)]),
    }
    every = [{name: of[place] for name, of in other.items()} for place in range(outputs)]
    return tuple(
        _trial(client, benchmark, len(items), first, own)
        for first, own in zip(before, every, strict=True)
    )


def _trial(
    client: ScorerClient,
    benchmark: str,
    n_images: int,
    before: Scores,
    other: Mapping[CheckName, Scores],
) -> Trial:
    """`before`: scores of the pairs as they were asked first; `other`: as each check asked them."""
    spread = _spread(before)
    limit = LIMITS.get(client.environment.get("dtype", "float32"), LIMITS["float32"])
    accepted: dict[CheckName, float | None] = dict.fromkeys(other, _accepted(before, spread, limit))
    enough = n_images >= LOOKUP_IMAGES
    accepted["one_pixel"] = _accepted(before, spread, LOOKUP_SHARE) if enough else None
    report = TrustReport(
        benchmark=benchmark,
        n_pairs=len(before),
        n_images=n_images,
        n_scored=len(_numbers(before)),
        spread=spread,
        limit=limit,
        environment=client.environment,
        checks=tuple(
            compared(name, before, after, accepted[name]) for name, after in other.items()
        ),
    )
    return Trial(report, before)


def order_figures(margins: pd.DataFrame) -> OrderFigures:
    """How far the order decides, of a table of margins with a line for each order.

    Of comparisons that are ties in both orders nothing follows; what only one order answers is
    taken for no agreement.
    """
    there, back = margins["margin"].to_numpy(), turned(margins)
    answered = there[~np.isnan(there)]
    decided = np.nan_to_num([there, back]).any(axis=0)
    n = int(decided.sum()) // 2
    alike = float((np.sign(there) == -np.sign(back))[decided].mean()) if n else math.nan
    return OrderFigures(
        comparisons=n,
        alike=alike if n else None,
        alike_low=wilson_low(alike, n) if n else None,
        first=float((0.5 + 0.5 * np.sign(answered)).mean()) if answered.size else None,
        one_order=int((np.isnan(there) != np.isnan(back)).sum()) // 2,
    )


def _or_zero(figure: float) -> float:
    return 0.0 if math.isnan(figure) else float(figure)


def scores_of(client: ScorerClient, items: Sequence[RawItem]) -> Scores:
    """Scores by pair_id of one batch; NaN where there is none."""
    return output_scores(client, items, 1)[0]


def output_scores(
    client: ScorerClient, items: Sequence[RawItem], outputs: int
) -> tuple[Scores, ...]:
    """The same of each of so many outputs."""
    return _Passes(client, lambda _done, _total: None, outputs).scores([items])


def compared(name: CheckName, before: Scores, after: Scores, accepted: float | None) -> Check:
    """What one check says; of one grey level the typical change counts, of the others each.

    `accepted`: largest change that fails nobody, in units of the score; None: none does.
    """
    pairs = list(before)
    first = np.array([before[pair] for pair in pairs])
    second = np.array([after[pair] for pair in pairs])
    lost = np.isnan(first) != np.isnan(second)
    with np.errstate(over="ignore"):
        difference = np.minimum(np.abs(second - first), _LARGEST)
    both = ~(np.isnan(first) | np.isnan(second))
    moved = np.where(both, difference, 0.0)
    largest = float(moved.max(initial=0.0))
    worst = int(np.argmax(np.where(lost, math.inf, moved))) if pairs else 0
    shown = bool(lost.any()) or largest > 0.0
    passed = None
    if accepted is not None:
        counts = np.where(lost, math.inf, moved)
        most = _typical(counts) if name == "one_pixel" else float(counts.max(initial=0.0))
        # Where no pair has both scores, nothing was seen to be the same.
        passed = False if most > accepted else True if both.any() else None
    return Check(
        name=name,
        n_pairs=len(pairs),
        mean=largest * float((moved[both] / largest).mean()) if largest else 0.0,
        largest=largest,
        n_lost=int(lost.sum()),
        passed=passed,
        example=Example(
            pair_id=pairs[worst], before=_or_none(first[worst]), after=_or_none(second[worst])
        )
        if shown
        else None,
    )


class _Passes:
    """Asks batches and counts the passes."""

    def __init__(self, client: ScorerClient, tell: Tell, outputs: int) -> None:
        self._client = client
        self._tell = tell
        self._outputs = outputs
        self._done = 0

    def scores(self, batches: Sequence[Sequence[RawItem]]) -> tuple[Scores, ...]:
        """Of each output, by pair_id; NaN where there is none."""
        found: tuple[dict[str, float], ...] = tuple({} for _ in range(self._outputs))
        for number, items in enumerate(batches):
            reply = answered(self._client, Batch(number, tuple(items))).reply
            for item, verdicts in zip(items, reply.verdicts, strict=True):
                for one, verdict in zip(item.asked, verdicts, strict=True):
                    # A pair that could not be asked has a single NaN, for all outputs.
                    lacking = [math.nan] * (self._outputs - len(verdict.outputs))
                    values = (*verdict.outputs, *lacking)
                    for scores, value in zip(found, values, strict=True):
                        scores[one.pair_id] = value
        self._done += 1
        self._tell(self._done, _STEPS)
        return found


def canonical_items(questions: Questions) -> list[RawItem]:
    """Images as canonical PNG; one that cannot be read is left out, for the run to name."""
    asked: dict[str, list[PairRequest]] = {}
    for pair in questions.pairs:
        one = PairRequest(pair.pair_id, pair.text_id, questions.texts[pair.text_id])
        asked.setdefault(pair.image_id, []).append(one)
    found = []
    for image_id, texts in asked.items():
        try:
            data = each_image(questions.images[image_id](), canonical_png)
        except (ImageError, OSError, AssayError):
            continue
        found.append(RawItem(image_id, data, tuple(texts)))
    return found


def _changed(items: Sequence[RawItem], change: Callable[[Image.Image], bytes]) -> list[RawItem]:
    def changed(data: bytes) -> bytes:
        with Image.open(io.BytesIO(data)) as image:
            return change(image.convert("RGB"))

    return [replace(one, data=each_image(one.data, changed)) for one in items]


def _spread(scores: Scores) -> float:
    """Standard deviation with the lowest and highest tenth moved in to the next value.

    Otherwise one score far from all others would let these move as they like. Finite for any
    finite scores.
    """
    values = _numbers(scores)
    if not values.size:
        return 0.0
    size = float(np.abs(values).max()) or 1.0
    scaled = np.sort(values / size)
    cut = int(_TAIL * scaled.size)
    inner = np.clip(scaled, scaled[cut], scaled[-1 - cut])
    # Equal scores have no spread, whatever their mean is rounded to.
    return size * float(inner.std()) if inner[0] < inner[-1] else 0.0


def _typical(changes: NDArray[np.float64]) -> float:
    """Mean with the lowest and highest tenth moved in, as of the spread; infinite if one is left."""
    if not changes.size:
        return 0.0
    values = np.sort(changes)
    cut = int(_TAIL * values.size)
    inner = np.clip(values, values[cut], values[-1 - cut])
    size = float(inner[-1])
    return size * float((inner / size).mean()) if 0.0 < size < math.inf else size


def _accepted(scores: Scores, spread: float, limit: float) -> float:
    """Rounding of the scores themselves counts too: a metric may be almost constant.

    It counts by the precision that the scores are given in, and is never more than a few of its
    steps: nobody may hide what moves behind a large constant that is added.
    """
    values = _numbers(scores)
    # The middle one: a score far from the others must not pass for their size.
    size = float(np.sort(np.abs(values))[values.size // 2]) if values.size else 0.0
    with np.errstate(over="ignore"):
        single = bool((values.astype(np.float32) == values).all())
    step = float(np.finfo(np.float32 if single else np.float64).eps)
    return max(limit * spread, 2 * step * size)


def _numbers(scores: Scores) -> NDArray[np.float64]:
    return np.array([value for value in scores.values() if not math.isnan(value)])


def _or_none(value: np.floating) -> float | None:
    return None if math.isnan(value) else float(value)


def precision_band(found: Scores, reference: ClientSource, questions: Questions) -> PrecisionBand:
    """Compare scores with those of the reference."""
    with reference.open() as exact:
        return band(found, scores_of(exact, canonical_items(questions)), exact.environment)


def band(found: Scores, expected: Scores, environment: dict[str, str]) -> PrecisionBand:
    """The difference of two sets of scores."""
    ours = np.array(list(found.values()))
    theirs = np.array([expected[pair] for pair in found])
    both = ~(np.isnan(ours) | np.isnan(theirs))
    off = np.abs(ours[both] - theirs[both])
    return PrecisionBand(
        n_pairs=len(found),
        mean=float(off.mean()) if off.size else None,
        largest=float(off.max()) if off.size else None,
        n_lost=int((np.isnan(ours) != np.isnan(theirs)).sum()),
        reference=environment,
    )
