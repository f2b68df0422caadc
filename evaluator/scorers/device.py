"""Availability of the device that an operator names."""

from __future__ import annotations

from benchmarks.errors import SubmitterError


def check_device(name: str) -> None:
    """Refuse a device that torch cannot use here, before anything is loaded onto it.

    Raises:
        SubmitterError: `unknown_device`, `device_missing`.
    """
    if name == "cpu":
        return
    import torch  # noqa: PLC0415  # rows are listed without it

    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise SubmitterError(
            "unknown_device", f"{name!r} is no device of torch.", "Try cpu, cuda or cuda:1."
        ) from error
    if device.type == "cpu":
        return
    count = _count(device.type)
    if (device.index or 0) >= count:
        there = f"{count} of {device.type}" if count else f"no {device.type}"
        raise SubmitterError(
            "device_missing", f"There is no device {name!r}: torch finds {there}.", "Try cpu."
        )


def _count(kind: str) -> int:
    import torch  # noqa: PLC0415

    module = getattr(torch, kind, None)
    if module is None or not hasattr(module, "is_available") or not module.is_available():
        return 0
    return int(module.device_count())
