"""Folder, archives and Parquet are one submission: the same is found, the same is kept."""

from __future__ import annotations

import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evaluator.submission.generations.limits import GenerationsLimits
from evaluator.submission.generations.opening import opened_source, says_generations
from evaluator.submission.generations.taking import Taken, take
from evaluator.submission.generations.targets import PromptSets
from evaluator.submission.generations_archive import opened
from leaderboard.desk import SaidOfImages
from tests.evaluator.submission.generations.made_images import SET, SETS, Made, made

RESOLVE = PromptSets(SETS, None)
SAID = SaidOfImages("painter", "", SET.name)


def taken(path: Path, target: Path | None = None, **options: object) -> Taken:
    limits = options.pop("limits", None) or GenerationsLimits()
    assert isinstance(limits, GenerationsLimits)
    with opened_source(path, limits) as source:
        return take(source, RESOLVE, target=target, limits=limits, **options)  # type: ignore[arg-type]


def codes(found: Taken) -> list[str]:
    return [problem.code for problem in found.problems]


def _nested_parquet(one: Made, place: Path) -> Path:
    one.folder(place / "there")
    for path in [*(place / "there" / "images").iterdir(), place / "there" / "images.jsonl"]:
        path.unlink()
    (place / "there" / "images").rmdir()
    (place / "there" / "data").mkdir()
    one.parquet(place / "there" / "data" / "train-0.parquet")
    return place / "there"


PACKINGS: dict[str, Callable[[Made, Path], Path]] = {
    "folder": lambda one, place: one.folder(place / "folder"),
    "zip": lambda one, place: one.zipped(place / "a.zip"),
    "zip, table last": lambda one, place: one.zipped(place / "b.zip", table_last=True),
    "zip of a folder": lambda one, place: one.zipped(place / "c.zip", "some/where/"),
    "tar": lambda one, place: one.tarred(place / "a.tar", "w"),
    "tar.gz": lambda one, place: one.tarred(place / "a.tar.gz"),
    "parquet in a folder": _nested_parquet,
}


@pytest.mark.parametrize("packing", PACKINGS)
def test_however_it_is_packed_the_content_is_the_same(packing: str, tmp_path: Path) -> None:
    one = made()
    one.rows["p3", 2].update(file=None, problem="nsfw")
    one.files = {name: data for name, data in one.files.items() if not name.endswith("_s2.png") or "p3" not in name}  # fmt: skip
    path = PACKINGS[packing](one, tmp_path)
    assert says_generations(path)
    found = taken(path, tmp_path / "kept.zip")
    assert found.problems == ()
    plain = taken(one.folder(tmp_path / "plain"))
    assert (found.content_sha256, found.images) == (plain.content_sha256, plain.images)
    assert found.images is not None
    assert (found.images.wanted, found.images.present) == (8, 7)
    assert found.images.withheld == {"nsfw": 1}
    assert found.images.sizes == {"64x64": 7}
    with opened(tmp_path / "kept.zip") as archive:
        kept = {row.key: archive.read(row) for row in archive.images}
        assert archive.manifest.benchmark_revision == SET.card.revision
        assert len(archive.rows) == 8
    assert kept == {key: one.files[row["file"]] for key, row in one.rows.items() if row["file"]}


@pytest.mark.parametrize("nested", [True, False])
def test_a_parquet_file_alone_takes_its_manifest_from_what_is_said(
    nested: bool, tmp_path: Path
) -> None:
    path = made().parquet(tmp_path / "images.parquet", nested=nested)
    assert codes(taken(path)) == ["no_manifest"]
    found = taken(path, said=SAID)
    assert found.problems == ()
    assert found.manifest is not None
    assert (found.manifest.name, found.manifest.seeds) == ("painter", (1, 2))


def test_what_is_said_beside_a_manifest_is_refused(tmp_path: Path) -> None:
    path = made().folder(tmp_path / "f")
    assert codes(taken(path, said=SAID)) == ["said_twice"]


