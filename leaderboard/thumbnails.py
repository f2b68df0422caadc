"""Thumbnails of images, small and without metadata."""

from __future__ import annotations

from io import BytesIO

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

WIDTHS = (160, 320, 640)
"""Longest sides that are made; whatever is asked for becomes the next larger one."""
MOST_BYTES = 32 << 20
MOST_PIXELS = 50_000_000
FORMATS = ("PNG", "JPEG", "WEBP")
"""What is read; Pillow knows many more, some of which run other programs."""
MEDIA_TYPE = "image/webp"
_QUALITY = 82
_PAPER = (255, 255, 255)
_GREY = (128, 128, 128)


def width_for(asked: int) -> int:
    """The width that is made for one that is asked for."""
    return next((width for width in WIDTHS if width >= asked), WIDTHS[-1])


def thumbnail(content: bytes, width: int) -> bytes:
    """A small WebP of an image, without metadata.

    Args:
        content: of its file.
        width: longest side of what is made; smaller images keep their size.

    Raises:
        ValueError: it is no image, or too large to be one that is looked at.
    """
    if len(content) > MOST_BYTES:
        raise ValueError(f"a file of {len(content)} bytes")
    try:
        with Image.open(BytesIO(content), formats=FORMATS) as image:
            # The header says how large it is, before anything is decoded.
            if image.width * image.height > MOST_PIXELS:
                raise ValueError(f"an image of {image.width} x {image.height} pixels")
            image.draft("RGB", (width, width))
            image.thumbnail((width, width))
            drawn = _on_paper(ImageOps.exif_transpose(image))
    except (OSError, SyntaxError, UnidentifiedImageError, Image.DecompressionBombError) as error:
        raise ValueError(f"no image that can be read: {error}") from error
    made = BytesIO()
    drawn.save(made, "WEBP", quality=_QUALITY, exif=b"", icc_profile=b"", xmp=b"")
    return made.getvalue()


def _on_paper(image: Image.Image) -> Image.Image:
    """Without transparency, on a new canvas that carries nothing of the old one along."""
    if image.mode.startswith("I;16"):
        # Pillow's own conversion clips: nearly every grey would become white.
        image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    layer = image.convert("RGBA")
    paper = Image.new("RGB", layer.size, _PAPER)
    paper.paste(layer, mask=layer.getchannel("A"))
    return paper


def square(content: bytes, side: int) -> bytes:
    """A WebP of an image in the middle of a grey square, without metadata.

    Images of any size, shape and format become alike in all of them.

    Args:
        content: of its file.
        side: of the square, in pixels; the image is enlarged where it is smaller.

    Raises:
        ValueError: see `thumbnail`.
    """
    with Image.open(BytesIO(thumbnail(content, side))) as small:
        drawn = ImageOps.pad(small.convert("RGB"), (side, side), color=_GREY)
    made = BytesIO()
    drawn.save(made, "WEBP", quality=_QUALITY)
    return made.getvalue()
