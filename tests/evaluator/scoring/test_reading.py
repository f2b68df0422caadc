"""Reading ahead: in order, within bounds, and a file that cannot be read is told."""

from __future__ import annotations

import io
import threading

import pytest
from PIL import Image

from benchmarks.errors import SubmitterError
from benchmarks.schema import Pair
from evaluator.scoring.batches import Reader, header_size
from evaluator.scoring.plan import Unit
from tests.evaluator.scoring.asking import picture

UNITS = [Unit(f"i{n}", (Pair(f"p{n}", f"i{n}", "t"),)) for n in range(40)]


class Disk:
    """Counts what is read."""

    def __init__(self, size: int = 10) -> None:
        self.read: list[str] = []
        self.size = size

    def __call__(self, image_id: str) -> bytes:
        if image_id == "i5":
            raise SubmitterError("data_malformed", "The archive holds no readable five.")
        if image_id == "i3":
            raise FileNotFoundError(2, "No such file or directory", "three.png")
        self.read.append(image_id)
        return image_id.encode().ljust(self.size)


def reader(disk: Disk, *, ahead: int = 5, ahead_bytes: int = 10_000) -> Reader:
    return Reader(disk, threads=2, ahead=ahead, ahead_bytes=ahead_bytes, measure=False)


def test_images_come_in_order_and_a_missing_one_with_the_reason() -> None:
    found = list(reader(Disk()).all(UNITS))
    assert [one.unit for one in found] == UNITS
    assert [one.unit.image_id for one in found if one.problem] == ["i3", "i5"]
    assert "no readable five" in found[5].problem
    assert "No such file" in found[3].problem
    assert found[0].data == b"i0".ljust(10)


@pytest.mark.parametrize(("ahead", "ahead_bytes", "most"), [(5, 10**9, 6), (40, 3_000, 6)])
def test_images_wait_in_bounds_of_number_and_bytes(ahead: int, ahead_bytes: int, most: int) -> None:
    disk = Disk(size=1_000)
    fetched = reader(disk, ahead=ahead, ahead_bytes=ahead_bytes).all(UNITS)
    for n, _ in enumerate(fetched, start=1):
        assert len(disk.read) <= n + most
    assert len(disk.read) == 38


def test_whoever_stops_reading_leaves_no_thread_behind() -> None:
    fetched = reader(Disk()).all(UNITS)
    next(fetched)
    fetched.close()
    assert not [t for t in threading.enumerate() if t.name.startswith("images")]


def test_sizes_are_told_from_the_header() -> None:
    wide = io.BytesIO()
    Image.new("1", (20_000, 3)).save(wide, format="PNG")
    assert header_size(picture(3)) == (2, 2)
    assert header_size(wide.getvalue()) == (20_000, 3)


@pytest.mark.parametrize("data", [b"", b"no image", picture(1)[:20]])
def test_what_is_no_image_has_no_size(data: bytes) -> None:
    assert header_size(data) == (0, 0)