def test_parquet_that_lacks_columns_or_is_cut_is_refused_in_words(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"prompt_id": [1], "image": ["a.png"]}), path)
    [problem] = taken(path, said=SAID).problems
    assert problem.code == "bad_parquet"
    for fault in ("no column seed", "prompt_id is no text", "image holds no bytes"):
        assert fault in problem.message
    made().parquet(path)
    path.write_bytes(path.read_bytes()[:-40])
    assert codes(taken(path, said=SAID)) == ["damaged_parquet"]


def test_an_empty_image_of_parquet_is_missing(tmp_path: Path) -> None:
    one = made()
    one.files.pop(one.rows["p1", 1]["file"])
    found = taken(one.parquet(tmp_path / "x.parquet"), said=SAID)
    assert [(p.code, p.file) for p in found.problems] == [("missing", "x.parquet, row 3")]


@pytest.mark.parametrize("form", ["zip", "tar"])
def test_links_and_odd_names_of_archives_lead_nowhere(form: str, tmp_path: Path) -> None:
    one, path = made(), tmp_path / f"x.{form}"
    file = one.rows["p0", 1]["file"]
    del one.files[file]
    if form == "zip":
        one.zipped(path)
        with zipfile.ZipFile(path, "a") as archive:
            link = zipfile.ZipInfo(file)
            link.external_attr = 0o120777 << 16
            archive.writestr(link, "/etc/hostname")
            archive.writestr("images/../../odd.png", b"x")
            archive.writestr("images/stray.png", b"x")
    else:
        one.tarred(path, "w")
        with tarfile.open(path, "a") as tar:
            info = tarfile.TarInfo(file)
            info.type, info.linkname = tarfile.SYMTYPE, "/etc/hostname"
            tar.addfile(info)
            tar.addfile(tarfile.TarInfo("images/../../odd.png"))
            tar.addfile(tarfile.TarInfo("images/stray.png"))
    found = taken(path)
    assert [(p.code, p.file) for p in found.problems] == [
        ("missing", file),
        ("unsafe_name", "images/../../odd.png"),
        ("extra", "images/../../odd.png"),
        ("extra", "images/stray.png"),
    ]


def test_bounds_hold_for_files_and_bytes(tmp_path: Path) -> None:
    one = made()
    few = GenerationsLimits(entries=5)
    assert codes(taken(one.folder(tmp_path / "f"), limits=few)) == ["too_many_images"]
    for path in (one.zipped(tmp_path / "a.zip"), one.tarred(tmp_path / "a.tar")):
        assert codes(taken(path, limits=few)) == ["too_many_files"]
        assert "too_large" in codes(taken(path, limits=GenerationsLimits(total_bytes=20_000)))
    small = GenerationsLimits(file_bytes=5000)
    assert set(codes(taken(tmp_path / "a.tar", limits=small))) == {"missing"}
    path = one.parquet(tmp_path / "a.parquet")
    found = taken(path, said=SAID, limits=GenerationsLimits(total_bytes=20_000))
    assert "too_large" in codes(found)


def test_a_bomb_is_not_inflated(tmp_path: Path) -> None:
    one = made()
    one.files["images/zeros.png"] = b"\0" * (80 << 20)
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in one.all_files():
            archive.writestr(name, data)
    assert codes(taken(tmp_path / "a.zip")) == ["bomb"]


def test_a_cut_archive_is_refused_whole(tmp_path: Path) -> None:
    path = made().tarred(tmp_path / "a.tar.gz")
    path.write_bytes(path.read_bytes()[:-3000])
    assert codes(taken(path)) == ["damaged_archive"]


def test_seeds_beyond_measure_are_refused_before_anything_is_laid_out(tmp_path: Path) -> None:
    one = made()
    one.manifest["seeds"] = list(range(1001))
    found = taken(one.folder(tmp_path / "f"))
    assert codes(found) == ["too_many_images"]


def _images_table(one: Made, **columns: pa.Array) -> pa.Table:
    rows = [row for row in one.rows.values() if row["file"] is not None]
    given = {
        "prompt_id": pa.array([row["prompt_id"] for row in rows]),
        "seed": pa.array([row["seed"] for row in rows]),
        "image": pa.array([one.files[row["file"]] for row in rows], pa.binary()),
    }
    return pa.table(given | columns)


