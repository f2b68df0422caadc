"""Unpacking beside the archive: whole, once, and nowhere else."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.errors import SubmitterError
from benchmarks.sources.archives import unpack
from tests.benchmarks.refusals import refused
from tests.benchmarks.sources.fetching import REPO, get, on_hub
from tests.hub.server import HubServer

CONTENT = {"./images/a/1.png": b"one" * 500, "images/b/2.png": b"two" * 500, "c/3.png": b"three"}


def tar(files: dict[str, bytes], *more: tarfile.TarInfo, packed: bool = True) -> bytes:
    """An archive of these files and of further bare members."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        for info in more:
            archive.addfile(info)
    return gzip.compress(buffer.getvalue()) if packed else buffer.getvalue()


def member(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def test_members_keep_their_names_and_join_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "c").mkdir()
    (tmp_path / "c/own.txt").write_text("mine")
    archive = tmp_path / "x.tar.gz"
    archive.write_bytes(tar(CONTENT))
    entry = unpack(archive, ())
    assert (entry.files, entry.top) == (3, ["c", "images"])
    for name, content in CONTENT.items():
        assert (tmp_path / name).read_bytes() == content
    assert (tmp_path / "c/own.txt").read_text() == "mine"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["c", "images", "x.tar.gz"]


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (member("../out.png", tarfile.REGTYPE), "outside"),
        (member("a/../../out.png", tarfile.REGTYPE), "outside"),
        (member("/etc/out.png", tarfile.REGTYPE), "outside"),
        (member("..\\out.png", tarfile.REGTYPE), "outside"),
        (member("link", tarfile.SYMTYPE, "/etc/passwd"), "a link or a device"),
        (member("link", tarfile.LNKTYPE, "c/3.png"), "a link or a device"),
        (member("pipe", tarfile.FIFOTYPE), "a link or a device"),
        (member("disk", tarfile.BLKTYPE), "a link or a device"),
        (member("pins.json", tarfile.REGTYPE), "kept there"),
        (member("x.tar.gz", tarfile.REGTYPE), "kept there"),
    ],
)
def test_an_unsafe_member_leaves_nothing_behind(
    tmp_path: Path, bad: tarfile.TarInfo, why: str
) -> None:
    archive = tmp_path / "data" / "x.tar.gz"
    archive.parent.mkdir()
    archive.write_bytes(tar(CONTENT, bad))
    with refused("archive_refused") as error:
        unpack(archive, ["pins.json"])
    assert bad.name in str(error.value) or repr(bad.name) in str(error.value)
    assert [p.name for p in archive.parent.iterdir()] == ["x.tar.gz"]
    assert [p.name for p in tmp_path.iterdir()] == ["data"]


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("left", [0.999, 0.6, 0.3, 0.0])
def test_an_archive_cut_anywhere_is_an_error(tmp_path: Path, packed: bool, left: float) -> None:
    archive = tmp_path / "x.tar"
    files = {f"images/{n}.bin": os.urandom(4096) for n in range(20)}
    whole = tar(files, packed=packed)
    if not packed:
        whole = whole[: -tarfile.RECORDSIZE]  # what follows the last file is only padding
    archive.write_bytes(whole[: int(len(whole) * left)])
    with refused("data_malformed"):
        unpack(archive, ())
    assert [p.name for p in tmp_path.iterdir()] == ["x.tar"]


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize("place", [0.3, 0.9, 0.999, "checksum"])
def test_one_wrong_byte_of_a_compressed_archive_is_noticed(
    tmp_path: Path, pack: Callable[[bytes], bytes], place: float | str
) -> None:
    archive = tmp_path / "x.tar"
    content = bytearray(pack(tar({f"{n}": os.urandom(4096) for n in range(20)}, packed=False)))
    at = len(content) - 6 if isinstance(place, str) else int(len(content) * place)
    content[at] ^= 0x10
    archive.write_bytes(content)
    with refused("data_malformed"):
        unpack(archive, ())
    assert [p.name for p in tmp_path.iterdir()] == ["x.tar"]


def test_a_plain_archive_cut_between_two_files_is_noticed(tmp_path: Path) -> None:
    archive = tmp_path / "x.tar"
    archive.write_bytes(tar({"1": b"x" * 512, "2": b"y" * 512}, packed=False)[:1024])
    with pytest.raises(SubmitterError, match="after 1 files without its end mark"):
        unpack(archive, ())


def test_a_fetched_archive_is_unpacked_once_and_may_then_go(hub: HubServer, tmp_path: Path) -> None:
    hub.add(REPO, {"x.tar.gz": tar(CONTENT)})
    file = on_hub("remote/x.tar.gz", unpack=True)
    assert get(hub, tmp_path, file).unpacked == ["remote/x.tar.gz"]
    assert (tmp_path / "remote/images/b/2.png").read_bytes() == CONTENT["images/b/2.png"]
    assert get(hub, tmp_path, file).unpacked == []
    (tmp_path / "remote/x.tar.gz").unlink()
    sent = hub.sent()
    assert get(hub, tmp_path, file).there == ["remote/x.tar.gz"]
    assert hub.sent() == sent


def test_what_was_lost_of_an_unpacked_archive_comes_back(hub: HubServer, tmp_path: Path) -> None:
    hub.add(REPO, {"x.tar.gz": tar(CONTENT)})
    file = on_hub("remote/x.tar.gz", unpack=True)
    get(hub, tmp_path, file)
    (tmp_path / "remote/c/3.png").unlink()
    sent = hub.sent()
    assert get(hub, tmp_path, file).unpacked == ["remote/x.tar.gz"]
    assert (tmp_path / "remote/c/3.png").exists()
    assert hub.sent() == sent


def test_a_kill_while_unpacking_is_made_good(hub: HubServer, tmp_path: Path) -> None:
    hub.add(REPO, {"x.tar.gz": tar(CONTENT)})
    half = tmp_path / "remote" / ".x.tar.gz.unpacking" / "images"
    half.mkdir(parents=True)
    (half / "half.png").write_bytes(b"ha")
    get(hub, tmp_path, on_hub("remote/x.tar.gz", unpack=True))
    names = sorted(p.name for p in (tmp_path / "remote").iterdir())
    assert names == ["c", "images", "pins.json", "x.tar.gz"]
    assert not (tmp_path / "remote/images/half.png").exists()


def test_room_is_asked_for_the_content_too(
    hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = tar({"big.bin": os.urandom(2_000_000)}, packed=False)
    hub.add(REPO, {"x.tar": content})
    room = type("Usage", (), {"free": 64 * 2**20 + round(2.09 * len(content))})
    monkeypatch.setattr("benchmarks.sources.transfer.shutil.disk_usage", lambda _: room)
    with pytest.raises(SubmitterError, match="This needs 4"):
        get(hub, tmp_path, on_hub("remote/x.tar", unpack=True))
    get(hub, tmp_path, on_hub("remote/x.tar"))
