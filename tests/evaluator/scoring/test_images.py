"""Images: only pixels tell them apart, and each change to them is told."""

from __future__ import annotations

import io
import random
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageFile, PngImagePlugin

from evaluator.scoring import images
from evaluator.scoring.images import (
    ImageError,
    as_bmp,
    canonical_image,
    canonical_png,
    canonical_size,
    check_header,
    decode,
    is_canonical,
    one_step_brighter,
)
from tests.kit.pictures import encoded
from tests.kit.pictures import noise as coloured_noise

READERS = pytest.mark.parametrize("read", [canonical_image, decode])


def noise(size: tuple[int, int] = (9, 5)) -> Image.Image:
    return coloured_noise(0, *size)


def opened(data: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(data))
    image.load()
    return image


def turned(form: str) -> bytes:
    exif = Image.Exif()
    exif[0x0112] = 6
    return encoded(noise(), form, exif=exif)


def frames(form: str) -> bytes:
    return encoded(noise(), form, save_all=True, append_images=[noise().rotate(180)])


def half_transparent() -> Image.Image:
    image = noise().convert("RGBA")
    image.putalpha(Image.linear_gradient("L").resize(image.size))
    return image


GREY16 = Image.fromarray(np.arange(0, 45 * 1400, 1400, dtype=np.uint16).reshape(5, 9))
FILES: dict[str, tuple[bytes, list[str]]] = {
    "png": (encoded(noise()), []),
    "jpeg": (encoded(noise(), "JPEG"), []),
    "opaque alpha": (encoded(noise().convert("RGBA")), []),
    "turned jpeg": (turned("JPEG"), ["image_rotated"]),
    "turned png": (turned("PNG"), ["image_rotated"]),
    "cmyk jpeg": (encoded(noise().convert("CMYK"), "JPEG"), ["image_converted"]),
    "palette": (encoded(noise().convert("P"), transparency=0), ["image_converted"]),
    "grey": (encoded(noise().convert("L")), ["image_converted"]),
    "16 bits": (encoded(GREY16), ["image_converted"]),
    "transparent": (encoded(half_transparent()), ["image_converted"]),
    "gif": (frames("GIF"), ["image_animated", "image_converted"]),
    "animated png": (frames("PNG"), ["image_animated"]),
    "webp": (frames("WEBP"), ["image_animated"]),
}


@pytest.mark.parametrize("name", FILES)
def test_each_change_to_an_image_is_told_and_both_readers_give_the_same_pixels(name: str) -> None:
    data, codes = FILES[name]
    made, decoded = canonical_image(data), decode(data)
    assert [code for code, _ in made.remarks] == [code for code, _ in decoded.remarks] == codes
    assert (made.decoded, is_canonical(made.png)) == (True, True)
    expected = opened(made.png)
    assert canonical_size(made.png) == (made.width, made.height) == expected.size
    assert (decoded.image.mode, decoded.image.size) == ("RGB", expected.size)
    assert decoded.image.tobytes() == expected.tobytes()
    again = canonical_image(made.png)
    assert (again.png is made.png, again.decoded, again.remarks) == (True, False, ())


def test_only_pixels_survive() -> None:
    info = PngImagePlugin.PngInfo()
    info.add_text("model", "the label")
    made = canonical_png(encoded(noise(), pnginfo=info, dpi=(72, 72)))
    assert b"the label" not in made
    assert (opened(made).info, opened(made).mode) == ({}, "RGB")
    assert opened(made).tobytes() == noise().tobytes()
    image = decode(turned("JPEG")).image
    assert (image.info, dict(image.getexif())) == ({}, {})
    levels = {canonical_png(encoded(noise(), compress_level=level)) for level in (0, 1, 6, 9)}
    assert len(levels) == 1, "habits of an encoder do not survive"


def test_every_channel_value_below_255_is_raised_by_one_without_loss() -> None:
    ramp = np.arange(256, dtype=np.uint8).repeat(3).reshape(8, 32, 3)
    for image in (noise(), Image.fromarray(ramp)):
        before = np.asarray(image)
        brighter = one_step_brighter(image)
        assert (np.asarray(decode(brighter).image) == np.minimum(before + 1.0, 255)).all()
        assert is_canonical(brighter)


def test_an_image_is_turned_upright() -> None:
    made = opened(canonical_png(turned("PNG")))
    assert made.tobytes() == noise().transpose(Image.Transpose.ROTATE_270).tobytes()


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P"])
def test_transparency_lies_on_white(mode: str) -> None:
    image = Image.new("RGBA", (2, 1), (0, 0, 0, 0))
    image.putpixel((1, 0), (0, 0, 0, 255))
    made = opened(canonical_png(encoded(image.convert(mode))))
    assert [made.getpixel((x, 0)) for x in range(2)] == [(255,) * 3, (0,) * 3]
    ((_, message),) = decode(encoded(image)).remarks
    assert "(RGBA)" in message
    assert "white" in message


