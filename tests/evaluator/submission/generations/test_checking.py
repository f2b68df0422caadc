"""Everything that can be wrong with images, told at once and in whatever number of threads."""

from __future__ import annotations

import struct
import threading
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from benchmarks.prompt_sets.prompt_set import image_file
from evaluator.scoring.progress import Progress
from evaluator.submission.generations.checking import Check, RequestedImages, check_folder, in_order
from evaluator.submission.generations.images import ImageInspection, look
from evaluator.submission.generations.sources import Fault, FolderSource, GenerationsLimits
from tests.evaluator.submission.generations.made_images import (
    PROMPTS,
    SEEDS,
    Made,
    codes,
    made,
    picture,
    taken,
)
from tests.kit.pictures import encoded

PLAIN = Image.new("RGB", (64, 64))


def png(number: int, side: int = 64, form: str = "PNG") -> bytes:
    return encoded(picture(number, side), form)


# Folders, before they are a submission ---------------------------------------------------------


def found(one: Made, path: Path) -> list[tuple[str, str]]:
    return [(p.kind, p.where) for p in check_folder(one.folder(path), PROMPTS, SEEDS).problems]


def test_a_right_folder_is_complete_with_ids_and_files_alone(tmp_path: Path) -> None:
    one = made()
    for key, row in one.rows.items():
        one.rows[key] = {name: row[name] for name in ("prompt_id", "seed", "file")}
    report = check_folder(one.folder(tmp_path), PROMPTS, SEEDS)
    assert (report.wanted, report.usable, report.complete) == (8, 8, True)


def test_everything_that_is_wrong_with_a_folder_is_told_at_once(tmp_path: Path) -> None:
    one = made()
    del one.files[image_file("p0", 1)]
    one.files[image_file("p0", 2)] = png(99)
    del one.rows["p1", 1]
    one.rows["p1", 2]["prompt"] = "another"
    one.rows["p2", 1]["width"] = 16
    one.rows["p9", 1] = {**one.rows["p2", 2], "prompt_id": "p9", "seed": 1, "file": None}
    one.files["images/stray.png"] = png(1)
    assert found(one, tmp_path) == [
        ("missing", image_file("p0", 1)),
        ("corrupt", image_file("p0", 2)),
        ("missing", "p1, seed 1"),
        ("wrong_prompt", "p1, seed 2"),
        ("wrong_size", image_file("p2", 1)),
        ("extra", "p9, seed 1"),
        ("extra", image_file("p1", 1)),
        ("extra", "images/stray.png"),
    ]
    report = check_folder(tmp_path, PROMPTS, SEEDS)
    counts = {"missing": 2, "corrupt": 1, "wrong_prompt": 1, "wrong_size": 1, "extra": 3}
    assert (report.usable, report.counts) == (3, counts)


def with_header_of(side: int) -> bytes:
    """Were it decoded, the missing pixels would be what is wrong."""
    header = b"IHDR" + struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return png(1)[:12] + header + struct.pack(">I", zlib.crc32(header)) + png(1)[33:]


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"", "corrupt"), (b"not an image", "corrupt"), (png(1)[:-30], "corrupt"),
        (png(1, form="BMP"), "corrupt"), (with_header_of(20_000), "corrupt"),
        (with_header_of(5_000), "wrong_size"),
    ],
    ids=["", "text", "cut", "bmp", "huge", "large"],
)  # fmt: skip
def test_what_is_no_image_is_told_though_its_hash_is_right(
    data: bytes, kind: str, tmp_path: Path
) -> None:
    one = made()
    file = one.put(("p0", 1), data)
    assert found(one, tmp_path) == [(kind, file)]


@pytest.mark.parametrize("file", ["../outside.png", "/etc/hostname", "images/../../x", "a\\b", ""])
def test_nothing_outside_the_folder_is_read(file: str, tmp_path: Path) -> None:
    one = made()
    (tmp_path / "outside.png").write_bytes(png(1))
    one.rows["p0", 1].update(file=file, sha256=None)
    assert ("missing", file) in found(one, tmp_path / "f")


def test_links_are_not_followed_and_a_table_must_be_there(tmp_path: Path) -> None:
    one = made()
    place = one.folder(tmp_path / "f") / image_file("p0", 1)
    del one.files[image_file("p0", 1)]
    place.rename(tmp_path / "target.png")
    place.symlink_to(tmp_path / "target.png")
    assert found(one, tmp_path / "f") == [("missing", image_file("p0", 1))]
    (tmp_path / "f" / "images.jsonl").unlink()
    [problem] = check_folder(tmp_path / "f", PROMPTS, SEEDS).problems
    assert (problem.kind, problem.where) == ("missing", "images.jsonl")


def test_broken_and_repeated_rows_are_named_by_line_or_key(tmp_path: Path) -> None:
    one = made()
    one.rows["again", 0] = one.rows["p0", 1]
    one.rows["p1", 1]["file"] = one.rows["p0", 1]["file"]
    one.rows["odd", 0] = {"prompt_id": "p3"}
    bad = {where for kind, where in found(one, tmp_path) if kind == "bad_row"}
    assert bad >= {"images.jsonl, line 10", "p0, seed 1", "p1, seed 1"}


# Submissions -----------------------------------------------------------------------------------


def spoilt() -> Made:
    one = made()
    one.put(("p0", 1), encoded(PLAIN))
    one.put(("p0", 2), encoded(Image.new("RGB", (64, 64), "white"), "JPEG"))
    one.put(("p1", 1), png(99, 16))
    one.put(("p1", 2), png(98, 300))
    one.put(("p2", 1), encoded(picture(6), "WEBP", lossless=True))
    one.put(("p2", 2), png(97)[:-40])
    one.rows["p3", 2].update(prompt="another")
    return one


