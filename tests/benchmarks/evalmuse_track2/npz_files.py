"""Archives of arrays as numpy writes them, and as an attacker does."""

from __future__ import annotations

import io
import os
import random
import zipfile
from pathlib import Path
from typing import Any

import numpy as np


class Calls:
    """An object that runs a command when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self._call = (os.system, (f"touch {marker}",))

    def __reduce__(self) -> Any:
        return self._call


def npz(**arrays: object) -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def npy_header(descr: str, shape: str) -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def zipped(members: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return buffer.getvalue()


def mutated(content: bytes, rng: random.Random) -> bytes:
    """The content with a few bytes changed, removed or added."""
    changed = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(changed))
        match rng.choice("cccra"):
            case "c":
                changed[at] = rng.randrange(256)
            case "r":
                del changed[at : at + rng.randint(1, 9)]
            case _:
                changed[at:at] = rng.randbytes(rng.randint(1, 4))
    return bytes(changed)
