"""Several texts on one image: the image's prefix run once, against independent calls.

    python -m benchmarks_perf.vlm_prefix_reuse [--rounds 5] [--texts 2 4]

Two small random models in float32: one as Qwen2-VL is built (256 image tokens) and one as LLaVA is
(576). The plain side calls the library's model once per text with the whole sequence and takes the
last logits, as scorers of single pairs do. Images are made ready outside the clock on both sides.
CPU seconds on one thread, sides interleaved, median of per-round ratios; probabilities of Yes must
agree to 1e-5, also as a part of themselves, for random models give Yes little. Exits with 1 where
a gate fails: two texts 1.5 times, four 2.4 times as fast.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from PIL import Image
from transformers import PreTrainedModel

from benchmarks_perf.made_up_vlms import llava_like, qwen2_vl_like
from evaluator.scorers.answering import Candidate
from evaluator.scorers.models.chat_text import ChatText
from evaluator.scorers.models.chat_vlm import ChatVLM
from evaluator.scorers.models.vlm_reading import Reading

GATES = {2: 1.5, 4: 2.4}
TOLERANCE = 1e-5
TEXTS = (
    'Does this figure show "a red ball"? Please answer Yes or No.',
    'Does this figure show "two dogs and"? Please answer Yes or No.',
    'Does this figure show "a tall tree"? Please answer Yes or No.',
    'Does this figure show "some houses"? Please answer Yes or No.',
)
YES = Candidate("Yes")


class Sides:
    """Both ways to score texts of one image.

    Args:
        model: random, in eval mode.
        processor: of the model.
        n: number of texts.
    """

    def __init__(self, model: PreTrainedModel, processor: Any, n: int) -> None:
        self._model: Any = model
        self._texts = TEXTS[:n]
        self._text = ChatText(processor, Reading())
        self._vlm = ChatVLM(model, self._text, {})
        noise = np.random.default_rng(0).integers(0, 256, (448, 448, 3), dtype=np.uint8)
        self._seen = self._vlm.prepare(Image.fromarray(noise))
        self._inputs = [self._text.asked(self._seen, text) for text in self._texts]
        self._yes = self._text.answer(YES)[0]
        self.text_tokens = max(len(one.ids) for one in self._inputs) - self._image_tokens()
        self.image_tokens = self._image_tokens()

    def shared(self) -> np.ndarray:
        """P(Yes) of each text, the image's prefix run once."""
        found = self._vlm.answer_logprobs([self._seen], [self._texts], [[[YES]] * len(self._texts)])
        return np.exp([one[0][0] for one in found[0]])

    def independent(self) -> np.ndarray:
        """P(Yes) of each text, by a call of the library's model for each."""
        return np.array([self._plain(one) for one in self._inputs])

    def _plain(self, one: Any) -> float:
        if hasattr(self._model.model, "rope_deltas"):
            self._model.model.rope_deltas = None
        with torch.inference_mode():
            inputs = {**one.per_token, **one.pixels}
            logits = self._model(input_ids=one.ids[None], **inputs, logits_to_keep=1).logits
        return float(torch.softmax(logits[0, -1].float(), dim=-1)[self._yes])

    def _image_tokens(self) -> int:
        marks = torch.tensor(sorted(self._text.image_tokens))
        return int(torch.isin(self._inputs[0].ids, marks).sum())


def seconds(side: Callable[[], np.ndarray]) -> float:
    """CPU seconds of one call."""
    start = time.process_time()
    side()
    return time.process_time() - start


def measured(name: str, sides: Sides, n: int, rounds: int) -> bool:
    """Compare the two sides and say how they did; whether the gate is passed."""
    shared, independent = sides.shared(), sides.independent()
    change = float(np.abs(shared - independent).max())
    relative = float(np.abs(shared / independent - 1).max())
    times = [(seconds(sides.independent), seconds(sides.shared)) for _ in range(rounds)]
    plain, ours = (median(column) for column in zip(*times, strict=True))
    ratio = median(a / b for a, b in times)
    passed = ratio >= GATES[n] and max(change, relative) <= TOLERANCE
    print(
        f"{name}, {sides.image_tokens} image and up to {sides.text_tokens} text tokens, {n} texts: "
        f"independent {plain:.2f} s, shared {ours:.2f} s, ratio {ratio:.2f} "
        f"(goal {GATES[n]}), "
        f"largest change of P(Yes) {change:.1e}, {relative:.1e} of it: "
        f"{'ok' if passed else 'FAILED'}"
    )
    return passed


def main() -> int:
    """Run both models; 1 where a gate fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--texts", type=int, nargs="+", default=[2, 4], choices=sorted(GATES))
    args = parser.parse_args()
    torch.set_num_threads(1)
    passed = True
    for name, made in (("Qwen2-VL-like", qwen2_vl_like()), ("LLaVA-like", llava_like())):
        for n in args.texts:
            passed &= measured(name, Sides(*made, n), n, args.rounds)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
