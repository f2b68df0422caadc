"""Device of a model in this process: whether it is there, settings, memory, and its errors.

torch is imported by whoever loads a model; without one there is nothing to set.
"""

from __future__ import annotations

import gc
import os
import resource
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType
from typing import Any

from PIL import Image

from benchmarks.errors import SubmitterError


def check_device(name: str) -> None:
    """Refuse a device that torch cannot use here, before anything is loaded onto it."""
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


PACKAGES = (
    "torch",
    "torchvision",
    "transformers",
    "tokenizers",
    "open_clip_torch",
    "pillow",
    "numpy",
)
"""Whose version can change a score."""

_KIB = 1024
_LONGEST_PROBLEM = 300
_OUT_OF_MEMORY = (
    "out of memory",
    "can't allocate memory",
    "cannot allocate memory",
    "not enough memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
)
_BROKEN_DEVICE = ("CUDA error", "device-side assert", "CUDNN_STATUS_EXECUTION_FAILED")


def versions() -> dict[str, str]:
    """Version of each installed package of `PACKAGES`."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


@contextmanager
def repeatable() -> Iterator[None]:
    """Have torch choose the same algorithms each time, and full precision; undone at the end."""
    import torch  # noqa: PLC0415  # only where a model runs

    # Read by cuBLAS when it is first used.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    cudnn, matmul = torch.backends.cudnn, torch.backends.cuda.matmul
    before = (
        torch.get_deterministic_debug_mode(),
        cudnn.benchmark,
        cudnn.allow_tf32,
        matmul.allow_tf32,
    )
    try:
        torch.set_deterministic_debug_mode("warn")
        cudnn.benchmark, cudnn.allow_tf32, matmul.allow_tf32 = False, False, False
        yield
    finally:
        mode, *rest = before
        torch.set_deterministic_debug_mode(mode)
        cudnn.benchmark, cudnn.allow_tf32, matmul.allow_tf32 = rest


@contextmanager
def without_gradients() -> Iterator[None]:
    """Inference mode, if a model is there at all."""
    torch = _torch()
    if torch is None:
        yield
        return
    with torch.inference_mode():
        yield


def peak_memory_bytes(device: str) -> int:
    """The most that was held so far: on a CUDA device by torch, else in RAM by this process."""
    torch = _torch()
    if torch is not None and _is_cuda(device):
        return int(torch.cuda.max_memory_allocated(device))
    return peak_rss_bytes()


def peak_rss_bytes() -> int:
    """The most RAM this process held; not what the one held that it was forked from."""
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * _KIB
    unit = 1 if sys.platform == "darwin" else _KIB
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def forget_peak(device: str) -> None:
    """Count the peak of a CUDA device from now on."""
    torch = _torch()
    if torch is not None and _is_cuda(device):
        torch.cuda.reset_peak_memory_stats(device)


def free_memory(device: str) -> None:
    """Give back what torch holds without need."""
    gc.collect()
    torch = _torch()
    if torch is not None and _is_cuda(device):
        torch.cuda.empty_cache()


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error means that there is too little memory, on whichever side."""
    if isinstance(error, MemoryError):
        return True
    torch = _torch()
    if torch is not None and isinstance(error, torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(said in str(error) for said in _OUT_OF_MEMORY)


def is_broken_device(error: BaseException) -> bool:
    """Whether nothing can be computed in this process after such an error."""
    return isinstance(error, RuntimeError) and any(said in str(error) for said in _BROKEN_DEVICE)


def device_description(device: str) -> dict[str, str]:
    """Device and number of threads, for the record."""
    torch = _torch()
    if torch is None:
        return {"device": device}
    name = torch.cuda.get_device_name(device) if _is_cuda(device) else ""
    return {
        "device": f"{device} ({name})" if name else device,
        "threads": str(torch.get_num_threads()),
    }


def held_bytes(prepared: Any) -> int:
    """About how much memory a prepared image holds."""
    if isinstance(prepared, Image.Image):
        return prepared.width * prepared.height * 4  # Pillow pads three bytes to four
    if hasattr(prepared, "nbytes"):  # arrays of numpy and torch
        return int(prepared.nbytes)
    if isinstance(prepared, Mapping):
        return sum(held_bytes(value) for value in prepared.values())
    if isinstance(prepared, Sequence) and not isinstance(prepared, (str, bytes)):
        return sum(held_bytes(value) for value in prepared)
    if hasattr(prepared, "__dict__"):
        return sum(held_bytes(value) for value in vars(prepared).values())
    return sys.getsizeof(prepared)


def in_one_line(error: BaseException) -> str:
    """An error of a model's code, short enough to stand beside a pair."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:_LONGEST_PROBLEM]


def _torch() -> ModuleType | None:
    return sys.modules.get("torch")


def _is_cuda(device: str) -> bool:
    return device.split(":", maxsplit=1)[0] == "cuda"
