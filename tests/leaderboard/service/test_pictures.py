"""Images of benchmarks as thumbnails: small, drawn anew, and only those that may be seen."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo
from starlette.applications import Starlette
from starlette.testclient import TestClient

from benchmarks.errors import SubmitterError
from benchmarks.schema import Answers, Benchmark, Questions
from leaderboard.service import picture_routes
from leaderboard.service.pictures import Pictures
from leaderboard.service.thumbnails import MOST_PIXELS, thumbnail, width_for
from tests.leaderboard.pages.synthetic import cards

SECRET = "taken at 48.2082 N"


def png(width: int = 900, height: int = 450, mode: str = "RGB") -> bytes:
    told = PngInfo()
    told.add_text("Comment", SECRET)
    made = BytesIO()
    Image.new(mode, (width, height), "red").save(made, "PNG", pnginfo=told)
    return made.getvalue()


@dataclass
class Shown(Benchmark):
    """A benchmark with a few images."""

    images: Mapping[str, Callable[[], bytes]]
    public: bool = True
    broken: bool = False
    listed: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.card = cards()["ratings"].model_copy(update={"answers_public": self.public})

    def answers(self, data: Path | None) -> Answers:
        raise NotImplementedError

    def measure(self, *_: Any) -> Any:
        raise NotImplementedError

    def has_questions(self, data: Path | None) -> bool:
        return True

    def questions(self, data: Path | None) -> Questions:
        self.listed.append(1)
        if self.broken:
            raise SubmitterError("images_missing", "They are gone.", "Fetch them.")
        return Questions(self.images, {}, ())


def site(benchmark: Benchmark | None = None) -> TestClient:
    benchmark = benchmark or Shown({"a/b|orig": png})
    pictures = Pictures({benchmark.name: benchmark}, None)
    return TestClient(Starlette(routes=picture_routes.routes(pictures)))


def address(image_id: str, width: object = 320) -> str:
    return f"/v1/images/ratings/{quote(image_id, safe='')}?w={width}"


def test_an_image_is_served_small_and_without_what_its_file_says_beside_the_picture() -> None:
    answered = site().get(address("a/b|orig"))
    assert answered.status_code == 200
    assert answered.headers["Content-Type"] == "image/webp"
    assert answered.headers["X-Content-Type-Options"] == "nosniff"
    image = Image.open(BytesIO(answered.content))
    assert image.size == (320, 160)
    assert SECRET.encode() not in answered.content
    assert not image.getexif()


def test_who_has_it_already_is_told_so() -> None:
    client = site()
    tag = client.get(address("a/b|orig")).headers["ETag"]
    again = client.get(address("a/b|orig"), headers={"If-None-Match": f'"x", {tag}'})
    assert (again.status_code, again.content) == (304, b"")
    assert "max-age" in again.headers["Cache-Control"]
    other = client.get(address("a/b|orig", 160)).headers["ETag"]
    assert other != tag


@pytest.mark.parametrize(
    "asked",
    ["../../etc/passwd", "/etc/passwd", "..%2fa", "a/b", "a\x00b", "", "a/b|orig/", "x" * 3000],
)
def test_an_id_is_looked_up_and_never_becomes_a_path(asked: str) -> None:
    answered = site().get(address(asked))
    assert answered.status_code == 404


def test_images_of_withheld_answers_are_shown_to_nobody() -> None:
    benchmark = Shown({"a": png}, public=False)
    answered = site(benchmark).get(address("a"))
    assert (answered.status_code, answered.json()["error"]["code"]) == (404, "no_image")
    assert not benchmark.listed


def test_an_unknown_benchmark_and_a_width_that_is_none_are_refused_in_one_shape() -> None:
    client = site()
    unknown = client.get("/v1/images/nobody/a")
    assert set(unknown.json()["error"]) == {"code", "message", "hint"}
    bad = client.get(address("a/b|orig", "-1"))
    assert (bad.status_code, bad.json()["error"]["code"]) == (400, "bad_width")


def test_few_sizes_are_made_whatever_is_asked_for() -> None:
    assert [width_for(asked) for asked in (0, 160, 161, 320, 99_999)] == [160, 160, 320, 320, 640]


def test_an_image_is_read_once_for_many_who_look() -> None:
    read: list[int] = []

    def content() -> bytes:
        read.append(1)
        return png()

    client = site(Shown({"a": content}))
    first, second = (client.get(address("a")) for _ in range(2))
    assert first.content == second.content
    assert len(read) == 1


def test_thumbnails_in_memory_stay_within_their_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def reader(name: str) -> Callable[[], bytes]:
        def content() -> bytes:
            read.append(name)
            return png()

        return content

    monkeypatch.setattr(picture_routes, "KEPT_BYTES", len(thumbnail(png(), 320)) + 10)
    client = site(Shown({"a": reader("a"), "b": reader("b")}))
    for name in ("a", "b", "a"):
        client.get(address(name))
    assert read == ["a", "b", "a"]


@pytest.mark.parametrize("content", [b"", b"<svg onload=alert(1)>", b"GIF89a", png()[:200]])
def test_what_is_no_image_is_not_passed_on(content: bytes) -> None:
    answered = site(Shown({"a": lambda: content})).get(address("a"))
    assert (answered.status_code, answered.json()["error"]["code"]) == (404, "unreadable")


def test_an_image_of_too_many_pixels_is_refused_before_it_is_decoded() -> None:
    side = int(MOST_PIXELS**0.5) + 10
    huge = BytesIO()
    Image.new("1", (side, side)).save(huge, "PNG")
    assert len(huge.getvalue()) < 1 << 20
    with pytest.raises(ValueError, match="pixels"):
        thumbnail(huge.getvalue(), 320)


def test_a_transparent_image_is_laid_on_paper() -> None:
    made = BytesIO()
    Image.new("RGBA", (10, 10), (0, 0, 0, 0)).save(made, "PNG")
    pixel = Image.open(BytesIO(thumbnail(made.getvalue(), 320))).convert("RGB").getpixel((5, 5))
    assert pixel == (255, 255, 255)


def test_an_image_on_a_disk_that_fails_is_there_again_later() -> None:
    def fails() -> bytes:
        raise OSError("gone")

    answered = site(Shown({"a": fails})).get(address("a"))
    assert answered.status_code == 503
    assert answered.headers["Retry-After"]


def test_images_that_cannot_be_listed_are_none_and_the_log_says_why(
    caplog: pytest.LogCaptureFixture,
) -> None:
    benchmark = Shown({}, broken=True)
    with caplog.at_level(logging.WARNING):
        client = site(benchmark)
        assert client.get(address("a")).status_code == 404
        assert client.get(address("b")).status_code == 404
    assert "They are gone." in caplog.text
    assert len(benchmark.listed) == 1
