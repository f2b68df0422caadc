"""Builds the folder of packages of a lock with uv: wheels alone, by their hashes, within limits.

Nothing of a package is run: no source is built, nothing is compiled, no script is kept, and the
folder is on the path of a Python only inside a box.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks.errors import AssayError, PlatformError, SubmitterError, TransientError
from evaluator.environments.lock import Lock
from evaluator.folder_cache import PART, let_all_read
from evaluator.isolation.session import one_line

GIB = 1 << 30
MEMORY_BYTES = 8 * GIB
"""Address space of uv."""
_PASSED_ON = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE")
_LOOKED_EVERY_S = 0.1
_MOST_SAID = 64 * 1024
_SHOWN = 1000

# Ends with the thread that started it, and never holds more than its limits.
_GUARD = """\
import ctypes, os, resource, signal, sys
parent, file_bytes, memory_bytes, *command = sys.argv[1:]
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if os.getppid() != int(parent):
    sys.exit(1)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_FSIZE, (int(file_bytes), int(file_bytes)))
resource.setrlimit(resource.RLIMIT_AS, (int(memory_bytes), int(memory_bytes)))
os.execv(command[0], command)
"""


@dataclass(frozen=True, slots=True)
class PackageSource:
    """Where wheels come from."""

    wheels: Path | None = None  # a folder of them
    index: str | None = None  # address of a registry; None: nothing is downloaded

    @property
    def options(self) -> list[str]:
        """As uv is told."""
        words = [] if self.wheels is None else ["--find-links", str(self.wheels.resolve())]
        words += (
            ["--offline", "--no-index"] if self.index is None else ["--default-index", self.index]
        )
        return words


@dataclass(frozen=True, slots=True)
class BuildLimits:
    """Limits of one environment."""

    seconds: float = 1800.0
    n_bytes: int = 16 * GIB  # unpacked
    files: int = 200_000


def build(lock: Lock, place: Path, source: PackageSource, limits: BuildLimits) -> None:
    """Make the folder of a lock, whole or not at all; whoever calls this is alone at it.

    Raises:
        SubmitterError: the lock cannot be installed: a package is missing, has another hash, has
            no wheel, needs what is not pinned, or is too large.
        TransientError: the registry does not answer, or not in time; the disk is full.
        PlatformError: there is nowhere to take packages from, or uv failed.
    """
    if source == PackageSource():
        raise PlatformError(
            "no_packages_here",
            "This machine has nothing to build environments from.",
            "Name a folder of wheels with ASSAY_WHEELS or a registry with ASSAY_PACKAGE_INDEX.",
        )
    draft = place.with_name(f"{place.name}{PART}")
    shutil.rmtree(draft, ignore_errors=True)  # of a builder that was killed
    try:
        for name in ("site", "home"):
            (draft / name).mkdir(parents=True)
        (draft / "lock.txt").write_text(lock.text)
        _install(draft, source, limits)
        _finish(draft / "site", limits)
        (draft / "site").rename(place)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _install(draft: Path, source: PackageSource, limits: BuildLimits) -> None:
    said = draft / "said"
    with said.open("wb") as file:
        process = subprocess.Popen(  # noqa: S603 - every word of it is ours or the operator's
            [
                *(sys.executable, "-I", "-S", "-c", _GUARD),
                *map(str, (os.getpid(), limits.n_bytes, MEMORY_BYTES)),
                *_command(draft, source),
            ],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            env=_variables(draft, source, os.environ),
            cwd=draft,
            start_new_session=True,
        )
        try:
            _wait(process, draft, limits)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    if process.returncode:
        with said.open("rb") as file:
            raise _refusal(_plain(file.read(_MOST_SAID), draft, source), process.returncode)


def _command(draft: Path, source: PackageSource) -> list[str]:
    try:
        from uv import find_uv_bin  # noqa: PLC0415 (not part of the site, which builds nothing)

        uv = find_uv_bin()
    except (ImportError, FileNotFoundError) as error:
        raise PlatformError("no_uv", "uv, which builds environments, is not installed.") from error
    return [
        *(uv, "pip", "install", "--no-config", "--no-progress", "--color", "never"),
        *("--require-hashes", "--no-build", "--no-compile-bytecode", "--link-mode", "hardlink"),
        *("--python", sys.executable, "--no-python-downloads", "--keyring-provider", "disabled"),
        *("--cache-dir", str(draft / "cache"), "--target", str(draft / "site")),
        *source.options,
        *("--requirements", str(draft / "lock.txt")),
    ]


def _variables(draft: Path, source: PackageSource, given: Mapping[str, str]) -> dict[str, str]:
    """All of uv's environment: the way to a registry is the machine's, nothing else."""
    home = str(draft / "home")
    own = {"HOME": home, "TMPDIR": home, "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
    if source.index is None:
        return own
    names = (form for name in _PASSED_ON for form in (name, name.lower()))
    return own | {name: given[name] for name in names if name in given}


def _wait(
    process: subprocess.Popen[bytes],
    draft: Path,
    limits: BuildLimits,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    ends, pause = clock() + limits.seconds, _LOOKED_EVERY_S
    while True:
        with suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, min(pause, ends - clock())))
            return
        begun = clock()
        _check_size(draft, limits)
        pause = max(_LOOKED_EVERY_S, 2 * (clock() - begun))
        if clock() >= ends:
            raise TransientError(
                "environment_slow",
                f"An environment was not built within {limits.seconds:g} s.",
                "It is tried again; where it is large, limits.environment_build_s can be raised.",
            )


def _check_size(folder: Path, limits: BuildLimits) -> None:
    """Refuse what is too large; a file that has two names is one."""
    sizes: dict[int, int] = {}
    waiting = [folder]
    while waiting:
        with suppress(FileNotFoundError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(Path(entry.path))
                else:
                    found = entry.stat(follow_symlinks=False)
                    sizes[found.st_ino] = found.st_size
    n_bytes = sum(sizes.values())
    if n_bytes > limits.n_bytes or len(sizes) > limits.files:
        raise SubmitterError(
            "environment_too_large",
            f"The packages of the lock have more than {limits.n_bytes / GIB:g} GiB or "
            f"{limits.files:,} files, unpacked.",
            "Leave out what the metric does not need.",
        )


def _finish(site: Path, limits: BuildLimits) -> None:
    """Leave libraries alone: no scripts, no remarks of uv, nothing but folders and files."""
    _check_size(site, limits)
    shutil.rmtree(site / "bin", ignore_errors=True)
    (site / ".lock").unlink(missing_ok=True)
    for remark in site.glob("*.dist-info/uv_cache.json"):
        remark.unlink()
    for folder, folders, names in os.walk(site):
        for name in (*folders, *names):
            mode = (Path(folder) / name).lstat().st_mode
            if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
                raise SubmitterError(
                    "bad_wheel",
                    f"{name[:80]!r} of a package of the lock is neither a file nor a folder.",
                    _LOCK_AGAIN,
                )
    let_all_read(site, executables=True)


def _plain(said: bytes, draft: Path, source: PackageSource) -> str:
    """What uv said, on one line, without paths of this machine."""
    text = one_line(said)
    for path in (draft, source.wheels and source.wheels.resolve()):
        text = text.replace(str(path), "") if path else text
    return text.partition("error: ")[2] or text


_AGAIN = "It is tried again by itself."
_LOCK_AGAIN = "Make the lock anew, for Python 3.11 and this kind of machine, and send it again."
_REFUSALS: tuple[tuple[str, Callable[[str], AssayError]], ...] = (
    (
        "no space left",
        lambda said: TransientError("disk_low", f"There is no room on the disk: {said}", _AGAIN),
    ),
    (
        "file too large|memory allocation",
        lambda said: SubmitterError(
            "environment_too_large", f"A package of the lock is too large: {said}", _LOCK_AGAIN
        ),
    ),
    (
        "hash mismatch",
        lambda said: SubmitterError(
            "package_hash_mismatch",
            f"A file of a package is another than the lock has: {said}",
            _LOCK_AGAIN,
        ),
    ),
    (
        "wheel is invalid|was invalid|failed to extract|failed to install",
        lambda said: SubmitterError(
            "bad_wheel", f"A package of the lock cannot be installed: {said}", _LOCK_AGAIN
        ),
    ),
    (
        "error sending request|failed to fetch|timed out|connection (refused|reset)|dns error"
        "|http status server error",
        lambda said: TransientError(
            "package_index_away", f"Packages could not be fetched: {said}", _AGAIN
        ),
    ),
    (
        "no (usable )?wheels|no binary distribution|building .* is disabled",
        lambda said: SubmitterError(
            "package_without_wheel", f"Wheels alone are taken: {said}", _LOCK_AGAIN
        ),
    ),
    (
        "was not found in|there is no version of",
        lambda said: SubmitterError(
            "package_missing", f"A package of the lock cannot be had: {said}", _LOCK_AGAIN
        ),
    ),
    (
        "couldn't parse requirement",
        lambda said: SubmitterError(
            "bad_lock", f"A line of the lock cannot be read: {said}", _LOCK_AGAIN
        ),
    ),
    (
        "no solution found|hash-checking is required",
        lambda said: SubmitterError(
            "lock_incomplete",
            f"The lock does not hold all that its packages need: {said}",
            _LOCK_AGAIN,
        ),
    ),
)
"""Signs in what uv says, and how that is told with whose fault it is; the first that fits holds."""


def _refusal(said: str, code: int) -> AssayError:
    text = said[:_SHOWN] or f"uv ended with {code}"
    for sign, refusal in _REFUSALS:
        if re.search(sign, said, re.IGNORECASE):
            return refusal(text)
    return PlatformError("environment_not_built", f"An environment could not be built: {text}")
