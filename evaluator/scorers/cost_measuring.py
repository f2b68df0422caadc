"""The rates of a built-in metric on this machine, found by asking it about made-up pictures."""

from __future__ import annotations

import io
import platform
import time
from collections.abc import Callable, Sequence
from datetime import datetime

import numpy as np
from PIL import Image

from benchmarks.errors import SubmitterError
from evaluator.scorers.cost import MeasuredRate
from evaluator.scorers.in_process import ModelClient
from evaluator.scorers.registry import Runtime, ScorerRow, load_scorer
from evaluator.scoring.asking import Item, OutOfMemoryError, PairRequest

SIDES = (512, 1024)
"""Pixels of the sides of pictures: most of the benchmarks' lie between these two."""
IMAGES = 16
TEXTS = 5  # Of an image, where it has more than one
_ROUNDS = 2
_PROMPT = "a red cube on a blue sphere beside two small green cones before a wooden fence, number"


def measured(
    row: ScorerRow,
    runtime: Runtime,
    now: datetime,
    *,
    images: int = IMAGES,
    clock: Callable[[], float] = time.perf_counter,
) -> MeasuredRate:
    """Load a metric, ask it about pictures of two sizes, and see how long one more takes.

    Every try is made twice after one that does not count; the least and the most are kept. Reading
    and preparing the pictures is part of it.
    """
    if row.asks_questions:
        raise SubmitterError(
            "not_measurable",
            f"What {row.name} costs depends on its questions.",
            "Run it on a part of a benchmark: python -m evaluator scorers run "
            f"{row.name} --limit 50 ...; its record says how many pairs a second it scored.",
        )
    if row.environment:
        raise SubmitterError(
            "not_measurable",
            f"{row.name} runs with the packages of the environment {row.environment}, not in this "
            "process.",
            f"See what it costs on a benchmark: python -m evaluator scorers run {row.name} --limit 50",
        )
    loaded = load_scorer(row, runtime)

    def seconds_for(side: int, texts: int) -> float:
        # A new one each time: it would know the texts of the time before.
        client = ModelClient(loaded, runtime, dtype=runtime.dtype or row.dtype)
        pictures = [_picture(side, number) for number in range(images)]
        began = clock()
        try:
            client.ask([_item(client, n, data, texts) for n, data in enumerate(pictures)])
        except OutOfMemoryError as error:
            raise SubmitterError(
                "not_measurable",
                f"{row.name} does not fit {images} pictures into the memory of {runtime.device}.",
                "Ask about fewer with --images, or in half precision with --dtype.",
            ) from error
        return clock() - began

    seconds_for(SIDES[0], 1)
    first, further = [], []
    for side in SIDES:
        for _ in range(_ROUNDS):
            once, often = seconds_for(side, 1), seconds_for(side, TEXTS)
            first.append(once / images)
            further.append(max(0.0, often - once) / (images * (TEXTS - 1)))
    environment = ModelClient(loaded, runtime, dtype=runtime.dtype or row.dtype).environment
    return MeasuredRate(
        row=row.name,
        device=_device(environment),
        dtype=environment["dtype"],
        image_s=_ends(first),
        text_s=_ends(further),
        images=images,
        sides=SIDES,
        measured_at=now,
        versions={key: environment[key] for key in ("torch", "transformers") if key in environment},
    )


def _item(client: ModelClient, number: int, data: bytes, texts: int) -> Item:
    # No two prompts are the same: a text that is known costs nothing.
    prompts = [f"{_PROMPT} {number} {text}" for text in range(texts)]
    asked = tuple(PairRequest(f"{number}-{t}", f"{number}-{t}", p) for t, p in enumerate(prompts))
    return Item(str(number), client.ready(data), asked)


def _picture(side: int, number: int) -> bytes:
    """Smooth, as drawn pictures are, and no two the same."""
    noise = np.random.default_rng(number).integers(0, 256, (16, 16, 3), dtype=np.uint8)
    held = io.BytesIO()
    Image.fromarray(noise).resize((side, side), Image.Resampling.BICUBIC).save(held, "PNG")
    return held.getvalue()


def _device(environment: dict[str, str]) -> str:
    """The GPU as its driver names it; of a processor its kind and the threads it was given."""
    if environment["device"] != "cpu":
        return environment["device"]
    return f"cpu ({platform.machine()}, {environment.get('threads', '1')} threads)"


def _ends(values: Sequence[float]) -> tuple[float, float]:
    return min(values), max(values)
