"""What may come out of a stranger's archive, whatever it is packed as."""

from __future__ import annotations

import os
import random
import tarfile
import zipfile
from pathlib import Path

import pytest

from benchmarks.errors import PlatformError, SubmitterError, TransientError
from evaluator.submission.archives.archive import content_hash, taken_in
from evaluator.submission.archives.limits import ArchiveLimits
from tests.evaluator.submission.archives import (
    FILES,
    contents,
    folder_of,
    problems,
    refused,
    tarred,
    zipped,
)


def test_a_folder_a_zip_and_a_tar_of_it_are_the_same_content(tmp_path: Path) -> None:
    wrapped = {f"my-metric/{name}": data for name, data in FILES.items()}
    sources = [
        folder_of(tmp_path / "folder", FILES),
        zipped(tmp_path / "a.zip", FILES),
        zipped(tmp_path / "packed.zip", FILES, zipfile.ZIP_DEFLATED),
        tarred(tmp_path / "a.tar.gz", FILES),
        tarred(tmp_path / "a.tar", FILES),
        zipped(tmp_path / "wrapped.zip", wrapped),
        tarred(tmp_path / "dot.tar.gz", {f"./{n}": d for n, d in FILES.items()}),
    ]
    twice = {f"downloads/my-metric/{name}": data for name, data in FILES.items()}
    sources.append(zipped(tmp_path / "twice.zip", twice))
    assert all(contents(source) == FILES for source in sources)
    hashes, packed = set(), set()
    for number, source in enumerate(sources):
        with taken_in(source) as content:
            hashes.add(content.sha256)
            assert content.n_bytes == sum(map(len, FILES.values()))
            content.pack_to(tmp_path / f"{number}.packed")
        packed.add((tmp_path / f"{number}.packed").read_bytes())
    assert (len(hashes), len(packed)) == (1, 1)
    assert hashes == {content_hash(tmp_path / "folder")}


def test_the_hash_of_a_content_is_what_it_has_always_been(tmp_path: Path) -> None:
    """Submissions in stores are named by it."""
    assert content_hash(folder_of(tmp_path / "folder", FILES)) == (
        "c6ea794fd5a724642372a3c43090ad19ca31edfab67fe3b014b0a7578b21de43"
    )


@pytest.mark.slow
def test_what_was_packed_by_us_is_taken_in_again(tmp_path: Path) -> None:
    """Also where compressing it would have made it look like a bomb."""
    files = {**FILES, "zeros.npy": bytes(70 << 20)}
    with taken_in(folder_of(tmp_path / "folder", files), tmp_path) as content:
        content.pack_to(tmp_path / "a.zip")
        sha256 = content.sha256
    with taken_in(tmp_path / "a.zip", tmp_path) as again:
        assert again.sha256 == sha256


def test_what_is_taken_in_has_modes_of_ours_and_is_gone_afterwards(tmp_path: Path) -> None:
    def change(info: tarfile.TarInfo) -> None:
        info.mode = 0o7777

    archive = tarred(tmp_path / "a.tar", FILES, change)
    umask = os.umask(0o077)
    try:
        with taken_in(archive, tmp_path / "scratch") as content:
            modes = {p.name: p.stat().st_mode & 0o7777 for p in content.folder.rglob("*")}
            assert content.folder.stat().st_mode & 0o7777 == 0o755
            assert (content.folder / "scorer.py").stat().st_uid == os.getuid()
    finally:
        os.umask(umask)
    assert modes == {"data": 0o755, "x.txt": 0o644, "scorer.py": 0o644, "assay.toml": 0o644}
    assert not list((tmp_path / "scratch").iterdir())


def test_a_file_that_changes_after_it_was_taken_in_is_noticed(tmp_path: Path) -> None:
    with taken_in(folder_of(tmp_path / "folder", FILES), tmp_path) as content:
        (content.folder / "scorer.py").write_bytes(b"other")
        with pytest.raises(PlatformError, match=r"scorer\.py"):
            _ = content.sha256


