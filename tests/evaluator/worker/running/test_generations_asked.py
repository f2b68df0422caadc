"""The one-pixel change is of what metrics see, whatever file it comes in."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

from evaluator.scoring.images.canonical_image import canonical_png
from evaluator.worker.running.generations_asked import _changed

PIXELS = np.random.default_rng(0).integers(0, 256, (6, 9, 3), dtype=np.uint8)
TURNED = Image.Exif()
TURNED[0x0112] = 6


def _file(image: Image.Image, form: str = "PNG", **options: Any) -> bytes:
    made = io.BytesIO()
    image.save(made, form, **options)
    return made.getvalue()


def _seen(data: bytes) -> np.ndarray[Any, np.dtype[np.int_]]:
    with Image.open(io.BytesIO(canonical_png(data))) as image:
        return np.asarray(image).astype(int)


FILES = {
    "plain": _file(Image.fromarray(PIXELS)),
    "turned": _file(Image.fromarray(PIXELS), exif=TURNED),
    "turned JPEG": _file(Image.fromarray(PIXELS), "JPEG", exif=TURNED),
    "see-through": _file(Image.fromarray(np.dstack([PIXELS, PIXELS[:, :, 0]]))),
    "16 bits": _file(Image.fromarray(PIXELS[:, :, 0].astype(np.uint16) << 8)),
}


@pytest.mark.parametrize("file", FILES)
def test_no_value_moves_by_more_than_one_step(file: str) -> None:
    before, after = _seen(FILES[file]), _seen(_changed(lambda: FILES[file]))
    assert before.shape == after.shape
    assert np.array_equal(after - before, (before < 255).astype(int))
