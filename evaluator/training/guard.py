"""Contamination guard: what a board measures on is never trained on, by prompt text and image content.

Two prompts are the same where they differ in capitals, spacing, punctuation, invisible characters or
Unicode form only; two images, where all pixels are equal, however they are encoded. A prompt worded
otherwise, or an image scaled or cropped, is not recognised.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.errors import SubmitterError
from benchmarks.schema import Benchmark
from evaluator.scorers.answering import pixel_hash
from evaluator.scoring.images import ImageError, decode
from evaluator.scoring.progress import Listener, Tracker
from evaluator.training.data import TrainingData
from evaluator.training.recipe import Example

_THREADS = 4
ReadImage = Callable[[], bytes]


@dataclass(frozen=True)
class HeldOut:
    """What must not be trained on: of a benchmark, or of its held-out part."""

    name: str
    revision: str
    texts: tuple[str, ...]
    images: Mapping[str, ReadImage] | None  # None where its images are not at hand
    must_be_read: bool = False  # whether an image that cannot be read is an error

    @classmethod
    def of_part(cls, part: TrainingData) -> HeldOut:
        """The held-out part of the data that are trained on."""
        texts = tuple(part.questions.texts.values())
        images = part.questions.images  # which the model is measured on
        return cls(f"{part.name} (held out)", part.revision, texts, images, must_be_read=True)


@dataclass(frozen=True)
class Comparison:
    """What was found of one benchmark in the training examples."""

    name: str
    revision: str
    prompts: int  # different ones that were compared
    images: int | None  # different ones; None where they are not at hand, so prompts alone count
    dropped: int  # examples with one of its prompts or images


@dataclass(frozen=True)
class GuardedExamples:
    """The examples that may be trained on, and why others may not."""

    examples: tuple[Example, ...]
    dropped: Mapping[str, int]  # by the reason; each example counts once
    comparisons: tuple[Comparison, ...]
    digest: str  # of the ids, prompts, images and content of what is left
    held_out_images: str  # digest of the images that the model is measured on


def held_out_of(
    registry: Mapping[str, Benchmark], data: Path | None, without: Iterable[str]
) -> Iterator[HeldOut]:
    """Every benchmark at hand but some, whole: its board measures on all of it."""
    left_out = frozenset(without)
    for name, benchmark in registry.items():
        if name in left_out:
            continue
        if benchmark.has_questions(data):
            asked = benchmark.questions(data)
            texts = tuple(asked.texts.values())
            yield HeldOut(name, benchmark.card.revision, texts, asked.images)
        elif texts := _texts(benchmark, data):
            yield HeldOut(name, benchmark.card.revision, texts, None)


def _texts(benchmark: Benchmark, data: Path | None) -> tuple[str, ...]:
    """The prompts of a benchmark whose images are not at hand; empty where they are not either."""
    if benchmark.has_answers(data) and (told := benchmark.texts(data)):
        return tuple(told.values())
    try:
        return tuple(benchmark.prompts(data)["prompt"])
    except SubmitterError:
        return ()


def guard(
    examples: Sequence[Example], held_out: Sequence[HeldOut], listener: Listener | None = None
) -> GuardedExamples:
    """Drop every example with a prompt or an image of what is held out, or an image made of one.

    Raises:
        SubmitterError: `nothing_left`: no example is left; `image_unreadable`: an image of an
            example, or of the held-out part of its own data, cannot be read. Of other benchmarks
            such an image is passed over.
    """
    of_examples = {name: read for one in examples for name, read in one.images.items()}
    total = len(of_examples) + sum(len(one.images or ()) for one in held_out)
    tracker = Tracker(total, listener, stage="comparing")
    hashes = dict(_hashes(of_examples, tracker, strict=True))
    keys = [frozenset(map(_key, (*one.prompts, *one.made_of))) for one in examples]
    reasons: dict[str, str] = {}
    comparisons = []
    measured: list[tuple[str, str]] = []
    for one in held_out:
        prompts = set(map(_key, one.texts))
        read = dict(_hashes(one.images or {}, tracker, strict=one.must_be_read))
        images = set(read.values())
        measured += sorted(read.items()) if one.must_be_read else ()
        hit = 0
        for example, own in zip(examples, keys, strict=True):
            same_image = any(hashes[name] in images for name in example.images)
            if own & prompts or same_image:
                hit += 1
                what = "a prompt" if own & prompts else "an image"
                reasons.setdefault(example.example_id, f"{what} of {one.name}")
        n_images = None if one.images is None else len(images)
        comparisons.append(Comparison(one.name, one.revision, len(prompts), n_images, hit))
    kept = tuple(one for one in examples if one.example_id not in reasons)
    if examples and not kept:
        told = ", ".join(f"{c.name} ({c.dropped})" for c in comparisons if c.dropped)
        raise SubmitterError(
            "nothing_left",
            f"Each of the {len(examples)} examples has a prompt or an image that is held out: {told}.",
            "Bring other data, or name benchmarks that may be trained on with --overlap; the "
            "submission then says that it was.",
        )
    return GuardedExamples(
        kept,
        Counter(reasons.values()),
        tuple(comparisons),
        _digest(kept, hashes),
        hashlib.sha256(json.dumps(measured).encode()).hexdigest(),
    )


def _key(text: str) -> str:
    """What prompts share that differ in capitals, spacing, punctuation or Unicode form only."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    said = " ".join("".join(map(_without_marks, plain)).split())
    return said or " ".join(plain.split())


def _without_marks(character: str) -> str:
    """A letter or digit as it is, a space for punctuation, nothing for what is not seen."""
    category = unicodedata.category(character)
    if category == "Cf":
        return ""
    return " " if category.startswith("P") or character in "~`" else character


def _hashes(
    images: Mapping[str, ReadImage], tracker: Tracker, *, strict: bool = False
) -> Iterator[tuple[str, str]]:
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="images") as pool:
        for name, found in zip(images, pool.map(_hash, images.values()), strict=True):
            tracker.advance(1)
            if isinstance(found, str):
                yield name, found
            elif strict:
                raise SubmitterError(
                    "image_unreadable", f"{name}: {found}", "Mend the image, or leave it out."
                ) from found


def _hash(read: ReadImage) -> str | ImageError | OSError:
    try:
        return pixel_hash(decode(read()).image)
    except (ImageError, OSError) as error:
        return error


def _digest(examples: Iterable[Example], hashes: Mapping[str, str]) -> str:
    told = [
        (e.example_id, e.prompts, e.made_of, [hashes[name] for name in e.images], e.content)
        for e in examples
    ]
    return hashlib.sha256(json.dumps(told, default=_plain, sort_keys=True).encode()).hexdigest()


def _plain(value: Any) -> Any:
    """Content of an example as JSON values: arrays as lists, dataclasses by their fields."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if is_dataclass(value):
        return {one.name: getattr(value, one.name) for one in fields(value)}
    raise TypeError(f"content of an example cannot be a {type(value).__name__}")
