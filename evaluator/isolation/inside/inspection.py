"""Looks around inside a box that holds no stranger's code, and prints what it finds.

One line per layer: name, `yes` or `no`, and a detail, separated by tabs. The same box that
will hold a submission is looked at from where the submission would look.

Standard library only, until the library folders are on the path: this file is also bound into
the box.
"""

from __future__ import annotations

import ctypes
import errno
import importlib
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

_CLONE_NEWUSER = 0x10000000
_PR_GET_NO_NEW_PRIVS = 39
_PTRACE_ATTACH = 16
_FEW_PROCESSES = 8
_FEW_FORKS = 12
_MOUNTED = ("/", "/usr", "/dev", "/runner", "/submission", "/opt")
_FILTERED = (  # numbers that are the same on every architecture
    ("io_uring_setup", 425, errno.EPERM),
    ("pidfd_getfd", 438, errno.EPERM),
    ("clone3", 435, errno.ENOSYS),
    ("open_tree", 428, errno.EPERM),
    ("a call that no kernel has yet", 999, errno.ENOSYS),
)
_SETTINGS = (
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/vm/overcommit_memory",
    "/proc/sysrq-trigger",
)
_ALLOWED_VARIABLES = {
    "HOME", "TMPDIR", "USER", "PATH", "LANG", "LC_CTYPE", "PWD",
    "OMP_NUM_THREADS", "HF_HUB_OFFLINE", "HF_HUB_CACHE", "LD_LIBRARY_PATH",
}  # fmt: skip


def main(arguments: Sequence[str]) -> None:
    """Print the findings."""
    site, sized, hidden = _split(arguments)
    sys.path.extend(site)
    checks: dict[str, Callable[[], str]] = {
        "pid": _other_processes,
        "network": _interfaces,
        "filesystem": lambda: _seen(hidden) or _writable(set(sized)),
        "sized memory folders": lambda: _unbounded(sized),
        "kernel settings": _settings,
        "environment": _variables,
        "descriptors": _descriptors,
        "capabilities": _privileges,
        "user namespaces": _nested_namespace,
        "system calls": _calls,
        "process limit": _forks,
        "libraries": _libraries,
    }
    for name, fault_of in checks.items():
        fault = fault_of()
        sys.stdout.write(f"{name}\t{'no' if fault else 'yes'}\t{fault}\n")


def _split(arguments: Sequence[str]) -> tuple[list[str], dict[str, int], list[str]]:
    site: list[str] = []
    sized: dict[str, int] = {}
    hidden: list[str] = []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word == "--site":
            site.append(rest.pop(0))
        elif word == "--sized":
            folder, _, size = rest.pop(0).partition("=")
            sized[folder] = int(size)
        else:
            hidden.append(word)
    return site, sized, hidden


def _other_processes() -> str:
    pids = [name for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 - names only
    return "" if len(pids) <= _FEW_PROCESSES else f"{len(pids)} processes are visible"


def _interfaces() -> str:
    lines = Path("/proc/net/dev").read_text().splitlines()[2:]
    others = {line.partition(":")[0].strip() for line in lines} - {"lo"}
    return f"network interface {', '.join(sorted(others))}" if others else ""


def _seen(hidden: Sequence[str]) -> str:
    return next((f"{path} is visible" for path in hidden if Path(path).exists()), "")


def _writable(allowed: set[str]) -> str:
    for folder in (*_MOUNTED, *_mount_points()):
        path = Path(folder)
        if folder in allowed or not path.is_dir():
            continue
        try:
            (path / ".assay-probe").touch()
        except OSError:
            continue
        return f"{folder} can be written to"
    return ""


def _mount_points() -> list[str]:
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return [line.split()[4] for line in lines]


def _unbounded(sized: dict[str, int]) -> str:
    for folder, size in sized.items():
        found = os.statvfs(folder)
        if found.f_blocks * found.f_frsize > size:
            return f"{folder} holds more than {size} bytes"
    return ""


def _settings() -> str:
    for path in _SETTINGS:
        try:
            os.close(os.open(path, os.O_WRONLY))  # opened only; nothing is written
        except OSError:
            continue
        return f"{path} can be written to"
    return ""


def _variables() -> str:
    others = (set(os.environ) | _variables_of_the_first()) - _ALLOWED_VARIABLES
    return f"environment variable {', '.join(sorted(others))}" if others else ""


def _variables_of_the_first() -> set[str]:
    """Of the first process, which was started outside; none where it cannot be looked at."""
    try:
        entries = Path("/proc/1/environ").read_bytes().split(b"\0")
    except PermissionError:
        return set()
    return {entry.partition(b"=")[0].decode(errors="replace") for entry in entries if entry}


def _descriptors() -> str:
    opened = []
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - names only
        path = Path("/proc/self/fd") / name
        if int(name) > 2 and path.is_symlink():  # the listing's own is closed by now
            opened.append(name)
    return f"inherited descriptor {', '.join(opened)}" if opened else ""


def _privileges() -> str:
    status = dict(
        line.split(":\t", 1) for line in Path("/proc/self/status").read_text().splitlines()
    )
    if int(status["CapEff"], 16) or int(status["CapBnd"], 16):
        return "capabilities are left"
    none_to_gain = ctypes.CDLL(None).prctl(_PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1
    return "" if none_to_gain else "new privileges can be gained"


def _nested_namespace() -> str:
    refused = ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWUSER) != 0
    return "" if refused else "another user namespace can be made"


def _calls() -> str:
    """Calls that nothing but a filter refuses to an ordinary user."""
    for name in ("AF_INET", "AF_INET6", "AF_NETLINK", "AF_VSOCK", "AF_PACKET", "AF_ALG"):
        try:
            socket.socket(getattr(socket, name), socket.SOCK_RAW).close()
        except OSError as error:
            if error.errno == errno.EAFNOSUPPORT:
                continue
        return f"a socket of {name} is not refused by the filter"
    libc = ctypes.CDLL(None, use_errno=True)
    for name, number, expected in _FILTERED:
        if libc.syscall(number, 0, 0, 0, 0, 0) != -1 or ctypes.get_errno() != expected:
            return f"{name} is not refused by the filter"
    if libc.ptrace(_PTRACE_ATTACH, 1, None, None) != -1 or ctypes.get_errno() != errno.EPERM:
        return "ptrace is not refused by the filter"
    return "" if _filters() else "no filter of system calls is set"


def _filters() -> bool:
    lines = Path("/proc/self/status").read_text().splitlines()
    return "Seccomp:\t2" in lines


def _forks() -> str:
    """Fork in a child, which alone is limited, until the kernel refuses."""
    child = os.fork()
    if child == 0:
        os._exit(_forks_beyond(_FEW_FORKS))
    _, status = os.waitpid(child, 0)
    return "" if os.waitstatus_to_exitcode(status) == 0 else "processes are not limited"


def _forks_beyond(limit: int) -> int:
    resource.setrlimit(resource.RLIMIT_NPROC, (limit, limit))
    started = []
    try:
        for _ in range(limit + 1):
            if (child := os.fork()) == 0:
                signal.pause()
            started.append(child)
    except BlockingIOError:
        return 0
    finally:
        for child in started:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    return 1


def _libraries() -> str:
    try:
        importlib.import_module("PIL.Image")
    except ImportError as error:
        return f"Pillow cannot be imported: {error}"
    return ""
