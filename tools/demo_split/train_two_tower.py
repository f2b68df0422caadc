"""Training of the bundled two-tower scorer on rendered scenes that no benchmark holds.

The scenes follow the grammar of the demo benchmarks, from seeds of their own. Every scene comes
with a variant that is wrong in one respect, and the network learns to tell the two apart, beside
telling a scene from the others of its batch. The recipe and the loop are those of
`python -m evaluator train dual-encoder`.

    python -m tools.demo_split.train_two_tower --out evaluator/demo/scorers/two_tower --run run --seed 1

The card of the published version names the command as it was then: a card belongs to the content of a
submission, and one version has one content.
"""

from __future__ import annotations

import argparse
import io
import logging
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from safetensors.torch import save as packed
from torch import nn

from evaluator.scoring.images import decode
from evaluator.training.checkpoints import TrainingFolder
from evaluator.training.loop import Prepared, RunOptions, train
from evaluator.training.recipe import Example
from evaluator.training.recipes.dual_encoder import ContrastSides, DualEncoder, DualEncoderSettings
from tools.demo_split.language import prompts
from tools.demo_split.models import CONTRADICTIONS, Contradiction, contradict, contradictions_of
from tools.demo_split.pictures import draw
from tools.demo_split.scenes import Chance, Scene, sample_scene

WEIGHTS = "weights.safetensors"
CARD = "README.md"
MARKS = ("<!-- held-out: begin -->", "<!-- held-out: end -->")
"""The lines of the card between which the results are written."""
THREADS = 2
_LOG = logging.getLogger(__name__)


def make_examples(n: int, rng: Chance, kind: str | None = None) -> list[Example]:
    """Invent and draw scenes with their contradictions, all of one kind or of any."""
    found: list[Example] = []
    while len(found) < n:
        scene = sample_scene(rng)
        if kind is not None and kind not in contradictions_of(scene):
            continue
        variant = contradict(scene, rng, kind)
        number = len(found)
        images = {f"{number}a": _picture(scene, rng), f"{number}b": _picture(variant.scene, rng)}
        texts = (tuple(prompts(scene)), tuple(prompts(variant.scene)))
        first, second = images
        sides = ContrastSides(texts, (first, second), _wrong(variant))
        found.append(sides.example(str(number), images))
    return found


def _picture(scene: Scene, rng: Chance) -> Callable[[], bytes]:
    """What returns the picture as PNG."""
    encoded = io.BytesIO()
    Image.fromarray(draw(scene, rng)).save(encoded, "PNG")
    return partial(bytes, encoded.getvalue())


def _wrong(variant: Contradiction) -> tuple[bool, bool]:
    if variant.mutual:
        return True, True
    return (True, False) if variant.kind == "added" else (False, True)


def accuracy(network: nn.Module, examples: Sequence[Example]) -> float:
    """How often the right one of two scores is higher, over both forms of contrast.

    A picture with two sentences and a sentence with two pictures, wherever the wrong one really is
    wrong; plain wording.
    """
    images, texts = [], []
    for one in examples:
        for image in one.content.images:
            images += [decode(one.images[image]()).image] * 2
            texts += [said[0] for said in one.content.texts]
    scores = np.array(DualEncoder().score(network, images, texts)).reshape(-1, 2, 2)
    wrong = np.array([one.content.wrong for one in examples])
    right = np.stack([scores[:, 0, 0], scores[:, 1, 1]], 1)
    across = np.stack([scores[:, 0, 1], scores[:, 1, 0]], 1)
    by_text = (right > across)[wrong]
    by_image = (right[:, ::-1] > across)[wrong]
    return float(np.concatenate([by_text, by_image]).mean())


def held_out(network: nn.Module, n: int, seed: int) -> dict[str, float]:
    """Accuracy on fresh scenes, by kind of contradiction and (`overall`) over the natural mix."""
    found = {
        "overall": accuracy(network, make_examples(2 * n, Chance("two-tower", "held-out", seed)))
    }
    for kind in CONTRADICTIONS:
        rng = Chance("two-tower", "held-out", seed, kind)
        found[kind] = accuracy(network, make_examples(n, rng, kind))
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
    given = _parse(arguments)
    started = time.monotonic()
    examples = make_examples(given.scenes, Chance("two-tower", "train", given.seed))
    _LOG.info("drew %d pictures in %.0f s", 2 * len(examples), time.monotonic() - started)
    steps = given.epochs * -(-given.scenes // given.batch)
    settings = DualEncoderSettings(
        batch=given.batch, epochs=given.epochs, rate=given.rate, warmup_steps=steps // 10
    )
    told = f"scenes {given.seed} {given.scenes}"
    prepared = Prepared(tuple(examples), None, told)
    options = RunOptions(seed=given.seed)
    network = train(DualEncoder(settings), prepared, TrainingFolder(given.run), options).model
    minutes = (time.monotonic() - started) / 60
    # Half precision on disk; what is measured is what will be read back from there.
    halves = {name: value.half().contiguous() for name, value in network.state_dict().items()}
    network.load_state_dict({name: value.float() for name, value in halves.items()})
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / WEIGHTS).write_bytes(packed(halves))
    results = held_out(network, given.held_out, given.seed)
    for kind, value in results.items():
        _LOG.info("%-12s %.3f", kind, value)
    write_card(given.out / CARD, results, _facts(network, given, minutes))


def _facts(network: nn.Module, given: argparse.Namespace, minutes: float) -> list[str]:
    weights = sum(p.numel() for p in network.parameters())
    command = (
        "python -m tools.demo_split.train_two_tower --out evaluator/demo/scorers/two_tower "
        f"--run run --seed {given.seed} --scenes {given.scenes} --epochs {given.epochs} "
        f"--batch {given.batch} --rate {given.rate} --held-out {given.held_out}"
    )
    return [
        f"    {command}",
        "",
        f"{weights:,} weights; {given.scenes} scenes and as many contradictions; "
        f"{max(minutes, 1):.0f} minutes on two CPU cores. Measured on {given.held_out} fresh",
        f"scenes a kind, and on {2 * given.held_out} of all kinds (`overall`); guessing gives 0.5.",
    ]


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tools.demo_split.train_two_tower",
        description="Train the bundled two-tower scorer.",
    )
    parser.add_argument("--out", type=Path, required=True, help="folder of weights and card")
    parser.add_argument(
        "--run", type=Path, required=True, help="folder of the run, new or to go on with"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scenes", type=int, default=12000)
    parser.add_argument("--epochs", type=int, default=16)
    parser.add_argument("--batch", type=int, default=64, help="scenes of one step")
    parser.add_argument("--rate", type=float, default=2e-3, help="highest learning rate")
    parser.add_argument("--held-out", type=int, default=200, help="fresh scenes per kind")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
