"""What comes out of a stranger's archive or folder, whatever it is packed as."""

from __future__ import annotations

import json
import os
import random
import resource
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.errors import PlatformError, TransientError
from evaluator.submission.archives.archive import content_hash, taken_in
from evaluator.submission.archives.entries import ArchiveLimits, Entry, folder_entries
from evaluator.submission.validate import examine_source
from tests.evaluator.submission.archives import (
    FILES,
    MIB,
    Files,
    contents,
    folder_of,
    problems,
    refused,
    tarred,
    within,
    zipped,
)
from tests.kit.processes import open_files
from tests.kit.toy import Toy

HASH = "c6ea794fd5a724642372a3c43090ad19ca31edfab67fe3b014b0a7578b21de43"
"""Of FILES; submissions in stores are named by it."""


def under(prefix: str, files: Files = FILES) -> Files:
    return {prefix + name: data for name, data in files.items()}


def forms(place: Path, files: Files) -> list[Path]:
    """A zip, a tar and a folder of the same files."""
    packed = [zipped(place / "f.zip", files), tarred(place / "f.tar.gz", files)]
    return [*packed, folder_of(place / "f", files)]


def test_a_content_and_its_hash_are_the_same_in_every_form(tmp_path: Path) -> None:
    sources = [
        *forms(tmp_path, FILES),
        zipped(tmp_path / "packed.zip", FILES, zipfile.ZIP_DEFLATED),
        tarred(tmp_path / "a.tar", dict(reversed(list(FILES.items()))), form=tarfile.GNU_FORMAT),
        zipped(tmp_path / "wrapped.zip", under("my-metric/")),
        tarred(tmp_path / "dot.tar.gz", under("./")),
        zipped(tmp_path / "twice.zip", under("downloads/my-metric/")),
    ]
    packed = set()
    for number, source in enumerate(sources):
        assert contents(source) == FILES
        with taken_in(source) as content:
            assert (content.sha256, content.n_bytes) == (HASH, sum(map(len, FILES.values())))
            content.pack_to(tmp_path / f"{number}.packed")
        packed.add((tmp_path / f"{number}.packed").read_bytes())
    assert len(packed) == 1
    assert content_hash(tmp_path / "f") == HASH


def test_what_we_packed_is_taken_in_again_and_is_no_bomb(tmp_path: Path) -> None:
    limits = ArchiveLimits(ratio_from=MIB)
    folder = folder_of(tmp_path / "folder", {**FILES, "zeros.npy": bytes(4 * MIB)})
    with taken_in(folder, tmp_path, limits) as content:
        content.pack_to(tmp_path / "a.zip")
        sha256 = content.sha256
    with taken_in(tmp_path / "a.zip", tmp_path, limits) as again:
        assert again.sha256 == sha256


def test_what_is_taken_in_has_modes_of_ours_and_is_gone_afterwards(tmp_path: Path) -> None:
    def change(info: tarfile.TarInfo) -> None:
        info.mode = 0o7777

    archive = tarred(tmp_path / "a.tar", FILES, change)
    umask = os.umask(0o077)
    try:
        with taken_in(archive, tmp_path / "scratch") as content:
            paths = [content.folder, *content.folder.rglob("*")]
            modes = {p.name: p.stat().st_mode & 0o7777 for p in paths[1:]}
            assert paths[0].stat().st_mode & 0o7777 == 0o755
            assert {p.stat().st_uid for p in paths} == {os.getuid()}
    finally:
        os.umask(umask)
    assert modes == {"data": 0o755, "x.txt": 0o644, "scorer.py": 0o644, "assay.toml": 0o644}
    assert not list((tmp_path / "scratch").iterdir())


def test_a_file_must_not_change_once_it_is_taken_in(tmp_path: Path) -> None:
    with taken_in(folder_of(tmp_path / "folder", FILES), tmp_path) as content:
        (content.folder / "scorer.py").write_bytes(b"other")
        with pytest.raises(PlatformError, match=r"scorer\.py"):
            _ = content.sha256


def test_what_tools_leave_behind_is_left_out(tmp_path: Path) -> None:
    left = [
        "__pycache__/scorer.cpython-311.pyc", "scorer.pyc", "data/old.PYO", "__MACOSX/._x",
        "._scorer.py", ".DS_Store", "data/.git/config", ".cache/huggingface/x.lock",
    ]  # fmt: skip
    for source in forms(tmp_path, {**FILES, **dict.fromkeys(left, b"")}):
        assert contents(source) == FILES


def test_links_and_pipes_in_a_folder_are_refused_and_never_followed(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "folder", FILES)
    (folder / "link.py").symlink_to("/etc/passwd")
    (folder / "data" / "up").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe")
    found = problems(folder)
    assert found == [("not_a_file", "link.py"), ("not_a_file", "pipe"), ("not_a_file", "data/up")]


