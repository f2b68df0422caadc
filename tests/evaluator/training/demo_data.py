"""Small training data of the demo split, and images in folders."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
from PIL import Image

from benchmarks.registry import load_registry
from evaluator.training.data import TrainingData
from evaluator.training.preparing import open_data
from tests.kit.pictures import encoded


@cache
def demo_croc(n: int = 12) -> TrainingData:
    """The first n pairs of prompts of `demo_croc`."""
    whole = open_data("demo_croc", load_registry(), None)
    return whole.part(whole.answers.clusters[:n])


def noise(seed: int, side: int = 8) -> Image.Image:
    """An image of random pixels."""
    drawn = np.random.default_rng(seed).integers(0, 256, (side, side, 3), np.uint8)
    return Image.fromarray(drawn)


def image_folder(folder: Path, prompts: Sequence[str]) -> Path:
    """A folder of an image for each prompt, and their table."""
    folder.mkdir()
    with (folder / "prompts.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(("prompt", "file"))
        for number, prompt in enumerate(prompts):
            (folder / f"{number}.png").write_bytes(encoded(noise(number)))
            table.writerow((prompt, f"{number}.png"))
    return folder