def test_sixteen_bit_greys_keep_their_shade() -> None:
    grey = Image.fromarray(np.array([[0, 128 << 8, 255 << 8]], dtype=np.uint16))
    made = opened(canonical_png(encoded(grey)))
    assert [made.getpixel((x, 0)) for x in range(3)] == [(0,) * 3, (128,) * 3, (255,) * 3]


def test_of_several_frames_the_first_is_scored() -> None:
    first = opened(frames("GIF")).convert("RGB")
    assert opened(canonical_png(frames("GIF"))).tobytes() == first.tobytes()


@READERS
@pytest.mark.parametrize(
    "data",
    [b"", b"not an image", encoded(noise())[:-60], encoded(noise((40, 40)), "JPEG")[:400]],
    ids=len,
)
def test_what_is_no_whole_image_is_refused(read: Any, data: bytes) -> None:
    with pytest.raises(ImageError):
        read(data)


def test_a_file_is_known_by_its_header_before_it_is_its_turn(tmp_path: Path) -> None:
    place = tmp_path / "one.png"
    place.write_bytes(encoded(noise())[:-60])
    check_header(place)
    place.write_bytes(b"not an image")
    with pytest.raises(ImageError):
        check_header(place)
    with pytest.raises(FileNotFoundError):
        check_header(tmp_path / "gone.png")


def test_what_is_sent_uncompressed_has_the_same_pixels() -> None:
    assert decode(as_bmp(noise())).image.tobytes() == noise().tobytes()


def chunk(kind: bytes, body: bytes) -> bytes:
    check = struct.pack(">I", zlib.crc32(kind + body))
    return struct.pack(">I", len(body)) + kind + body + check


def framed(width: int, height: int, stream: bytes) -> bytes:
    """A PNG with sound chunks around any stream of pixels."""
    header = chunk(b"IHDR", struct.pack(">II", width, height) + bytes([8, 2, 0, 0, 0]))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", stream) + chunk(b"IEND", b"")


PIXELS = zlib.compress(bytes(5 * 28), 1)


@pytest.mark.parametrize(
    "data",
    [
        framed(9, 5, zlib.compress(bytes(5 * 28 - 1), 1)),
        framed(9, 5, PIXELS[:-6]),
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
    "stream", [PIXELS + b"a message", zlib.compress(bytes(5 * 28 + 1), 1)], ids=["behind", "in"]
)
def test_bytes_behind_the_pixels_are_not_canonical_and_get_lost(stream: bytes) -> None:
    data = framed(9, 5, stream)
    assert not is_canonical(data)
    assert canonical_png(data) == canonical_png(framed(9, 5, PIXELS))


def test_a_damaged_chunk_or_bytes_behind_the_end_are_not_canonical() -> None:
    made = bytearray(canonical_png(encoded(noise())))
    assert not is_canonical(bytes(made) + b"a message")
    made[50] ^= 1
    assert not is_canonical(bytes(made))
    assert not is_canonical(bytes(made[:20]))


@READERS
def test_pixels_are_bounded_and_not_sides(read: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert canonical_image(encoded(Image.new("RGB", (20_000, 20), "red"))).width == 20_000
    monkeypatch.setattr(images, "MAX_PIXELS", 44)
    with pytest.raises(ImageError, match="9 × 5"):
        read(encoded(noise()))


@READERS
@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
@pytest.mark.parametrize("height", [1_000, 5_000, 20_000])
def test_a_very_large_image_is_refused_by_its_header_alone(
    monkeypatch: pytest.MonkeyPatch, read: Any, height: int
) -> None:
    def load(*_: object) -> None:
        raise AssertionError("it was decoded")

    monkeypatch.setattr(ImageFile.ImageFile, "load", load)
    with pytest.raises(ImageError, match="too many"):
        read(framed(20_000, height, b""))


@READERS
@pytest.mark.filterwarnings("ignore")  # of the readers
@pytest.mark.parametrize("form", ["PNG", "JPEG", "GIF", "WEBP", "TIFF", "BMP", "AVIF"])
def test_damaged_bytes_are_refused_or_read_and_raise_nothing_else(read: Any, form: str) -> None:
    whole, chance = encoded(noise((30, 24)), form), random.Random(form)
    for _ in range(150):
        data = bytearray(whole)
        for _ in range(chance.choice([1, 3, 12])):
            data[chance.randrange(min(len(data), chance.choice([64, 4096])))] ^= 1 << 5
        try:
            read(bytes(data[: chance.randrange(len(data), 2 * len(data))]))
        except ImageError:
            continue
