"""Zips of which two readers would see different things, and zips that would burst."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from evaluator.submission.archives.limits import ArchiveLimits
from tests.evaluator.submission.archives import FILES, contents, problems, refused, zipped

END = struct.Struct("<4s4H2LH")


class Streamed(io.RawIOBase):
    """A file that cannot be sought in: sizes then follow a zip's members."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]
        return self._file.write(data)

    def close(self) -> None:
        self._file.close()


def changed(path: Path, change: Callable[[bytearray], bytes | bytearray]) -> Path:
    """The same file, changed."""
    path.write_bytes(change(bytearray(path.read_bytes())))
    return path


def listed(one: bytes, *, start: int, n: int, entry: bytes) -> bytes:
    """A zip whose list has an entry n times."""
    end = END.pack(b"PK\5\6", 0, 0, n & 0xFFFF, n & 0xFFFF, len(entry) * n, start, 0)
    return one[:start] + entry * n + end


def test_a_zip_whose_sizes_follow_its_members_is_taken(tmp_path: Path) -> None:
    with (
        Streamed(tmp_path / "a.zip") as file,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for name, data in FILES.items():
            archive.writestr(name, data)
    assert contents(tmp_path / "a.zip") == FILES


def test_a_zip_with_sizes_of_64_bits_and_folders_and_a_comment_is_taken(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.comment = b"0123456789abcdef"
        archive.mkdir("data")
        for name, data in FILES.items():
            with archive.open(name, "w", force_zip64=True) as member:
                member.write(data)
    assert contents(tmp_path / "a.zip") == FILES


def test_a_link_or_an_encrypted_member_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        info = zipfile.ZipInfo("x.py")
        info.external_attr = 0o120777 << 16
        archive.writestr(info, "/etc/passwd")
    refused(tmp_path / "a.zip", "not_a_file")

    def encrypted(data: bytearray) -> bytearray:
        data[6] |= 1
        data[data.find(b"PK\1\2") + 8] |= 1
        return data

    assert "encrypted" in refused(
        changed(zipped(tmp_path / "b.zip", FILES), encrypted), "not_a_file"
    )


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_methods_that_inflate_without_bound_are_refused(tmp_path: Path, method: int) -> None:
    said = refused(zipped(tmp_path / "a.zip", {"x": bytes(9)}, method), "not_a_file")
    assert "deflate" in said


def test_members_that_share_their_bytes_are_refused(tmp_path: Path) -> None:
    """One kernel of bytes, listed under many names, is how the tightest bombs are made."""
    one = zipped(tmp_path / "a.zip", {"a": bytes(1000)}, zipfile.ZIP_DEFLATED).read_bytes()
    start, end = one.find(b"PK\1\2"), one.find(b"PK\5\6")
    (tmp_path / "b.zip").write_bytes(listed(one, start=start, n=30, entry=one[start:end]))
    assert "share" in refused(tmp_path / "b.zip", "crafted_archive")


def test_a_member_inside_another_is_refused(tmp_path: Path) -> None:
    inner = zipped(tmp_path / "inner.zip", {"b": b"bb"}).read_bytes()
    inner_start = inner.find(b"PK\1\2")
    outer = zipped(tmp_path / "a.zip", {"a": inner[:inner_start]}).read_bytes()
    start, end = outer.find(b"PK\1\2"), outer.find(b"PK\5\6")
    entry = bytearray(inner[inner_start : inner.find(b"PK\5\6")])
    entry[42:46] = struct.pack("<L", outer.find(b"PK\3\4", 4))
    entries = outer[start:end] + bytes(entry)
    tail = END.pack(b"PK\5\6", 0, 0, 2, 2, len(entries), start, 0)
    (tmp_path / "a.zip").write_bytes(outer[:start] + entries + tail)
    assert "share" in refused(tmp_path / "a.zip", "crafted_archive")


def test_a_member_with_another_name_in_front_of_it_is_refused(tmp_path: Path) -> None:
    archive = zipped(tmp_path / "a.zip", {"safe.py": b"x"})
    changed(archive, lambda data: data.replace(b"safe.py", b"evil.py", 1))
    assert "safe.py" in refused(archive, "crafted_archive")


def test_a_member_with_another_size_or_sum_in_front_of_it_is_refused(tmp_path: Path) -> None:
    for at in (14, 18, 22):

        def lie(data: bytearray, at: int = at) -> bytearray:
            data[at] ^= 1
            return data

        refused(changed(zipped(tmp_path / "a.zip", {"a": b"x" * 9}), lie), "crafted_archive")


@pytest.mark.parametrize("delta", [-1, 1])
def test_a_size_that_is_not_the_members_is_refused(tmp_path: Path, delta: int) -> None:
    archive = zipped(tmp_path / "a.zip", {"a": b"x" * 99}, zipfile.ZIP_DEFLATED)

    def lie(data: bytearray) -> bytearray:
        for at in (22, data.find(b"PK\1\2") + 24):
            data[at : at + 4] = struct.pack("<L", 99 + delta)
        return data

    assert "another size" in refused(changed(archive, lie), "crafted_archive")


def test_a_size_of_64_bits_that_is_not_the_members_is_refused(tmp_path: Path) -> None:
    with (
        zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("a", "w", force_zip64=True) as member,
    ):
        member.write(b"x" * 99)
    wide = struct.pack("<HHQ", 1, 16, 99)
    changed(tmp_path / "a.zip", lambda data: data.replace(wide, struct.pack("<HHQ", 1, 16, 98), 1))
    assert "two sizes" in refused(tmp_path / "a.zip", "crafted_archive")


def test_bytes_that_belong_to_no_member_are_refused(tmp_path: Path) -> None:
    def in_front(data: bytearray) -> bytearray:
        return bytearray(b"#!/bin/sh\n") + data

    def behind(data: bytearray) -> bytearray:
        return data + b"more"

    def between(data: bytearray) -> bytearray:
        """Before the list, whose place is then said anew."""
        at = data.find(b"PK\1\2")
        moved = data[:at] + b"hidden" + data[at:]
        moved[-6:-2] = struct.pack("<L", at + 6)
        return moved

    for change in (in_front, behind, between):
        archive = changed(zipped(tmp_path / "a.zip", FILES), change)
        assert "bytes" in refused(archive, "crafted_archive")


def test_bytes_behind_the_end_of_a_compressed_member_are_refused(tmp_path: Path) -> None:
    engine = zlib.compressobj(wbits=-15)
    packed = engine.compress(b"x" * 99) + engine.flush() + b"hidden"
    sizes = (zlib.crc32(b"x" * 99), len(packed), 99)
    local = struct.pack("<4s5H3L2H", b"PK\3\4", 20, 0, 8, 0, 33, *sizes, 1, 0) + b"a"
    entry = struct.pack("<4s6H3L5H2L", b"PK\1\2", 20, 20, 0, 8, 0, 33, *sizes, 1, 0, 0, 0, 0, 0, 0)
    start = len(local) + len(packed)
    whole = listed(local + packed, start=start, n=1, entry=entry + b"a")
    (tmp_path / "a.zip").write_bytes(whole)
    with zipfile.ZipFile(tmp_path / "a.zip") as naive:
        assert naive.read("a") == b"x" * 99
    assert "behind the end of 'a'" in refused(tmp_path / "a.zip", "crafted_archive")


def test_a_list_with_more_members_than_are_announced_is_refused(tmp_path: Path) -> None:
    def lie(data: bytearray) -> bytearray:
        at = data.find(b"PK\5\6")
        data[at + 8 : at + 12] = struct.pack("<2H", 1, 1)
        return data

    assert "announces 1" in refused(
        changed(zipped(tmp_path / "a.zip", FILES), lie), "crafted_archive"
    )


def test_a_wide_end_is_read_and_must_be_where_it_is_said_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zipfile, "ZIP_FILECOUNT_LIMIT", 1)  # So that a wide end is written.
    archive = zipped(tmp_path / "a.zip", FILES)
    assert contents(archive) == FILES
    refused(archive, "too_many_files", ArchiveLimits(entries=2))

    def elsewhere(data: bytearray) -> bytearray:
        data[data.find(b"PK\6\7") + 8] ^= 1
        return data

    assert "two places" in refused(changed(archive, elsewhere), "crafted_archive")


def test_a_name_that_ends_early_for_other_readers_is_refused(tmp_path: Path) -> None:
    archive = zipped(tmp_path / "a.zip", {"scorer.py": b"", "aX.py": b""})
    changed(archive, lambda data: data.replace(b"aX.py", b"a\0.py"))
    assert problems(archive) == [("unsafe_name", r"a\x00.py")]


def test_a_zip_that_breaks_off_is_damaged_and_not_another_kind_of_file(tmp_path: Path) -> None:
    archive = changed(zipped(tmp_path / "a.zip", FILES), lambda data: data[:-30])
    assert "not whole" in refused(archive, "damaged_archive")


def test_a_wrong_sum_is_damage(tmp_path: Path) -> None:
    whole = bytes(range(256)) * 10
    archive = zipped(tmp_path / "a.zip", {"x": whole})
    changed(archive, lambda data: data.replace(whole, whole[::-1], 1))
    assert "sum" in refused(archive, "damaged_archive")


def test_an_endless_list_is_not_read(tmp_path: Path) -> None:
    one = zipped(tmp_path / "a.zip", {"a": b""}).read_bytes()
    start, end = one.find(b"PK\1\2"), one.find(b"PK\5\6")
    for n in (30_000, 65_535):
        many = listed(one, start=start, n=n, entry=one[start:end])
        (tmp_path / "b.zip").write_bytes(many)
        refused(tmp_path / "b.zip", "too_many_files", ArchiveLimits(entries=100))


def test_a_bomb_is_refused_by_its_list_alone(tmp_path: Path) -> None:
    limits = ArchiveLimits(ratio_from=1 << 20)
    zipped(tmp_path / "a.zip", {"x.txt": bytes(8 << 20)}, zipfile.ZIP_DEFLATED)
    assert "200 times" in refused(tmp_path / "a.zip", "bomb", limits)


def test_a_bomb_that_lies_about_its_size_is_stopped_at_what_it_said(tmp_path: Path) -> None:
    archive = zipped(tmp_path / "a.zip", {"x.txt": bytes(8 << 20)}, zipfile.ZIP_DEFLATED)

    def lie(data: bytearray) -> bytearray:
        for at in (22, data.find(b"PK\1\2") + 24):
            data[at : at + 4] = struct.pack("<L", 10)
        return data

    assert "another size" in refused(changed(archive, lie), "crafted_archive")


@pytest.mark.parametrize("second", ["scorer.py", "../../other.py"])
def test_a_second_name_of_a_member_is_the_same_or_refused(tmp_path: Path, second: str) -> None:
    info = zipfile.ZipInfo("scorer.py")
    name = second.encode()
    summed = struct.pack("<BL", 1, zlib.crc32(b"scorer.py")) + name
    info.extra = struct.pack("<2H", 0x7075, len(summed)) + summed
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(info, b"x")
    if second == "scorer.py":
        assert contents(tmp_path / "a.zip") == {"scorer.py": b"x"}
    else:
        assert problems(tmp_path / "a.zip") == [("not_a_file", "scorer.py")]
