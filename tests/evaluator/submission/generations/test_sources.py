"""Folder, archives and Parquet are one submission: the same is found, the same is kept."""

from __future__ import annotations

import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evaluator.submission.generations.archive import opened
from evaluator.submission.generations.sources import GenerationsLimits, says_generations
from leaderboard.submission_service import ManifestOverrides
from tests.evaluator.submission.generations.made_images import SET, Made, codes, made, taken

SAID = ManifestOverrides("painter", "", SET.name)


def beside_manifest(one: Made, place: Path, table: pa.Table | None = None, **options: Any) -> Path:
    """A folder of a manifest and Parquet files."""
    (place / "data").mkdir(parents=True)
    (place / "assay.toml").write_bytes(one.toml)
    if table is None:
        one.parquet(place / "data" / "train-0.parquet")
    else:
        pq.write_table(table, place / "data" / "a.parquet", **options)
    return place


PACKINGS: dict[str, Callable[[Made, Path], Path]] = {
    "folder": lambda one, place: one.folder(place / "folder"),
    "zip": lambda one, place: one.zipped(place / "a.zip"),
    "zip, table last": lambda one, place: one.zipped(place / "b.zip", table_last=True),
    "zip of a folder": lambda one, place: one.zipped(place / "c.zip", "some/where/"),
    "tar": lambda one, place: one.tarred(place / "a.tar", "w"),
    "tar.gz": lambda one, place: one.tarred(place / "a.tar.gz"),
    "parquet in a folder": lambda one, place: beside_manifest(one, place / "there"),
}


@pytest.mark.parametrize("packing", PACKINGS)
def test_however_it_is_packed_the_content_is_the_same(packing: str, tmp_path: Path) -> None:
    one = made()
    del one.files[one.rows["p3", 2]["file"]]
    one.rows["p3", 2].update(file=None, problem="nsfw")
    path = PACKINGS[packing](one, tmp_path)
    assert says_generations(path)
    found = taken(path, tmp_path / "kept.zip")
    plain = taken(one.folder(tmp_path / "plain"))
    assert found.problems == ()
    assert (found.content_sha256, found.images) == (plain.content_sha256, plain.images)
    assert found.images is not None
    assert (found.images.wanted, found.images.present) == (8, 7)
    assert (found.images.withheld, found.images.sizes) == ({"nsfw": 1}, {"64x64": 7})
    with opened(tmp_path / "kept.zip") as archive:
        kept = {row.key: archive.read(row) for row in archive.images}
        assert archive.manifest.benchmark_revision == SET.card.revision
        assert len(archive.rows) == 8
    assert kept == {key: one.files[row["file"]] for key, row in one.rows.items() if row["file"]}


@pytest.mark.parametrize("nested", [True, False])
def test_a_manifest_comes_from_the_file_or_from_what_is_said(nested: bool, tmp_path: Path) -> None:
    path = made().parquet(tmp_path / "images.parquet", nested=nested)
    assert codes(taken(path)) == ["no_manifest"]
    found = taken(path, said=SAID)
    assert found.problems == () and found.manifest is not None
    assert (found.manifest.name, found.manifest.seeds) == ("painter", (1, 2))
    assert codes(taken(made().folder(tmp_path / "f"), said=SAID)) == ["said_twice"]


@pytest.mark.parametrize("form", ["zip", "tar"])
def test_links_and_odd_names_of_archives_lead_nowhere(form: str, tmp_path: Path) -> None:
    one, path = made(), tmp_path / f"x.{form}"
    file = one.rows["p0", 1]["file"]
    del one.files[file]
    if form == "zip":
        link = zipfile.ZipInfo(file)
        link.external_attr = 0o120777 << 16
        with zipfile.ZipFile(one.zipped(path), "a") as archive:
            archive.writestr(link, "/etc/hostname")
            archive.writestr("images/../../odd.png", b"x")
            archive.writestr("images/stray.png", b"x")
    else:
        info = tarfile.TarInfo(file)
        info.type, info.linkname = tarfile.SYMTYPE, "/etc/hostname"
        with tarfile.open(one.tarred(path, "w"), "a") as tar:
            for member in (
                info,
                *map(tarfile.TarInfo, ("images/../../odd.png", "images/stray.png")),
            ):
                tar.addfile(member)
    assert [(p.code, p.file) for p in taken(path).problems] == [
        ("missing", file),
        ("unsafe_name", "images/../../odd.png"),
        ("extra", "images/../../odd.png"),
        ("extra", "images/stray.png"),
    ]


def test_bounds_hold_for_files_and_bytes(tmp_path: Path) -> None:
    one, few = made(), GenerationsLimits(entries=5)
    full = GenerationsLimits(total_bytes=20_000)
    assert codes(taken(one.folder(tmp_path / "f"), limits=few)) == ["too_many_images"]
    for path in (one.zipped(tmp_path / "a.zip"), one.tarred(tmp_path / "a.tar")):
        assert codes(taken(path, limits=few)) == ["too_many_files"]
        assert "too_large" in codes(taken(path, limits=full))
    assert set(codes(taken(path, limits=GenerationsLimits(file_bytes=5000)))) == {"missing"}
    parquet = one.parquet(tmp_path / "a.parquet")
    assert "too_large" in codes(taken(parquet, said=SAID, limits=full))
    one.manifest["seeds"] = list(range(1001))
    assert codes(taken(one.folder(tmp_path / "g"))) == ["too_many_images"]


