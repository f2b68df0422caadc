"""Zips and tars that lie, are odd or would burst."""

from __future__ import annotations

import gzip
import io
import os
import random
import struct
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from zipfile import ZIP_BZIP2, ZIP_DEFLATED, ZIP_LZMA, ZIP_STORED

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.errors import SubmitterError
from evaluator.submission.archives.archive import inspected, taken_in
from evaluator.submission.archives.entries import ArchiveLimits
from tests.evaluator.submission.archives import (
    FILES,
    MIB,
    Files,
    contents,
    problems,
    refused,
    tarred,
    within,
    zipped,
)

# Zips ----------------------------------------------------------------------------------------

FIRST, LIST, END = b"PK\3\4", b"PK\1\2", b"PK\5\6"
Change = Callable[[bytearray], bytes | bytearray]


def changed(path: Path, change: Change) -> Path:
    path.write_bytes(change(bytearray(path.read_bytes())))
    return path


def put(new: bytes, *places: tuple[bytes, int]) -> Change:
    """Put bytes so far behind the first of each mark."""

    def change(data: bytearray) -> bytearray:
        for mark, offset in places:
            at = data.find(mark) + offset
            data[at : at + len(new)] = new
        return data

    return change


def flip(*places: tuple[bytes, int]) -> Change:
    def change(data: bytearray) -> bytearray:
        for mark, offset in places:
            data[data.find(mark) + offset] ^= 1
        return data

    return change


def says_size(n: int) -> Change:
    return put(struct.pack("<L", n), (FIRST, 22), (LIST, 24))


def ending(members: bytes, *entries: bytes) -> bytes:
    """Members, with a list of these entries behind them."""
    n, size = len(entries) & 0xFFFF, sum(map(len, entries))
    end = struct.pack("<4s4H2LH", END, 0, 0, n, n, size, len(members), 0)
    return members + b"".join(entries) + end


def parts(data: bytes | bytearray) -> tuple[bytes, bytes]:
    """The members and the list."""
    start, end = data.find(LIST), data.find(END)
    return bytes(data[:start]), bytes(data[start:end])


def far(entry: bytes) -> bytes:
    """An entry of the list whose member begins where no file can, by an extended place."""
    place = struct.pack("<HHQ", 1, 8, (1 << 63) - 1000)
    changed = bytearray(entry + place)
    changed[30:32], changed[42:46] = struct.pack("<H", len(place)), b"\xff" * 4
    return bytes(changed)


