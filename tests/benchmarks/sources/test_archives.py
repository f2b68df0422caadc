"""Archives: unpacked whole, once and nowhere else; read in parts; a trial takes a few images."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import random
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.errors import SubmitterError
from benchmarks.sources.archives import ZipImages, unpack
from tests.benchmarks.sources.fetching import REPO, get, on_hub
from tests.kit.hub.server import HubServer
from tests.kit.refusals import refused

CONTENT = {"./images/a/1.png": b"one" * 500, "images/b/2.png": b"two" * 500, "c/3.png": b"three"}
PACKED = on_hub("remote/x.tar.gz", unpack=True)


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


def zipped(files: dict[str, bytes], kind: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", kind) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# Unpacking beside the archive.


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
    assert names_in(tmp_path) == ["c", "images", "x.tar.gz"]


@pytest.mark.parametrize(
    ("name", "kind", "target"),
    [
        ("../out.png", tarfile.REGTYPE, ""), ("a/../../out.png", tarfile.REGTYPE, ""),
        ("/etc/out.png", tarfile.REGTYPE, ""), ("..\\out.png", tarfile.REGTYPE, ""),
        ("link", tarfile.SYMTYPE, "/etc/passwd"), ("link", tarfile.LNKTYPE, "c/3.png"),
        ("pipe", tarfile.FIFOTYPE, ""), ("disk", tarfile.BLKTYPE, ""),
        ("pins.json", tarfile.REGTYPE, ""), ("x.tar.gz", tarfile.REGTYPE, ""),
    ],
)  # fmt: skip
def test_an_unsafe_member_leaves_nothing_behind(
    tmp_path: Path, name: str, kind: bytes, target: str
) -> None:
    bad = tarfile.TarInfo(name)
    bad.type, bad.linkname = kind, target
    archive = tmp_path / "data" / "x.tar.gz"
    archive.parent.mkdir()
    archive.write_bytes(tar(CONTENT, bad))
    with refused("archive_refused") as error:
        unpack(archive, ["pins.json"])
    assert name in str(error.value) or repr(name) in str(error.value)
    assert (names_in(archive.parent), names_in(tmp_path)) == (["x.tar.gz"], ["data"])


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("left", [0.999, 0.6, 0.3, 0.0])
def test_an_archive_cut_anywhere_is_an_error(tmp_path: Path, packed: bool, left: float) -> None:
    archive = tmp_path / "x.tar"
    whole = tar({f"images/{n}.bin": os.urandom(4096) for n in range(20)}, packed=packed)
    if not packed:
        whole = whole[: -tarfile.RECORDSIZE]  # what follows the last file is only padding
    archive.write_bytes(whole[: int(len(whole) * left)])
    with refused("data_malformed"):
        unpack(archive, ())
    assert names_in(tmp_path) == ["x.tar"]


def test_a_plain_archive_cut_between_two_files_is_noticed(tmp_path: Path) -> None:
    archive = tmp_path / "x.tar"
    archive.write_bytes(tar({"1": b"x" * 512, "2": b"y" * 512}, packed=False)[:1024])
    with refused("data_malformed", match="1 files"):
        unpack(archive, ())


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize("place", [0.3, 0.9, 0.999, -6], ids=str)  # the last is in the checksum
def test_one_wrong_byte_of_a_compressed_archive_is_noticed(
    tmp_path: Path, pack: Callable[[bytes], bytes], place: float
) -> None:
    archive = tmp_path / "x.tar"
    content = bytearray(pack(tar({f"{n}": os.urandom(4096) for n in range(20)}, packed=False)))
    content[int(len(content) * place) if place > 0 else int(place)] ^= 0x10
    archive.write_bytes(content)
    with refused("data_malformed"):
        unpack(archive, ())
    assert names_in(tmp_path) == ["x.tar"]


def test_a_fetched_archive_is_unpacked_once_and_what_was_lost_of_it_comes_back(
    hub: HubServer, tmp_path: Path
) -> None:
    hub.add(REPO, {"x.tar.gz": tar(CONTENT)})
    assert get(hub, tmp_path, PACKED).unpacked == ["remote/x.tar.gz"]
    sent = hub.sent()
    assert get(hub, tmp_path, PACKED).unpacked == []
    (tmp_path / "remote/c/3.png").unlink()
    assert get(hub, tmp_path, PACKED).unpacked == ["remote/x.tar.gz"]
    assert (tmp_path / "remote/c/3.png").read_bytes() == CONTENT["c/3.png"]
    (tmp_path / "remote/x.tar.gz").unlink()  # it may go once it is unpacked
    assert get(hub, tmp_path, PACKED).there == ["remote/x.tar.gz"]
    assert hub.sent() == sent


def test_a_kill_while_unpacking_is_made_good(hub: HubServer, tmp_path: Path) -> None:
    hub.add(REPO, {"x.tar.gz": tar(CONTENT)})
    half = tmp_path / "remote" / ".x.tar.gz.unpacking" / "images"
    half.mkdir(parents=True)
    (half / "half.png").write_bytes(b"ha")
    get(hub, tmp_path, PACKED)
    assert names_in(tmp_path / "remote") == ["c", "images", "pins.json", "x.tar.gz"]
    assert not (tmp_path / "remote/images/half.png").exists()


def test_room_is_asked_for_the_content_too(
    hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = tar({"big.bin": os.urandom(2_000_000)}, packed=False)
    hub.add(REPO, {"x.tar": content})
    room = type("Usage", (), {"free": 64 * 2**20 + round(2.09 * len(content))})
    monkeypatch.setattr("benchmarks.sources.transfer.shutil.disk_usage", lambda _: room)
    with refused("disk_full", match="needs 4"):
        get(hub, tmp_path, on_hub("remote/x.tar", unpack=True))
    get(hub, tmp_path, on_hub("remote/x.tar"))


# Images in zip archives: whatever is damaged ends in one kind of error.

IN_ZIP = {f"images/{n}.png": bytes([n]) * 300 + b"end" for n in range(3)}
ZIP = zipped(IN_ZIP, zipfile.ZIP_DEFLATED)


def images_of(folder: Path, *contents: bytes) -> ZipImages:
    """An archive in parts."""
    places = [folder / f"images.zip.part-a{n}" for n in range(len(contents))]
    for place, content in zip(places, contents, strict=True):
        place.write_bytes(content)
    return ZipImages(*places)


def test_parts_are_one_archive_even_where_some_are_empty(tmp_path: Path) -> None:
    images = images_of(tmp_path, b"", ZIP[:100], b"", ZIP[100:], b"")
    assert {name: images.read(name) for name in images.names} == IN_ZIP


@pytest.mark.parametrize(
    "contents", [[b""], [b"", b""], [b"", b"PK"], [b"x" * 21], [b"", ZIP[:-30]]]
)
def test_what_is_no_archive_is_refused(tmp_path: Path, contents: list[bytes]) -> None:
    with refused("data_malformed"):
        _ = images_of(tmp_path, *contents).names


def flagged(offset: int, value: bytes) -> bytes:
    """The archive with two bytes of every entry of its directory changed."""
    head, *entries = ZIP.split(b"PK\x01\x02")
    changed = [e[: offset - 4] + value + e[offset - 2 :] for e in entries]
    return b"PK\x01\x02".join([head, *changed])


@pytest.mark.parametrize(
    "content",
    [ZIP[50:], flagged(10, b"\x63\x00"), flagged(8, b"\x01\x00"), flagged(8, b"\x20\x00"),
     flagged(8, b"\x40\x00")],
    ids=["cut", "compression", "encrypted", "patched", "strongly encrypted"],
)  # fmt: skip
def test_an_entry_that_cannot_be_read_is_named(tmp_path: Path, content: bytes) -> None:
    with refused("data_malformed", match=r"images/0\.png"):
        images_of(tmp_path, content).read("images/0.png")


@pytest.mark.first_quick
@pytest.mark.parametrize(
    "kind", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
)
def test_random_damage_ends_in_one_kind_of_error_or_in_the_true_content(
    tmp_path: Path, kind: int
) -> None:
    rng, whole, n_refused = random.Random(kind), zipped(IN_ZIP, kind), 0
    for _ in range(400):
        damaged = bytearray(whole)
        for _ in range(rng.randint(1, 3)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        images = images_of(tmp_path, bytes(damaged[: rng.choice((None, 60, -1))]))
        try:
            for name, content in IN_ZIP.items():
                assert images.read(name) == content
        except SubmitterError as error:
            assert error.code == "data_malformed"
            n_refused += 1
    assert n_refused > 200


# A trial takes a few images and leaves the rest where they are.

MODELS = ("SDXL", "SD3")
PROMPTS = [f"{n:05d}" for n in range(60)]
ANSWERS = "pair_id,prompt\n" + "".join(f"{p}/{m},{p}\n" for p in PROMPTS for m in MODELS)
ANSWERS_FILE = on_hub("remote/answers.csv", role="answers")
NOISE = random.Random(2)
IMAGES = {f"images/{m}/{p}.png": NOISE.randbytes(60_000) for m in MODELS for p in PROMPTS}
FIRST_TWO = {n: IMAGES[n] for m in MODELS for n in (f"images/{m}/{p}.png" for p in PROMPTS[:2])}
WHOLE = zipped(IMAGES)


def taken(data: Path) -> dict[str, bytes]:
    folder = data / "remote/subset"
    return {
        p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()
    }


def test_a_zip_in_parts_is_read_by_ranges(hub: HubServer, tmp_path: Path) -> None:
    names = [f"images.zip.part-a{letter}" for letter in "abc"]
    contents = (WHOLE[:3_000_000], WHOLE[3_000_000:6_000_000], WHOLE[6_000_000:])
    hub.add(REPO, {"answers.csv": ANSWERS.encode(), **dict(zip(names, contents, strict=True))})
    files = [on_hub(f"remote/{name}") for name in names]
    done = get(hub, tmp_path, ANSWERS_FILE, *files, subset=2)
    assert taken(tmp_path) == FIRST_TWO
    assert done.trial == {str(tmp_path / "remote/subset"): 4}
    assert (tmp_path / "remote/answers.csv").read_text() == ANSWERS
    assert hub.sent("/content/") + hub.sent("/resolve/") < len(WHOLE)
    assert not list((tmp_path / "remote").glob("*.zip*"))
    with refused("data_malformed"):
        get(hub, tmp_path / "b", *files[:1], subset=3)


def test_a_zip_of_each_model_gives_its_share(hub: HubServer, tmp_path: Path) -> None:
    archives = {
        f"{m}.zip": zipped({n.removeprefix("images/"): c for n, c in IMAGES.items() if m in n})
        for m in MODELS
    }
    hub.add(REPO, {"answers.csv": ANSWERS.encode(), **archives})
    files = (on_hub(f"remote/images/{m}.zip", f"{m}.zip") for m in MODELS)
    get(hub, tmp_path, ANSWERS_FILE, *files, subset=2)
    assert taken(tmp_path) == FIRST_TWO


def test_a_folder_gives_the_images_of_the_first_prompts(hub: HubServer, tmp_path: Path) -> None:
    hub.add(REPO, {"answers.csv": ANSWERS.encode(), **IMAGES})
    for _ in range(2):
        get(hub, tmp_path, ANSWERS_FILE, on_hub("remote/images", folder=True), subset=2)
        assert taken(tmp_path) == FIRST_TWO
        assert hub.sent() == len(ANSWERS) + 4 * 60_000


def test_a_packed_tar_is_streamed_until_there_is_enough(hub: HubServer, tmp_path: Path) -> None:
    content = tar({**IMAGES, "table.tsv": b"no image"})
    hub.add(REPO, {"answers.csv": ANSWERS.encode(), "x.tar.gz": content})
    get(hub, tmp_path, ANSWERS_FILE, PACKED, subset=2)
    assert taken(tmp_path) == dict(list(IMAGES.items())[:4])
    assert not (tmp_path / "remote/x.tar.gz").exists()


def test_without_answers_one_image_a_prompt_and_no_part_of_a_table(
    hub: HubServer, tmp_path: Path
) -> None:
    hub.add(REPO, {"images.zip": WHOLE, "train.parquet": b"PAR1"})
    get(hub, tmp_path, on_hub("remote/images.zip"), subset=3)
    assert sorted(taken(tmp_path)) == [f"images/SDXL/{p}.png" for p in PROMPTS[:3]]
    done = get(hub, tmp_path / "b", on_hub("remote/train.parquet"), subset=3)
    assert list(done.left_out) == ["remote/train.parquet"]