@pytest.mark.parametrize(
    "names",
    [
        ("a", "a/b"), ("A", "a/b/c"), ("./x.py", "x.py"), ("a.py", "A.py"), ("ﬁle.py", "file.py"),
        ("straße.py", "STRASSE.py"), ("Data/x", "data/y"), ("data/a/x", "Data"),
    ],
)  # fmt: skip
def test_names_of_one_place_on_disk_are_refused(names: tuple[str, str], tmp_path: Path) -> None:
    files = dict.fromkeys(names, b"") | {"c": b""}
    for archive in (zipped(tmp_path / "a.zip", files), tarred(tmp_path / "a.tar.gz", files)):
        assert problems(archive)[0][0] == "duplicate_name"


def test_everything_that_is_wrong_is_told_at_once_up_to_a_number(tmp_path: Path) -> None:
    files = {**FILES, "a.pkl": b"", "con.txt": b"", "x/A.py": b"", "x/a.py": b"", "b.so": b""}
    archive = zipped(tmp_path / "a.zip", under("top/", files))
    assert problems(archive) == [
        ("refused_file", "a.pkl"), ("unsafe_name", "con.txt"), ("duplicate_name", "x/a.py"),
        ("refused_file", "b.so"),
    ]  # fmt: skip
    said = refused(archive, "several_problems")
    assert len([line for line in said.splitlines() if "top/" in line]) == 4
    codes = [code for code, _ in problems(archive, ArchiveLimits(problems=3))]
    assert codes == ["refused_file", "unsafe_name", "duplicate_name", "more_problems"]


@pytest.mark.parametrize(
    ("name", "said", "most"),
    [
        (":smile:[red].txt", "':smile:[red].txt' cannot be kept by Windows", 200),
        ("c:/x.txt", "'c:/x.txt' leads out of the archive", 200),
        ("a" * 4000 + ".py", "is too long or too deep", 200),
    ],
)
def test_a_name_is_told_as_it_is_and_cut_where_it_is_long(
    name: str, said: str, most: int, tmp_path: Path
) -> None:
    archive = zipped(tmp_path / "a.zip", {**FILES, name: b""})
    message = refused(archive, "unsafe_name")
    assert said in message
    assert len(message.splitlines()[0]) < 2 * most


def test_sizes_are_bounded_for_a_file_and_for_all_of_them(tmp_path: Path) -> None:
    limits = ArchiveLimits(file_bytes=1000, total_bytes=1500)
    for source in forms(tmp_path, {"a": bytes(900), "b": bytes(900)}):
        assert source.name in refused(source, "too_large", limits)
    for pack, name in ((zipped, "x.zip"), (tarred, "x.tar.gz")):
        assert "'x'" in refused(pack(tmp_path / name, {"x": bytes(1001)}), "too_large", limits)
    with (tmp_path / "a.tar").open("wb") as file:
        file.truncate(2 << 30)
    assert "2 GB" in refused(tmp_path / "a.tar", "too_large")  # It is not opened.


def test_files_are_counted_and_what_is_left_out_has_a_bound_too(tmp_path: Path) -> None:
    limits = ArchiveLimits(entries=4)
    for source in forms(tmp_path, {f"{i}.txt": b"" for i in range(5)}):
        refused(source, "too_many_files", limits)
    for place, n in ((tmp_path / "few", 30), (tmp_path / "many", 80)):
        place.mkdir()
        *archives, folder = forms(place, {**FILES, **{f".git/{i}": b"" for i in range(n)}})
        assert contents(folder, limits) == FILES
        for archive in archives:
            if n == 30:
                assert contents(archive, limits) == FILES
            else:
                refused(archive, "too_many_files", limits)
    for i in range(60):
        (tmp_path / "empty" / str(i)).mkdir(parents=True)
    refused(tmp_path / "empty", "too_many_files", ArchiveLimits(entries=2))


def test_a_folder_that_goes_down_without_end_is_not_followed(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "folder", {**FILES, "d/" * 40 + "x.py": b""})
    assert [code for code, _ in problems(folder)] == ["unsafe_name"]


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_text("hello")
    (tmp_path / "y.zip").write_bytes(b"")
    os.mkfifo(tmp_path / "pipe")
    for name in ("x.zip", "y.zip", "pipe"):
        refused(tmp_path / name, "not_an_archive")
    refused(zipped(tmp_path / "empty.zip", {}), "empty_archive")
    refused(tmp_path / "absent.zip", "file_missing")
    for form, magic in (
        ("bzip2", b"BZh9"), ("xz", b"\xfd7zXZ\0"), ("7z", b"7z\xbc\xaf\x27\x1c"),
        ("RAR", b"Rar!\x1a\x07"),
    ):  # fmt: skip
        (tmp_path / "a.tar").write_bytes(magic + bytes(100))
        assert form in refused(tmp_path / "a.tar", "not_an_archive")


