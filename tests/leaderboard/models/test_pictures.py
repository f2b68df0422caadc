"""The images of models as pages show them: small, in files, only of what is on the boards."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image
from starlette.applications import Starlette
from starlette.testclient import TestClient

from benchmarks.errors import AssayError, PlatformError, TransientError
from leaderboard.models.entries import PATH, ModelTrack, track_bytes
from leaderboard.models.image_table import image_table, images_path
from leaderboard.models.pictures import (
    LONGEST_SIDE,
    PER_FILE,
    ModelPictures,
    pictures_path,
    write_pictures,
)
from leaderboard.models.reading import ModelReader
from leaderboard.service.picture_routes import routes
from leaderboard.service.pictures import Pictures
from leaderboard.store.interface import Store, transact
from leaderboard.store.memory import memory_store
from tests.leaderboard.models.test_grid import entry


def picture(value: int, size: tuple[int, int] = (8, 8)) -> bytes:
    made = io.BytesIO()
    Image.new("RGB", size, (value, value, value)).save(made, "PNG")
    return made.getvalue()


def images(n: int) -> list[tuple[str, int, bytes]]:
    return [(f"p/{i // 2}", i % 2, picture(i % 256)) for i in range(n)]


def published(tmp_path: Path, n: int) -> Store:
    files = write_pictures(
        [(p, s, lambda content=content: content) for p, s, content in images(n)],  # type: ignore[misc]
        tmp_path / "pictures",
    )
    store = memory_store()
    one = entry("model-0123456789", n, seeds=2).model_copy(update={"pictures": len(files)})
    changes: dict[str, bytes | Path | None] = {
        pictures_path(one.submission_id, "set", number): path for number, path in enumerate(files)
    }
    changes[PATH] = track_bytes(ModelTrack({one.submission_id: one}))
    changes[images_path(one.submission_id, "set")] = image_table(
        {"prompt_id": p, "seed": s, "sha256": "0" * 64} for p, s, _ in images(n)
    )
    transact(store.public, lambda: changes, "pictures")
    return store


def finder(store: Store) -> ModelPictures:
    return ModelPictures(ModelReader(store, {}, None), store.public)


def shown(store: Store, image: str) -> int | None:
    content = finder(store)("model-0123456789", image)
    if content is None:
        return None
    with Image.open(io.BytesIO(content)) as opened:
        pixel = opened.convert("L").getpixel((4, 4))
    assert isinstance(pixel, int)
    return pixel


def test_every_image_is_found_by_prompt_and_seed_in_whichever_file_it_is(tmp_path: Path) -> None:
    store = published(tmp_path, PER_FILE + 20)
    for place in (0, 1, 7, 8, 9, PER_FILE - 1, PER_FILE, PER_FILE + 19):
        found = shown(store, f"p/{place // 2}/{place % 2}")
        assert found is not None
        assert abs(found - place % 256) <= 3  # WebP loses a little


def test_pictures_are_small_and_without_metadata(tmp_path: Path) -> None:
    (file,) = write_pictures([("p", 1, lambda: picture(9, (3000, 1000)))], tmp_path / "x")
    content = pq.read_table(file)["webp"].to_pylist()[0]
    with Image.open(io.BytesIO(content)) as opened:
        assert (opened.format, opened.width) == ("WEBP", LONGEST_SIDE)
        assert not opened.info.get("exif")


def test_an_image_that_cannot_be_decoded_has_no_picture(tmp_path: Path) -> None:
    (file,) = write_pictures([("p", 1, lambda: b"nothing")], tmp_path / "x")
    assert pq.read_table(file)["webp"].to_pylist() == [None]


def test_what_left_the_boards_is_shown_no_more(tmp_path: Path) -> None:
    store = published(tmp_path, 4)
    find = finder(store)
    app = TestClient(Starlette(routes=routes(Pictures({}, None), find)))
    address = "/v1/generations/model-0123456789/p%2F1/1"
    assert app.get(address).status_code == 200
    transact(store.public, lambda: {PATH: track_bytes(ModelTrack())}, "withdrawn")
    assert app.get(address).status_code == 404, "not even from memory"
    assert find("model-0123456789", "p/1/1") is None


def test_the_route_answers_strange_addresses_with_words(tmp_path: Path) -> None:
    app = TestClient(Starlette(routes=routes(Pictures({}, None), finder(published(tmp_path, 4)))))
    for path in ("x/y/1", "model-0123456789/p%2F1", "model-0123456789/p%2F1/-1", "../../1/2"):
        answer = app.get(f"/v1/generations/{path}")
        assert answer.status_code == 404
    assert app.get("/v1/generations/model-0123456789/p%2F1/1?w=x").status_code == 400


def test_pictures_that_are_gone_are_told_apart_from_none(tmp_path: Path) -> None:
    store = published(tmp_path, 4)
    gone = {pictures_path("model-0123456789", "set", 0): None}
    transact(store.public, lambda: gone, "lost")
    with pytest.raises(OSError, match="pictures-set-000"):
        finder(store)("model-0123456789", "p/1/1")
    app = TestClient(Starlette(routes=routes(Pictures({}, None), finder(replace(store)))))
    assert app.get("/v1/generations/model-0123456789/p%2F1/1").status_code == 503


@pytest.mark.parametrize(
    "fault", [TransientError("hub_unreachable", "No answer."), PlatformError("models_damaged", "x")]
)
def test_a_store_that_cannot_be_read_is_to_be_asked_again(
    fault: AssayError, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = finder(published(tmp_path, 4))

    def fails() -> ModelTrack:
        raise fault

    app = TestClient(Starlette(routes=routes(Pictures({}, None), find)))
    monkeypatch.setattr(find._reader, "track", fails)
    answered = app.get("/v1/generations/model-0123456789/p%2F1/1")
    assert (answered.status_code, answered.json()["error"]["code"]) == (503, "unread")


def test_greys_of_sixteen_bits_keep_their_brightness(tmp_path: Path) -> None:
    made = io.BytesIO()
    Image.fromarray(np.full((8, 8), 40 << 8, np.uint16)).save(made, "PNG")
    (file,) = write_pictures([("p", 1, made.getvalue)], tmp_path / "x")
    with Image.open(io.BytesIO(pq.read_table(file)["webp"].to_pylist()[0])) as opened:
        assert abs(int(np.asarray(opened.convert("L"))[4, 4]) - 40) <= 3
