"""Reads a `.npz` file of masks, image by image, after its sizes were checked.

The file holds three arrays: `images` (n,) texts, `scores` (n,) numbers and `masks`
(n, height, width) numbers. Object arrays, which numpy would unpickle, are refused by their header.
"""

from __future__ import annotations

import math
import zipfile
import zlib
from io import BytesIO
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from benchmarks.evalmuse_track2.masks import Fit, MaskFileError, check_size, pack, shape_text
from benchmarks.evalmuse_track2.records import MAX_NAME, Records

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
    """Read the scores and masks of a `.npz` file.

    Args:
        content: the file.
        most_images: a file with more is refused before its masks are read.
        fit: makes the mask that is kept of an array.

    Raises:
        MaskFileError: it is damaged, or not of that form.
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
