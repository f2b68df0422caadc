"""Archives nobody thought of: no damage and no odd member does harm."""

from __future__ import annotations

import gzip
import io
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.errors import SubmitterError
from evaluator.submission.archives.archive import looked_into, taken_in
from evaluator.submission.archives.limits import ArchiveLimits

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
            with looked_into(place / "x.zip", scratch, SMALL) as looked:
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


@QUICK
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
