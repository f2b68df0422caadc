"""Everything that can be wrong with images, told at once and in whatever number of threads."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from evaluator.scoring.progress import Progress
from evaluator.submission.generations.checking import Check
from evaluator.submission.generations.in_folder import FolderSource
from evaluator.submission.generations.limits import GenerationsLimits
from evaluator.submission.generations.looking import Look, look
from evaluator.submission.generations.parallel import in_order
from evaluator.submission.generations.sources import Fault
from evaluator.submission.generations.wanted import Wanted
from tests.evaluator.submission.generations.made_images import (
    PROMPTS,
    SEEDS,
    Made,
    encoded,
    made,
    picture,
)
from tests.evaluator.submission.generations.test_sources import codes, taken

ALONE = [("p0", 1), ("p1", 1), ("p2", 1), ("p3", 1)]


def change(one: Made, key: tuple[str, int], data: bytes, **row: Any) -> str:
    """Put other bytes in the place of an image's; gives its file."""
    file = str(one.rows[key]["file"])
    one.files[file] = data
    one.rows[key].update(sha256=hashlib.sha256(data).hexdigest(), width=None, height=None, **row)
    return file


def spoilt() -> Made:
    one = made()
    black = Image.new("RGB", (64, 64))
    change(one, ("p0", 1), encoded(black))
    change(one, ("p0", 2), encoded(Image.new("RGB", (64, 64), "white"), "JPEG"))
    change(one, ("p1", 1), encoded(picture(99, 16)))
    change(one, ("p1", 2), encoded(picture(98, 300)))
    change(one, ("p2", 1), encoded(picture(6), "WEBP", lossless=True))
    change(one, ("p2", 2), encoded(picture(97))[:-40])
    one.rows["p3", 2].update(prompt="another", prompt_id="p3")
    return one


FOUND = ["blank", "blank", "wrong_size", "wrong_size", "corrupt", "duplicate", "wrong_prompt"]


def test_all_kinds_are_told_at_once_in_the_order_of_the_images(tmp_path: Path) -> None:
    one = spoilt()
    found = taken(one.folder(tmp_path / "f"))
    assert sorted(codes(found)) == sorted(FOUND)
    assert found.counts == {kind: FOUND.count(kind) for kind in FOUND}
    assert found.content_sha256 == ""
    places = [next(n for n, row in enumerate(one.rows.values()) if p.file in (row["file"], f"{row['prompt_id']}, seed {row['seed']}")) for p in found.problems]  # fmt: skip
    assert places == sorted(places)


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_the_number_of_threads_changes_nothing(threads: int, tmp_path: Path) -> None:
    bad, good = spoilt().folder(tmp_path / "bad"), made().folder(tmp_path / "good")
    assert taken(bad, threads=threads).problems == taken(bad, threads=3).problems
    one = taken(good, tmp_path / f"{threads}.zip", threads=threads)
    taken(good, tmp_path / "three.zip", threads=3)
    assert (tmp_path / f"{threads}.zip").read_bytes() == (tmp_path / "three.zip").read_bytes()
    assert one.problems == ()


def test_withheld_images_are_counted_and_a_reason_is_a_word_or_two(tmp_path: Path) -> None:
    one = made()
    one.rows["p0", 1].update(file=None, problem="nsfw")
    one.rows["p0", 2].update(problem="black")  # Its file may stay where it was.
    del one.files[image_of(one, ("p1", 2))]
    one.rows["p1", 2].update(file=None, problem="<script>" * 30)
    one.files.pop("images/p0-1_s1.png", None)
    found = taken(one.folder(tmp_path / "f"))
    assert found.report is not None
    assert found.report.withheld == {"nsfw": 1, "black": 1}
    assert "bad_row" in codes(found)


def image_of(one: Made, key: tuple[str, int]) -> str:
    return str(one.rows[key]["file"])


def test_a_submission_of_withheld_images_alone_is_refused(tmp_path: Path) -> None:
    one = made()
    one.files = {}
    for row in one.rows.values():
        row.update(file=None, problem="nsfw")
    assert codes(taken(one.folder(tmp_path / "f"))) == ["no_images"]


def test_another_revision_of_the_prompts_is_told_beside_the_rest(tmp_path: Path) -> None:
    one = spoilt()
    one.manifest["benchmark_revision"] = "of-old"
    assert codes(taken(one.folder(tmp_path / "f")))[0] == "other_revision"


