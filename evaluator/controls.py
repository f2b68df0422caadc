"""Controls of what a score is about: the prompt, and nothing that leaves the content.

A sample of images with a prompt each is scored in all combinations, and then changed in ways that
leave what can be seen and what is asked.

Cost: 24 x 24 pairs, 7 x 24 changed ones and 24 empty prompts, whatever the benchmark. A metric that
compares is asked 24 x 23 pairs and 6 x 24 changed ones, each in both orders.
"""

from __future__ import annotations

import hashlib
import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageEnhance, ImageOps

from benchmarks.arrays import BoolArray, FloatArray
from benchmarks.cases import BETWEEN_SKILLS
from benchmarks.errors import SubmitterError
from benchmarks.schema import Benchmark, Pair, Questions
from benchmarks.statistics.content_effect import ChangeEffect, content_effect
from benchmarks.statistics.prompt_effect import MIN_SIZE, Area, prompt_effect
from evaluator.scoring.asking import PairRequest, RawItem, ScorerClient
from evaluator.scoring.comparing import AgainstImage
from evaluator.trust import canonical_items, output_scores
from leaderboard.trust import (
    CHANGES,
    AreaFigures,
    ChangeFigures,
    ChangeName,
    ContentControl,
    PromptControl,
)

SIZE = 24
"""Prompts, and images, of a sample."""
ENDED = "it ended when it was asked about prompts of other images"
ENDED_BY_CHANGES = "it ended when it was asked about changed images"

Skills = Mapping[str, frozenset[str]]
"""Pair id to the skills that its prompt tests."""


@dataclass(frozen=True)
class Crossing:
    """A sample of images with a prompt each; no image is asked with another's in the benchmark."""

    questions: Questions  # pairs: one of each image, in an order that nobody can know
    skills: Skills  # of these pairs; empty where they are not known
    seed: bytes  # decides in which direction, and where, each image is changed

    @property
    def texts(self) -> list[str]:
        """The prompts, shape (P,); the p-th is that of the p-th pair."""
        return [self.questions.texts[pair.text_id] for pair in self.questions.pairs]

    @property
    def alike(self) -> BoolArray | None:
        """Shape (P, P), whether two prompts share a skill; None where that is not known."""
        if not self.skills:
            return None
        of = [self.skills.get(pair.pair_id, frozenset()) for pair in self.questions.pairs]
        return np.array([[bool(one & other) for other in of] for one in of], bool)


def crossed(questions: Questions, seed: bytes, skills: Skills | None = None) -> Crossing:
    """Draw up to `SIZE` images, by a keyed hash: nobody can know them without the key.

    The right prompt of an image is one that the benchmark asks of it. Where that asks several, it
    may be one of a contrast: closer to the image than another's prompt all the same.
    """

    def place(name: str) -> bytes:
        return hashlib.blake2b(name.encode(), key=seed, person=b"prompt", digest_size=16).digest()

    by_image: dict[str, list[Pair]] = {}
    for pair in questions.pairs:
        if questions.texts[pair.text_id].strip():
            by_image.setdefault(pair.image_id, []).append(pair)
    chosen: list[Pair] = []
    own: set[str] = set()
    asked: set[str] = set()
    for image in sorted(by_image, key=place):
        one = min(by_image[image], key=lambda pair: place(pair.pair_id))
        text = questions.texts[one.text_id]
        texts = {questions.texts[pair.text_id] for pair in by_image[image]}
        if text in asked or texts & own:
            continue
        chosen.append(one)
        own.add(text)
        asked |= texts
        if len(chosen) == SIZE:
            break
    known = skills or {}
    named = {pair.pair_id: known[pair.pair_id] for pair in chosen if pair.pair_id in known}
    few = replace(
        questions,
        images={pair.image_id: questions.images[pair.image_id] for pair in chosen},
        pairs=tuple(chosen),
    )
    return Crossing(few, named, seed)


@dataclass(frozen=True)
class Controls:
    """What a scorer is said to be about."""

    prompt: PromptControl
    content: ContentControl


