"""Training of the bundled two-tower scorer on rendered scenes that no benchmark holds.

The scenes follow the grammar of the demo benchmarks, from seeds of their own. Every scene comes
with a variant that is wrong in one respect, and the network learns to tell the two apart, beside
telling a scene from the others of its batch. The network itself is defined once, in the scorer.

    python -m tools.demo_split.train_two_tower --out evaluator/demo/scorers/two_tower --seed 1

The card of the published version names the command as it was then: a card belongs to the content of a
submission, and one version has one content.
"""

from __future__ import annotations

import argparse
import importlib.util
import logging
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from safetensors.torch import save as packed
from torch import Tensor, nn
from torch.nn import functional

from tools.demo_split.language import prompts
from tools.demo_split.models import CONTRADICTIONS, Contradiction, contradict, contradictions_of
from tools.demo_split.pictures import draw
from tools.demo_split.scenes import Chance, Scene, sample_scene

FOLDER = Path(__file__).parents[2] / "evaluator" / "demo" / "scorers" / "two_tower"
WEIGHTS = "weights.safetensors"
CARD = "README.md"
MARKS = ("<!-- held-out: begin -->", "<!-- held-out: end -->")
"""The lines of the card between which the results are written."""
FORMS = 5
"""Sentences kept of a scene; some scenes have fewer, and repeat the last."""
THREADS = 2
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Options:
    """How to train."""

    seed: int  # of the scenes, the pictures and the first weights
    scenes: int  # scenes to train on; twice as many pictures
    epochs: int  # how often each is seen
    batch: int  # scenes of one step
    rate: float  # the highest learning rate
    held_out: int  # scenes per kind of contradiction to measure on


@dataclass(frozen=True)
class Examples:
    """Scenes, each with a variant that is wrong in one respect."""

    pictures: NDArray[np.uint8]  # shape (n, 2, side, side, 3): of the scene and of its variant
    sentences: NDArray[np.int64]  # shape (n, 2, FORMS, length)
    # shape (n, 2), whether the picture of a side is wrong for the other side's sentence; a picture
    # with one thing more also shows what the shorter sentence asks for
    wrong: NDArray[np.bool_]

    def __len__(self) -> int:
        """How many scenes there are."""
        return len(self.pictures)