def test_a_file_is_read_whole_only_up_to_a_size(tmp_path: Path) -> None:
    with taken_in(zipped(tmp_path / "a.zip", FILES), tmp_path) as content:
        assert content.read("data/x.txt", 1) == b"x"
        with pytest.raises(SubmitterError, match=r"scorer\.py"):
            content.read("scorer.py", 1)


LEFT = {
    "__pycache__/scorer.cpython-311.pyc": b"",
    "scorer.pyc": b"compiled",
    "data/old.PYO": b"",
    "__MACOSX/._x": b"",
    "._scorer.py": b"",
    ".DS_Store": b"",
    "data/.git/config": b"",
    ".cache/huggingface/x.lock": b"",
}


def test_what_tools_leave_behind_is_left_out(tmp_path: Path) -> None:
    for source in (
        zipped(tmp_path / "a.zip", {**FILES, **LEFT}),
        tarred(tmp_path / "a.tar.gz", {**FILES, **LEFT}),
        folder_of(tmp_path / "folder", {**FILES, **LEFT}),
    ):
        assert contents(source) == FILES


def test_links_and_pipes_in_a_folder_are_refused_and_never_followed(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "folder", FILES)
    (folder / "link.py").symlink_to("/etc/passwd")
    (folder / "data" / "up").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe")
    found = problems(folder)
    assert found == [("not_a_file", "link.py"), ("not_a_file", "pipe"), ("not_a_file", "data/up")]


@pytest.mark.parametrize("names", [("a", "a/b"), ("A", "a/b/c"), ("./x.py", "x.py")])
def test_names_that_need_one_place_on_disk_are_refused(
    tmp_path: Path, names: tuple[str, str]
) -> None:
    files = dict.fromkeys(names, b"") | {"c": b""}
    assert problems(zipped(tmp_path / "a.zip", files))[0][0] == "duplicate_name"
    assert problems(tarred(tmp_path / "a.tar.gz", files))[0][0] == "duplicate_name"


@pytest.mark.parametrize(
    "names",
    [
        ("a.py", "A.py"),
        ("straße.py", "STRASSE.py"),
        ("ﬁle.py", "file.py"),
        ("Data/x", "data/y"),
        ("data/a/x", "Data"),
    ],
)
def test_names_that_are_one_file_on_some_disks_are_refused(
    tmp_path: Path, names: tuple[str, str]
) -> None:
    said = refused(zipped(tmp_path / "a.zip", dict.fromkeys(names, b"")), "duplicate_name")
    assert "one file on some disks" in said


def test_everything_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    files = {**FILES, "a.pkl": b"", "con.txt": b"", "x/A.py": b"", "x/a.py": b"", "b.so": b""}
    wrapped = {f"top/{name}": data for name, data in files.items()}
    wanted = [
        ("refused_file", "a.pkl"),
        ("unsafe_name", "con.txt"),
        ("duplicate_name", "x/a.py"),
        ("refused_file", "b.so"),
    ]
    assert problems(zipped(tmp_path / "a.zip", wrapped)) == wanted
    said = refused(tmp_path / "a.zip", "several_problems")
    assert len([line for line in said.splitlines() if "top/" in line]) == 4


def test_of_very_many_problems_some_are_told_and_the_rest_are_counted(tmp_path: Path) -> None:
    files = {**FILES, **{f"{i}.pkl": b"" for i in range(9)}}
    with_limit = ArchiveLimits(problems=4)
    found = problems(zipped(tmp_path / "a.zip", files), with_limit)
    assert [code for code, _ in found] == ["refused_file"] * 4 + ["more_problems"]


def test_a_file_that_grows_too_large_is_stopped(tmp_path: Path) -> None:
    limits = ArchiveLimits(file_bytes=1000, total_bytes=1500)
    for kind in ("zip", "tar.gz"):
        pack = zipped if kind == "zip" else tarred
        assert "'x'" in refused(
            pack(tmp_path / f"a.{kind}", {"x": bytes(1001)}), "too_large", limits
        )
        both = pack(tmp_path / f"b.{kind}", {"a": bytes(900), "b": bytes(900)})
        assert f"b.{kind}" in refused(both, "too_large", limits)
    folder = folder_of(tmp_path / "folder", {"a": bytes(900), "b": bytes(900)})
    refused(folder, "too_large", limits)