def test_all_kinds_are_told_in_the_order_of_the_images(tmp_path: Path) -> None:
    one = spoilt()
    of = taken(one.folder(tmp_path / "f"))
    files = [str(row["file"]) for row in one.rows.values()]
    places = {"p3, seed 2": 7} | {file: n for n, file in enumerate(files)}
    assert [(p.code, places[p.file]) for p in of.problems] == [
        ("blank", 0), ("blank", 1), ("wrong_size", 2), ("wrong_size", 3), ("corrupt", 5),
        ("duplicate", 6), ("wrong_prompt", 7),
    ]  # fmt: skip
    assert of.counts == {kind: codes(of).count(kind) for kind in codes(of)}
    assert of.content_sha256 == ""
    one.manifest["benchmark_revision"] = "of-old"
    assert codes(taken(one.folder(tmp_path / "f")))[0] == "other_revision"


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_the_number_of_threads_changes_nothing(threads: int, tmp_path: Path) -> None:
    bad, good = spoilt().folder(tmp_path / "bad"), made().folder(tmp_path / "good")
    assert taken(bad, threads=threads).problems == taken(bad, threads=3).problems
    assert taken(good, tmp_path / "n.zip", threads=threads).problems == ()
    taken(good, tmp_path / "three.zip", threads=3)
    assert (tmp_path / "n.zip").read_bytes() == (tmp_path / "three.zip").read_bytes()


def test_withheld_images_are_counted_and_a_reason_is_a_word_or_two(tmp_path: Path) -> None:
    one = made()
    one.rows["p0", 1].update(file=None, problem="nsfw")
    one.rows["p0", 2].update(problem="black")  # Its file may stay where it was.
    one.files = {file: data for file, data in one.files.items() if "p0" in file}
    for key in list(one.rows)[2:]:
        one.rows[key].update(file=None, problem="nsfw")
    one.rows["p1", 1].update(problem="<script>" * 30)
    one.rows["p1", 2].update(problem=None)
    of = taken(one.folder(tmp_path / "f"))
    assert of.report is not None
    assert of.report.withheld == {"nsfw": 5, "black": 1}
    assert set(codes(of)) >= {"bad_row", "missing"}
    for row in one.rows.values():
        row.update(file=None, problem="nsfw")
    one.files = {}
    assert codes(taken(one.folder(tmp_path / "g"))) == ["no_images"]


def test_an_unknown_prompt_set_and_a_bad_manifest_are_told_together(tmp_path: Path) -> None:
    one = made()
    one.manifest |= {"benchmark": "demo_prompt", "selection": "best_of", "stepz": 3}
    of = taken(one.folder(tmp_path / "f"))
    assert codes(of) == ["bad_manifest", "bad_manifest", "unknown_prompt_set"]
    assert "'demo_prompts'" in of.problems[-1].hint


def test_problems_beyond_measure_are_counted_and_not_kept(tmp_path: Path) -> None:
    one = made()
    (one.folder(tmp_path) / "images.jsonl").write_bytes(one.table + b"{}\n" * 30_000)
    of = taken(tmp_path)
    assert of.counts["bad_row"] > 10_000
    assert len(of.problems) == 10_000


def test_progress_is_told_to_its_end_and_little_is_held_of_an_image(tmp_path: Path) -> None:
    told: list[Progress] = []
    folder = made().folder(tmp_path / "f")
    taken(folder, listener=told.append)
    assert (told[0].done, told[-1].done, told[-1].total) == (0, 8, 8)
    check = Check(FolderSource(folder, GenerationsLimits()), RequestedImages.of(PROMPTS, SEEDS))
    assert all(data for _row, data in check.stream("images.jsonl"))
    assert check._table.rows == {}
    assert list(check.hashes().places) == list(range(8))


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


# One image -------------------------------------------------------------------------------------


def seen(data: bytes) -> ImageInspection:
    of = look(data)
    assert isinstance(of, ImageInspection)
    return of


def test_equal_pixels_are_known_in_another_form_and_other_pixels_are_not() -> None:
    image = picture(1)
    first, second = seen(encoded(image)), seen(encoded(image, "WEBP", lossless=True))
    image.putpixel((3, 3), (1, 2, 3))
    assert first.pixels == second.pixels != seen(encoded(image)).pixels
    assert first.sha256 != second.sha256


def test_what_shows_nothing_is_blank() -> None:
    def noise(low: int, high: int) -> Image.Image:
        values = np.random.default_rng(0).integers(low, high, (64, 64, 3), dtype=np.uint8)
        return Image.fromarray(values)

    small_thing = Image.new("RGB", (512, 512), "white")
    small_thing.paste("black", (250, 250, 270, 270))
    transparent = Image.new("RGBA", (64, 64), (255, 0, 0, 0))
    for image in (PLAIN, Image.new("L", (64, 64), 255), transparent, noise(126, 130)):
        assert seen(encoded(image)).blank
    for image in (noise(0, 255), picture(3), small_thing):
        assert not seen(encoded(image)).blank


def test_several_frames_and_other_forms_are_no_images() -> None:
    frames = encoded(picture(1), "WEBP", save_all=True, append_images=[picture(2)])
    for data in (frames, png(1, form="GIF"), png(1, form="TIFF"), b"\x89PNG"):
        of = look(data)
        assert isinstance(of, Fault) and of.kind == "corrupt"


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP"])
def test_damaged_bytes_never_end_the_check(form: str) -> None:
    rng = np.random.default_rng(7)
    data = png(1, form=form)
    for _ in range(300):
        spoiled = bytearray(data)
        for at in rng.integers(0, len(data), 6):
            spoiled[at] = rng.integers(0, 256)
        assert isinstance(look(bytes(spoiled)), ImageInspection | Fault)
