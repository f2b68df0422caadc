"""PNG files whose bytes follow from the pixels alone.

The compressed stream of an ordinary encoder changes with the build of zlib. Here the pixels lie in
*stored* deflate blocks, so the same picture is the same file, and has the same hash, everywhere.
"""

from __future__ import annotations

import struct
import zlib

import numpy as np
from numpy.typing import NDArray

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_LARGEST_BLOCK = 0xFFFF
_ZLIB_HEADER = b"\x78\x01"  # deflate, 32 KiB window, lowest compression level


def encode(pixels: NDArray[np.uint8]) -> bytes:
    """Encode an RGB picture.

    Args:
        pixels: shape (height, width, 3).

    Returns:
        A complete PNG file without any metadata.
    """
    height, width, _ = pixels.shape
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = np.zeros((height, 1 + width * 3), np.uint8)  # each row begins with filter type 0, none
    rows[:, 1:] = pixels.reshape(height, width * 3)
    data = _stored(rows.tobytes())
    return _SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", data) + _chunk(b"IEND", b"")


def _stored(raw: bytes) -> bytes:
    blocks = [raw[i : i + _LARGEST_BLOCK] for i in range(0, len(raw), _LARGEST_BLOCK)]
    parts = [_ZLIB_HEADER]
    for number, block in enumerate(blocks, start=1):
        last = number == len(blocks)
        parts += [struct.pack("<BHH", last, len(block), len(block) ^ 0xFFFF), block]
    parts.append(struct.pack(">I", zlib.adler32(raw)))
    return b"".join(parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
