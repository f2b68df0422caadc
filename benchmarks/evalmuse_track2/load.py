"""Reader of EvalMuse-Structure (NTIRE 2025 track 2): labels, boxes, submitted scores and masks."""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.lib import format as npy
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from benchmarks.errors import SubmitterError
from benchmarks.schema import Answers, Pair, Questions, ScoreTable
from benchmarks.scores import some
from benchmarks.sources.folder import DataFolder, folder_images

MAX_NAME = 256
"""Longest image name, in characters."""


@dataclass
class Records:
    """Scores and masks by image, in the order of the file."""

    # image to its score; NaN where none is given
    scores: dict[str, float] = field(default_factory=dict)
    # image to its mask on the square of comparison
    masks: dict[str, PackedMask] = field(default_factory=dict)

    def add(self, image: str, score: float, mask: PackedMask) -> None:
        """Append an image; refuse a repeated one and an infinite score."""
        if image in self.scores:
            raise MaskFileError(f"names the image {image[:60]!r} twice")
        if score in (float("inf"), float("-inf")):
            raise MaskFileError(f"gives the image {image[:60]!r} an infinite score")
        self.scores[image] = score
        self.masks[image] = mask


# Masks: one fixed size; one bit per pixel while kept, so that a thousand take 32 MB.


SIZE = 512
"""Side of the square on which regions are compared, in pixels."""
MAX_SIDE = 2048
"""Longest side of a mask that is read."""
MAX_MASK_BYTES = 8 << 20
"""Largest mask that is read."""

BoolArray = NDArray[np.bool_]
PackedMask = bytes
"""A mask of SIZE x SIZE, row by row, eight pixels per byte."""
Fit = Callable[[NDArray[Any]], BoolArray]
"""Makes a mask of SIZE x SIZE of what stands in a file, or raises `MaskFileError`."""

_RESIZED_AS_THEY_ARE = frozenset({"uint8", "uint16", "int16", "float32", "float64"})


class MaskFileError(ValueError):
    """A file of masks cannot be used; the text says why and follows the name of the file."""


def pack(mask: BoolArray) -> PackedMask:
    """A mask, shape (SIZE, SIZE), as bits."""
    return np.packbits(mask).tobytes()


def unpack(bits: PackedMask) -> BoolArray:
    """The inverse of `pack`."""
    pixels = np.unpackbits(np.frombuffer(bits, np.uint8), count=SIZE * SIZE)
    return pixels.reshape(SIZE, SIZE).astype(bool)


def resized(mask: NDArray[Any]) -> BoolArray:
    """A predicted mask on the square of comparison: bilinear resize, then everything above 0.

    The organisers resize the array in the type it comes in: in whole numbers the interpolated
    values are rounded, so a region keeps its size; with decimals its border grows by what is
    above 0. Types that OpenCV cannot resize (bool, 32 and 64 bit integers) are cut at 0 first.

    `mask` (height, width): numbers.
    """
    import cv2  # noqa: PLC0415 - large, and needed only where masks are read

    _check_finite(mask)
    if mask.shape == (SIZE, SIZE):
        return np.asarray(mask > 0)
    plain = mask.astype(mask.dtype.newbyteorder("="))
    known = plain if plain.dtype.name in _RESIZED_AS_THEY_ARE else (plain > 0).astype(np.uint8)
    return np.asarray(cv2.resize(known, (SIZE, SIZE)) > 0)


def as_it_is(mask: NDArray[Any]) -> BoolArray:
    """A label mask: never resized; whatever is not 0 is distorted."""
    if mask.shape != (SIZE, SIZE):
        raise MaskFileError(
            f"holds a label mask of {mask.shape[0]} x {mask.shape[1]}; expected {SIZE} x {SIZE}, "
            "since label masks are compared as they are"
        )
    _check_finite(mask)
    return np.asarray(mask != 0)


def _check_finite(mask: NDArray[Any]) -> None:
    if not np.isfinite(mask).all():
        raise MaskFileError("holds a mask with values that are not finite")