def test_a_full_disk_is_no_submitters_fault(tmp_path: Path) -> None:
    archive = zipped(tmp_path / "a.zip", {"x": random.Random(1).randbytes(100)})
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50, before[1]))
    try:
        with pytest.raises(TransientError, match="space"), taken_in(archive, tmp_path / "s"):
            raise AssertionError
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list((tmp_path / "s").iterdir())


# Folders that change while they are read -----------------------------------------------------


@pytest.fixture
def given(tmp_path: Path) -> Path:
    """A folder of empty files; beside it another with a secret."""
    folder_of(tmp_path / "outside", {"a.py": b"secret"})
    return folder_of(tmp_path / "given", {"a.py": b"", "sub/a.py": b""})


def first(path: Path, name: str) -> tuple[Entry, Callable[[], list[str]]]:
    """Read until an entry, and what reads on behind it."""
    entries = folder_entries(path, ArchiveLimits())
    entry = next(entry for entry in entries if entry.name == name)
    return entry, lambda: [entry.name for entry in entries]


def test_a_file_that_becomes_a_link_or_a_pipe_is_not_read(given: Path) -> None:
    entry, _ = first(given, "a.py")
    (given / "a.py").unlink()
    (given / "a.py").symlink_to(given.parent / "outside" / "a.py")
    with pytest.raises(OSError, match="symbolic links"):
        list(entry.pieces())
    (given / "a.py").unlink()
    os.mkfifo(given / "a.py")
    with pytest.raises(ValueError, match="no file"):
        list(entry.pieces())


@pytest.mark.parametrize("until", ["sub", "sub/a.py"])
def test_a_folder_that_becomes_a_link_is_not_gone_into(until: str, given: Path) -> None:
    entry, rest = first(given, until)
    (given / "sub").rename(given / "other")
    (given / "sub").symlink_to(given.parent / "outside")
    if until == "sub":
        with pytest.raises(NotADirectoryError):
            rest()
    else:
        assert list(entry.pieces()) == []  # It is read where the folder went.


def test_no_folder_is_held_open_once_reading_ends(given: Path) -> None:
    before = open_files()
    _, rest = first(given, "a.py")
    assert open_files() - before
    assert rest() == ["sub", "sub/a.py"]
    assert not open_files() - before


# Nothing of an archive is ever held whole; `benchmarks_perf.archives` has the large ones -------


@pytest.fixture(scope="module")
def large() -> Files:
    n = 24 * MIB
    tensor = {"dtype": "U8", "shape": [n], "data_offsets": [0, n]}
    header = json.dumps({"weight": tensor}).encode()
    data = random.Random(1).randbytes(MIB) * (n // MIB)
    return {
        "assay.toml": b'name = "m"\nweights = "w.safetensors"',
        "scorer.py": b"class Scorer: ...",
        "w.safetensors": len(header).to_bytes(8, "little") + header + data,
    }


@pytest.mark.first_quick
@pytest.mark.parametrize("form", ["stored.zip", "folder", "deflated.zip", "a.tar", "a.tar.gz"])
def test_a_large_module_is_taken_piece_by_piece(large: Files, tmp_path: Path, form: str) -> None:
    if form == "folder":
        source = folder_of(tmp_path / form, large)
    elif form.endswith(".zip"):
        method = zipfile.ZIP_STORED if form.startswith("stored") else zipfile.ZIP_DEFLATED
        source = zipped(tmp_path / form, large, method)
    else:
        source = tarred(tmp_path / form, large)
    assert within(6 * MIB, examined_and_packed, source) == sum(map(len, large.values()))


def examined_and_packed(source: Path) -> int:
    """Bytes of a module that nothing is wrong with."""
    scratch = source.parent / "scratch"
    found = examine_source(source, {"toy": Toy()}, scratch)
    with taken_in(source, scratch) as content:
        content.pack_to(source.parent / "packed.zip")
        assert (found.problems, found.content_sha256) == ((), content.sha256)
    return found.n_bytes


@pytest.mark.slow
def test_very_many_files_and_bombs_are_refused_in_little_memory(tmp_path: Path) -> None:
    limits = ArchiveLimits(entries=200, ratio_from=2 * MIB)
    many = {f"d/{i}": b"" for i in range(limits.members - 1)}
    for files, code in ((many, "too_many_files"), ({"zeros": bytes(32 * MIB)}, "bomb")):
        for source in (
            zipped(tmp_path / "a.zip", files, zipfile.ZIP_DEFLATED),
            tarred(tmp_path / "a.tar.gz", files),
        ):
            within(6 * MIB, refused, source, code, limits)
