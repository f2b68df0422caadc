"""What may come out of a stranger's archive."""

from __future__ import annotations

import gzip
import io
import lzma
import random
import struct
import tarfile
import tracemalloc
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


def crafted(path: Path, headers: list[tuple[tarfile.TarInfo, int]]) -> Path:
    """A compressed tar of headers, each followed by a number of zero bytes."""
    with gzip.open(path, "wb") as file:
        for info, size in headers:
            file.write(info.tobuf(tarfile.USTAR_FORMAT))
            for _ in range(size >> 20):
                file.write(bytes(1 << 20))
            file.write(bytes(size % (1 << 20)))
        file.write(bytes(1024))
    return path


def header(name: str, size: int, kind: bytes = tarfile.REGTYPE) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size, info.type = size, kind
    return info


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


@pytest.mark.parametrize("name", ["", ".", "a//b", "a/./b", "./"])
def test_names_that_are_no_plain_path_are_refused(tmp_path: Path, name: str) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        info = zipfile.ZipInfo("x")
        info.filename = name
        archive.writestr(info, b"x")
    code = "empty_archive" if name == "./" else "unsafe_name"
    refused(tmp_path / "a.zip", code)


def test_a_tar_of_a_dot_is_refused(tmp_path: Path) -> None:
    refused(tarred(tmp_path / "a.tar.gz", {".": b"x"}), "unsafe_name")


@pytest.mark.parametrize("names", [("a", "a/b"), ("A", "a/b/c"), ("./x.py", "x.py")])
def test_names_that_need_one_place_on_disk_are_refused(
    tmp_path: Path, names: tuple[str, str]
) -> None:
    files = dict.fromkeys(names, b"") | {"c": b""}
    refused(zipped(tmp_path / "a.zip", files), "duplicate_name")
    refused(tarred(tmp_path / "a.tar.gz", files), "duplicate_name")


@pytest.mark.parametrize(
    "kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK]
)
def test_a_bomb_in_a_tars_own_headers_is_not_inflated(tmp_path: Path, kind: bytes) -> None:
    size = 32 << 20
    bomb = crafted(tmp_path / "a.tar.gz", [(header("x", size, kind), size)])
    tracemalloc.start()
    assert str(size) in refused(bomb, "too_large")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 << 20


def test_many_headers_of_a_tar_are_a_bomb_too(tmp_path: Path) -> None:
    pax = [
        one
        for i in range(9)
        for one in ((header("x", 4096, tarfile.XHDTYPE), 4096), (header(f"{i}", 0), 0))
    ]
    refused(crafted(tmp_path / "a.tar.gz", pax), "too_large", ArchiveLimits(entries=20))


def test_headers_nested_without_end_are_damage(tmp_path: Path) -> None:
    pax = [(header("x", 0, tarfile.XHDTYPE), 0)] * 2000
    refused(crafted(tmp_path / "a.tar.gz", pax), "damaged_archive")


def test_a_bomb_in_what_is_left_out_of_a_tar_is_stopped(tmp_path: Path) -> None:
    size = 16 << 20
    headers = [(header(".git/x", size), size), (header("scorer.py", 0), 0)]
    bomb = crafted(tmp_path / "a.tar.gz", headers)
    assert read_content(bomb).files == {"scorer.py": b""}
    refused(bomb, "too_large", ArchiveLimits(entries=10, total_bytes=1 << 20))


def test_a_file_of_negative_size_or_with_holes_is_refused(tmp_path: Path) -> None:
    headers = [(header("a", 0), 0), (header("b", -512), 0)]
    with gzip.open(tmp_path / "a.tar.gz", "wb") as file:
        file.write(b"".join(h.tobuf(tarfile.GNU_FORMAT) for h, _ in headers) + bytes(1024))
    refused(tmp_path / "a.tar.gz", "damaged_archive")
    sparse = [(header("a", 0, tarfile.GNUTYPE_SPARSE), 0)]
    refused(crafted(tmp_path / "b.tar.gz", sparse), "not_a_file")


def test_a_tar_that_breaks_off_in_the_middle_does_not_lose_the_rest(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "a.tar.gz", "wb") as file:
        file.write(header("a", 0).tobuf() + b"?" * 512 + header("b", 0).tobuf() + bytes(1024))
    refused(tmp_path / "a.tar.gz", "damaged_archive")


def test_a_zip_with_an_endless_list_is_not_listed(tmp_path: Path) -> None:
    one = zipped(tmp_path / "a.zip", {"a": b""}).read_bytes()
    start, end = one.find(b"PK\1\2"), one.find(b"PK\5\6")
    n = 50_000
    listed = one[start:end] * n
    (tmp_path / "b.zip").write_bytes(
        one[:start] + listed + struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, n, n, len(listed), start, 0)
    )
    refused(tmp_path / "b.zip", "too_many_files", ArchiveLimits(entries=100))


def test_what_is_left_out_does_not_count_as_a_file_but_has_a_bound(tmp_path: Path) -> None:
    junk = {f".git/{i}": b"" for i in range(30)}
    limits = ArchiveLimits(entries=4)
    for archive in (
        zipped(tmp_path / "a.zip", FILES | junk),
        tarred(tmp_path / "a.tar.gz", FILES | junk),
    ):
        assert read_content(archive, limits).files == FILES
    more = {f".git/{i}": b"" for i in range(80)}
    refused(zipped(tmp_path / "b.zip", FILES | more), "too_many_files", limits)
    refused(tarred(tmp_path / "b.tar.gz", FILES | more), "too_many_files", limits)
    Content(FILES | junk).unpack_to(tmp_path / "folder")
    assert read_content(tmp_path / "folder", limits).files == FILES


def test_every_compression_of_a_tar_is_read(tmp_path: Path) -> None:
    plain = gzip.decompress(tarred(tmp_path / "a.tar.gz", FILES).read_bytes())
    (tmp_path / "a.tar").write_bytes(plain)
    (tmp_path / "a.tar.xz").write_bytes(lzma.compress(plain))
    for name in ("a.tar", "a.tar.xz"):
        assert read_content(tmp_path / name).files == FILES


def changed(content: bytes, rng: random.Random) -> bytes:
    some = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        some[rng.randrange(len(some))] = rng.randrange(256)
    return bytes(some)


@pytest.mark.parametrize(
    "method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
)
def test_whatever_is_wrong_in_a_zip_is_said_as_our_own_error(tmp_path: Path, method: int) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", method) as archive:
        archive.writestr("scorer.py", random.Random(1).randbytes(300))
    whole = (tmp_path / "a.zip").read_bytes()
    rng = random.Random(2)
    for _ in range(150):
        (tmp_path / "b.zip").write_bytes(changed(whole, rng))
        try:
            read_content(tmp_path / "b.zip")
        except SubmitterError as error:
            assert error.hint


@pytest.mark.parametrize("mode", ["w:", "w:gz", "w:bz2", "w:xz"])
def test_whatever_is_wrong_in_a_tar_is_said_as_our_own_error(tmp_path: Path, mode: str) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:  # type: ignore[call-overload]
        for name in ("scorer.py", "é" * 60):
            archive.addfile(header(name, 300), io.BytesIO(random.Random(1).randbytes(300)))
    rng = random.Random(2)
    for _ in range(150):
        (tmp_path / "b.tar").write_bytes(changed(buffer.getvalue(), rng))
        try:
            read_content(tmp_path / "b.tar")
        except SubmitterError as error:
            assert error.hint
