"""Images of a card: in a folder, in archives, in Parquet files or at web addresses."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

import numpy as np
import pandas as pd

from benchmarks.errors import SubmitterError
from benchmarks.families.card import FamilyCard, Images
from benchmarks.families.items import Items
from benchmarks.families.tables import filled
from benchmarks.sources.archives import ZipImages
from benchmarks.sources.folder import DataFolder, Reader, folder_images, packed_images
from benchmarks.sources.parquet_images import ParquetImages


def image_readers(folder: DataFolder, card: FamilyCard, items: Items) -> dict[str, Reader]:
    """Name of an image to a function that reads it as it is kept.

    Raises:
        SubmitterError: `images_missing`, with how many and which; `data_malformed`: an archive or a
            Parquet file cannot be read.
    """
    assert card.images is not None
    images = card.images
    if images.source == "parquet":
        return _in_parquet(folder, card, items)
    found: dict[str, Reader] = {}
    declared = {file.path for file in card.files}
    for path, names in _by_path(images, items.pairs).items():
        if path not in declared:
            raise SubmitterError(
                "images_missing",
                f"The images of {card.name} are to lie in {path!r}, which is no declared file.",
                "Declare it in [[files]], or mend images.path.",
            )
        found |= _READERS[images.source](folder, card, path, names)
    return found


def names_at_url(card: FamilyCard, items: Items) -> tuple[str, ...]:
    """Names behind the declared address of the images that `fetch` brings."""
    assert card.images is not None
    by_path = _by_path(card.images, items.pairs)
    return tuple(dict.fromkeys(name for names in by_path.values() for name in names.values()))


def has_images(folder: DataFolder, card: FamilyCard) -> bool:
    """Whether the declared files of images are there, and columns with images."""
    if card.images is None:
        return False
    if card.images.source == "parquet":
        there = all(map(folder.has, _tables(card)))
        return there and _in_tables(folder, card).has_columns()
    packed = card.images.source == "zip"
    paths = [file.path for file in card.files if file.role == "images"]
    return all(folder.has(path) or (packed and _is_unpacked(folder, path)) for path in paths)


def _is_unpacked(folder: DataFolder, archive: str) -> bool:
    """Whether the content of an archive lies beside it, in a folder of its name."""
    return folder.beside(archive).joinpath(PurePosixPath(archive).stem).is_dir()


def _by_path(images: Images, pairs: pd.DataFrame) -> dict[str, dict[str, str]]:
    """Declared file or folder to the images in it: name of the image to its name there."""
    once = pairs.drop_duplicates("image")
    names = ("image", "prompt", "model", "pair")
    columns = (once[name] for name in ("image", "prompt_id", "model", "pair_id"))
    found: dict[str, dict[str, str]] = {}
    for values in zip(*columns, strict=True):
        cells = dict(zip(names, values, strict=True))
        path = filled(images.path, cells)
        found.setdefault(path, {})[cells["image"]] = filled(str(images.name), cells)
    return found


def _in_folder(
    folder: DataFolder, card: FamilyCard, path: str, names: Mapping[str, str]
) -> dict[str, Reader]:
    return folder_images(card.name, folder.path(path), names)


def _in_archive(
    folder: DataFolder, card: FamilyCard, path: str, names: Mapping[str, str]
) -> dict[str, Reader]:
    if not folder.has(path) and _is_unpacked(folder, path):
        return folder_images(card.name, folder.beside(path), names)
    return packed_images(card.name, ZipImages(folder.path(path)), names)


def _tables(card: FamilyCard) -> tuple[str, ...]:
    """Parquet files with images."""
    path = card.images.path if card.images else ""
    return (path,) if path else card.tables[0].paths


def _in_tables(folder: DataFolder, card: FamilyCard) -> ParquetImages:
    assert card.images is not None
    paths = [folder.path(path) for path in _tables(card)]
    return ParquetImages(paths, card.images.columns, card.images.keys)


def _in_parquet(folder: DataFolder, card: FamilyCard, items: Items) -> dict[str, Reader]:
    """Readers of images in columns of Parquet files, by their names or by the rows of the table."""
    assert card.images is not None
    images, table = card.images, _in_tables(folder, card)
    lines = items.pairs.drop_duplicates("image").index.to_numpy()
    names = items.pairs["image"].loc[lines]
    if images.keys:
        return packed_images(card.name, table, {name: name for name in names})
    if table.n_rows != len(items.rows):
        raise folder.malformed(
            _tables(card)[0],
            f"holds {table.n_rows} rows of images for {len(items.rows)} rows of the table; @row "
            "needs the rows of the files as they are",
        )
    _, first = np.unique(items.cells[:, 2], return_index=True)
    row, place, _ = items.cells[first[lines]].T
    column = place % len(images.columns)  # Places go text by text, and image by image within.
    where = zip(names, row, column, strict=True)
    return packed_images(card.name, table, {name: f"{at}/{image}" for name, at, image in where})


_READERS = {"folder": _in_folder, "zip": _in_archive, "url": _in_folder}