def test_an_unknown_prompt_set_and_a_bad_manifest_are_told_together(tmp_path: Path) -> None:
    one = made()
    one.manifest |= {"benchmark": "demo_prompt", "selection": "best_of", "stepz": 3}
    found = taken(one.folder(tmp_path / "f"))
    assert codes(found) == ["bad_manifest", "bad_manifest", "unknown_prompt_set"]
    assert "Did you mean 'demo_prompts'?" in found.problems[-1].hint


def test_problems_beyond_measure_are_counted_and_not_kept(tmp_path: Path) -> None:
    one = made()
    table = one.folder(tmp_path / "f") / "images.jsonl"
    table.write_bytes(one.table + b"{}\n" * 30_000)
    found = taken(tmp_path / "f")
    assert found.counts["bad_row"] > 10_000
    assert len(found.problems) == 10_000


def test_progress_is_told_to_its_end(tmp_path: Path) -> None:
    told: list[Progress] = []
    taken(made().folder(tmp_path / "f"), listener=told.append)
    assert (told[0].done, told[-1].done, told[-1].total) == (0, 8, 8)


def test_results_come_in_order_and_no_more_than_two_a_thread_are_ahead() -> None:
    gate, begun = threading.Event(), list[int]()

    def items() -> Any:
        for number in range(50):
            begun.append(number)
            yield number

    def work(number: int) -> int:
        gate.wait(60)
        return number

    stream = in_order(work, items(), 3)
    threading.Timer(0.2, gate.set).start()
    assert next(stream) == 0
    assert len(begun) <= 8
    assert [0, *stream] == list(range(50))


def test_equal_pixels_are_known_in_another_form_and_other_pixels_are_not() -> None:
    image = picture(1)
    first, second = look(encoded(image)), look(encoded(image, "WEBP", lossless=True))
    image.putpixel((3, 3), (1, 2, 3))
    third = look(encoded(image))
    assert isinstance(first, Look)
    assert isinstance(second, Look)
    assert isinstance(third, Look)
    assert first.pixels == second.pixels != third.pixels
    assert first.sha256 != second.sha256


@pytest.mark.parametrize(
    ("image", "blank"),
    [
        (Image.new("RGB", (64, 64), "grey"), True),
        (Image.new("L", (64, 64), 255), True),
        (Image.new("RGBA", (64, 64), (255, 0, 0, 0)), True),
        (Image.fromarray(np.random.default_rng(0).integers(126, 130, (64, 64, 3), dtype=np.uint8)), True),
        (Image.fromarray(np.random.default_rng(0).integers(0, 255, (64, 64, 3), dtype=np.uint8)), False),
        (picture(3), False),
    ],
)  # fmt: skip
def test_what_shows_nothing_is_blank(image: Image.Image, blank: bool) -> None:
    found = look(encoded(image))
    assert isinstance(found, Look)
    assert found.blank is blank


def test_a_small_thing_on_a_plain_ground_is_a_picture() -> None:
    image = Image.new("RGB", (512, 512), "white")
    image.paste("black", (250, 250, 270, 270))
    found = look(encoded(image))
    assert isinstance(found, Look)
    assert not found.blank


def test_several_frames_and_other_forms_are_no_images() -> None:
    frames = encoded(picture(1), "WEBP", save_all=True, append_images=[picture(2)])
    for data in (frames, encoded(picture(1), "GIF"), encoded(picture(1), "TIFF"), b"\x89PNG"):
        found = look(data)
        assert isinstance(found, Fault)
        assert found.kind == "corrupt"


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP"])
def test_damaged_bytes_never_end_the_check(form: str) -> None:
    rng = np.random.default_rng(7)
    data = encoded(picture(1), form)
    for _ in range(300):
        spoiled = bytearray(data)
        for at in rng.integers(0, len(data), 6):
            spoiled[at] = rng.integers(0, 256)
        assert isinstance(look(bytes(spoiled)), Look | Fault)


def test_what_is_held_of_an_image_is_small(tmp_path: Path) -> None:
    one = made().folder(tmp_path / "f")
    check = Check(FolderSource(one, GenerationsLimits()), Wanted.of(PROMPTS, SEEDS))
    for _row, data in check.stream("images.jsonl"):
        assert data
    assert check._table.rows == {}
    assert list(check.hashes().places) == list(range(8))