def controls(
    client: ScorerClient,
    crossing: Crossing,
    *,
    direction: int = 1,
    rounding: float = 0.0,
    compares: bool = False,
) -> Controls:
    """Put a scorer through the controls; what it cannot answer is counted, and never dropped.

    `direction`: +1 where higher scores are better, else -1; `rounding`: largest difference that is
    put down to rounding; `compares`: an image's score is its margin over that of the prompt, its
    changes are of its margin over the image of another prompt, and no prompt is empty.
    """
    return controls_of_each(client, crossing, [Output(direction, rounding)], compares=compares)[0]


@dataclass(frozen=True)
class Output:
    """One of the scores that a scorer gives for a pair."""

    direction: int = 1  # +1 where higher scores are better, else -1
    rounding: float = 0.0  # the largest difference that is put down to rounding


def controls_of_each(
    client: ScorerClient,
    crossing: Crossing,
    outputs: Sequence[Output],
    *,
    compares: bool = False,
) -> tuple[Controls, ...]:
    """The controls of each output of a scorer, asked once; see `controls`."""
    pairs = crossing.questions.pairs
    if len(pairs) < MIN_SIZE:
        few = f"only {len(pairs)} images have prompts of their own; {MIN_SIZE} are needed"
        return (_undecided(few),) * len(outputs)
    items = {one.image_id: one for one in canonical_items(crossing.questions)}
    there = [items[pair.image_id] for pair in pairs if pair.image_id in items]
    own = client if not compares else _against(client, crossing, there, step=0)
    signs = np.array([one.direction for one in outputs], dtype=np.float64)
    try:
        tables = signs[:, None, None] * _scores(own, crossing, there, len(outputs))
    except SubmitterError:
        return (_undecided(ENDED, n_cells=len(pairs) ** 2),) * len(outputs)
    # A longer prompt is the same for both images of a comparison, and so is an empty one.
    names = [name for name in CHANGES if not (compares and name == "length")]
    other = client if not compares else _against(client, crossing, there, step=1)
    senses, after = _after_changes(other, crossing, there, names, len(outputs))
    after *= signs[:, None, None]
    empty = np.empty((len(outputs), 0))
    if compares:
        # Under the prompt of an image, how far the next one's scored above it.
        places = np.arange(len(pairs))
        after += tables[:, places, np.roll(places, -1)][:, None]
    else:
        empty = signs[:, None] * _own_scores(client, crossing, there, lambda _: "", len(outputs))
    return tuple(
        Controls(
            _prompt_control(crossing, tables[place], empty[place], one.rounding),
            _content_control(tables[place], names, after[place], senses, one.rounding),
        )
        for place, one in enumerate(outputs)
    )


def _against(
    client: ScorerClient, crossing: Crossing, items: Sequence[RawItem], step: int
) -> AgainstImage:
    """Scores by margins over the image of each prompt, or of the prompt so many places on."""
    data = {item.image_id: item.data for item in items}
    named = [pair.image_id for pair in crossing.questions.pairs]
    images = zip(crossing.texts, named[step:] + named[:step], strict=True)
    return AgainstImage(client, {text: data[image] for text, image in images if image in data})


def _undecided(why_not: str, n_cells: int = 0) -> Controls:
    return Controls(
        PromptControl(verdict="undecided", why_not=why_not, n_cells=n_cells),
        ContentControl(verdict="undecided", why_not=why_not),
    )


def _prompt_control(
    crossing: Crossing, table: FloatArray, empty: FloatArray, rounding: float
) -> PromptControl:
    """`table`: shape (P, P); `empty`: (P,), each image with no prompt, (0,) where none was asked."""
    found = prompt_effect(table, np.arange(len(table)), crossing.alike, rounding)
    change = empty - table.diagonal()[: len(empty)]
    known = ~np.isnan(change)
    return PromptControl(
        verdict=found.verdict,
        why_not="too few scores to tell" if math.isnan(found.centred.value) else "",
        n_prompts=found.n_prompts,
        n_images=found.n_images,
        n_cells=table.size,
        n_missing=found.n_missing,
        prompt_share=_or_none(found.prompt_share),
        image_share=_or_none(found.image_share),
        both_share=_or_none(found.both_share),
        match=_or_none(found.match),
        match_se=_or_none(found.match_se),
        raw=_figures(found.raw),
        centred=_figures(found.centred),
        within=_figures(found.within),
        empty_change=float(change[known].mean()) if known.any() else None,
        n_empty=len(change),
        n_empty_missing=int((~known).sum()),
    )