SUMMED = bytes(range(256)) * 10
ONE: Files = {"a": b"x" * 99}
ZIPS: dict[str, tuple[Files, int, Change, str, str]] = {
    "encrypted": (FILES, ZIP_STORED, flip((FIRST, 6), (LIST, 8)), "not_a_file", "encrypted"),
    "bzip2": (ONE, ZIP_BZIP2, bytes, "not_a_file", "deflate"),
    "lzma": (ONE, ZIP_LZMA, bytes, "not_a_file", "deflate"),
    "two names": (
        {"safe.py": b"x"}, ZIP_STORED, lambda d: d.replace(b"safe.py", b"evil.py", 1),
        "damaged_archive", "safe.py",
    ),
    "smaller than it is": (ONE, ZIP_DEFLATED, says_size(98), "damaged_archive", ""),
    "a bomb that says it is small": (
        {"x": bytes(8 * MIB)}, ZIP_DEFLATED, says_size(10), "damaged_archive", "",
    ),
    "bytes in front": (FILES, ZIP_STORED, lambda d: b"#!/bin/sh\n" + d, "crafted_archive", "bytes"),
    "broken off": (FILES, ZIP_STORED, lambda d: d[:-30], "damaged_archive", ""),
    "one over another": (
        ONE, ZIP_STORED, lambda d: ending(parts(d)[0], *[parts(d)[1]] * 5), "damaged_archive",
        "over one another",
    ),
    "a place that no file has": (
        ONE, ZIP_STORED, lambda d: ending(parts(d)[0], far(parts(d)[1])), "damaged_archive", "",
    ),
    "another sum than its bytes": (
        {"x": SUMMED}, ZIP_STORED, lambda d: d.replace(SUMMED, SUMMED[::-1], 1), "damaged_archive",
        "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ZIPS)
def test_a_zip_that_lies_is_refused(case: str, tmp_path: Path) -> None:
    files, method, change, code, said = ZIPS[case]
    assert said in refused(changed(zipped(tmp_path / "a.zip", files, method), change), code)


def test_zips_with_sizes_behind_wide_sizes_folders_and_a_comment_are_taken(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    reader, writer = os.pipe()  # It cannot be sought in: sizes follow a zip's members.
    with open(writer, "wb") as file, zipfile.ZipFile(file, "w", ZIP_DEFLATED) as archive:  # noqa: PTH123
        for name, data in FILES.items():
            archive.writestr(name, data)
    path.write_bytes(os.read(reader, 1 << 16))
    os.close(reader)
    assert contents(path) == FILES
    with zipfile.ZipFile(path, "w", ZIP_DEFLATED) as archive:
        archive.comment = b"0123456789abcdef"
        archive.mkdir("data")
        for name, data in FILES.items():
            with archive.open(name, "w", force_zip64=True) as member:
                member.write(data)
    assert contents(path) == FILES


def test_what_the_list_of_a_zip_names_is_what_counts(tmp_path: Path) -> None:
    archive = zipped(tmp_path / "a.zip", FILES)
    entries = [LIST + one for one in parts(archive.read_bytes())[1].split(LIST)[1:]]
    changed(archive, lambda data: ending(parts(data)[0] + b"hidden", *entries[:-1]))
    assert contents(archive) == dict(list(FILES.items())[:-1])


def test_links_and_odd_names_in_zips_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    link = zipfile.ZipInfo("x.py")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(link, "/etc/passwd")
    refused(path, "not_a_file")
    zipped(path, {"scorer.py": b"", "aX.py": b""})
    changed(path, lambda data: data.replace(b"aX.py", b"a\0.py"))
    assert problems(path) == [("unsafe_name", r"a\x00.py")]


def test_an_endless_list_is_not_read_and_shows_a_bomb_by_itself(tmp_path: Path) -> None:
    members, entry = parts(zipped(tmp_path / "a.zip", {"a": b""}).read_bytes())
    for n in (30_000, 65_535):
        (tmp_path / "b.zip").write_bytes(ending(members, *[entry] * n))
        refused(tmp_path / "b.zip", "too_many_files", ArchiveLimits(entries=100))
    bomb = zipped(tmp_path / "a.zip", {"x.txt": bytes(8 * MIB)}, ZIP_DEFLATED)
    assert "200 times" in refused(bomb, "bomb", ArchiveLimits(ratio_from=MIB))


# Tars ----------------------------------------------------------------------------------------


def header(name: str, size: int = 0, kind: bytes = tarfile.REGTYPE) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size, info.type = size, kind
    return info


def crafted_tar(path: Path, *members: tarfile.TarInfo | int) -> Path:
    """A compressed tar of headers and of numbers of zero bytes behind them."""
    with gzip.open(path, "wb") as file:
        for one in [*members, 1024]:
            data = bytes(one) if isinstance(one, int) else one.tobuf(tarfile.GNU_FORMAT)
            file.write(data)
    return path


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_every_form_of_a_tar_is_read(tmp_path: Path, form: int) -> None:
    files = {**FILES, f"{'d' * 90}/{'é' * 40}.txt": b"long"}
    assert contents(tarred(tmp_path / "a.tar.gz", files, form=form)) == files


def test_links_devices_pipes_and_unknown_kinds_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.tar.gz"
    for kind in (
        tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE,
        tarfile.CONTTYPE, tarfile.GNUTYPE_SPARSE, b"Z",
    ):  # fmt: skip
        member = header("x.py", kind=kind)
        member.linkname = "/etc/passwd"
        refused(crafted_tar(path, member), "not_a_file")
    link = header("x", kind=tarfile.SYMTYPE)
    link.linkname = str(tmp_path / "outside")
    assert problems(crafted_tar(path, link, header("x/y.py"))) == [("not_a_file", "x")]
    assert not (tmp_path / "outside").exists()


BOMB = 32 * MIB
TARS: dict[str, tuple[list[tarfile.TarInfo | int], str, str, ArchiveLimits]] = {
    **{
        f"a bomb in a header {kind!r}": (
            [header("x", BOMB, kind), BOMB], "too_large", str(BOMB), ArchiveLimits(),
        )
        for kind in (
            tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK,
        )
    },
    "many headers": (
        [one for i in range(9) for one in (header("x", 4096, tarfile.XHDTYPE), 4096, header(f"{i}"))],
        "too_large", "", ArchiveLimits(entries=20),
    ),
    "nested headers": ([header("x", 0, tarfile.XHDTYPE)] * 2000, "damaged_archive", "", ArchiveLimits()),
    "a negative size": ([header("a"), header("b", -512)], "damaged_archive", "", ArchiveLimits()),
    "a size beyond everything": ([header("a", 5 << 30)], "too_large", "'a'", ArchiveLimits()),
    "a member behind the end": (
        [header("a"), 1024, header("b")], "crafted_archive", "behind", ArchiveLimits(),
    ),
    "filling behind the end": (
        [header("a"), 8 * MIB], "too_large", "", ArchiveLimits(entries=10, total_bytes=MIB),
    ),
    "a large file that is left out": (
        [header(".git/x", 16 * MIB), 16 * MIB, header("scorer.py")], "too_large", "",
        ArchiveLimits(entries=10, total_bytes=MIB),
    ),
    "a bomb that is left out": (
        [header(".git/x", 16 * MIB), 16 * MIB, header("scorer.py")], "bomb", "200 times",
        ArchiveLimits(ratio_from=MIB),
    ),
}  # fmt: skip


@pytest.mark.first_quick
@pytest.mark.parametrize("case", TARS)
def test_a_tar_that_lies_or_bursts_is_refused_in_little_memory(case: str, tmp_path: Path) -> None:
    members, code, said, limits = TARS[case]
    archive = crafted_tar(tmp_path / "a.tar.gz", *members)
    assert said in within(8 * MIB, refused, archive, code, limits)


def test_filling_and_what_is_left_out_are_taken_within_bounds(tmp_path: Path) -> None:
    filled = crafted_tar(tmp_path / "a.tar.gz", header("a"), 8 * MIB)
    assert contents(filled) == {"a": b""}
    left = crafted_tar(tmp_path / "b.tar.gz", header(".git/x", 16 * MIB), 16 * MIB, header("s.py"))
    assert contents(left) == {"s.py": b""}


@pytest.mark.slow
def test_headers_of_all_members_are_not_kept(tmp_path: Path) -> None:
    files = {f"{member}.txt": b"" for member in range(200)}
    data = b""
    for member, name in enumerate(files):
        of_all = {f"{member}-{key}": "" for key in range(400)}
        data += tarfile.TarInfo.create_pax_global_header(of_all) + header(name).tobuf()
    (tmp_path / "a.tar").write_bytes(data + bytes(1024))
    assert within(8 * MIB, contents, tmp_path / "a.tar") == files


def test_sparse_files_are_refused_and_their_maps_never_held(tmp_path: Path) -> None:
    def holes(info: tarfile.TarInfo) -> None:
        info.pax_headers = {
            "GNU.sparse.major": "0",
            "GNU.sparse.minor": "1",
            "GNU.sparse.size": str(1 << 40),
            "GNU.sparse.map": f"0,0,{1 << 40},0",
        }

    refused(tarred(tmp_path / "c.tar.gz", {"a": b""}, holes), "not_a_file")
    n_bytes = 24 * MIB
    old = bytearray(header("a", 0, tarfile.GNUTYPE_SPARSE).tobuf(tarfile.GNU_FORMAT))
    old[482] = 1  # its map goes on
    old[148:156] = b"%06o\0 " % (sum(old[:148]) + 8 * 32 + sum(old[156:]))
    link = (b"%011o\0" % 1 * 42).ljust(504, b"\0") + b"\1" + bytes(7)
    pax = header("b", n_bytes)
    pax.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": "1"}
    count = b"%d\n" % (n_bytes // 2)
    new_map = (count + b"1\n" * (n_bytes // 2))[:n_bytes]
    for head, sparse_map, code in (
        (bytes(old), link * (n_bytes // 512), "crafted_archive"),
        (pax.tobuf(tarfile.PAX_FORMAT), new_map, "not_a_file"),
    ):
        (tmp_path / "a.tar").write_bytes(head + sparse_map + bytes(1024))
        within(8 * MIB, refused, tmp_path / "a.tar", code)


def test_a_gzip_in_parts_with_filling_between_them_is_taken(tmp_path: Path) -> None:
    whole = tarred(tmp_path / "a.tar", FILES).read_bytes()
    pieces = [whole[at : at + 700] for at in range(0, len(whole), 700)]
    packed = b"".join(gzip.compress(piece) + bytes(n) for n, piece in enumerate(pieces))
    path = tmp_path / "a.tar.gz"
    path.write_bytes(packed + bytes(200_000))
    assert contents(path) == FILES
    for damaged in (packed + b"x", packed[: -len(pieces) - 4]):
        path.write_bytes(damaged)
        refused(path, "damaged_archive")


@pytest.mark.parametrize(
    "damage",
    [
        lambda d: d[: len(d) // 2], lambda d: d[:-3], lambda d: d[:12],
        lambda d: d[:-8] + bytes(8), lambda d: d[:-4] + bytes(4),
        lambda d: d[:20] + bytes(20) + d[40:], lambda d: d[:2] + b"\0" + d[3:],
    ],
    ids=["half", "its end", "hardly begun", "checksum", "length", "content", "method"],
)  # fmt: skip
@pytest.mark.parametrize("size", [3, 1 * MIB])
def test_a_gzip_that_is_cut_or_changed_is_damaged(
    tmp_path: Path, damage: Callable[[bytes], bytes], size: int
) -> None:
    content = random.Random(1).randbytes(size)
    whole = gzip.compress(tarred(tmp_path / "a.tar", {"x": content}).read_bytes())
    path = tmp_path / "a.tar.gz"
    path.write_bytes(damage(whole))
    refused(path, "damaged_archive")


def test_a_gzip_of_more_empty_parts_than_anyone_makes_is_refused(tmp_path: Path) -> None:
    tar = gzip.compress(tarred(tmp_path / "a.tar", FILES).read_bytes())
    empty = gzip.compress(b"") * 300_000
    for content in (tar + empty, empty + tar):
        (tmp_path / "a.tar.gz").write_bytes(content)
        assert "40000" in refused(tmp_path / "a.tar.gz", "crafted_archive")


@pytest.mark.parametrize("size", ["-5", "9999", "9" * 30, "1e3"])
def test_a_size_that_an_extended_header_changes_is_not_believed(tmp_path: Path, size: str) -> None:
    def lie(info: tarfile.TarInfo) -> None:
        info.pax_headers = {"size": size}

    with pytest.raises(SubmitterError) as caught:
        contents(tarred(tmp_path / "a.tar", {"a": b"12345"}, lie))
    assert caught.value.code in {"damaged_archive", "too_large"}


def test_a_tar_that_breaks_off_does_not_lose_the_rest(tmp_path: Path) -> None:
    packed = tarred(tmp_path / "x.tar.gz", FILES).read_bytes()
    garbled = header("a").tobuf() + b"?" * 512 + header("b").tobuf() + bytes(1024)
    for name, data in (
        ("a.tar", gzip.decompress(packed)[:2048]),
        ("b.tar.gz", gzip.compress(garbled)),
        ("c.tar.gz", packed[:-40]),
    ):
        (tmp_path / name).write_bytes(data)
        refused(tmp_path / name, "damaged_archive")


# Archives nobody thought of: no damage and no odd member does harm -------------------------------


QUICK = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
SMALL = ArchiveLimits(
    entries=20, file_bytes=1 << 20, total_bytes=2 << 20, depth=6, ratio_from=64 << 10
)


def seeds() -> dict[str, bytes]:
    """Small archives of every form, to be damaged."""
    files = {"assay.toml": b'name = "m"\n', "scorer.py": b"x = 1\n" * 40, "d/é" + "n" * 99: b"1"}
    found: dict[str, bytes] = {}
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", method) as archive:
            for name, data in files.items():
                with archive.open(name, "w", force_zip64=bool(method)) as member:
                    member.write(data)
        found[f"{method}.zip"] = buffer.getvalue()
    for form in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:", format=form) as tar:
            for name, data in files.items():
                info = tarfile.TarInfo(name)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
        found[f"{form}.tar"] = buffer.getvalue()
        found[f"{form}.tar.gz"] = gzip.compress(buffer.getvalue(), mtime=0)
    return found


SEEDS = seeds()
HOT = st.sampled_from([0, 1, 0x7F, 0x80, 0xFF, ord("/"), ord("."), ord("x"), ord("2"), ord("5")])


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """An archive of which some bytes were changed, taken out or doubled."""
    data = bytearray(SEEDS[draw(st.sampled_from(sorted(SEEDS)))])
    for _ in range(draw(st.integers(1, 5))):
        at = draw(st.integers(0, len(data) - 1))
        n = draw(st.integers(1, 60))
        what = draw(st.sampled_from(["set", "random", "cut", "double", "move"]))
        if what == "set":
            data[at] = draw(HOT)
        elif what == "random":
            data[at : at + 8] = draw(st.binary(min_size=8, max_size=8))
        elif what == "cut":
            del data[at : at + n]
        elif what == "double":
            data[at:at] = data[at : at + n]
        else:
            piece = data[at : at + n]
            to = draw(st.integers(0, len(data)))
            data[to : to + n] = piece
        if not data:
            return b""
    return bytes(data)


@contextmanager
def walled_place() -> Iterator[tuple[Path, Path]]:
    """A scratch folder deep inside a place of which everything else must stay as it was."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        scratch = place / "a" / "b" / "c" / "d" / "scratch"
        scratch.mkdir(parents=True)
        before = sorted(place.rglob("*"))
        yield place, scratch
        assert sorted(p for p in place.rglob("*") if p.name != "x.zip") == before


@pytest.mark.slow
@settings(QUICK, max_examples=150)
@given(damaged())
def test_a_damaged_archive_is_a_content_or_an_error_of_its_submitter(data: bytes) -> None:
    with walled_place() as (place, scratch):
        (place / "x.zip").write_bytes(data)
        try:
            with inspected(place / "x.zip", scratch, SMALL) as looked:
                inside = {p for p in looked.content.folder.rglob("*") if not p.is_dir()}
                assert all(p.is_file() and not p.is_symlink() for p in inside)
                assert inside == {looked.content.folder / n for n in looked.content.files}
                assert looked.content.n_bytes <= SMALL.total_bytes
                assert len(looked.content.sha256) == 64
        except SubmitterError as error:
            assert error.hint
            assert error.message.isprintable()


ODD = st.one_of(
    st.text(max_size=12),
    st.sampled_from(["..", "../x", "/x", "a/../../x", "CON", "a/", "./a", "a\0b", "A", "a", "a/b"]),
)
KINDS = st.sampled_from([b"0", b"1", b"2", b"3", b"5", b"6", b"7", b"S", b"x", b"L", b"Z"])


@pytest.mark.slow
@settings(QUICK, max_examples=15)
@given(st.lists(st.tuples(ODD, KINDS, st.binary(max_size=600)), max_size=6))
def test_odd_members_write_nothing_elsewhere(members: list[tuple[str, bytes, bytes]]) -> None:
    with walled_place() as (place, scratch):
        with gzip.open(place / "x.zip", "wb") as file:
            for name, kind, data in members:
                info = tarfile.TarInfo("x")
                info.size, info.type = len(data), kind
                raw = bytearray(info.tobuf(tarfile.USTAR_FORMAT))
                raw[:100] = name.encode("utf-8", "surrogateescape")[:100].ljust(100, b"\0")
                raw[157:257] = b"../../../../target".ljust(100, b"\0")
                raw[148:156] = b" " * 8
                raw[148:156] = f"{sum(raw):06o}\0 ".encode()
                file.write(raw + data + bytes(-len(data) % 512))
            file.write(bytes(1024))
        try:
            with taken_in(place / "x.zip", scratch, SMALL) as content:
                assert {p.name for p in place.rglob("target")} == set()
                assert content.files
        except SubmitterError as error:
            assert error.hint
