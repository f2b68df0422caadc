"""What may come out of a stranger's archive."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.errors import SubmitterError
from evaluator.submission.archive import ArchiveLimits, Content, read_content

FILES = {"assay.toml": b'name = "m"', "scorer.py": b"class Scorer: ...", "data/x.txt": b"x"}


def zipped(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


def tarred(path: Path, files: dict[str, bytes], change: Callable[..., None] | None = None) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            if change:
                change(info)
            archive.addfile(info, io.BytesIO(data))
    return path


def refused(path: Path, code: str, limits: ArchiveLimits | None = None) -> str:
    with pytest.raises(SubmitterError) as caught:
        read_content(path, limits)
    assert caught.value.code == code
    assert caught.value.hint
    return str(caught.value)


def test_a_folder_a_zip_and_a_tar_of_it_are_the_same_content(tmp_path: Path) -> None:
    Content(FILES).unpack_to(tmp_path / "folder")
    wrapped = {f"my-metric/{name}": data for name, data in FILES.items()}
    contents = [
        read_content(tmp_path / "folder"),
        read_content(zipped(tmp_path / "a.zip", FILES)),
        read_content(tarred(tmp_path / "a.tar.gz", FILES)),
        read_content(zipped(tmp_path / "wrapped.zip", wrapped)),
        read_content(tarred(tmp_path / "dot.tar.gz", {f"./{n}": d for n, d in FILES.items()})),
    ]
    assert all(c.files == FILES for c in contents)
    assert len({c.sha256 for c in contents}) == 1
    assert len({c.pack() for c in contents}) == 1


def test_what_tools_leave_behind_is_left_out(tmp_path: Path) -> None:
    junk = {"__pycache__/scorer.cpython-311.pyc": b"", "__MACOSX/._x": b"", ".DS_Store": b""}
    assert read_content(zipped(tmp_path / "a.zip", FILES | junk)).files == FILES


@pytest.mark.parametrize(
    "name",
    [
        "../x.py",
        "/etc/x.py",
        "a/../../x.py",
        "C:x.py",
        "a\\x.py",
        "~/x.py",
        "a\u202egp.py",
        "e\u0301.py",
    ],
)
def test_names_that_lead_out_or_deceive_are_refused(tmp_path: Path, name: str) -> None:
    assert "name" in refused(tarred(tmp_path / "a.tar.gz", {**FILES, name: b""}), "unsafe_name")


def test_links_and_devices_are_refused(tmp_path: Path) -> None:
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE):

        def change(info: tarfile.TarInfo, kind: bytes = kind) -> None:
            info.type, info.linkname, info.size = kind, "/etc/passwd", 0

        refused(tarred(tmp_path / "a.tar.gz", {"x.py": b""}, change), "not_a_file")


def test_a_link_in_a_zip_or_a_folder_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        info = zipfile.ZipInfo("x.py")
        info.external_attr = 0o120777 << 16
        archive.writestr(info, "/etc/passwd")
    refused(tmp_path / "a.zip", "not_a_file")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "x.py").symlink_to("/etc/passwd")
    refused(tmp_path / "folder", "not_a_file")


@pytest.mark.parametrize("name", ["x.pkl", "x.pt", "x.pth", "x.so", "sitecustomize.py", "x.PYC"])
def test_files_that_hide_code_are_refused(tmp_path: Path, name: str) -> None:
    assert name in refused(zipped(tmp_path / "a.zip", {**FILES, name: b""}), "refused_file")


def test_names_that_are_one_file_on_some_disks_are_refused(tmp_path: Path) -> None:
    said = refused(zipped(tmp_path / "a.zip", {"a.py": b"", "A.py": b""}), "duplicate_name")
    assert "'a.py'" in said
    assert "'A.py'" in said


def test_a_bomb_is_stopped_while_it_inflates(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.txt", bytes(8 << 20))
    limits = ArchiveLimits(file_bytes=1 << 20)
    assert "'x.txt'" in refused(tmp_path / "a.zip", "too_large", limits)
    two = zipped(tmp_path / "b.zip", {"a": bytes(600), "b": bytes(600)})
    refused(two, "too_large", ArchiveLimits(total_bytes=1000))


def test_too_many_files_are_refused(tmp_path: Path) -> None:
    many = {f"{i}.txt": b"" for i in range(5)}
    limits = ArchiveLimits(entries=4)
    refused(zipped(tmp_path / "a.zip", many), "too_many_files", limits)
    refused(tarred(tmp_path / "a.tar.gz", many), "too_many_files", limits)
    Content(many).unpack_to(tmp_path / "folder")
    refused(tmp_path / "folder", "too_many_files", limits)


def test_a_damaged_archive_says_so(tmp_path: Path) -> None:
    whole = zipped(tmp_path / "a.zip", {"x.txt": bytes(range(256)) * 100}).read_bytes()
    (tmp_path / "b.zip").write_bytes(whole.replace(bytes(range(256)), b"?" * 256, 1))
    refused(tmp_path / "b.zip", "damaged_archive")
    (tmp_path / "c.tar.gz").write_bytes(tarred(tmp_path / "d.tar.gz", FILES).read_bytes()[:-40])
    refused(tmp_path / "c.tar.gz", "damaged_archive")


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_text("hello")
    refused(tmp_path / "x.zip", "not_an_archive")
    refused(zipped(tmp_path / "empty.zip", {}), "empty_archive")
    refused(tmp_path / "absent.zip", "file_missing")
