"""Looks around inside a box that holds no stranger's code, and prints what it finds.

One line per layer: name, `yes` or `no`, and a detail, separated by tabs. The same box that
will hold a submission is looked at from where the submission would look.

Standard library only, until the library folders are on the path: this file is also bound into
the box.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

_CLONE_NEWUSER = 0x10000000
_FEW_PROCESSES = 8
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
    """Print the findings; arguments are `--site FOLDER` pairs, then folders to be unseen."""
    site, hidden = _split(arguments)
    sys.path.extend(site)
    checks: dict[str, Callable[[], str]] = {
        "pid": _other_processes,
        "network": _interfaces,
        "filesystem": lambda: _seen(hidden) or _writable(),
        "kernel settings": _settings,
        "environment": _variables,
        "descriptors": _descriptors,
        "capabilities": _privileges,
        "user namespaces": _nested_namespace,
        "libraries": _libraries,
    }
    for name, fault_of in checks.items():
        fault = fault_of()
        sys.stdout.write(f"{name}\t{'no' if fault else 'yes'}\t{fault}\n")


def _split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    site, hidden = [], []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word == "--site":
            site.append(rest.pop(0))
        else:
            hidden.append(word)
    return site, hidden


def _other_processes() -> str:
    pids = [name for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 - names only
    return "" if len(pids) <= _FEW_PROCESSES else f"{len(pids)} processes are visible"


def _interfaces() -> str:
    lines = Path("/proc/net/dev").read_text().splitlines()[2:]
    others = {line.partition(":")[0].strip() for line in lines} - {"lo"}
    return f"network interface {', '.join(sorted(others))}" if others else ""


def _seen(hidden: Sequence[str]) -> str:
    return next((f"{path} is visible" for path in hidden if Path(path).exists()), "")


def _writable() -> str:
    for folder in ("/", "/usr", "/dev", "/runner"):
        try:
            (Path(folder) / ".assay-probe").touch()
        except OSError:
            continue
        return f"{folder} can be written to"
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
    if Path("/proc/1/environ").read_bytes():
        return "the environment outside can be read"
    others = set(os.environ) - _ALLOWED_VARIABLES
    return f"environment variable {', '.join(sorted(others))}" if others else ""


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
    return "" if status["NoNewPrivs"].strip() == "1" else "new privileges can be gained"


def _nested_namespace() -> str:
    refused = ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWUSER) != 0
    return "" if refused else "another user namespace can be made"


def _libraries() -> str:
    try:
        importlib.import_module("PIL.Image")
    except ImportError as error:
        return f"Pillow cannot be imported: {error}"
    return ""