def _or_none(figure: float) -> float | None:
    return None if math.isnan(figure) else figure


def _figures(area: Area) -> AreaFigures | None:
    return None if math.isnan(area.value) else AreaFigures(**vars(area))


def _scores(
    client: ScorerClient, crossing: Crossing, items: Sequence[RawItem], outputs: int
) -> FloatArray:
    """Of each prompt with each image, shape (outputs, P, P); a request is an image with all prompts."""
    pairs = crossing.questions.pairs
    asked = tuple(
        PairRequest(str(p), pair.text_id, text)
        for p, (pair, text) in enumerate(zip(pairs, crossing.texts, strict=True))
    )
    tables = np.full((outputs, len(pairs), len(pairs)), np.nan)
    for item in items:
        found = output_scores(client, [replace(item, asked=asked)], outputs)
        tables[:, :, _places(pairs)[item.image_id]] = [
            [scores[one.pair_id] for one in asked] for scores in found
        ]
    return tables


def _own_scores(
    client: ScorerClient,
    crossing: Crossing,
    items: Sequence[RawItem],
    prompt: Callable[[str], str],
    outputs: int,
) -> FloatArray:
    """Of each image with its own prompt, changed, shape (outputs, P); NaN of all where it ends."""
    pairs = crossing.questions.pairs
    places, texts = _places(pairs), crossing.texts
    scores = np.full((outputs, len(places)), np.nan)
    asked = [
        replace(item, asked=(PairRequest(item.image_id, "", prompt(texts[places[item.image_id]])),))
        for item in items
    ]
    try:
        found = output_scores(client, asked, outputs)
    except SubmitterError:
        return scores
    for own, by_image in zip(scores, found, strict=True):
        for image_id, score in by_image.items():
            own[places[image_id]] = score
    return scores


def _places(pairs: Sequence[Pair]) -> dict[str, int]:
    return {pair.image_id: place for place, pair in enumerate(pairs)}


# Changes that leave the content

MORE_WORDS = " This is what the image shows."
"""Added to a prompt until it is half as long again: it says nothing."""
_BRIGHTER, _MORE_SATURATED = 1.25, 1.5
_JPEG_QUALITY = 50
_BORDER, _MARK = 1 / 16, 1 / 4
"""Width of a border and of a watermark, of the shorter side."""
_OPACITY = 0.5


def _after_changes(
    client: ScorerClient,
    crossing: Crossing,
    items: Sequence[RawItem],
    names: Sequence[ChangeName],
    outputs: int,
) -> tuple[FloatArray, FloatArray]:
    """Signs of the changes, shape (changes, P), and scores after them, (outputs, changes, P)."""
    places = _places(crossing.questions.pairs)
    signs = np.ones((len(names), len(places)))
    after = np.full((outputs, *signs.shape), np.nan)
    for row, name in enumerate(names):
        rng = np.random.default_rng(_seed(crossing.seed, name))
        signs[row] = _balanced(rng, len(places)) if name in _SIGNED else 1.0
        changed = [
            _changed(item, name, int(signs[row, places[item.image_id]]), rng) for item in items
        ]
        prompt = longer if name == "length" else str
        after[:, row] = _own_scores(client, crossing, changed, prompt, outputs)
    return signs, after


def _content_control(
    table: FloatArray,
    names: Sequence[ChangeName],
    after: FloatArray,
    signs: FloatArray,
    rounding: float,
) -> ContentControl:
    """`table`: shape (P, P), of the images as they are; `after`, `signs`: (changes, P)."""
    own = np.arange(len(table))
    found = content_effect(table, own, after, signs, rounding)
    effects = dict(zip(names, found.changes, strict=True))
    if np.isnan(after).all():
        why_not = ENDED_BY_CHANGES if not np.isnan(table).all() else "it gave no scores"
    elif all(math.isnan(one.value) for one in found.changes):
        why_not = "its scores are too few, or all alike"
    else:
        why_not = ""
    verdicts = {one.verdict for one in found.changes}
    return ContentControl(
        verdict=next(one for one in ("moved", "undecided", "steady") if one in verdicts),
        why_not=why_not,
        spread=_or_none(found.spread),
        changes=tuple(_change_figures(name, effect) for name, effect in effects.items()),
    )


