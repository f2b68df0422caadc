"""Canonical images: only pixels are left to tell images apart."""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageFile, PngImagePlugin

from evaluator.scoring.images import canonical
from evaluator.scoring.images.canonical import (
    ImageError,
    canonical_size,
    is_canonical,
)
from evaluator.scoring.images.canonical_image import canonical_image, canonical_png


def saved(image: Image.Image, form: str = "PNG", **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, format=form, **options)
    return buffer.getvalue()


def opened(data: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(data))
    image.load()
    return image


def noise(size: tuple[int, int] = (9, 5)) -> Image.Image:
    values = np.random.default_rng(0).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    return Image.fromarray(values)


def test_pixels_survive_and_metadata_do_not() -> None:
    info = PngImagePlugin.PngInfo()
    info.add_text("model", "the label")
    made = canonical_png(saved(noise(), pnginfo=info, dpi=(72, 72)))
    assert b"the label" not in made
    assert opened(made).info == {}
    assert opened(made).mode == "RGB"
    assert opened(made).tobytes() == noise().tobytes()
    assert is_canonical(made)


def test_what_is_canonical_comes_back_as_it_is() -> None:
    made = canonical_png(saved(noise()))
    assert canonical_png(made) is made


def test_the_habits_of_another_encoder_do_not_survive() -> None:
    results = {canonical_png(saved(noise(), compress_level=level)) for level in (0, 1, 6, 9)}
    assert len(results) == 1


def test_an_image_is_turned_upright() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    made = opened(canonical_png(saved(noise((9, 5)), exif=exif)))
    assert made.size == (5, 9)
    assert made.tobytes() == noise().transpose(Image.Transpose.ROTATE_270).tobytes()


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P"])
def test_transparency_lies_on_white(mode: str) -> None:
    image = Image.new("RGBA", (2, 1), (0, 0, 0, 0))
    image.putpixel((1, 0), (0, 0, 0, 255))
    made = opened(canonical_png(saved(image.convert(mode))))
    assert made.getpixel((0, 0)) == (255, 255, 255)
    assert made.getpixel((1, 0)) == (0, 0, 0)


@pytest.mark.parametrize("mode", ["L", "1", "CMYK"])
def test_other_modes_become_rgb(mode: str) -> None:
    form = "TIFF" if mode == "CMYK" else "PNG"
    assert opened(canonical_png(saved(noise().convert(mode), form))).mode == "RGB"


def test_sixteen_bit_greys_keep_their_shade() -> None:
    grey = Image.fromarray(np.array([[0, 128 << 8, 255 << 8]], dtype=np.uint16))
    made = opened(canonical_png(saved(grey)))
    assert [made.getpixel((x, 0)) for x in range(3)] == [(0,) * 3, (128,) * 3, (255,) * 3]


def test_jpeg_is_read(tmp_path: Path) -> None:
    assert is_canonical(canonical_png(saved(noise(), "JPEG")))


@pytest.mark.parametrize(
    "data", [b"", b"not an image", saved(noise())[:-60], saved(noise((40, 40)))[:200]]
)
def test_what_is_no_whole_image_is_refused(data: bytes) -> None:
    with pytest.raises(ImageError):
        canonical_png(data)


def test_too_many_pixels_are_refused_before_they_are_decoded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(canonical, "MAX_PIXELS", 44)
    with pytest.raises(ImageError, match="9 × 5 pixels are too many"):
        canonical_png(saved(noise()))


def test_a_damaged_chunk_or_bytes_behind_the_end_are_not_canonical() -> None:
    made = bytearray(canonical_png(saved(noise())))
    assert not is_canonical(bytes(made) + b"a message")
    made[50] ^= 1
    assert not is_canonical(bytes(made))
    assert not is_canonical(bytes(made[:20]))


