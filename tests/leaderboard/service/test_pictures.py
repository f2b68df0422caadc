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
from benchmarks.sources.client import httpx
from leaderboard.api import picture_routes
from leaderboard.service.pictures import Pictures
from leaderboard.thumbnails import MOST_PIXELS, thumbnail, width_for
from tests.kit.boards import cards

SECRET = "taken at 48.2082 N"


def png(width: int = 900, height: int = 450, mode: str = "RGB", colour: Any = "red") -> bytes:
    told, made = PngInfo(), BytesIO()
    told.add_text("Comment", SECRET)
    Image.new(mode, (width, height), colour).save(made, "PNG", pnginfo=told)
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


def address(image_id: str = "a/b|orig", width: object = 320) -> str:
    return f"/v1/images/ratings/{quote(image_id, safe='')}?w={width}"


def refusal(answered: httpx.Response) -> tuple[int, str]:
    error = answered.json()["error"]
    assert set(error) == {"code", "message", "hint"}
    assert answered.headers["Access-Control-Allow-Origin"] == "*"  # Told to pages of any origin.
    return answered.status_code, error["code"]


def test_an_image_is_served_small_and_without_what_its_file_says_beside_the_picture() -> None:
    answered = site().get(address())
    headers = [answered.headers[name] for name in ("Content-Type", "X-Content-Type-Options")]
    assert (answered.status_code, headers) == (200, ["image/webp", "nosniff"])
    image = Image.open(BytesIO(answered.content))
    assert (image.size, dict(image.getexif())) == ((320, 160), {})
    assert SECRET.encode() not in answered.content


def test_who_has_it_already_is_told_so() -> None:
    client = site()
    tag = client.get(address()).headers["ETag"]
    again = client.get(address(), headers={"If-None-Match": f'"x", {tag}'})
    assert (again.status_code, again.content) == (304, b"")
    assert "max-age" in again.headers["Cache-Control"]
    assert client.get(address(width=160)).headers["ETag"] != tag


@pytest.mark.parametrize(
    "asked",
    ["../../etc/passwd", "/etc/passwd", "..%2fa", "a/b", "a\x00b", "", "a/b|orig/", "x" * 3000],
)
def test_an_id_is_looked_up_and_never_becomes_a_path(asked: str) -> None:
    assert site().get(address(asked)).status_code == 404


def test_what_is_not_shown_is_refused_in_one_shape() -> None:
    withheld = Shown({"a": png}, public=False)
    assert refusal(site(withheld).get(address("a"))) == (404, "no_image")
    assert not withheld.listed
    assert refusal(site().get("/v1/images/nobody/a"))[0] == 404
    assert refusal(site().get(address(width="-1"))) == (400, "bad_width")


@pytest.mark.parametrize("content", [b"", b"<svg onload=alert(1)>", b"GIF89a", png()[:200]])
def test_what_is_no_image_is_not_passed_on(content: bytes) -> None:
    assert refusal(site(Shown({"a": lambda: content})).get(address("a"))) == (404, "unreadable")


def test_few_sizes_are_made_whatever_is_asked_for() -> None:
    assert [width_for(asked) for asked in (0, 160, 161, 320, 99_999)] == [160, 160, 320, 320, 640]


@pytest.mark.parametrize(("room", "read"), [(None, "ab"), (10, "aba")], ids=["roomy", "for one"])
def test_an_image_is_read_once_for_many_who_look_while_there_is_room(
    monkeypatch: pytest.MonkeyPatch, room: int | None, read: str
) -> None:
    seen: list[str] = []

    def reader(name: str) -> Callable[[], bytes]:
        def content() -> bytes:
            seen.append(name)
            return png()

        return content

    if room is not None:
        monkeypatch.setattr(picture_routes, "KEPT_BYTES", len(thumbnail(png(), 320)) + room)
    client = site(Shown({name: reader(name) for name in "ab"}))
    answers = [client.get(address(name)).content for name in "aba"]
    assert (answers[0] == answers[2], "".join(seen)) == (True, read)


def test_an_image_of_too_many_pixels_is_refused_before_it_is_decoded() -> None:
    side = int(MOST_PIXELS**0.5) + 10
    huge = png(side, side, "1", 0)
    assert len(huge) < 1 << 20
    with pytest.raises(ValueError, match="pixels"):
        thumbnail(huge, 320)


def test_a_transparent_image_is_laid_on_paper() -> None:
    drawn = thumbnail(png(10, 10, "RGBA", (0, 0, 0, 0)), 320)
    assert Image.open(BytesIO(drawn)).convert("RGB").getpixel((5, 5)) == (255, 255, 255)


def test_an_image_on_a_disk_that_fails_is_there_again_later() -> None:
    def fails() -> bytes:
        raise OSError("gone")

    answered = site(Shown({"a": fails})).get(address("a"))
    assert (answered.status_code, bool(answered.headers["Retry-After"])) == (503, True)


def test_images_not_listed_are_none_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    benchmark = Shown({}, broken=True)
    with caplog.at_level(logging.WARNING):
        client = site(benchmark)
        assert {client.get(address(name)).status_code for name in "ab"} == {404}
    assert "They are gone." in caplog.text
    assert len(benchmark.listed) == 1
