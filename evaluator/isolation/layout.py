"""Layout of a box, the same for every backend: its Python, its folders, its device, its command."""

from __future__ import annotations

import re
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from benchmarks.errors import PlatformError
from evaluator.isolation.job import MIB, Job, Limits

SUBMISSION = "/submission"
RUNNER = "/runner"
SCRATCH = "/scratch"
MODELS = "/models"
"""Models of the Hub, as the Hub's own client keeps them, so that it finds them without network."""

TMP_BYTES = 64 * MIB
MEMORY_FOLDERS = ("/dev/shm", "/tmp", SCRATCH)  # noqa: S108 - names inside a box
"""All that can be written to inside."""


@dataclass(frozen=True, slots=True)
class Bind:
    """A file or folder of this machine that a box sees, read-only."""

    source: Path  # here
    target: str  # inside


def memory_folders(limits: Limits) -> Mapping[str, int]:
    """Writable folders inside, all of them memory, and how many bytes each may hold."""
    sizes = (limits.shm_bytes, TMP_BYTES, limits.scratch_bytes)
    return dict(zip(MEMORY_FOLDERS, sizes, strict=True))


def binds(interpreter: Interpreter, job: Job | None) -> Iterator[Bind]:
    """All of this machine that a box sees beside `/usr` and the loader's cache."""
    if job is not None and job.environment is not None:
        interpreter = interpreter.with_site(job.environment.resolve())
    for folder, name in interpreter.binds:
        yield Bind(folder, name)
    for name in BUNDLE:
        yield Bind(BUNDLE_FOLDER / name, f"{RUNNER}/{name}")
    if job is None:
        return
    yield Bind(job.folder.resolve(), SUBMISSION)
    for model in job.models:
        yield Bind(model.folder.resolve(), f"{MODELS}/{model.folder_inside}")


def variables(interpreter: Interpreter, limits: Limits) -> dict[str, str]:
    """All that a process in the box finds in its environment."""
    found = interpreter.environment(threads=limits.threads, home=SCRATCH)
    return found | {"HF_HUB_CACHE": MODELS}


def runner_command(interpreter: Interpreter, job: Job) -> list[str]:
    """What is run in the box of a job."""
    if job.environment is not None:
        interpreter = interpreter.with_site(job.environment.resolve())
    words = runner_arguments(
        submission=SUBMISSION,
        entry_point=job.entry_point,
        weights=job.weights,
        device=job.device,
        site=interpreter.site,
        models={model.repo: f"{MODELS}/{model.snapshot_inside}" for model in job.models},
    )
    return interpreter.command(RUNNER, "runner", words)


def inspection_command(interpreter: Interpreter, hidden: tuple[Path, ...]) -> list[str]:
    """What is run in a box that is only looked at."""
    site = [word for folder in interpreter.site for word in ("--site", folder)]
    sizes = memory_folders(Limits()).items()
    sized = [word for folder, size in sizes for word in ("--sized", f"{folder}={size}")]
    return interpreter.command(RUNNER, "inspection", [*site, *sized, *map(str, hidden)])


_USR = Path("/usr")
_INSIDE_BASE = Path("/opt/python")
_INSIDE_SITE = "/opt/site-packages"
_SITE_NAMES = {"site-packages", "dist-packages"}

BUNDLE_FOLDER = Path(__file__).resolve().parent / "inside"
BUNDLE = (
    "wire_protocol.py",
    "calls.py",
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
    """A Python and its libraries, by the names they have where they will run."""

    executable: str  # the Python itself, never a virtual environment's link to it
    site: tuple[str, ...]  # folders of installed libraries
    # (folder of this machine, name inside) of what is not under `/usr`
    binds: tuple[tuple[Path, str], ...] = ()
    library_path: str | None = None  # where its shared library is, if it has one of its own

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

    def with_site(self, folder: Path) -> Self:
        """The same Python inside, with the libraries of a folder in place of its own."""
        others = tuple(bind for bind in self.binds if not bind[1].startswith(_INSIDE_SITE))
        return replace(self, site=(_INSIDE_SITE,), binds=(*others, (folder, _INSIDE_SITE)))

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


def usually_hidden() -> tuple[Path, ...]:
    """The project, and the home folder unless it is one that service users have.

    Installed, the project lies among the packages that a sandbox is given, and hides nothing.
    """
    project, home = Path(__file__).resolve().parents[2], Path.home().resolve()
    installed = _is_under_usr(project) or project in _site_folders()
    served = home == Path("/") or home.is_relative_to(_USR)
    return (() if installed else (project,)) + (() if served else (home,))


CPU = "cpu"
_DEVICE = re.compile(r"cuda(?::(\d{1,3}))?")
_SHARED = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools")
_OPTIONAL = {"nvidia-uvm-tools"}


def device_nodes(device: str, dev: Path = Path("/dev")) -> tuple[Path, ...]:
    """The device_nodes of one card, and those that every card needs."""
    if device == CPU:
        return ()
    match = _DEVICE.fullmatch(device)
    if match is None:
        raise _unavailable(device, f"A box cannot be given the device {device!r}.")
    wanted = (f"nvidia{match[1] or 0}", *_SHARED)
    there = tuple(dev / name for name in wanted if (dev / name).exists())
    lacking = {name for name in wanted if not (dev / name).exists()} - _OPTIONAL
    if lacking:
        names = ", ".join(str(dev / name) for name in sorted(lacking))
        raise _unavailable(device, f"The device {device!r} needs {names}, which is not here.")
    return there


def device_inside(device: str) -> str:
    """What the only card in a box is called there, whatever its number is outside."""
    return CPU if device == CPU else "cuda"


def _unavailable(device: str, message: str) -> PlatformError:
    return PlatformError(
        "device_unavailable",
        message,
        f"Score on the CPU, or load the driver of the card (nvidia-smi) for {device}.",
    )
