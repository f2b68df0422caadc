from __future__ import annotations

import hashlib
import json
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest

from benchmarks.prompt_sets.prompt_set import image_file
from evaluator.generation.prompts import Prompt
from evaluator.submission.generations.checking import check_folder
from tests.evaluator.submission.generations.made_images import encoded, picture

PROMPTS = tuple(Prompt(f"p{i}", f"prompt {i}") for i in range(4))
SEEDS = (1, 2)


def png(number: int, side: int = 8, form: str = "PNG") -> bytes:
    return encoded(picture(number, side), form)


class Folder:
    """A folder of generations, to be spoilt."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: dict[tuple[str, int], dict[str, Any]] = {}
        (path / "images").mkdir()
        for number, prompt in enumerate(PROMPTS):
            for seed in SEEDS:
                data = png(10 * number + seed)
                file = image_file(prompt.prompt_id, seed)
                (path / file).write_bytes(data)
                self.rows[prompt.prompt_id, seed] = {
                    "prompt_id": prompt.prompt_id,
                    "seed": seed,
                    "prompt": prompt.text,
                    "file": file,
                    "sha256": hashlib.sha256(data).hexdigest(),
                    "width": 8,
                    "height": 8,
                }

    def file(self, prompt_id: str, seed: int) -> Path:
        return self.path / str(self.rows[prompt_id, seed]["file"])

    def found(self) -> list[tuple[str, str]]:
        lines = [json.dumps(row) for row in self.rows.values()]
        (self.path / "images.jsonl").write_text("\n".join(lines) + "\n")
        return [(p.kind, p.where) for p in check_folder(self.path, PROMPTS, SEEDS).problems]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_a_right_folder_is_complete(folder: Folder) -> None:
    assert folder.found() == []
    report = check_folder(folder.path, PROMPTS, SEEDS)
    assert (report.wanted, report.usable, report.complete) == (8, 8, True)


def test_everything_that_is_wrong_is_told_at_once(folder: Folder) -> None:
    folder.file("p0", 1).unlink()
    folder.file("p0", 2).write_bytes(png(99))
    del folder.rows["p1", 1]
    folder.rows["p1", 2]["prompt"] = "another"
    folder.rows["p2", 1]["width"] = 16
    folder.rows["p9", 1] = {**folder.rows["p2", 2], "prompt_id": "p9", "seed": 1, "file": None}
    (folder.path / "images" / "stray.png").write_bytes(png(1))
    assert folder.found() == [
        ("missing", image_file("p0", 1)),
        ("corrupt", image_file("p0", 2)),
        ("missing", "p1, seed 1"),
        ("wrong_prompt", "p1, seed 2"),
        ("wrong_size", image_file("p2", 1)),
        ("extra", "p9, seed 1"),
        ("extra", image_file("p1", 1)),
        ("extra", "images/stray.png"),
    ]
    report = check_folder(folder.path, PROMPTS, SEEDS)
    assert report.usable == 3
    assert report.counts == {
        "missing": 2,
        "corrupt": 1,
        "wrong_prompt": 1,
        "wrong_size": 1,
        "extra": 3,
    }


@pytest.mark.parametrize(
    "data", [b"", b"not an image", png(1)[:-30], png(1, form="BMP")], ids=["", "text", "cut", "bmp"]
)
def test_what_is_no_image_is_corrupt_even_if_its_hash_is_right(folder: Folder, data: bytes) -> None:
    folder.file("p0", 1).write_bytes(data)
    folder.rows["p0", 1]["sha256"] = hashlib.sha256(data).hexdigest()
    assert folder.found() == [("corrupt", image_file("p0", 1))]


@pytest.mark.parametrize(("side", "kind"), [(20_000, "corrupt"), (5_000, "wrong_size")])
def test_a_huge_image_is_not_decoded(folder: Folder, side: int, kind: str) -> None:
    # Its header says so; were it decoded, the missing pixels would be what is wrong.
    header = b"IHDR" + struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    data = png(1)
    said = data[:12] + header + struct.pack(">I", zlib.crc32(header)) + data[33:]
    folder.file("p0", 1).write_bytes(said)
    folder.rows["p0", 1].update(sha256=None, width=None, height=None)
    assert folder.found() == [(kind, image_file("p0", 1))]


@pytest.mark.parametrize("file", ["../outside.png", "/etc/hostname", "images/../../x", "a\\b", ""])
def test_nothing_outside_the_folder_is_read(folder: Folder, file: str) -> None:
    (folder.path.parent / "outside.png").write_bytes(png(1))
    folder.rows["p0", 1].update(file=file, sha256=None)
    assert ("missing", file) in folder.found()


def test_links_are_not_followed(folder: Folder) -> None:
    place = folder.file("p0", 1)
    target = folder.path.parent / "target.png"
    place.rename(target)
    place.symlink_to(target)
    assert folder.found() == [("missing", image_file("p0", 1))]


def test_rows_only_need_ids_and_a_file(folder: Folder) -> None:
    for key, row in folder.rows.items():
        folder.rows[key] = {name: row[name] for name in ("prompt_id", "seed", "file")}
    assert folder.found() == []


def test_broken_and_repeated_rows_are_named_by_line_or_key(folder: Folder) -> None:
    folder.rows["again", 0] = folder.rows["p0", 1]
    folder.rows["p1", 1]["file"] = folder.rows["p0", 1]["file"]
    folder.rows["odd", 0] = {"prompt_id": "p3"}
    kinds = folder.found()
    assert ("bad_row", "images.jsonl, line 10") in kinds
    assert ("bad_row", "p0, seed 1") in kinds
    assert ("bad_row", "p1, seed 1") in kinds


def test_a_withheld_image_is_counted_and_no_problem(folder: Folder) -> None:
    folder.rows["p0", 1].update(file=None, problem="nsfw")
    folder.file("p0", 2).unlink()
    folder.rows["p0", 2].update(file=None)
    (folder.path / image_file("p0", 1)).unlink()
    assert folder.found() == [("missing", "p0, seed 2")]
    assert check_folder(folder.path, PROMPTS, SEEDS).withheld == {"nsfw": 1}


def test_a_folder_without_a_table_says_so(tmp_path: Path) -> None:
    [problem] = check_folder(tmp_path, PROMPTS, SEEDS).problems
    assert (problem.kind, problem.where) == ("missing", "images.jsonl")