def _beside_manifest(one: Made, table: pa.Table, place: Path, **options: object) -> Path:
    place.mkdir()
    (place / "assay.toml").write_bytes(one.toml)
    pq.write_table(table, place / "a.parquet", **options)
    return place / "a.parquet"


def test_categories_and_repeated_bytes_of_parquet_are_read_as_what_they_stand_for(
    tmp_path: Path,
) -> None:
    one = made()
    whole = _images_table(one)
    table = pa.table({name: whole[name].combine_chunks() for name in whole.column_names})
    coded = {name: table[name].combine_chunks() for name in ("prompt_id", "image")}
    columns = {name: column.dictionary_encode() for name, column in coded.items()}
    plain = taken(_beside_manifest(one, table, tmp_path / "plain"))
    found = taken(_beside_manifest(one, _images_table(one, **columns), tmp_path / "coded"))
    assert (codes(plain), codes(found)) == ([], [])
    assert found.content_sha256 == plain.content_sha256


def test_text_of_parquet_that_is_no_utf8_is_told(tmp_path: Path) -> None:
    one = made()
    ids = _images_table(one)["prompt_id"].combine_chunks()
    buffers = ids.buffers()
    broken = pa.Array.from_buffers(
        pa.string(), len(ids), [*buffers[:2], pa.py_buffer(b"\xff" * buffers[2].size)]
    )
    for name in ("prompt_id", "prompt"):
        table = _images_table(one, **{name: broken})
        assert "damaged_parquet" in codes(taken(_beside_manifest(one, table, tmp_path / name)))


def test_bytes_within_bytes_are_no_images(tmp_path: Path) -> None:
    one = made()
    images = _images_table(one)["image"].to_pylist()
    nested = pa.array([{"bytes": {"bytes": image}} for image in images])
    found = taken(_beside_manifest(one, _images_table(one, image=nested), tmp_path / "nested"))
    assert codes(found) == ["bad_parquet"]


@pytest.mark.slow
def test_a_small_parquet_file_that_names_one_long_value_in_every_row_fills_no_memory(
    tmp_path: Path,
) -> None:
    one, rows = made(), 64
    long = {"prompt_id": pa.array(["a" * (16 << 20)]), "image": pa.array([b"a" * (80 << 20)])}
    for name, code in (("prompt_id", "bad_parquet"), ("image", "too_large")):
        table = pa.table(
            {
                "prompt_id": pa.array(["p0"] * rows),
                "seed": pa.array([1] * rows),
                "image": pa.array([b"z"] * rows, pa.binary()),
            }
            | {name: pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), long[name])}
        )
        path = _beside_manifest(
            one,
            table,
            tmp_path / name,
            use_dictionary=[name],
            dictionary_pagesize_limit=1 << 30,
            compression="zstd",
            store_schema=False,
            write_statistics=False,
        )
        assert path.stat().st_size < 20_000
        pool = pa.system_memory_pool()  # counts for itself from here on
        before = pa.default_memory_pool()
        pa.set_memory_pool(pool)
        try:
            found = taken(path)
        finally:
            pa.set_memory_pool(before)
        assert code in codes(found)
        assert pool.max_memory() < 400 << 20


def test_two_tables_or_manifests_of_one_name_are_refused_and_not_chosen_between(
    tmp_path: Path,
) -> None:
    for name in ("assay.toml", "images.jsonl"):
        path = made().zipped(tmp_path / f"{name}.zip")
        with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr(name, b"")
        found = taken(path)
        assert codes(found) == ["file_twice"]
        assert name in found.problems[0].message


def test_a_manifest_behind_a_password_is_told_as_that(tmp_path: Path) -> None:
    path = made().zipped(tmp_path / "a.zip")
    content = bytearray(path.read_bytes())
    name = b"assay.toml"
    for mark, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        start = -1
        while (start := content.find(mark, start + 1)) >= 0:
            if name in content[start : start + 80]:
                content[start + flags] |= 1  # as archivers mark what they encrypt
    path.write_bytes(bytes(content))
    (problem,) = taken(path).problems
    assert problem.code == "unreadable_file"
    assert "assay.toml" in problem.message
