"""Archives that must be refused at the desk; every other trick of archives has tests of its own."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.hostile.case import RefusedArchive
from tests.hostile.corpus.texts import honest

_GOOD: Mapping[str, str | bytes] = {"assay.toml": 'name = "packed"', "scorer.py": honest(0.0)}


def zipped(files: Mapping[str, str | bytes]) -> Callable[[Path], Path]:
    """A zip of a good submission and these files."""

    def build(folder: Path) -> Path:
        path = folder / "packed.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in {**_GOOD, **files}.items():
                archive.writestr(name, data)
        return path

    return build


def tarred(*members: tarfile.TarInfo) -> Callable[[Path], Path]:
    """A tar of a good submission and these members without content."""

    def build(folder: Path) -> Path:
        path = folder / "packed.tar"
        with tarfile.open(path, "w") as archive:
            for name, text in _GOOD.items():
                data = text.encode() if isinstance(text, str) else text
                info = tarfile.TarInfo(name)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
            for member in members:
                archive.addfile(member)
        return path

    return build


def _member(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    info.linkname = target
    return info


def _linked(folder: Path) -> Path:
    for name, text in _GOOD.items():
        (folder / name).write_text(str(text))
    (folder / "labels.csv").symlink_to("/etc/passwd")
    return folder


def _written(name: str, data: bytes) -> Callable[[Path], Path]:
    def build(folder: Path) -> Path:
        path = folder / name
        path.write_bytes(data)
        return path

    return build


_REFUSED, _UNSAFE = "refused_file", "unsafe_name"
_IN_A_ZIP: tuple[tuple[str, dict[str, str | bytes], str, str], ...] = (
    ("an archive of modules within", {"more.zip": b"PK\x05\x06" + bytes(18)}, _REFUSED, "more.zip"),
    ("a file above the archive", {"../outside.py": ""}, _UNSAFE, "../outside.py"),
    ("a file at an absolute path", {"/tmp/outside.py": ""}, _UNSAFE, "/tmp/outside.py"),
    ("a path of another system", {"..\\outside.py": ""}, _UNSAFE, "outside.py"),
    ("a name of control characters", {"a\nb.py": ""}, _UNSAFE, "control"),
    (
        "two names that are one on some disks", {"Helper.py": "", "helper.py": ""},
        "duplicate_name", "elper.py",
    ),
    ("a bomb", {"zeros.txt": bytes(96 << 20)}, "bomb", "200 times"),
    ("too many files", {f"{n}.txt": "" for n in range(2001)}, "too_many_files", "2000"),
    ("a start-up file of Python", {"sitecustomize.py": ""}, _REFUSED, "sitecustomize.py"),
    ("a start-up file of the user", {"lib/usercustomize.py": ""}, _REFUSED, "usercustomize.py"),
    ("a path file", {"evil.pth": "import os"}, _REFUSED, "evil.pth"),
    ("an extension module", {"helper.so": b"x"}, _REFUSED, "helper.so"),
    ("a pickle", {"weights.pkl": b"x"}, _REFUSED, "weights.pkl"),
    ("weights of torch", {"model.pt": b"x"}, _REFUSED, "model.pt"),
    (
        "weights that are none",
        {
            "assay.toml": 'name = "packed"\nweights = "w.safetensors"',
            "w.safetensors": b"\xff" * 64,
        },
        "bad_weights", "w.safetensors",
    ),
    (
        "weights outside the archive",
        {"assay.toml": 'name = "packed"\nweights = "../../labels.safetensors"'},
        "no_weights", "labels.safetensors",
    ),
    ("a manifest that is not TOML", {"assay.toml": "[" * 5000}, "bad_manifest", "assay.toml"),
    (
        "an entry point outside the archive",
        {"assay.toml": 'name = "packed"\nentry_point = "os.path:join"'},
        "bad_manifest", "entry_point",
    ),
    (
        "an entry point of the standard library",
        {"assay.toml": 'name = "packed"\nentry_point = "subprocess:Popen"'},
        "no_entry_point", "subprocess.py",
    ),
)  # fmt: skip
_IN_A_TAR = (
    ("a link to a file of ours", _member("labels.csv", tarfile.SYMTYPE, "/etc/passwd")),
    ("a hard link", _member("labels.csv", tarfile.LNKTYPE, "../../labels.csv")),
    ("a device", _member("disk", tarfile.BLKTYPE)),
    ("a pipe", _member("pipe", tarfile.FIFOTYPE)),
)
_NO_ARCHIVE = _written("packed.zip", b"MZ" * 600)

ARCHIVES = (
    *(RefusedArchive(name, zipped(files), code, says) for name, files, code, says in _IN_A_ZIP),
    *(RefusedArchive(name, tarred(one), "not_a_file", one.name) for name, one in _IN_A_TAR),
    RefusedArchive("a folder with a link", _linked, "not_a_file", "labels.csv"),
    RefusedArchive("no archive at all", _NO_ARCHIVE, "not_an_archive", "packed.zip"),
)
