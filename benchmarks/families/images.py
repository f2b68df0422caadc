"""Images of a card: in a folder, in archives, in Parquet files or at web addresses."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from benchmarks.families.card import FamilyCard, Images
from benchmarks.families.items import Items
from benchmarks.families.tables import filled
from benchmarks.sources.archives import ZipImages
from benchmarks.sources.folder import DataFolder, Reader, folder_images, zip_images


def image_readers(folder: DataFolder, card: FamilyCard, items: Items) -> dict[str, Reader]:
    """Name of an image to a function that reads it as it is kept.

    Raises:
        SubmitterError: `images_missing`, with how many and which.
    """
    images = card.images
    if images is None:
        return {}
    found: dict[str, Reader] = {}
    for path, names in _by_path(images, items.pairs).items():
        found |= _READERS[images.source](folder, card, path, names)
    return found


def has_images(folder: DataFolder, card: FamilyCard) -> bool:
    """Whether the declared files of images are there."""
    if card.images is None:
        return False
    return all(folder.has(file.path) for file in card.files if file.role == "images")


def _by_path(images: Images, pairs: pd.DataFrame) -> dict[str, dict[str, str]]:
    """Declared file or folder to the images in it: name of the image to its name there."""
    once = pairs.drop_duplicates("image")
    names = ("image", "prompt", "model", "pair")
    columns = (once[name] for name in ("image", "prompt_id", "model", "pair_id"))
    found: dict[str, dict[str, str]] = {}
    for values in zip(*columns, strict=True):
        cells = dict(zip(names, values, strict=True))
        path = filled(images.path, cells)
        found.setdefault(path, {})[cells["image"]] = filled(images.name, cells)
    return found


def _in_folder(
    folder: DataFolder, card: FamilyCard, path: str, names: Mapping[str, str]
) -> dict[str, Reader]:
    return folder_images(card.name, folder.path(path), names)


def _in_archive(
    folder: DataFolder, card: FamilyCard, path: str, names: Mapping[str, str]
) -> dict[str, Reader]:
    return zip_images(card.name, ZipImages(folder.path(path)), names)


_READERS = {"folder": _in_folder, "zip": _in_archive}