def test_bombs_and_cut_archives_are_refused_whole(tmp_path: Path) -> None:
    path = made().tarred(tmp_path / "a.tar.gz")
    path.write_bytes(path.read_bytes()[:-3000])
    assert codes(taken(path)) == ["damaged_archive"]
    one = made()
    one.files["images/zeros.png"] = b"\0" * (80 << 20)
    assert codes(taken(one.zipped(tmp_path / "a.zip", method=zipfile.ZIP_DEFLATED))) == ["bomb"]


@pytest.mark.parametrize("name", ["assay.toml", "images.jsonl"])
def test_two_files_of_one_name_are_not_chosen_between(name: str, tmp_path: Path) -> None:
    path = made().zipped(tmp_path / "a.zip")
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr(name, b"")
    [problem] = taken(path).problems
    assert problem.code == "file_twice" and name in problem.message


def test_a_manifest_behind_a_password_is_told_as_that(tmp_path: Path) -> None:
    path = made().zipped(tmp_path / "a.zip")
    content = bytearray(path.read_bytes())
    for mark, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.find(mark) + flags] |= 1  # as archivers mark what they encrypt
    path.write_bytes(content)
    [problem] = taken(path).problems
    assert problem.code == "unreadable_file" and "assay.toml" in problem.message


# Parquet ---------------------------------------------------------------------------------------


def images_table(one: Made, **columns: pa.Array) -> pa.Table:
    rows = list(one.rows.values())
    given = {
        "prompt_id": pa.array([row["prompt_id"] for row in rows]),
        "seed": pa.array([row["seed"] for row in rows]),
        "image": pa.array([one.files[row["file"]] for row in rows], pa.binary()),
    }
    return pa.table(given | columns)


def test_parquet_that_is_cut_or_lacks_columns_or_images_is_told(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"prompt_id": [1], "image": ["a.png"]}), path)
    [problem] = taken(path, said=SAID).problems
    assert problem.code == "bad_parquet"
    assert all(column in problem.message for column in ("seed", "prompt_id", "image"))
    one = made()
    one.files.pop(one.rows["p1", 1]["file"])
    found = taken(one.parquet(path), said=SAID)
    assert [(p.code, p.file) for p in found.problems] == [("missing", "x.parquet, row 3")]
    path.write_bytes(path.read_bytes()[:-40])
    assert codes(taken(path, said=SAID)) == ["damaged_parquet"]


def test_columns_of_parquet_are_read_as_what_they_stand_for(tmp_path: Path) -> None:
    one = made()
    table = images_table(one)
    coded = {n: table[n].combine_chunks().dictionary_encode() for n in ("prompt_id", "image")}
    plain = taken(beside_manifest(one, tmp_path / "plain", table))
    found = taken(beside_manifest(one, tmp_path / "coded", images_table(one, **coded)))
    assert codes(plain) == codes(found) == []
    assert found.content_sha256 == plain.content_sha256
    ids = table["prompt_id"].combine_chunks()
    offsets, text = ids.buffers()[:2], ids.buffers()[2]
    no_utf8 = pa.py_buffer(b"\xff" * text.size)
    broken = pa.Array.from_buffers(pa.string(), len(ids), [*offsets, no_utf8])
    nested = pa.array([{"bytes": {"bytes": image}} for image in table["image"].to_pylist()])
    for name, column, code in (
        ("prompt_id", broken, "damaged_parquet"),
        ("prompt", broken, "damaged_parquet"),
        ("image", nested, "bad_parquet"),
    ):
        path = beside_manifest(one, tmp_path / name, images_table(one, **{name: column}))
        assert code in codes(taken(path))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "long", "code"),
    [("prompt_id", "a" * (16 << 20), "bad_parquet"), ("image", b"a" * (80 << 20), "too_large")],
    ids=["prompt_id", "image"],
)
def test_a_small_parquet_file_that_names_one_long_value_in_every_row_fills_no_memory(
    name: str, long: str | bytes, code: str, tmp_path: Path
) -> None:
    rows = 64
    table = {
        "prompt_id": pa.array(["p0"] * rows),
        "seed": pa.array([1] * rows),
        "image": pa.array([b"z"] * rows, pa.binary()),
        name: pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array([long])),
    }
    options = {"compression": "zstd", "store_schema": False, "write_statistics": False}
    options |= {"use_dictionary": [name], "dictionary_pagesize_limit": 1 << 30}
    path = beside_manifest(made(), tmp_path / name, pa.table(table), **options)
    assert (path / "data" / "a.parquet").stat().st_size < 20_000
    pool = pa.system_memory_pool()  # counts for itself from here on
    before = pa.default_memory_pool()
    pa.set_memory_pool(pool)
    try:
        assert code in codes(taken(path))
    finally:
        pa.set_memory_pool(before)
    assert pool.max_memory() < 400 << 20