def check_size(shape: tuple[object, ...], item_bytes: int) -> tuple[int, int]:
    """The shape of one mask, before memory is taken for it."""
    sides = [n for n in shape if isinstance(n, int) and not isinstance(n, bool)]
    if len(shape) != 2 or len(sides) != 2 or not all(1 <= n <= MAX_SIDE for n in sides):
        raise MaskFileError(
            f"holds a mask of shape {shape_text(shape)}; expected two sides of 1 to {MAX_SIDE}"
        )
    if sides[0] * sides[1] * item_bytes > MAX_MASK_BYTES:
        raise MaskFileError(
            f"holds a mask of more than {MAX_MASK_BYTES >> 20} MB; send it as uint8"
        )
    return sides[0], sides[1]


def shape_text(shape: tuple[object, ...]) -> str:
    """A shape for a message, without what is no number."""
    return " x ".join(str(n)[:12] if isinstance(n, int) else "?" for n in shape[:4]) or "()"


# `.npz` files, read image by image.


MAX_MEMBERS = 64
MAX_HEADER = 4096
_DIRECTORY_ENTRY = b"PK\x01\x02"
_ENCRYPTED = 0x1
_NUMBERS = "biuf"
_BYTES_PER_CHARACTER = 4


class _Header(NamedTuple):
    shape: tuple[int, ...]
    by_column: bool
    dtype: np.dtype[Any]


def read_npz(content: bytes, most_images: int, fit: Fit) -> Records:
    """Read the scores and masks of a `.npz` file; sizes are checked before memory is taken.

    The file holds `images` (n,) texts, `scores` (n,) numbers and `masks` (n, height, width)
    numbers. Object arrays, which numpy would unpickle, are refused by their header.
    """
    # A directory of millions of entries would fill the memory before one could be looked at.
    if content.count(_DIRECTORY_ENTRY) > MAX_MEMBERS:
        raise MaskFileError(f"has more than {MAX_MEMBERS} members")
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            images = _read_column(archive, "images", "U", most_images)
            scores = _read_column(archive, "scores", _NUMBERS, most_images)
            if len(images) != len(scores):
                raise MaskFileError(f"has {len(images)} images, but {len(scores)} scores")
            names = [str(image) for image in images]
            return _read_masks(archive, names, scores.astype(np.float64), fit)
    except MaskFileError:
        raise
    except (
        zipfile.BadZipFile,
        zlib.error,
        ValueError,
        TypeError,
        OSError,
        EOFError,
        NotImplementedError,
        RecursionError,
        MemoryError,  # Python's parser, for a header nested too deeply
    ) as error:
        raise MaskFileError(f"is not a complete .npz file ({str(error)[:200]})") from error


def _read_column(archive: zipfile.ZipFile, name: str, kinds: str, most: int) -> NDArray[Any]:
    with _open(archive, name) as stream:
        header = _header(stream, name, kinds)
        if len(header.shape) != 1 or not 0 <= header.shape[0] <= most:
            raise MaskFileError(
                f"has an array {name} of shape {shape_text(header.shape)}; expected one of up to {most}"
            )
        if header.dtype.itemsize > MAX_NAME * _BYTES_PER_CHARACTER:
            raise MaskFileError(
                f"has an array {name} with texts of more than {MAX_NAME} characters"
            )
        raw = _exactly(stream, header.shape[0] * header.dtype.itemsize, name)
        return np.frombuffer(raw, header.dtype)


