"""Several texts of one image by BLIP2-ITM against a call of the library's model for each pair.

    python -m benchmarks_perf.itm_image_sharing [--rounds 5]

A random BLIP-2 whose vision tower takes about nine tenths of the time where an image has two
texts, as in the real one. Both sides get the same pixels and prompts, run alternately in one
process on one thread, and must agree on every probability to 1e-6; the clock counts CPU seconds.
"""

from __future__ import annotations

import argparse
import copy
import string
import sys
import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import numpy as np
import torch
from PIL import Image
from transformers import (
    BertTokenizer,
    Blip2Config,
    Blip2ForImageTextRetrieval,
    BlipImageProcessorPil,
)

from evaluator.scorers.families.cross_encoder import MatchScorer
from evaluator.scorers.models.blip2_matching import Blip2Matcher

GATES = {2: 1.6, 10: 4.5}
"""Texts per image, and how many times cheaper they must be than apart."""
TOLERANCE = 1e-6
N_IMAGES = 4
SIDE = 224


def small_config(n_words: int) -> Blip2Config:
    """A tower that takes most of the time, and 32 query tokens."""
    return Blip2Config(
        vision_config={
            "hidden_size": 384,
            "intermediate_size": 1536,
            "num_hidden_layers": 6,
            "num_attention_heads": 6,
            "image_size": SIDE,
            "patch_size": 14,
        },
        qformer_config={
            "hidden_size": 256,
            "intermediate_size": 1024,
            "num_hidden_layers": 4,
            "num_attention_heads": 4,
            "vocab_size": n_words + 1,
            "use_qformer_text_input": True,
        },
    )


def random_model(config: Blip2Config) -> Any:
    """Weights large enough for an image to matter; the library's own draw is close to 0."""
    torch.manual_seed(0)
    model: Any = Blip2ForImageTextRetrieval(config)
    with torch.no_grad():
        for value in model.parameters():
            if value.ndim > 1:
                value.normal_(0, value.shape[-1] ** -0.5)
    return model.eval()


def letters() -> BertTokenizer:
    """A tokenizer of single letters."""
    pieces = string.ascii_lowercase
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *pieces, *(f"##{p}" for p in pieces)]
    return BertTokenizer(vocab={word: place for place, word in enumerate(words)})


def prompts(count: int) -> list[str]:
    """About 20 tokens each."""
    drawn = np.random.default_rng(1)
    return [" ".join(drawn.choice(list(string.ascii_lowercase), 18)) for _ in range(count)]


def independent(
    model: Any, tokenizer: BertTokenizer, pixels: list[torch.Tensor], texts: list[str]
) -> list[float]:
    """The library's forward pass of every pair on its own."""
    found = []
    with torch.inference_mode():
        for image in pixels:
            for text in texts:
                inputs = tokenizer([text], return_tensors="pt", return_token_type_ids=False)
                out = model(
                    pixel_values=image[None],
                    **inputs,
                    use_image_text_matching_head=True,
                )
                found.append(float(out.logits_per_image.double().softmax(dim=1)[0, 1]))
    return found


def shared(scorer: MatchScorer, pixels: list[torch.Tensor], texts: list[str]) -> list[float]:
    """Each image with all its texts, one image at a time."""
    return [
        score for image in pixels for of in scorer.score_texts([image], [texts]) for score in of
    ]


def cpu_seconds(run: Callable[[], object]) -> float:
    """What a call costs this process."""
    start = time.process_time()
    run()
    return time.process_time() - start


def main() -> int:
    """Print a table; 0 where every gate holds."""
    parser = argparse.ArgumentParser(description="BLIP2-ITM: several texts of one image")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    tokenizer = letters()
    plain = random_model(small_config(len(tokenizer)))
    processor = BlipImageProcessorPil(size={"height": SIDE, "width": SIDE})
    scorer = MatchScorer(Blip2Matcher(copy.deepcopy(plain), tokenizer, processor, 35, 64))
    drawn = np.random.default_rng(0).integers(0, 256, (N_IMAGES, 64, 64, 3), dtype=np.uint8)
    pixels = [scorer.prepare(Image.fromarray(noise)) for noise in drawn]
    print(
        f"CPU seconds on one thread, median of {options.rounds} interleaved rounds, {N_IMAGES} images"
    )
    print(
        f"{'texts':>6}{'apart':>9}{'shared':>9}{'ratio':>8}{'gate':>7}{'max dP':>10}{'spread':>8}"
    )
    held = True
    for count, gate in GATES.items():
        runs: dict[str, Callable[[], list[float]]] = {
            "apart": partial(independent, plain, tokenizer, pixels, prompts(count)),
            "shared": partial(shared, scorer, pixels, prompts(count)),
        }
        found = {name: np.array(run()) for name, run in runs.items()}
        times = [
            {name: cpu_seconds(run) for name, run in runs.items()} for _ in range(options.rounds)
        ]
        ratio = median(each["apart"] / each["shared"] for each in times)
        error = float(np.abs(found["apart"] - found["shared"]).max())
        apart, together = (median(each[name] for each in times) for name in runs)
        print(
            f"{count:6}{apart:9.3f}{together:9.3f}{ratio:8.2f}{gate:7.1f}{error:10.1e}"
            f"{np.ptp(found['apart']):8.3f}"
        )
        held &= ratio >= gate and error <= TOLERANCE
    print(f"gate 14: {'holds' if held else 'FAILS'}")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
