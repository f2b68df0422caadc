"""Tars with bombs in their headers, hidden ends and members that are no files."""

from __future__ import annotations

import gzip
import tarfile
import tracemalloc
from pathlib import Path

import pytest

from benchmarks.errors import SubmitterError
from evaluator.submission.archives.limits import ArchiveLimits
from tests.evaluator.submission.archives import (
    FILES,
    contents,
    crafted_tar,
    header,
    problems,
    refused,
    tarred,
)


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_every_form_of_a_tar_is_read(tmp_path: Path, form: int) -> None:
    files = {**FILES, f"{'d' * 90}/{'é' * 40}.txt": b"long"}
    assert contents(tarred(tmp_path / "a.tar.gz", files, form=form)) == files


def test_links_devices_and_pipes_are_refused(tmp_path: Path) -> None:
    for kind in (
        tarfile.SYMTYPE,
        tarfile.LNKTYPE,
        tarfile.CHRTYPE,
        tarfile.BLKTYPE,
        tarfile.FIFOTYPE,
    ):

        def change(info: tarfile.TarInfo, kind: bytes = kind) -> None:
            info.type, info.linkname, info.size = kind, "/etc/passwd", 0

        refused(tarred(tmp_path / "a.tar.gz", {"x.py": b""}, change), "not_a_file")


def test_a_kind_of_member_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    for kind in (b"Z", tarfile.CONTTYPE):
        refused(crafted_tar(tmp_path / "a.tar.gz", [(header("a", 0, kind), 0)]), "not_a_file")


def test_a_file_behind_a_link_of_the_same_name_is_not_written_through_it(tmp_path: Path) -> None:
    link = header("x", 0, tarfile.SYMTYPE)
    link.linkname = str(tmp_path / "outside")
    archive = crafted_tar(tmp_path / "a.tar.gz", [(link, 0), (header("x/y.py", 0), 0)])
    assert problems(archive) == [("not_a_file", "x")]
    assert not (tmp_path / "outside").exists()


@pytest.mark.parametrize(
    "kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK]
)
def test_a_bomb_in_a_tars_own_headers_is_not_inflated(tmp_path: Path, kind: bytes) -> None:
    size = 32 << 20
    bomb = crafted_tar(tmp_path / "a.tar.gz", [(header("x", size, kind), size)])
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
    refused(crafted_tar(tmp_path / "a.tar.gz", pax), "too_large", ArchiveLimits(entries=20))


def test_headers_nested_without_end_are_damage(tmp_path: Path) -> None:
    pax = [(header("x", 0, tarfile.XHDTYPE), 0)] * 2000
    refused(crafted_tar(tmp_path / "a.tar.gz", pax), "damaged_archive")


def test_a_bomb_in_what_is_left_out_is_stopped(tmp_path: Path) -> None:
    size = 16 << 20
    headers = [(header(".git/x", size), size), (header("scorer.py", 0), 0)]
    bomb = crafted_tar(tmp_path / "a.tar.gz", headers)
    assert contents(bomb) == {"scorer.py": b""}
    refused(bomb, "too_large", ArchiveLimits(entries=10, total_bytes=1 << 20))
    assert "200 times" in refused(bomb, "bomb", ArchiveLimits(ratio_from=1 << 20))


def test_a_file_of_negative_size_or_with_holes_is_refused(tmp_path: Path) -> None:
    headers = [(header("a", 0), 0), (header("b", -512), 0)]
    with gzip.open(tmp_path / "a.tar.gz", "wb") as file:
        file.write(b"".join(h.tobuf(tarfile.GNU_FORMAT) for h, _ in headers) + bytes(1024))
    refused(tmp_path / "a.tar.gz", "damaged_archive")
    sparse = [(header("a", 0, tarfile.GNUTYPE_SPARSE), 0)]
    refused(crafted_tar(tmp_path / "b.tar.gz", sparse), "not_a_file")

    def holes(info: tarfile.TarInfo) -> None:
        info.pax_headers = {
            "GNU.sparse.major": "0",
            "GNU.sparse.minor": "1",
            "GNU.sparse.size": str(1 << 40),
            "GNU.sparse.map": f"0,0,{1 << 40},0",
        }

    refused(tarred(tmp_path / "c.tar.gz", {"a": b""}, holes), "not_a_file")