def _read_masks(
    archive: zipfile.ZipFile, images: list[str], scores: NDArray[np.float64], fit: Fit
) -> Records:
    records = Records()
    with _open(archive, "masks") as stream:
        header = _header(stream, "masks", _NUMBERS)
        if len(header.shape) != 3 or header.shape[0] != len(images):
            raise MaskFileError(
                f"has an array masks of shape {shape_text(header.shape)}; expected "
                f"{len(images)} x height x width"
            )
        if header.by_column and header.shape[0] > 1:
            raise MaskFileError(
                "has masks in column order; write them with numpy.ascontiguousarray"
            )
        shape = check_size(header.shape[1:], header.dtype.itemsize)
        size = math.prod(shape) * header.dtype.itemsize
        for image, score in zip(images, scores, strict=True):
            raw = _exactly(stream, size, "masks")
            order: Any = "F" if header.by_column else "C"
            mask = fit(np.frombuffer(raw, header.dtype).reshape(shape, order=order))
            records.add(image, float(score), pack(mask))
    return records


def _open(archive: zipfile.ZipFile, name: str) -> IO[bytes]:
    try:
        info = archive.getinfo(f"{name}.npy")
    except KeyError:
        raise MaskFileError(f"has no array {name}; expected images, scores and masks") from None
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise MaskFileError("is compressed in a way that numpy does not write")
    if info.flag_bits & _ENCRYPTED:
        raise MaskFileError("is encrypted")
    return archive.open(info)


def _header(stream: IO[bytes], name: str, kinds: str) -> _Header:
    version = npy.read_magic(stream)
    readers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    if version not in readers:
        raise MaskFileError(f"has an array {name} of an unknown format {version}")
    header = _Header(*readers[version](stream, max_header_size=MAX_HEADER))
    if header.dtype.kind not in kinds:
        raise MaskFileError(
            f"has an array {name} of the type {str(header.dtype)[:60]}; expected "
            + ("texts" if kinds == "U" else "plain numbers")
        )
    return header


def _exactly(stream: IO[bytes], size: int, name: str) -> bytes:
    """The next bytes; never more than were asked for, however far the file would inflate."""
    raw = stream.read(size)
    if len(raw) != size:
        raise MaskFileError(f"ends before its array {name} does")
    return raw


# Label masks drawn from published boxes.


RECTANGLE, POLYGON = 1, 2
MAX_COORDINATE = 1 << 15


def mask_of_boxes(bbox_info: object, width: int, height: int) -> BoolArray:
    """The distorted pixels of one image on the square of comparison, drawn from published boxes.

    How the organisers made masks from boxes is not published. Ours hold every box that any
    annotator drew, at the size of the image, and are then resized as predictions are.
    """
    canvas = np.zeros((height, width), np.uint8)
    if not isinstance(bbox_info, list) or not all(isinstance(g, list) for g in bbox_info):
        raise MaskFileError("bbox_info is not a list of lists")
    for box in (box for group in bbox_info for box in group):
        _draw(canvas, box)
    return resized(canvas)


def _draw(canvas: np.ndarray[Any, Any], box: object) -> None:
    import cv2  # noqa: PLC0415 - large, and needed only where masks are read

    match box:
        case {"bbox_type": 1, "bbox": [{"x": x0, "y": y0}, {"x": x1, "y": y1}]}:
            left, top, right, bottom = (max(0, _pixel(n)) for n in (x0, y0, x1, y1))
            canvas[top:bottom, left:right] = 1
        case {"bbox_type": 2, "bbox": [_, _, _, *_] as corners}:
            points = np.array([_corner(corner) for corner in corners], np.int32)
            cv2.fillPoly(canvas, [points], (1,))
        case _:
            raise MaskFileError(
                f"a box is neither a rectangle of two corners nor a polygon: {str(box)[:80]}"
            )


def _corner(corner: object) -> tuple[int, int]:
    match corner:
        case [x, y]:
            return _pixel(x), _pixel(y)
        case _:
            raise MaskFileError(f"a corner of a polygon is not a pair: {str(corner)[:80]}")


def _pixel(number: object) -> int:
    """A coordinate; decimals are cut off, as a cast to a pixel index does."""
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise MaskFileError(f"a coordinate is not a number: {str(number)[:40]}")
    if not abs(number) <= MAX_COORDINATE:  # NaN is not either
        raise MaskFileError(f"a coordinate lies outside ±{MAX_COORDINATE}: {number}")
    return int(number)