def framed(width: int, height: int, stream: bytes) -> bytes:
    """A PNG with sound chunks around any stream of pixels."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + body))
        return struct.pack(">I", len(body)) + kind + body + check

    header = struct.pack(">II", width, height) + bytes([8, 2, 0, 0, 0])
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        chunk(kind, body) for kind, body in [(b"IHDR", header), (b"IDAT", stream), (b"IEND", b"")]
    )


@pytest.mark.parametrize(
    "data",
    [
        framed(9, 5, zlib.compress(bytes(5 * 28 - 1), 1)),
        framed(9, 5, zlib.compress(bytes(5 * 28), 1)[:-6]),
        framed(9, 5, b"\x78\x01no stream"),
        framed(0, 5, zlib.compress(bytes(5), 1)),
    ],
    ids=["a byte short", "cut off", "no stream", "no columns"],
)
def test_sound_chunks_around_broken_pixels_are_a_damaged_image(data: bytes) -> None:
    """Passed on as they are, they would end the scorer's box and with it the whole run."""
    assert not is_canonical(data)
    with pytest.raises(ImageError):
        canonical_png(data)


@pytest.mark.parametrize(
    "stream",
    [zlib.compress(bytes(5 * 28), 1) + b"a message", zlib.compress(bytes(5 * 28 + 1), 1)],
    ids=["behind the stream", "in the stream"],
)
def test_bytes_behind_the_pixels_are_not_canonical_and_get_lost(stream: bytes) -> None:
    data = framed(9, 5, stream)
    assert not is_canonical(data)
    assert canonical_png(data) == canonical_png(framed(9, 5, zlib.compress(bytes(5 * 28), 1)))


def turned() -> bytes:
    exif = Image.Exif()
    exif[0x0112] = 6
    return saved(noise(), "JPEG", exif=exif)


def frames(form: str) -> bytes:
    return saved(noise(), form, save_all=True, append_images=[noise((9, 5)).rotate(180)])


@pytest.mark.parametrize(
    ("data", "codes"),
    [
        (saved(noise()), []),
        (saved(noise(), "JPEG"), []),
        (frames("GIF"), ["image_animated", "image_converted"]),
        (frames("WEBP"), ["image_animated"]),
        (turned(), ["image_rotated"]),
        (saved(noise().convert("CMYK"), "JPEG"), ["image_converted"]),
        (saved(noise().convert("P"), transparency=0), ["image_converted"]),
        (saved(Image.fromarray(np.full((5, 9), 300, np.uint16))), ["image_converted"]),
    ],
    ids=["png", "jpeg", "gif", "webp", "turned", "cmyk", "palette", "16 bit"],
)
def test_what_was_done_to_an_image_is_said(data: bytes, codes: list[str]) -> None:
    made = canonical_image(data)
    assert [code for code, _ in made.remarks] == codes
    assert all(message for _, message in made.remarks)
    assert made.decoded
    assert is_canonical(made.png)
    assert canonical_size(made.png) == (made.width, made.height) == opened(made.png).size
    assert canonical_image(made.png).remarks == ()
    assert not canonical_image(made.png).decoded


def test_of_several_frames_the_first_is_scored() -> None:
    assert opened(canonical_png(frames("WEBP"))).size == (9, 5)
    first = opened(frames("GIF")).convert("RGB")
    assert opened(canonical_png(frames("GIF"))).tobytes() == first.tobytes()


def test_a_very_wide_image_is_scored_while_its_pixels_are_not_too_many() -> None:
    made = canonical_image(saved(Image.new("RGB", (20_000, 20), "red")))
    assert (made.width, made.height) == (20_000, 20)


def claiming(width: int, height: int) -> bytes:
    """A PNG whose header claims a size that its few bytes could not hold."""
    header = b"IHDR" + struct.pack(">II", width, height) + bytes([8, 2, 0, 0, 0])
    small = saved(noise())
    return small[:12] + header + struct.pack(">I", zlib.crc32(header)) + small[33:]


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
@pytest.mark.parametrize("size", [(20_000, 1_000), (20_000, 5_000), (20_000, 20_000)])
def test_a_very_large_image_is_refused_without_decoding_it(
    monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    def decode(*_: object) -> None:
        raise AssertionError("it was decoded")

    monkeypatch.setattr(ImageFile.ImageFile, "load", decode)
    with pytest.raises(ImageError, match="too many"):
        canonical_image(claiming(*size))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("form", ["PNG", "JPEG", "GIF", "WEBP", "TIFF", "BMP"])
def test_damaged_bytes_are_refused_or_read_but_never_raise_anything_else(form: str) -> None:
    data = saved(noise(), form)
    for at in range(0, len(data), max(1, len(data) // 40)):
        for damaged in (data[:at], data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]):
            try:
                made = canonical_png(damaged)
            except ImageError:
                continue
            assert is_canonical(made)
