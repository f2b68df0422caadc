"""The question side of CROC_syn: a million images and more, none of which is opened before its turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pandas as pd

from benchmarks.croc.answers import TEXTS
from benchmarks.croc_syn.answers import IMAGE_MODELS, PROPERTIES, TEXT_MODELS
from benchmarks.croc_syn.load import SIDES, PromptPair, prompt_pairs
from benchmarks.croc_syn.taxonomy import node_of
from benchmarks.errors import SubmitterError
from benchmarks.schema import Pair, Questions
from benchmarks.sources.folder import DataFolder

IMAGES = "croc_syn/images"


class ImageFiles(Mapping[str, Callable[[], bytes]]):
    """Readers of images by id, made when they are asked for.

    Args:
        folder: where the images lie, each as `<image id>.png`.
        ids: their ids.
    """

    def __init__(self, folder: Path, ids: list[str]) -> None:
        self._folder = folder
        self._ids = dict.fromkeys(ids)

    def __getitem__(self, image_id: str) -> Callable[[], bytes]:
        if image_id not in self._ids:
            raise KeyError(image_id)
        return (self._folder / f"{image_id}.png").read_bytes

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids)

    def __len__(self) -> int:
        return len(self._ids)


def load_questions(folder: DataFolder, n_images: int) -> Questions:
    """Every image with both texts of its prompt pair.

    Args:
        folder: where the prompt files and the images lie.
        n_images: images per prompt.

    Raises:
        SubmitterError: `images_missing`, with how many and the first of them; `data_missing` or
            `data_malformed` for the prompt files.
    """
    place = folder.path(IMAGES)
    texts: dict[str, str] = {}
    pairs: list[Pair] = []
    ids: list[str] = []
    for pair in filter(lambda p: p.is_whole, prompt_pairs(folder)):
        text_ids = {text: pair.text_id(text) for text in TEXTS}
        texts |= dict(zip(text_ids.values(), (pair.prompt, pair.contrast), strict=True))
        for side in range(len(SIDES)):
            for image in pair.image_ids(side, n_images):
                ids.append(image)
                pairs += [Pair(f"{image}|{text}", image, text_ids[text]) for text in TEXTS]
    _check_complete(place, ids)
    return Questions(ImageFiles(place, ids), texts, tuple(pairs))


def _check_complete(place: Path, ids: list[str]) -> None:
    folders = [
        f"{image}/{text}/{side}"
        for image in IMAGE_MODELS
        for text in TEXT_MODELS
        for side, _ in SIDES
    ]
    there = {
        f"{name}/{file.name}"
        for name in folders
        if (place / name).is_dir()
        for file in (place / name).iterdir()
    }
    missing = [image for image in ids if f"{image}.png" not in there]
    if missing:
        raise SubmitterError(
            "images_missing",
            f"{place} lacks {len(missing)} of the {len(ids)} images of croc_syn, the first is "
            f"{missing[0] + '.png'!r}.",
            "The names are described in benchmarks/croc_syn/FORMAT.md.",
        )


def load_prompts(folder: DataFolder) -> pd.DataFrame:
    """Originals and contrasts, each text once under the id of its first appearance.

    Returns:
        Columns `prompt_id`, `prompt`, `split` (mode), `skills` (top-level property, may be empty).

    Raises:
        SubmitterError: `data_missing` or `data_malformed`.
    """
    found: dict[str, tuple[str, str, str, str]] = {}
    for pair in filter(lambda p: p.is_whole, prompt_pairs(folder)):
        for text, said in zip(TEXTS, (pair.prompt, pair.contrast), strict=True):
            if said not in found:
                found[said] = (pair.text_id(text), said, pair.parts[0], skill_of(pair))
    return pd.DataFrame(found.values(), columns=["prompt_id", "prompt", "split", "skills"])


def skill_of(pair: PromptPair) -> str:
    """Top-level node of the property that a prompt varies; empty for other modes."""
    return (node_of(pair.parts[2]) or "") if pair.parts[0] == PROPERTIES else ""
