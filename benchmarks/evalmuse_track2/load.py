"""Reads the labels of EvalMuse-Structure that an operator supplies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from PIL import Image, UnidentifiedImageError

from benchmarks.errors import SubmitterError
from benchmarks.evalmuse_track2.answers import Track2Answers
from benchmarks.evalmuse_track2.arrays import read_npz
from benchmarks.evalmuse_track2.masks import MaskFileError, as_it_is, pack
from benchmarks.evalmuse_track2.pickled import read_pickle
from benchmarks.evalmuse_track2.records import MAX_NAME, Records
from benchmarks.schema import Pair, Questions
from benchmarks.sources.folder import DataFolder
from benchmarks.sources.images import folder_images

NPZ = "evalmuse_track2/gt.npz"
PICKLE = "evalmuse_track2/gt.pkl"
BOXES = "evalmuse_track2/train_info.json"
PROMPTS = "evalmuse_track2/info.json"
IMAGES = "evalmuse_track2/images"

MAX_IMAGES = 20_000
MAX_BYTES = 4 << 30
MAX_SCORE = 1000.0
"""Largest mean opinion score that is read, in size; scales end at 5, 10 or 100."""
FROM_BOXES = (
    "label masks drawn from the published boxes by a rule of ours, not the organisers' gt.pkl"
)


def load_answers(folder: DataFolder) -> Track2Answers:
    """Read the first label file that is there: gt.npz, gt.pkl, or train_info.json with images.

    Raises:
        SubmitterError: `data_missing`, `data_malformed`, or `images_missing` where the size of
            an image is needed for its boxes.
    """
    if folder.has(NPZ):
        path, records = NPZ, _read(folder, NPZ, read_npz)
    elif folder.has(PICKLE) or not folder.has(BOXES):
        path, records = PICKLE, _read(folder, PICKLE, read_pickle)
    else:
        path, records = BOXES, _read_boxes(folder)
    scores = pd.Series(records.scores, dtype="float64").sort_index()
    if scores.empty:
        raise folder.malformed(path, "holds no image")
    folder.check_count(path, "images", len(scores))
    _check_names(folder, path, records.scores)
    if scores.isna().any():
        raise folder.malformed(path, f"gives {scores.index[scores.isna()][0]!r} no score")
    far = scores[scores.abs() > MAX_SCORE]
    if len(far):
        raise folder.malformed(
            path,
            f"gives {far.index[0]!r} the score {far.iloc[0]:g}; expected a mean opinion score of "
            f"{-MAX_SCORE:g} to {MAX_SCORE:g}",
        )
    images = tuple(str(image) for image in scores.index)
    return Track2Answers(
        pair_ids=images,
        clusters=images,
        scores=scores,
        masks=records.masks,
        note=FROM_BOXES if path == BOXES else "",
        sources=folder.verified(),
    )


def load_questions(folder: DataFolder, images: tuple[str, ...]) -> Questions:
    """Each image with its prompt.

    Raises:
        SubmitterError: `images_missing`, `data_missing` or `data_malformed`.
    """
    path = PROMPTS if folder.has(PROMPTS) else BOXES
    info = _entries(folder, path)
    texts = {image: info.get(image, {}).get("prompt_en") for image in images}
    for image, text in texts.items():
        if not isinstance(text, str):
            raise folder.malformed(path, f"gives the image {image!r} no text prompt_en")
    names = {image: f"{image}.jpg" for image in images}
    return Questions(
        images=folder_images(
            "evalmuse_track2", folder.path(IMAGES), names, remedy=folder.remedy(IMAGES)
        ),
        texts={image: str(text) for image, text in texts.items()},
        pairs=tuple(Pair(image, image, image) for image in images),
    )


def _read(folder: DataFolder, path: str, read: Callable[..., Records]) -> Records:
    place = folder.path(path)
    if place.stat().st_size > MAX_BYTES:
        raise folder.malformed(path, f"has more than {MAX_BYTES >> 30} GB")
    try:
        return read(place.read_bytes(), MAX_IMAGES, as_it_is)
    except MaskFileError as error:
        raise folder.malformed(path, str(error)) from error


def _read_boxes(folder: DataFolder) -> Records:
    from benchmarks.evalmuse_track2.boxes import (  # noqa: PLC0415 - needs OpenCV, as few do
        mask_of_boxes,
    )

    images = folder.path(IMAGES)
    records = Records()
    for image, entry in _entries(folder, BOXES).items():
        mos = entry.get("mos")
        if isinstance(mos, bool) or not isinstance(mos, int | float):
            raise folder.malformed(BOXES, f"gives the image {image!r} no number mos")
        try:
            size = _image_size(images / f"{image}.jpg", len(records.scores))
            records.add(image, float(mos), pack(mask_of_boxes(entry.get("bbox_info"), *size)))
        except MaskFileError as error:
            raise folder.malformed(BOXES, f"cannot be used at image {image!r}: {error}") from error
    return records


def _entries(folder: DataFolder, path: str) -> Mapping[str, Mapping[str, Any]]:
    entries = folder.read_json(path)
    if not isinstance(entries, dict) or not all(isinstance(e, dict) for e in entries.values()):
        raise folder.malformed(path, "is not an object of objects, one per image")
    _check_names(folder, path, entries)
    return entries


def _check_names(folder: DataFolder, path: str, images: Iterable[str]) -> None:
    """Images are files in one folder, so a name must be that of a file in it."""
    for image in images:
        if not image or len(image) > MAX_NAME or not image.isprintable() or set(image) & set("/\\"):
            raise folder.malformed(
                path,
                f"names an image {image[:60]!r}; expected the name of a file in images/, without "
                f"folders and without .jpg, of up to {MAX_NAME} characters",
            )


def _image_size(path: Path, n_before: int) -> tuple[int, int]:
    try:
        with Image.open(path) as image:
            return image.size
    except FileNotFoundError:
        raise SubmitterError(
            "images_missing",
            f"{path} does not exist; its size is needed for its boxes ({n_before} images before "
            "it are there).",
            "Put the images of train_info.json there, each as <image>.jpg.",
        ) from None
    except (UnidentifiedImageError, OSError, Image.DecompressionBombError) as error:
        raise MaskFileError(f"{path} is no image that can be opened ({error})") from error