def test_the_map_of_a_sparse_file_is_not_held_however_long_it_is(tmp_path: Path) -> None:
    n_bytes = 24 << 20
    old = bytearray(header("a", 0, tarfile.GNUTYPE_SPARSE).tobuf(tarfile.GNU_FORMAT))
    old[482] = 1  # its map goes on
    old[148:156] = b"%06o\0 " % (sum(old[:148]) + 8 * 32 + sum(old[156:]))
    link = (b"%011o\0" % 1 * 42).ljust(504, b"\0") + b"\1" + bytes(7)
    pax = tarfile.TarInfo("b")
    pax.size = n_bytes
    pax.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": "1"}
    count = b"%d\n" % (n_bytes // 2)
    for name, parts, code in (
        ("old", (bytes(old), link * (n_bytes // 512)), "crafted_archive"),
        (
            "new",
            (pax.tobuf(tarfile.PAX_FORMAT), (count + b"1\n" * (n_bytes // 2))[:n_bytes]),
            "not_a_file",
        ),
    ):
        path = tmp_path / f"{name}.tar"
        path.write_bytes(b"".join(parts) + bytes(1024))
        tracemalloc.start()
        refused(path, code)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 8 << 20, name


def test_a_gzip_in_parts_with_filling_between_them_is_taken(tmp_path: Path) -> None:
    whole = tarred(tmp_path / "a.tar", FILES).read_bytes()
    pieces = [whole[at : at + 700] for at in range(0, len(whole), 700)]
    packed = b"".join(gzip.compress(piece) + bytes(n) for n, piece in enumerate(pieces))
    path = tmp_path / "a.tar.gz"
    path.write_bytes(packed + bytes(200_000))
    assert contents(path) == FILES
    path.write_bytes(packed + b"x")
    refused(path, "damaged_archive")
    path.write_bytes(packed[: -len(pieces) - 4])
    refused(path, "damaged_archive")


@pytest.mark.parametrize("behind", [False, True])
def test_a_gzip_of_more_empty_parts_than_anyone_makes_is_refused(
    tmp_path: Path, *, behind: bool
) -> None:
    tar = gzip.compress(tarred(tmp_path / "a.tar", FILES).read_bytes())
    empty = gzip.compress(b"") * 300_000
    path = tmp_path / "a.tar.gz"
    path.write_bytes(tar + empty if behind else empty + tar)
    assert "more than 40000 parts" in refused(path, "crafted_archive")


def test_a_size_beyond_everything_is_refused_by_its_header(tmp_path: Path) -> None:
    archive = crafted_tar(tmp_path / "a.tar.gz", [(header("a", 5 << 30), 0)])
    assert "'a'" in refused(archive, "too_large")


@pytest.mark.parametrize("size", ["-5", "9999", "9" * 30, "1e3"])
def test_a_size_that_an_extended_header_changes_is_not_believed(tmp_path: Path, size: str) -> None:
    def lie(info: tarfile.TarInfo) -> None:
        info.pax_headers = {"size": size}

    with pytest.raises(SubmitterError) as caught:
        contents(tarred(tmp_path / "a.tar", {"a": b"12345"}, lie))
    assert caught.value.code in {"damaged_archive", "too_large"}


def test_a_tar_that_breaks_off_does_not_lose_the_rest(tmp_path: Path) -> None:
    whole = gzip.decompress(tarred(tmp_path / "x.tar.gz", FILES).read_bytes())
    (tmp_path / "a.tar").write_bytes(whole[:2048])
    assert "not whole" in refused(tmp_path / "a.tar", "damaged_archive")
    with gzip.open(tmp_path / "b.tar.gz", "wb") as file:
        file.write(header("a", 0).tobuf() + b"?" * 512 + header("b", 0).tobuf() + bytes(1024))
    refused(tmp_path / "b.tar.gz", "damaged_archive")
    packed = (tmp_path / "x.tar.gz").read_bytes()
    (tmp_path / "c.tar.gz").write_bytes(packed[:-40])
    refused(tmp_path / "c.tar.gz", "damaged_archive")


def test_a_member_behind_the_end_is_not_lost_silently(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "a.tar.gz", "wb") as file:
        file.write(header("a", 0).tobuf() + bytes(1024) + header("b", 0).tobuf() + bytes(1024))
    assert "behind its end" in refused(tmp_path / "a.tar.gz", "crafted_archive")


def test_filling_behind_the_end_is_bounded_too(tmp_path: Path) -> None:
    size = 8 << 20
    with gzip.open(tmp_path / "a.tar.gz", "wb") as file:
        file.write(header("a", 0).tobuf() + bytes(size))
    limits = ArchiveLimits(entries=10, total_bytes=1 << 20)
    refused(tmp_path / "a.tar.gz", "too_large", limits)
    assert contents(tmp_path / "a.tar.gz") == {"a": b""}
