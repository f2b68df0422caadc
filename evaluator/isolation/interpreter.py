"""Python interpreter of a box, and the folders of this machine it needs."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

_USR = Path("/usr")
_INSIDE_BASE = Path("/opt/python")
_INSIDE_SITE = "/opt/site-packages"
_SITE_NAMES = {"site-packages", "dist-packages"}

BUNDLE_FOLDER = Path(__file__).resolve().parent / "inside"
BUNDLE = (
    "frames.py",
    "reporting.py",
    "returned.py",
    "calls.py",
    "vectors.py",
    "ways.py",
    "runner.py",
    "inspection.py",
)
"""All that a box sees of this project."""

# Makes the bundle a package without putting its folder on the path of the submission.
PACKAGE = "assay_box"
_BOOT = f"""\
import importlib, sys, types
folder, module, *arguments = sys.argv[1:]
package = types.ModuleType("{PACKAGE}")
package.__path__ = [folder]
sys.modules["{PACKAGE}"] = package
importlib.import_module("{PACKAGE}." + module).main(arguments)
"""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python and its libraries, by the names they have where they will run.

    Attributes:
        executable: the Python itself, never a virtual environment's link to it.
        site: folders of installed libraries.
        binds: (folder of this machine, name inside) of what is not under `/usr`.
        library_path: where its shared library is, if it has one of its own.
    """

    executable: str
    site: tuple[str, ...]
    binds: tuple[tuple[Path, str], ...] = ()
    library_path: str | None = None

    @classmethod
    def running(cls) -> Self:
        """The running Python, as this machine names it."""
        base = Path(sys.base_prefix).resolve()
        shared = bool(sysconfig.get_config_var("Py_ENABLE_SHARED"))
        return cls(
            executable=str(_base_executable(base)),
            site=tuple(map(str, _site_folders())),
            library_path=str(base / "lib") if shared and _USR not in base.parents else None,
        )

    @classmethod
    def running_inside(cls) -> Self:
        """The running Python by neutral names, so that a box learns nothing of this machine."""
        return cls.inside(
            Path(sys.base_prefix).resolve(),
            _base_executable(Path(sys.base_prefix).resolve()),
            _site_folders(),
            shared=bool(sysconfig.get_config_var("Py_ENABLE_SHARED")),
        )

    @classmethod
    def inside(cls, base: Path, executable: Path, site: list[Path], *, shared: bool) -> Self:
        """Names and binds for a Python with this base folder and these library folders."""
        binds: list[tuple[Path, str]] = []
        if _is_under_usr(base):
            inner_base = base
        else:
            inner_base = _INSIDE_BASE
            binds.append((base, str(inner_base)))
        inner_site = []
        for number, folder in enumerate(site):
            name = str(folder) if _is_under_usr(folder) else f"{_INSIDE_SITE}{number or ''}"
            inner_site.append(name)
            if not _is_under_usr(folder):
                binds.append((folder, name))
        return cls(
            executable=str(inner_base / executable.relative_to(base)),
            site=tuple(inner_site),
            binds=tuple(binds),
            library_path=str(inner_base / "lib") if shared and not _is_under_usr(base) else None,
        )

    def command(self, folder: str, module: str, arguments: list[str]) -> list[str]:
        """Run one module of the bundle that lies in a folder.

            `-S` because `.pth` files could run code and name folders of this machine; `-u` so that
        the log keeps the order of what was printed.
        """
        return [self.executable, "-I", "-S", "-B", "-u", "-c", _BOOT, folder, module, *arguments]

    def environment(self, *, threads: int, home: str) -> dict[str, str]:
        """All that a scorer's process finds in its environment."""
        variables = {
            "HOME": home,
            "TMPDIR": home,
            "USER": "sandbox",
            "PATH": "/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "OMP_NUM_THREADS": str(threads),
            "HF_HUB_OFFLINE": "1",  # a missing file is then an error at once, not a hanging retry
        }
        return variables | ({"LD_LIBRARY_PATH": self.library_path} if self.library_path else {})


def runner_arguments(
    *,
    submission: str,
    entry_point: str,
    weights: str | None,
    device: str,
    site: tuple[str, ...],
    models: Mapping[str, str],
) -> list[str]:
    """What the runner is started with."""
    arguments = ["--submission", submission, "--entry-point", entry_point, "--device", device]
    if weights is not None:
        arguments += ["--weights", weights]
    for folder in site:
        arguments += ["--site", folder]
    for repo, folder in models.items():
        arguments += ["--model", repo, folder]
    return arguments


def _base_executable(base: Path) -> Path:
    """The real Python: a virtual environment's is only a link into the base."""
    real = Path(sys.executable).resolve()
    if base in real.parents:
        return real
    return base / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"


def _site_folders() -> list[Path]:
    listed = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *sys.path]
    real = [Path(entry).resolve() for entry in listed if Path(entry).name in _SITE_NAMES]
    return [folder for folder in dict.fromkeys(real) if folder.is_dir()]


def _is_under_usr(folder: Path) -> bool:
    return folder == _USR or _USR in folder.parents
