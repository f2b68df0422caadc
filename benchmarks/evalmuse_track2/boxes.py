"""Label masks from the boxes and polygons of a published annotation file.

The organisers publish boxes for their training images only; how they made the masks of their
evaluation from such boxes is not published. The masks here are our own reading: every box that
any annotator drew, at the size of the image, then resized as predictions are.
"""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np

from benchmarks.evalmuse_track2.masks import BoolArray, MaskFileError, resized

RECTANGLE, POLYGON = 1, 2
MAX_COORDINATE = 1 << 15


def mask_of_boxes(bbox_info: object, width: int, height: int) -> BoolArray:
    """The distorted pixels of one image on the square of comparison.

    Args:
        bbox_info: lists of `{"bbox_type": 1 | 2, "bbox": ...}`, one list per annotated subject. A
            rectangle is two corners `{"x", "y"}` (the second one is not part of it), a polygon
            is a list of `[x, y]`.
        width: of the image, in pixels.
        height: of the image, in pixels.

    Raises:
        MaskFileError: `bbox_info` has another form.
    """
    canvas = np.zeros((height, width), np.uint8)
    if not isinstance(bbox_info, list) or not all(isinstance(g, list) for g in bbox_info):
        raise MaskFileError("bbox_info is not a list of lists")
    for box in (box for group in bbox_info for box in group):
        _draw(canvas, box)
    return resized(canvas)


def _draw(canvas: np.ndarray[Any, Any], box: object) -> None:
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
