"""The model track: what is to be scored first, how pages read its files, and its pictures."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image
from starlette.applications import Starlette
from starlette.testclient import TestClient

from benchmarks.errors import AssayError, PlatformError, TransientError
from leaderboard.api.picture_routes import routes
from leaderboard.models.grid import PERTURBED, RankedMetric, grid, images_to_score, missing
from leaderboard.models.pictures import (
    LONGEST_SIDE,
    PER_FILE,
    ModelPictures,
    image_table,
    images_path,
    pictures_path,
    write_pictures,
)
from leaderboard.models.reading import KeptFile, ModelReader
from leaderboard.publication.model_entries import (
    PATH,
    ModelEntry,
    ModelTrack,
    parse_track,
    track_bytes,
)
from leaderboard.records import ImagesSeen, Kind, Submission
from leaderboard.service.pictures import Pictures
from leaderboard.store.interface import Store, transact
from tests.kit.store import MemoryRepository, memory_store
from tests.leaderboard.models.made_up_models import judge_run
from tests.leaderboard.web.failing_store import Switch, failing

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def metric(name: str, seconds: float | None, first_tiers: int = 0) -> RankedMetric:
    submission = Submission(
        submission_id=f"{name}-0123456789", kind=Kind.METRIC, name=name, metrics=(name,),
        benchmarks=(), submitter="ada", content_sha256="0" * 64, archive="a", received_at=NOW,
    )  # fmt: skip
    return RankedMetric(submission, f"{name}-0123456789/{name}", seconds, first_tiers)


def entry(name: str, images: int, *judges: RankedMetric, seeds: int = 1) -> ModelEntry:
    seen = ImagesSeen(
        prompt_set="set", revision="1", seeds=tuple(range(seeds)), wanted=images, present=images
    )
    return ModelEntry(
        submission_id=name, model=name, submitter="ada", images=seen, received_at=NOW,
        judges={one.entry_id: judge_run(one.entry_id) for one in judges},
        published_at=NOW, since=NOW,
    )  # fmt: skip


def track(*entries: ModelEntry) -> ModelTrack:
    return ModelTrack({one.submission_id: one for one in entries})


# What is to be scored
def test_what_is_worth_most_by_the_second_comes_first_and_what_is_done_last() -> None:
    slow, quick, good = metric("slow", 2.0), metric("quick", 0.1), metric("good", 0.1, 3)
    cells = grid(track(entry("model", 10)), (slow, quick, good))
    assert [cell.metric for cell in cells] == [good, quick, slow]
    cells = grid(track(entry("model", 10, quick)), (quick, slow))
    found = [(cell.metric, cell.done, cell.seconds) for cell in cells]
    assert found == [(slow, False, 40.0), (quick, True, 0.0)]
    (untimed,) = grid(track(entry("model", 10)), (metric("untimed", None),))
    assert untimed.seconds > 0


def test_the_cost_counts_every_image_and_the_changed_ones_of_at_most_200_prompts() -> None:
    assert images_to_score(entry("few", 30, seeds=3).images) == 30 + 10
    assert images_to_score(entry("many", 4000, seeds=2).images) == 4000 + PERTURBED


def test_a_metric_that_failed_is_not_missing() -> None:
    one, two = metric("one", 0.1), metric("two", 0.1)
    failed = {one.entry_id: judge_run(one.entry_id, failed="It broke.")}
    assert missing(failed, (one, two)) == [two]


# What pages read: once per change, and as before while the store is away
def test_a_file_is_parsed_again_only_when_it_has_changed() -> None:
    store, parsed = MemoryRepository(), list[bytes]()

    def parse(content: bytes) -> bytes:
        parsed.append(content)
        return content

    kept: KeptFile[bytes] = KeptFile(store, "f", parse, b"none")
    assert kept.now() == b"none"
    transact(store, lambda: {"f": b"one"}, "one")
    assert [kept.now(), kept.now()] == [b"one", b"one"]
    assert parsed == [b"one"]
    transact(store, lambda: {"f": None}, "gone")
    assert kept.now() == b"none"


def test_while_the_store_is_away_what_was_read_last_stays() -> None:
    switch, store = Switch(), memory_store()
    public = failing(store, switch).public
    kept: KeptFile[bytes] = KeptFile(public, "f", bytes, b"none")
    switch.out = True
    with pytest.raises(TransientError):
        kept.now()
    switch.out = False
    transact(store.public, lambda: {"f": b"one"}, "one")
    assert kept.now() == b"one"
    switch.out = True
    assert kept.now() == b"one"


def test_a_track_comes_back_as_it_was_written() -> None:
    written, store = track(entry("model", 10)), MemoryRepository()
    transact(store, lambda: {PATH: track_bytes(written)}, "models")
    assert KeptFile(store, PATH, parse_track, ModelTrack()).now() == written


# Pictures: small, in files, only of what is on the boards
MODEL = "model-0123456789"
ADDRESS = f"/v1/generations/{MODEL}/p%2F1/1"


def encoded(image: Image.Image) -> bytes:
    made = io.BytesIO()
    image.save(made, "PNG")
    return made.getvalue()


def picture(value: int, size: tuple[int, int] = (8, 8)) -> bytes:
    return encoded(Image.new("RGB", size, (value,) * 3))


def written(folder: Path, content: bytes) -> bytes | None:
    """The picture of an image."""
    (file,) = write_pictures([("p", 1, lambda: content)], folder)
    found: bytes | None = pq.read_table(file)["webp"].to_pylist()[0]
    return found


def grey(content: bytes) -> int:
    with Image.open(io.BytesIO(content)) as opened:
        return int(np.asarray(opened.convert("L"))[4, 4])


def published(tmp_path: Path, n: int = 4) -> Store:
    images = [(f"p/{i // 2}", i % 2, picture(i % 256)) for i in range(n)]
    makers = [(p, s, lambda content=content: content) for p, s, content in images]
    files = write_pictures(makers, tmp_path / "pictures")
    store = memory_store()
    one = entry(MODEL, n, seeds=2).model_copy(update={"pictures": len(files)})
    table = image_table({"prompt_id": p, "seed": s, "sha256": "0" * 64} for p, s, _ in images)
    changes: dict[str, bytes | Path | None] = {
        PATH: track_bytes(ModelTrack({MODEL: one})),
        images_path(MODEL, "set"): table,
        **{pictures_path(MODEL, "set", number): path for number, path in enumerate(files)},
    }
    transact(store.public, lambda: changes, "pictures")
    return store


def finder(store: Store) -> ModelPictures:
    return ModelPictures(ModelReader(store, {}, None), store.public)


def app_of(find: ModelPictures) -> TestClient:
    return TestClient(Starlette(routes=routes(Pictures({}, None), find)))


def test_every_image_is_found_by_prompt_and_seed_in_whichever_file_it_is(tmp_path: Path) -> None:
    find = finder(published(tmp_path, PER_FILE + 20))
    for place in (0, 1, 7, 8, 9, PER_FILE - 1, PER_FILE, PER_FILE + 19):
        found = find(MODEL, f"p/{place // 2}/{place % 2}")
        assert found is not None
        assert abs(grey(found) - place % 256) <= 3  # WebP loses a little


def test_pictures_are_small_without_metadata_and_keep_their_brightness(tmp_path: Path) -> None:
    content = written(tmp_path / "large", picture(9, (3000, 1000)))
    assert content is not None
    with Image.open(io.BytesIO(content)) as opened:
        assert (opened.format, opened.width) == ("WEBP", LONGEST_SIDE)
        assert not opened.info.get("exif")
    sixteen_bits = encoded(Image.fromarray(np.full((8, 8), 40 << 8, np.uint16)))
    assert abs(grey(written(tmp_path / "deep", sixteen_bits) or b"") - 40) <= 3
    assert written(tmp_path / "none", b"nothing") is None


def test_what_left_the_boards_is_shown_no_more(tmp_path: Path) -> None:
    store = published(tmp_path)
    find = finder(store)
    app = app_of(find)
    assert app.get(ADDRESS).status_code == 200
    transact(store.public, lambda: {PATH: track_bytes(ModelTrack())}, "withdrawn")
    assert app.get(ADDRESS).status_code == 404, "not even from memory"
    assert find(MODEL, "p/1/1") is None


def test_the_route_answers_strange_addresses(tmp_path: Path) -> None:
    app = app_of(finder(published(tmp_path)))
    for path in ("x/y/1", f"{MODEL}/p%2F1", f"{MODEL}/p%2F1/-1", "../../1/2"):
        assert app.get(f"/v1/generations/{path}").status_code == 404
    assert app.get(f"{ADDRESS}?w=x").status_code == 400


def test_pictures_that_are_gone_are_told_apart_from_none(tmp_path: Path) -> None:
    store = published(tmp_path)
    transact(store.public, lambda: {pictures_path(MODEL, "set", 0): None}, "lost")
    with pytest.raises(OSError, match="pictures-set-000"):
        finder(store)(MODEL, "p/1/1")
    assert app_of(finder(store)).get(ADDRESS).status_code == 503


@pytest.mark.parametrize(
    "fault", [TransientError("hub_unreachable", "x"), PlatformError("models_damaged", "x")]
)
def test_a_store_that_cannot_be_read_is_to_be_asked_again(
    fault: AssayError, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = finder(published(tmp_path))

    def fails() -> ModelTrack:
        raise fault

    monkeypatch.setattr(find._reader, "track", fails)
    answered = app_of(find).get(ADDRESS)
    assert (answered.status_code, answered.json()["error"]["code"]) == (503, "unread")