def test_an_archive_larger_than_all_it_may_hold_is_not_opened(tmp_path: Path) -> None:
    with (tmp_path / "a.tar").open("wb") as file:
        file.truncate(2 << 30)
    assert "2 GB" in refused(tmp_path / "a.tar", "too_large")


def test_too_many_files_are_refused(tmp_path: Path) -> None:
    many = {f"{i}.txt": b"" for i in range(5)}
    limits = ArchiveLimits(entries=4)
    refused(zipped(tmp_path / "a.zip", many), "too_many_files", limits)
    refused(tarred(tmp_path / "a.tar.gz", many), "too_many_files", limits)
    refused(folder_of(tmp_path / "folder", many), "too_many_files", limits)


def test_what_is_left_out_does_not_count_as_a_file_but_has_a_bound(tmp_path: Path) -> None:
    junk = {f".git/{i}": b"" for i in range(30)}
    limits = ArchiveLimits(entries=4)
    for archive in (
        zipped(tmp_path / "a.zip", {**FILES, **junk}),
        tarred(tmp_path / "a.tar.gz", {**FILES, **junk}),
    ):
        assert contents(archive, limits) == FILES
    more = {f".git/{i}": b"" for i in range(80)}
    refused(zipped(tmp_path / "b.zip", {**FILES, **more}), "too_many_files", limits)
    refused(tarred(tmp_path / "b.tar.gz", {**FILES, **more}), "too_many_files", limits)
    assert contents(folder_of(tmp_path / "folder", {**FILES, **more}), limits) == FILES


def test_folders_without_files_are_counted_too(tmp_path: Path) -> None:
    for i in range(60):
        (tmp_path / "folder" / str(i)).mkdir(parents=True)
    refused(tmp_path / "folder", "too_many_files", ArchiveLimits(entries=2))


def test_a_folder_that_goes_down_without_end_is_not_followed(tmp_path: Path) -> None:
    deep = "/".join("d" * 40)
    found = problems(folder_of(tmp_path / "folder", {**FILES, f"{deep}/x.py": b""}))
    assert [code for code, _ in found] == ["unsafe_name"]


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_text("hello")
    refused(tmp_path / "x.zip", "not_an_archive")
    (tmp_path / "y.zip").write_bytes(b"")
    refused(tmp_path / "y.zip", "not_an_archive")
    refused(zipped(tmp_path / "empty.zip", {}), "empty_archive")
    refused(tmp_path / "absent.zip", "file_missing")
    os.mkfifo(tmp_path / "pipe")
    refused(tmp_path / "pipe", "not_an_archive")


@pytest.mark.parametrize(
    ("magic", "form"),
    [
        (b"BZh9", "bzip2"),
        (b"\xfd7zXZ\0", "xz"),
        (b"7z\xbc\xaf\x27\x1c", "7z"),
        (b"Rar!\x1a\x07", "RAR"),
    ],
)
def test_forms_that_are_not_taken_are_named(tmp_path: Path, magic: bytes, form: str) -> None:
    (tmp_path / "a.tar").write_bytes(magic + bytes(100))
    assert form in refused(tmp_path / "a.tar", "not_an_archive")


def test_a_full_disk_is_not_the_submitters_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int, data: object) -> int:
        raise OSError(28, "No space left on device")

    archive = zipped(tmp_path / "a.zip", {"x": random.Random(1).randbytes(100)})
    monkeypatch.setattr("evaluator.submission.archives.intake.os.write", full)
    with pytest.raises(TransientError, match="No space left"), taken_in(archive, tmp_path / "s"):
        raise AssertionError
    assert not list((tmp_path / "s").iterdir())
