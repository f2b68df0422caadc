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


ARCHIVES = (
    RefusedArchive(
        "an archive of modules within",
        zipped({"more.zip": b"PK\x05\x06" + bytes(18)}),
        "refused_file",
        "more.zip",
    ),
    RefusedArchive(
        "a file above the archive", zipped({"../outside.py": ""}), "unsafe_name", "../outside.py"
    ),
    RefusedArchive(
        "a file at an absolute path",
        zipped({"/tmp/outside.py": ""}),
        "unsafe_name",
        "/tmp/outside.py",
    ),
    RefusedArchive(
        "a path of another system", zipped({"..\\outside.py": ""}), "unsafe_name", "outside.py"
    ),
    RefusedArchive(
        "a name of control characters", zipped({"a\nb.py": ""}), "unsafe_name", "control"
    ),
    RefusedArchive(
        "a link to a file of ours",
        tarred(_member("labels.csv", tarfile.SYMTYPE, "/etc/passwd")),
        "not_a_file",
        "labels.csv",
    ),
    RefusedArchive(
        "a hard link",
        tarred(_member("labels.csv", tarfile.LNKTYPE, "../../labels.csv")),
        "not_a_file",
        "labels.csv",
    ),
    RefusedArchive("a device", tarred(_member("disk", tarfile.BLKTYPE)), "not_a_file", "disk"),
    RefusedArchive("a pipe", tarred(_member("pipe", tarfile.FIFOTYPE)), "not_a_file", "pipe"),
    RefusedArchive("a folder with a link", _linked, "not_a_file", "labels.csv"),
    RefusedArchive(
        "two names that are one on some disks",
        zipped({"Helper.py": "", "helper.py": ""}),
        "duplicate_name",
        "elper.py",
    ),
    RefusedArchive("a bomb", zipped({"zeros.txt": bytes(96 << 20)}), "bomb", "200 times"),
    RefusedArchive(
        "too many files", zipped({f"{n}.txt": "" for n in range(2001)}), "too_many_files", "2000"
    ),
    RefusedArchive(
        "a start-up file of Python",
        zipped({"sitecustomize.py": ""}),
        "refused_file",
        "sitecustomize.py",
    ),
    RefusedArchive(
        "a start-up file of the user",
        zipped({"lib/usercustomize.py": ""}),
        "refused_file",
        "usercustomize.py",
    ),
    RefusedArchive("a path file", zipped({"evil.pth": "import os"}), "refused_file", "evil.pth"),
    RefusedArchive("an extension module", zipped({"helper.so": b"x"}), "refused_file", "helper.so"),
    RefusedArchive("a pickle", zipped({"weights.pkl": b"x"}), "refused_file", "weights.pkl"),
    RefusedArchive("weights of torch", zipped({"model.pt": b"x"}), "refused_file", "model.pt"),
    RefusedArchive(
        "weights that are none",
        zipped(
            {
                "assay.toml": 'name = "packed"\nweights = "w.safetensors"',
                "w.safetensors": b"\xff" * 64,
            }
        ),
        "bad_weights",
        "w.safetensors",
    ),
    RefusedArchive(
        "weights outside the archive",
        zipped({"assay.toml": 'name = "packed"\nweights = "../../labels.safetensors"'}),
        "no_weights",
        "labels.safetensors",
    ),
    RefusedArchive(
        "no archive at all", _written("packed.zip", b"MZ" * 600), "not_an_archive", "packed.zip"
    ),
    RefusedArchive(
        "a manifest that is not TOML",
        zipped({"assay.toml": "[" * 5000}),
        "bad_manifest",
        "assay.toml",
    ),
    RefusedArchive(
        "an entry point outside the archive",
        zipped({"assay.toml": 'name = "packed"\nentry_point = "os.path:join"'}),
        "bad_manifest",
        "entry_point",
    ),
    RefusedArchive(
        "an entry point of the standard library",
        zipped({"assay.toml": 'name = "packed"\nentry_point = "subprocess:Popen"'}),
        "no_entry_point",
        "subprocess.py",
    ),
)
