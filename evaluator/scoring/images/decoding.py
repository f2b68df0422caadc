"""Encoded images as the built-in metrics see them: the same pixels a canonical PNG would hold.

The round trip through PNG is for code that is not trusted; here an image is decoded once.
"""

from __future__ import annotations

import io
import struct
import zlib
from dataclasses import dataclass

from PIL import ExifTags, Image, ImageOps, UnidentifiedImageError

from evaluator.scoring.images import canonical
from evaluator.scoring.images.canonical import ImageError

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

Remark = tuple[str, str]
"""A code and one sentence."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """An image, upright, 8-bit RGB, without metadata.

    Attributes:
        image: its pixels.
        remarks: what was done to get there, where a reader would want to know: `image_animated`,
            `image_rotated`, `image_converted`.
    """

    image: Image.Image
    remarks: tuple[Remark, ...] = ()


def decode(data: bytes) -> Decoded:
    """Decode an image; its first frame where it has several.

    Sizes are checked before a pixel is decoded. Nothing is scaled while it is decoded, though JPEG
    would allow it: that changes pixels.

    Raises:
        ImageError: not an image, damaged, or of more pixels than `canonical.MAX_PIXELS`.
    """
    try:
        with Image.open(io.BytesIO(data)) as image:
            _check_size(image)
            return _upright_rgb(image)
    except ImageError:
        raise
    except UnidentifiedImageError as error:
        raise ImageError("not an image of a known format") from error
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise ImageError("it has too many pixels") from error
    except DAMAGE as error:
        raise ImageError(f"a damaged image ({error})") from error


def _check_size(image: Image.Image) -> None:
    if image.width * image.height > canonical.MAX_PIXELS:
        raise ImageError(f"{image.width} × {image.height} pixels are too many")


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
    rgb = image.copy() if _is_plain(image) else canonical._as_rgb(image)
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