@dataclass(frozen=True)
class Track2Answers(Answers):
    """Human labels of distorted images. The pairs and the clusters are the images."""

    scores: pd.Series  # image to its mean opinion score, in the benchmark's order
    masks: Mapping[str, PackedMask]  # image to its label mask
    note: str = ""  # what a reader must know about the labels; empty where they are the organisers'

    def counts(self) -> dict[str, int]:
        """Images, and those with a distorted region."""
        distorted = sum(any(mask) for mask in self.masks.values())
        return {"images": len(self.pair_ids), "images with a distorted region": distorted}


@dataclass(frozen=True)
class MaskedScores(ScoreTable):
    """Scores with the regions that a metric calls distorted."""

    # metric to image to its mask, after the resize to the square of comparison; a metric without
    # masks is absent
    masks: Mapping[str, Mapping[str, PackedMask]] = field(default_factory=dict)


# Submitted files.


_HINT = (
    "Send a .npz file with the arrays images, scores and masks; benchmarks/evalmuse_track2/FORMAT.md "
    "describes it, and how one is made of the organisers' output.pkl."
)
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_PICKLE = tuple(bytes((0x80, n)) for n in range(8))
_SUFFIXES = (".npz", ".pkl", ".pickle", ".zip")


def parse_masks(
    content: bytes, name: str, images: Sequence[str], metric: str
) -> MaskedScores | None:
    """The scores and masks of a file, or None where it is an ordinary scores file."""
    if not content.startswith(_ZIP):
        if name.lower().endswith(_SUFFIXES) or content.startswith(_PICKLE):
            raise SubmitterError("unreadable_scores", f"{name} is no .npz file.", _HINT)
        return None
    try:
        records = read_npz(content, len(images), resized)
    except MaskFileError as error:
        raise SubmitterError("unreadable_scores", f"{name} {error}.", _HINT) from error
    _check_images(name, list(records.scores), images)
    overall = pd.DataFrame({metric: records.scores}, dtype="float64").loc[list(images)]
    if all(map(math.isnan, overall[metric])):
        raise SubmitterError(
            "no_scores",
            f"{name} gives no image a score.",
            "Give each image a number that grows with its quality.",
        )
    overall.index.name = "pair_id"
    return MaskedScores(overall, masks={metric: records.masks})


def _check_images(name: str, found: Sequence[str], expected: Sequence[str]) -> None:
    known, given = set(expected), set(found)
    unknown = [repr(image[:60]) for image in found if image not in known]
    if unknown:
        raise SubmitterError(
            "unknown_pairs",
            f"{name} has {len(unknown)} images that evalmuse_track2 does not have: "
            f"{some(unknown)}.",
            f"Images of evalmuse_track2 are named like {expected[0]!r}.",
        )
    missing = [repr(image) for image in expected if image not in given]
    if missing:
        raise SubmitterError(
            "missing_pairs",
            f"{name} lacks {len(missing)} of the {len(expected)} images of evalmuse_track2: "
            f"{some(missing)}.",
            "Add each with a mask (all zeros where nothing is distorted) and a score.",
        )


# Label files of the operator.


NPZ = "evalmuse_track2/gt.npz"
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
    """Read the first label file that is there: gt.npz, or train_info.json with images."""
    if folder.has(NPZ) or not folder.has(BOXES):
        path, records = NPZ, _read_masks_file(folder)
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
    """Each image with its prompt."""
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


def _read_masks_file(folder: DataFolder) -> Records:
    place = folder.path(NPZ)
    if place.stat().st_size > MAX_BYTES:
        raise folder.malformed(NPZ, f"has more than {MAX_BYTES >> 30} GB")
    try:
        return read_npz(place.read_bytes(), MAX_IMAGES, as_it_is)
    except MaskFileError as error:
        raise folder.malformed(NPZ, str(error)) from error


def _read_boxes(folder: DataFolder) -> Records:
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