def load_scorer(folder: Path = FOLDER) -> ModuleType:
    """The scorer's module, which holds the network."""
    spec = importlib.util.spec_from_file_location("two_tower_scorer", folder / "scorer.py")
    if spec is None or spec.loader is None:
        raise ImportError(f"{folder} holds no scorer.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make_examples(scorer: ModuleType, n: int, rng: Chance, kind: str | None = None) -> Examples:
    """Invent and draw scenes with their contradictions, all of one kind or of any."""
    pictures: list[list[NDArray[np.uint8]]] = []
    sentences: list[list[list[list[int]]]] = []
    wrong: list[tuple[bool, bool]] = []
    while len(pictures) < n:
        scene = sample_scene(rng)
        if kind is not None and kind not in contradictions_of(scene):
            continue
        variant = contradict(scene, rng, kind)
        sides = (scene, variant.scene)
        pictures.append([_picture(scorer, side, rng) for side in sides])
        sentences.append([_sentences(scorer, side) for side in sides])
        wrong.append(_wrong(variant))
    return Examples(np.array(pictures), np.array(sentences), np.array(wrong))


def _picture(scorer: ModuleType, scene: Scene, rng: Chance) -> NDArray[np.uint8]:
    found: NDArray[np.uint8] = scorer.pixels(Image.fromarray(draw(scene, rng)))
    return found


def _sentences(scorer: ModuleType, scene: Scene) -> list[list[int]]:
    said = [scorer.tokens(text) for text in prompts(scene)]
    return (said + said[-1:] * FORMS)[:FORMS]


def _wrong(variant: Contradiction) -> tuple[bool, bool]:
    if variant.mutual:
        return True, True
    return (True, False) if variant.kind == "added" else (False, True)


def train(scorer: ModuleType, examples: Examples, options: Options) -> nn.Module:
    """Train a new network."""
    torch.manual_seed(options.seed)
    network: nn.Module = scorer.Network()
    optimiser = torch.optim.AdamW(network.parameters(), lr=options.rate, weight_decay=0.02)
    steps = options.epochs * (len(examples) // options.batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, options.rate, total_steps=steps, pct_start=0.1
    )
    order = np.random.default_rng(options.seed)
    for epoch in range(options.epochs):
        started, losses = time.monotonic(), []
        for chosen in _batches(len(examples), options.batch, order):
            form = order.integers(0, FORMS, (len(chosen), 2))
            loss = _loss(network, examples, chosen, form)
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            losses.append(loss.item())
        took = time.monotonic() - started
        _LOG.info("epoch %d: loss %.4f, %.0f s", epoch + 1, np.mean(losses), took)
    return network.eval()


def _batches(n: int, size: int, order: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    shuffled = order.permutation(n)
    for start in range(0, n - size + 1, size):
        yield shuffled[start : start + size]


def _loss(
    network: Any, examples: Examples, chosen: NDArray[np.int64], form: NDArray[np.int64]
) -> Tensor:
    """Contrast within the batch, and once more between each scene and its variant."""
    pictures = torch.from_numpy(examples.pictures[chosen]).flatten(0, 1)
    said = examples.sentences[chosen[:, None], np.array([[0, 1]]), form]
    images = network.images(pictures)
    texts = network.texts(torch.from_numpy(said).flatten(0, 1))
    logits = network.log_sharpness.exp().clamp(max=60) * images @ texts.T
    wrong = torch.from_numpy(examples.wrong[chosen]).flatten()
    own = torch.arange(len(logits))
    beside = own ^ 1  # a scene and its variant are neighbours
    right, across = logits[own, own], logits[own, beside]
    hard = functional.softplus(across - right) + functional.softplus(across - right[beside])
    # What is not wrong must not be pushed away either.
    excused = torch.zeros_like(logits)
    excused[own, beside] = torch.zeros(len(own)).masked_fill(~wrong, -math.inf)
    contrast = logits + excused
    found: Tensor = (
        functional.cross_entropy(contrast, own)
        + functional.cross_entropy(contrast.T, own)
        + (hard * wrong).mean()
    )
    return found


def accuracy(network: Any, examples: Examples) -> float:
    """How often the right one of two scores is higher, over both forms of contrast.

    A picture with two sentences and a sentence with two pictures, wherever the wrong one really is
    wrong; plain wording.
    """
    with torch.inference_mode():
        images = _encoded(network.images, examples.pictures)
        texts = _encoded(network.texts, examples.sentences[:, :, 0])
    scores = torch.einsum("nid,ntd->nit", images, texts).numpy()
    right = np.stack([scores[:, 0, 0], scores[:, 1, 1]], 1)
    across = np.stack([scores[:, 0, 1], scores[:, 1, 0]], 1)
    by_text = (right > across)[examples.wrong]
    by_image = (right[:, ::-1] > across)[examples.wrong]
    return float(np.concatenate([by_text, by_image]).mean())


def _encoded(tower: Any, items: NDArray[np.generic]) -> Tensor:
    parts = [tower(part) for part in torch.from_numpy(items).flatten(0, 1).split(256)]
    pairs: Tensor = torch.cat(parts).unflatten(0, (-1, 2))
    return pairs


def held_out(scorer: ModuleType, network: nn.Module, n: int, seed: int) -> dict[str, float]:
    """Accuracy on fresh scenes, by kind of contradiction and (`overall`) over the natural mix."""
    fresh = make_examples(scorer, 2 * n, Chance("two-tower", "held-out", seed))
    found = {"overall": accuracy(network, fresh)}
    for kind in CONTRADICTIONS:
        rng = Chance("two-tower", "held-out", seed, kind)
        found[kind] = accuracy(network, make_examples(scorer, n, rng, kind))
    return found


def write_card(card: Path, results: dict[str, float], facts: Sequence[str]) -> None:
    """Put the results between the marks of the card, and leave the rest of it as it is."""
    rows = [f"| {kind} | {value:.3f} |" for kind, value in results.items()]
    table = ["| contradiction | held-out accuracy |", "|---|---|", *rows]
    text = card.read_text(encoding="utf-8") if card.exists() else "\n".join(MARKS)
    before, _, rest = text.partition(MARKS[0])
    after = rest.partition(MARKS[1])[2]
    lines = [MARKS[0], *facts, "", *table, MARKS[1]]
    card.write_text(before + "\n".join(lines) + after, encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw, train, measure, write weights and card."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    torch.set_num_threads(THREADS)
    out, options = _parse(arguments)
    scorer = load_scorer()
    started = time.monotonic()
    examples = make_examples(scorer, options.scenes, Chance("two-tower", "train", options.seed))
    _LOG.info("drew %d pictures in %.0f s", 2 * len(examples), time.monotonic() - started)
    network = train(scorer, examples, options)
    minutes = (time.monotonic() - started) / 60
    # Half precision on disk; what is measured is what will be read back from there.
    halves = {name: value.half().contiguous() for name, value in network.state_dict().items()}
    network.load_state_dict({name: value.float() for name, value in halves.items()})
    out.mkdir(parents=True, exist_ok=True)
    (out / WEIGHTS).write_bytes(packed(halves))
    results = held_out(scorer, network, options.held_out, options.seed)
    for kind, value in results.items():
        _LOG.info("%-12s %.3f", kind, value)
    write_card(out / CARD, results, _facts(network, options, minutes))


def _facts(network: nn.Module, options: Options, minutes: float) -> list[str]:
    weights = sum(p.numel() for p in network.parameters())
    command = (
        "python -m tools.demo_split.train_two_tower --out evaluator/demo/scorers/two_tower "
        f"--seed {options.seed} --scenes {options.scenes} --epochs {options.epochs} "
        f"--batch {options.batch} --rate {options.rate} --held-out {options.held_out}"
    )
    return [
        f"    {command}",
        "",
        f"{weights:,} weights; {options.scenes} scenes and as many contradictions; "
        f"{max(minutes, 1):.0f} minutes on two CPU cores. Measured on {options.held_out} fresh",
        f"scenes a kind, and on {2 * options.held_out} of all kinds (`overall`); guessing gives 0.5.",
    ]


def _parse(arguments: Sequence[str] | None) -> tuple[Path, Options]:
    parser = argparse.ArgumentParser(
        prog="python -m tools.demo_split.train_two_tower",
        description="Train the bundled two-tower scorer.",
    )
    parser.add_argument("--out", type=Path, required=True, help="folder of weights and card")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scenes", type=int, default=12000)
    parser.add_argument("--epochs", type=int, default=16)
    parser.add_argument("--batch", type=int, default=64, help="scenes of one step")
    parser.add_argument("--rate", type=float, default=2e-3, help="highest learning rate")
    parser.add_argument("--held-out", type=int, default=200, help="fresh scenes per kind")
    given = parser.parse_args(arguments)
    return given.out, Options(
        given.seed, given.scenes, given.epochs, given.batch, given.rate, given.held_out
    )


if __name__ == "__main__":
    main()
