"""Small wheels made by hand, locks of them, and a registry that serves them."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from evaluator.environments.lock import Lock, read_pins

PICTURES = """
class Picture:
    width = height = 8
    stub = True
    def load(self): ...

def open(file):
    return Picture()
"""
"""All of Pillow that a box itself uses."""


@dataclass(frozen=True)
class Wheel:
    """One that was made."""

    name: str
    version: str
    sha256: str
    path: Path

    @property
    def line(self) -> str:
        """As a lock has it."""
        return f"{self.name}=={self.version} --hash=sha256:{self.sha256}"


def wheel(
    folder: Path,
    name: str,
    version: str = "1.0",
    files: Mapping[str, str | bytes] | None = None,
    *,
    requires: Sequence[str] = (),
    of_dist_info: Mapping[str, str] | None = None,
    links: Mapping[str, str] | None = None,
) -> Wheel:
    """Make a wheel; `links` are entries that say to be symbolic links."""
    folder.mkdir(parents=True, exist_ok=True)
    path, info = folder / f"{name}-{version}-py3-none-any.whl", f"{name}-{version}.dist-info"
    needs = "".join(f"Requires-Dist: {one}\n" for one in requires)
    every = {
        **(files if files is not None else {f"{name}.py": f"VERSION = {version!r}\n"}),
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        **{f"{info}/{key}": text for key, text in (of_dist_info or {}).items()},
    }
    every[f"{info}/RECORD"] = "".join(f"{key},,\n" for key in (*every, f"{info}/RECORD"))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for key, content in every.items():
            archive.writestr(key, content)
        for key, target in (links or {}).items():
            entry = zipfile.ZipInfo(key)
            entry.external_attr = 0o120777 << 16
            archive.writestr(entry, target)
    return Wheel(name, version, hashlib.sha256(path.read_bytes()).hexdigest(), path)


def pillow(folder: Path, version: str = "99.0") -> Wheel:
    """A package of that name with what a box needs of it."""
    return wheel(folder, "pillow", version, {"PIL/__init__.py": "", "PIL/Image.py": PICTURES})


def locked(*wheels: Wheel) -> Lock:
    """A lock of wheels."""
    lock, faults = read_pins("\n".join(one.line for one in wheels).encode())
    assert faults == ()
    return lock


def operator_environments(place: Path, patch: pytest.MonkeyPatch) -> Path:
    """The operator's environments `old` and `new`, two versions of a package that records name.

    Images are read by what is installed: their pillow has another module alone. Gives the folder of
    their locks.
    """
    wheels, folder = place / "wheels", place / "locks"
    folder.mkdir()
    for name, version in (("old", "0.1"), ("new", "0.2")):
        made = (
            wheel(wheels, "open_clip_torch", version, {f"marks_{name}.py": ""}),
            wheel(wheels, "pillow", f"99{version}", {"marks.py": f"VERSION = {version!r}"}),
        )
        (folder / f"{name}.lock").write_text("\n".join(one.line for one in made))
    patch.setenv("ASSAY_LOCKS", str(folder))
    patch.setenv("ASSAY_WHEELS", str(wheels))
    patch.setenv("ASSAY_ENVIRONMENTS", str(place / "environments"))
    return folder
