"""What an image, a text and a pair cost, found by asking differently: against known costs."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from PIL import Image

from evaluator.isolation.inside.frames import Capability
from evaluator.submission.checking.costs import LARGE_SIDE, MEDIUM_SIDE, Costs, measured

TEXTS = ["a red circle", "two blue squares", "no star"]


def _picture(shade: int) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (64, 48), (shade, 0, 0)).save(buffer, "PNG")
    return buffer.getvalue()


@dataclass
class Slow:
    """A scorer whose every part takes a known time on a clock of its own."""

    capabilities: Capability = Capability.SCORE
    per_image: float = 0.0
    per_pixel: float = 0.0
    per_text: float = 0.0
    per_pair: float = 0.0
    now: float = 0.0
    pairs: int = 0
    seen: set[str] = field(default_factory=set)

    def clock(self) -> float:
        return self.now

    def score(self, images: Sequence[bytes], pairs: Sequence[tuple[int, str]]) -> list[float]:
        for data in images:
            with Image.open(io.BytesIO(data)) as image:
                self.now += self.per_image + self.per_pixel * image.width * image.height
        new = {text for _, text in pairs} - self.seen
        self.seen |= new
        self.now += self.per_text * len(new) + self.per_pair * len(pairs)
        self.pairs += len(pairs)
        return [0.0] * len(pairs)

    def score_elements(
        self, images: Sequence[bytes] | None, items: Sequence[tuple[int, str, Sequence[str]]]
    ) -> list[float]:
        self.now += sum(0.25 for _, _, elements in items for _ in elements)
        return []


def _measured(box: Slow) -> Costs:
    return measured(box, [_picture(i) for i in range(20)], TEXTS, clock=box.clock)


def test_the_parts_of_a_dual_encoder_are_told_apart() -> None:
    box = Slow(Capability.SCORE | Capability.ENCODE, per_image=0.03, per_text=0.02, per_pair=0.001)
    small = _measured(box).small[0]
    assert small.image == pytest.approx(0.03)
    assert small.text == pytest.approx(0.02)
    assert small.pair == pytest.approx(0.001)


def test_a_cross_encoder_has_no_price_of_texts() -> None:
    box = Slow(Capability.SCORE, per_image=0.01, per_pair=0.05)
    small = _measured(box).small[0]
    assert (small.text, small.elements) == (0.0, 0.0)
    assert small.image == pytest.approx(0.01)
    assert small.pair == pytest.approx(0.05)


def test_larger_pictures_cost_what_they_cost() -> None:
    box = Slow(Capability.SCORE, per_pixel=1e-5, per_pair=0.001)
    found = _measured(box)
    assert found.small_side == 64
    assert found.medium.image == pytest.approx(1e-5 * MEDIUM_SIDE**2)
    assert found.large.image == pytest.approx(1e-5 * LARGE_SIDE**2)


def test_elements_are_measured_where_they_are_scored() -> None:
    box = Slow(Capability.SCORE | Capability.SCORE_ELEMENTS, per_pair=0.01)
    assert _measured(box).large.elements == pytest.approx(0.5)


def test_a_slow_scorer_is_asked_little() -> None:
    slow, fast = Slow(per_pair=10.0), Slow(per_pair=0.01)
    _measured(slow)
    _measured(fast)
    assert slow.pairs < 50 < fast.pairs
