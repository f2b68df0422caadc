"""Images: decoded, and in the one form that untrusted scorers see.

The round trip through PNG is for code that is not trusted; the built-in metrics see the same
pixels, decoded once.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from PIL import ExifTags, Image, ImageOps, UnidentifiedImageError

MAX_PIXELS = 4096 * 4096  # Uncompressed, this still fits into one request to a sandbox

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


def as_rgb(image: Image.Image) -> Image.Image:
    """8-bit RGB; transparent parts on white."""
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


def as_bmp(image: Image.Image) -> bytes:
    """An RGB image in the form that is decoded soonest: nothing is compressed."""
    buffer = io.BytesIO()
    image.save(buffer, format="BMP")
    return buffer.getvalue()


def one_step_brighter(image: Image.Image) -> bytes:
    """An RGB image with every channel value below 255 raised by one, as PNG (Re-Thinking).

    Nobody sees the difference, so that a score should not move. It belongs on the decoded image,
    before anything a metric does to it.
    """
    values = np.asarray(image)
    return as_png(Image.fromarray(values + (values < 255).astype(np.uint8)))


_UPRIGHT = 1
DAMAGE = (
    OSError,
    SyntaxError,
    EOFError,
    ValueError,
    TypeError,
    IndexError,
    KeyError,
    OverflowError,
    RuntimeError,
    struct.error,
    zlib.error,
)
"""What Pillow's readers raise on bytes that were damaged or made up; found by feeding them such."""

Remark = tuple[str, str]  # A code and one sentence


@dataclass(frozen=True, slots=True)
class Decoded:
    """An image, upright, 8-bit RGB, without metadata."""

    image: Image.Image  # its pixels
    # what was done to get there, where a reader would want to know: `image_animated`,
    # `image_rotated`, `image_converted`
    remarks: tuple[Remark, ...] = ()


def decode(data: bytes, formats: tuple[str, ...] | None = None) -> Decoded:
    """Decode an image of one of these formats, or of any; its first frame where it has several.

    Sizes are checked before a pixel is decoded. Nothing is scaled while it is decoded, though JPEG
    would allow it: that changes pixels.
    """
    with _opened(io.BytesIO(data), formats) as image:
        return decode_opened(image)


def check_header(file: Path) -> None:
    """Refuse a file that is no image or has too many pixels; no pixel is decoded.

    Raises:
        ImageError: it is none that can be scored.
        OSError: it cannot be read.
    """
    with file.open("rb") as content, _opened(content) as image:
        _check_size(image)


@contextmanager
def _opened(content: BinaryIO, formats: tuple[str, ...] | None = None) -> Iterator[Image.Image]:
    """An image, and in words what Pillow finds wrong with it meanwhile."""
    try:
        with Image.open(content, formats=formats) as image:
            yield image
    except ImageError:
        raise
    except UnidentifiedImageError as error:
        raise ImageError("not an image of a known format") from error
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise ImageError(f"it has too many pixels; {MAX_PIXELS:,} at most") from error
    except DAMAGE as error:
        raise ImageError(f"a damaged image ({error})") from error


def decode_opened(image: Image.Image) -> Decoded:
    """Decode an image that Pillow opened, which is changed by that; see `decode`."""
    _check_size(image)
    return _upright_rgb(image)


def _check_size(image: Image.Image) -> None:
    if image.width * image.height > MAX_PIXELS:
        raise ImageError(
            f"{image.width} × {image.height} pixels are too many; {MAX_PIXELS:,} at most"
        )


def _upright_rgb(image: Image.Image) -> Decoded:
    remarks: list[Remark] = []
    if getattr(image, "is_animated", False):
        remarks.append(("image_animated", "It has several frames; the first one is scored."))
    orientation = image.getexif().get(ExifTags.Base.Orientation, _UPRIGHT)
    ImageOps.exif_transpose(image, in_place=True)
    if orientation in range(2, 9):
        message = f"Its orientation tag ({orientation}) was applied to make it upright."
        remarks.append(("image_rotated", message))
    changed = _conversion(image)
    if changed:
        remarks.append(("image_converted", changed))
    rgb = image.copy() if _is_plain(image) else as_rgb(image)
    rgb.info = {}
    return Decoded(rgb, tuple(remarks))


def _is_plain(image: Image.Image) -> bool:
    return image.mode == "RGB" and not image.has_transparency_data


def _conversion(image: Image.Image) -> str:
    """What has to be done to the pixels; empty where they stay, or only lose an opaque alpha."""
    if _is_plain(image):
        return ""
    if image.mode in {"RGBA", "LA"} and _is_opaque(image):
        return "" if image.mode == "RGBA" else f"Its pixels ({image.mode}) were converted to RGB."
    laid = " and laid on white where it is transparent" if image.has_transparency_data else ""
    return f"Its pixels ({image.mode}) were converted to 8-bit RGB{laid}."


def _is_opaque(image: Image.Image) -> bool:
    lowest, _ = image.getchannel("A").getextrema()
    return lowest == 255


@dataclass(frozen=True, slots=True)
class CanonicalImage:
    """An image in the form that strangers' scorers see."""

    png: bytes  # the image
    width: int  # in pixels
    height: int  # in pixels
    # (code, message) of what was done to it beyond decoding
    remarks: tuple[tuple[str, str], ...] = ()
    decoded: bool = True  # whether it had to be decoded for that


def canonical_image(data: bytes) -> CanonicalImage:
    """Any image as an 8-bit RGB PNG without metadata: upright, flattened on white.

    Bytes that are such a PNG already come back as they are. Sizes and compression artefacts stay
    in the pixels; colour profiles are dropped without conversion, as metrics' own loaders do.
    """
    if is_canonical(data):
        return CanonicalImage(data, *canonical_size(data), decoded=False)
    found = decode(data)
    return CanonicalImage(as_png(found.image), *found.image.size, found.remarks)


def canonical_png(data: bytes) -> bytes:
    """Any image as an 8-bit RGB PNG without metadata; see `canonical_image`."""
    return canonical_image(data).png
