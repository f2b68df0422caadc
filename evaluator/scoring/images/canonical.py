"""The one form of images that strangers' scorers see, so that only pixels tell images apart."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterable, Iterator

import numpy as np
from PIL import Image

MAX_PIXELS = 4096 * 4096
"""Uncompressed, this still fits into one request to a box."""

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_RGB_8_BIT_PLAIN = bytes([8, 2, 0, 0, 0])
_LEVEL = 1
_LEVEL_1_STREAM = b"\x78\x01"
_AT_ONCE = 1 << 20
_SIXTEEN_BIT = {"I;16", "I;16L", "I;16B", "I;16N"}


class ImageError(ValueError):
    """The bytes are not an image that can be scored."""


def is_canonical(data: bytes) -> bool:
    """Whether `as_png` made these bytes, as far as can be told without decoding them.

    The compression level counts: an encoder's habits could tell which model made an image. So does
    that all pixels are there: nobody behind this looks again.
    """
    chunks = list(_chunks(data))
    kinds = [kind for kind, _ in chunks]
    if len(chunks) < 3 or kinds != [b"IHDR", *[b"IDAT"] * (len(chunks) - 2), b"IEND"]:
        return False
    header, first = chunks[0][1], chunks[1][1]
    width, height = struct.unpack_from(">II", header)
    return (
        header[8:] == _RGB_8_BIT_PLAIN
        and 0 < width * height <= MAX_PIXELS
        and first[:2] == _LEVEL_1_STREAM
        and _holds_all_rows((body for _, body in chunks[1:-1]), height * (1 + 3 * width))
    )


def canonical_size(data: bytes) -> tuple[int, int]:
    """Width and height of an image for which `is_canonical` holds."""
    width, height = struct.unpack_from(">II", data, len(_SIGNATURE) + 8)
    return width, height


def _holds_all_rows(bodies: Iterable[bytes], n_bytes: int) -> bool:
    """Whether these bodies are one whole stream of just so many bytes, a part of it at a time."""
    stream = zlib.decompressobj()
    found = 0
    try:
        for body in bodies:
            left = body
            while left:
                found += len(stream.decompress(left, _AT_ONCE))
                if found > n_bytes or stream.unused_data:
                    return False
                left = stream.unconsumed_tail
    except zlib.error:
        return False
    return stream.eof and found == n_bytes


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Kind and body of each intact chunk; stops with an unnamed one where the bytes do not fit."""
    if not data.startswith(_SIGNATURE):
        return
    at = len(_SIGNATURE)
    while at < len(data):
        if at + 12 > len(data):
            yield b"", b""
            return
        length, kind = struct.unpack_from(">I4s", data, at)
        end = at + 12 + length
        if end > len(data) or struct.unpack_from(">I", data, end - 4)[0] != zlib.crc32(
            data[at + 4 : end - 4]
        ):
            yield b"", b""
            return
        yield kind, data[at + 8 : end - 4]
        at = end


def _as_rgb(image: Image.Image) -> Image.Image:
    if image.mode in _SIXTEEN_BIT:
        # Pillow's own conversion clips: nearly every grey would become white.
        image = Image.fromarray((np.asarray(image).astype(np.uint16) >> 8).astype(np.uint8))
    if image.has_transparency_data:
        layer = image.convert("RGBA")
        white = Image.new("RGBA", layer.size, "white")
        image = Image.alpha_composite(white, layer)
    return image.convert("RGB")


def as_png(image: Image.Image) -> bytes:
    """An RGB image as an 8-bit PNG without metadata; equal pixels give equal bytes."""
    # A new image carries over nothing of the old one's `info`.
    bare = Image.frombytes("RGB", image.size, image.tobytes())
    buffer = io.BytesIO()
    bare.save(buffer, format="PNG", compress_level=_LEVEL)
    return buffer.getvalue()
