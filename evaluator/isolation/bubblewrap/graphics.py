"""Device nodes of a box for a graphics card. UNTRIED: no card was to be had."""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.errors import PlatformError

CPU = "cpu"
_DEVICE = re.compile(r"cuda(?::(\d{1,3}))?")
_SHARED = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools")
_OPTIONAL = {"nvidia-uvm-tools"}


def nodes(device: str, dev: Path = Path("/dev")) -> tuple[Path, ...]:
    """The nodes of one card, and those that every card needs.

    Args:
        device: `cpu`, `cuda` or `cuda:N`.
        dev: folder of devices.

    Raises:
        PlatformError: `device_unavailable`, there is no such device on this machine.
    """
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


def inside(device: str) -> str:
    """What the only card in a box is called there, whatever its number is outside."""
    return CPU if device == CPU else "cuda"


def _unavailable(device: str, message: str) -> PlatformError:
    return PlatformError(
        "device_unavailable",
        message,
        f"Score on the CPU, or load the driver of the card (nvidia-smi) for {device}.",
    )