def _change_figures(name: ChangeName, effect: ChangeEffect) -> ChangeFigures:
    return ChangeFigures(
        name=name,
        verdict=effect.verdict,
        value=_or_none(effect.value),
        low=_or_none(effect.low),
        high=_or_none(effect.high),
        n_images=effect.n_images,
        n_missing=effect.n_missing,
    )


_SIGNED = frozenset({"brightness", "saturation"})
"""Changes in both directions: half of the images in each."""


def _seed(key: bytes, name: str) -> int:
    digest = hashlib.blake2b(name.encode(), key=key, person=b"change", digest_size=16)
    return int.from_bytes(digest.digest(), "big")


def _balanced(rng: np.random.Generator, n: int) -> FloatArray:
    found: FloatArray = rng.permutation(np.where(np.arange(n) % 2 == 0, 1.0, -1.0))
    return found


def longer(prompt: str) -> str:
    """A prompt that is at least half as long again and asks the same."""
    times = max(1, math.ceil(0.5 * len(prompt) / len(MORE_WORDS)))
    return prompt + MORE_WORDS * times


def _changed(item: RawItem, name: ChangeName, sign: int, rng: np.random.Generator) -> RawItem:
    if name == "length":
        return item
    with Image.open(io.BytesIO(item.data)) as opened:
        image = changed_image(opened.convert("RGB"), name, sign, rng)
    return replace(item, data=_png(image))


def changed_image(
    image: Image.Image, name: ChangeName, sign: int, rng: np.random.Generator
) -> Image.Image:
    """An RGB image that shows the same; `sign`: -1 for the opposite of a change that has one."""
    if name == "brightness":
        return ImageEnhance.Brightness(image).enhance(_BRIGHTER**sign)
    if name == "saturation":
        return ImageEnhance.Color(image).enhance(_MORE_SATURATED**sign)
    if name == "jpeg":
        buffer = io.BytesIO()
        image.save(buffer, "JPEG", quality=_JPEG_QUALITY)
        return Image.open(buffer).convert("RGB")
    if name == "resize":
        half = max(1, image.width // 2), max(1, image.height // 2)
        return image.resize(half, Image.Resampling.LANCZOS)
    if name == "border":
        grey = int(rng.choice([0, 128, 255]))
        return ImageOps.expand(image, max(1, round(_BORDER * min(image.size))), (grey,) * 3)
    return _marked(image, rng)


def _marked(image: Image.Image, rng: np.random.Generator) -> Image.Image:
    """With a half-transparent white ring and bar in one corner."""
    side = max(2, round(_MARK * min(image.size)))
    left, top = (int(rng.integers(2)) * (whole - side) for whole in image.size)
    mask = Image.new("L", image.size, 0)
    pen, level = ImageDraw.Draw(mask), round(255 * _OPACITY)
    width = max(1, side // 8)
    pen.ellipse((left, top, left + side - 1, top + side - 1), outline=level, width=width)
    middle = top + side // 2
    pen.rectangle((left, middle - width // 2, left + side - 1, middle + width // 2), fill=level)
    return Image.composite(Image.new("RGB", image.size, (255, 255, 255)), image, mask)


def _png(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()


def skills_of(benchmark: Benchmark, data: Path | None) -> Skills:
    """Skills by pair; none where answers are withheld, not at hand, or name none."""
    if not benchmark.card.answers_public or not benchmark.has_answers(data):
        return {}
    cases = benchmark.cases(benchmark.answers(data), data)
    if cases is None:
        return {}
    named = zip(cases["pair_id"], cases["skills"], strict=True)
    return {
        str(pair): frozenset(filter(None, skills.split(BETWEEN_SKILLS))) for pair, skills in named
    }
