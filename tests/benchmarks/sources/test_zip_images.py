"""Images in zip archives: whatever is damaged ends in one kind of error."""

from __future__ import annotations

import io
import random
import zipfile
from pathlib import Path

import pytest

from benchmarks.errors import SubmitterError
from benchmarks.sources.archives import ZipImages
from tests.benchmarks.refusals import refused

CONTENT = {f"images/{n}.png": bytes([n]) * 300 + b"end" for n in range(3)}


def archive(kind: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", kind) as made:
        for name, content in CONTENT.items():
            made.writestr(name, content)
    return buffer.getvalue()


def parts(folder: Path, *contents: bytes) -> list[Path]:
    places = [folder / f"images.zip.part-a{n}" for n in range(len(contents))]
    for place, content in zip(places, contents, strict=True):
        place.write_bytes(content)
    return places


def test_parts_are_one_archive_even_where_some_are_empty(tmp_path: Path) -> None:
    whole = archive()
    images = ZipImages(*parts(tmp_path, b"", whole[:100], b"", whole[100:], b""))
    assert images.names == set(CONTENT)
    assert all(images.read(name) == content for name, content in CONTENT.items())


@pytest.mark.parametrize(
    "contents", [[b""], [b"", b""], [b"", b"PK"], [b"x" * 21], [b"", archive()[:-30]]]
)
def test_what_is_no_archive_is_refused(tmp_path: Path, contents: list[bytes]) -> None:
    places = parts(tmp_path, *contents)
    with refused("data_malformed"):
        _ = ZipImages(*places).names


def test_an_archive_whose_first_part_is_missing_is_refused_when_it_is_read(tmp_path: Path) -> None:
    images = ZipImages(*parts(tmp_path, archive()[50:]))
    with refused("data_malformed", r"no readable 'images/0\.png'"):
        images.read("images/0.png")


def flags(content: bytes, offset: int, value: bytes) -> bytes:
    """The archive with two bytes of every entry of its directory changed."""
    pieces = content.split(b"PK\x01\x02")
    return b"PK\x01\x02".join(
        [pieces[0], *(p[: offset - 4] + value + p[offset - 2 :] for p in pieces[1:])]
    )


@pytest.mark.parametrize(
    ("offset", "value"),
    [(10, b"\x63\x00"), (8, b"\x01\x00"), (8, b"\x20\x00"), (8, b"\x40\x00")],
    ids=["unknown compression", "encrypted", "patched", "strongly encrypted"],
)
def test_an_entry_that_cannot_be_read_is_named(tmp_path: Path, offset: int, value: bytes) -> None:
    images = ZipImages(*parts(tmp_path, flags(archive(), offset, value)))
    with refused("data_malformed", r"images/1\.png"):
        images.read("images/1.png")


@pytest.mark.parametrize(
    "kind", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
)
def test_random_damage_ends_in_one_kind_of_error_or_in_the_true_content(
    tmp_path: Path, kind: int
) -> None:
    rng, whole = random.Random(kind), archive(kind)
    refused = 0
    for _ in range(400):
        damaged = bytearray(whole)
        for _ in range(rng.randint(1, 3)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        images = ZipImages(*parts(tmp_path, bytes(damaged[: rng.choice((None, 60, -1))])))
        try:
            for name, content in CONTENT.items():
                assert images.read(name) == content
        except SubmitterError as error:
            assert error.code == "data_malformed"
            refused += 1
    assert refused > 200
