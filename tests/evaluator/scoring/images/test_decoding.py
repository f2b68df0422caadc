"""Decoding: the pixels of a canonical PNG without its detour, and what was done is said."""

from __future__ import annotations

import io
import random
import struct
import zlib
from typing import Any

import numpy as np
import pytest
from PIL import Image

from evaluator.scoring.images import canonical
from evaluator.scoring.images.canonical import ImageError
from evaluator.scoring.images.canonical_image import canonical_png
from evaluator.scoring.images.decoding import decode


def noise(width: int = 9, height: int = 5) -> Image.Image:
    values = np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(values)


def saved(image: Image.Image, form: str = "PNG", **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


def rotated(form: str) -> bytes:
    exif = Image.Exif()
    exif[0x0112] = 6
    return saved(noise(), form, exif=exif)


def half_transparent() -> Image.Image:
    image = noise().convert("RGBA")
    image.putalpha(Image.linear_gradient("L").resize(image.size))
    return image


def grey16() -> Image.Image:
    return Image.fromarray(np.arange(0, 45 * 1400, 1400, dtype=np.uint16).reshape(5, 9))


FILES = {
    "plain png": saved(noise()),
    "plain jpeg": saved(noise(), "JPEG"),
    "opaque alpha": saved(noise().convert("RGBA")),
    "rotated jpeg": rotated("JPEG"),
    "rotated png": rotated("PNG"),
    "cmyk jpeg": saved(noise().convert("CMYK"), "JPEG"),
    "palette": saved(noise().convert("P")),
    "grey": saved(noise().convert("L")),
    "grey, 16 bits": saved(grey16()),
    "transparent": saved(half_transparent()),
    "animated gif": saved(noise(), "GIF", save_all=True, append_images=[noise().rotate(180)]),
    "animated png": saved(noise(), save_all=True, append_images=[noise().rotate(180)]),
    "animated webp": saved(noise(), "WEBP", save_all=True, append_images=[noise().rotate(180)]),
}


@pytest.mark.parametrize("name", FILES)
def test_pixels_are_those_of_the_canonical_png(name: str) -> None:
    expected = Image.open(io.BytesIO(canonical_png(FILES[name])))
    image = decode(FILES[name]).image
    assert (image.mode, image.size) == ("RGB", expected.size)
    assert image.tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    ("name", "codes"),
    [
        ("plain png", []),
        ("plain jpeg", []),
        ("opaque alpha", []),
        ("rotated jpeg", ["image_rotated"]),
        ("rotated png", ["image_rotated"]),
        ("cmyk jpeg", ["image_converted"]),
        ("palette", ["image_converted"]),
        ("grey", ["image_converted"]),
        ("grey, 16 bits", ["image_converted"]),
        ("transparent", ["image_converted"]),
        ("animated gif", ["image_animated", "image_converted"]),
        ("animated png", ["image_animated"]),
        ("animated webp", ["image_animated"]),
    ],
)
def test_what_was_done_is_said(name: str, codes: list[str]) -> None:
    remarks = decode(FILES[name]).remarks
    assert [code for code, _ in remarks] == codes
    assert all(message.endswith(".") for _, message in remarks)


def test_the_mode_and_the_white_ground_are_named() -> None:
    ((_, message),) = decode(FILES["transparent"]).remarks
    assert "(RGBA)" in message
    assert "white" in message


def test_nothing_but_pixels_is_left() -> None:
    image = decode(rotated("JPEG")).image
    assert image.info == {}
    assert not dict(image.getexif())


def test_too_many_pixels_are_refused_by_the_header_alone() -> None:
    header = struct.pack(">IIBBBBB", 20_000, 20_000, 8, 2, 0, 0, 0)
    chunk = struct.pack(">I4s", len(header), b"IHDR") + header
    png = b"\x89PNG\r\n\x1a\n" + chunk + struct.pack(">I", zlib.crc32(b"IHDR" + header))
    with pytest.raises(ImageError, match="too many"):
        decode(png + struct.pack(">I4s", 0, b"IDAT") + struct.pack(">I", zlib.crc32(b"IDAT")))


def test_the_limit_is_that_of_canonical_images(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(canonical, "MAX_PIXELS", 44)
    with pytest.raises(ImageError, match="9 × 5 pixels are too many"):
        decode(FILES["plain png"])


@pytest.mark.parametrize("data", [b"", b"text", saved(noise(40, 40), "JPEG")[:400]])
def test_what_is_no_whole_image_is_refused(data: bytes) -> None:
    with pytest.raises(ImageError):
        decode(data)


@pytest.mark.filterwarnings("ignore::UserWarning")  # of the readers
@pytest.mark.parametrize("form", ["PNG", "JPEG", "GIF", "WEBP", "TIFF", "BMP", "AVIF"])
def test_damage_of_any_kind_is_one_kind_of_error(form: str) -> None:
    whole, chance = saved(noise(30, 24), form), random.Random(form)
    for _ in range(150):
        data = bytearray(whole)
        for _ in range(chance.choice([1, 3, 12])):
            data[chance.randrange(min(len(data), chance.choice([64, 4096])))] ^= 1 << 5
        try:
            decode(bytes(data[: chance.randrange(len(data), 2 * len(data))]))
        except ImageError:
            continue
