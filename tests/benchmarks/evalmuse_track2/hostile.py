"""Pickles as an attacker writes them, and harmless ones as the organisers' example does."""

from __future__ import annotations

import io
import os
import pickle
import pickletools
import random
import zipfile
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Calls:
    """Pickles as a call of a function."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self._call = (function, arguments)

    def __reduce__(self) -> Any:
        return self._call


def entry(mask: NDArray[Any] | object, score: object = 3.0) -> dict[str, object]:
    return {"pred_area": mask, "score": score}


def pickled(images: object, protocol: int = 4) -> bytes:
    return pickle.dumps(images, protocol=protocol)


def npz(**arrays: object) -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def zipped(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return buffer.getvalue()


def npy_header(descr: str, shape: str, fortran: str = "False") -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def executing(marker: str) -> dict[str, bytes]:
    """Pickles that would create the file `marker` if any of them were run."""
    command = f"touch {marker}"
    calls = {
        "os.system": Calls(os.system, command),
        "eval": Calls(eval, f"open({marker!r}, 'w')"),
        "exec": Calls(exec, f"open({marker!r}, 'w')"),
        "open": Calls(open, marker, "w"),
        "getattr": Calls(getattr, os, "system"),
        "inner": entry(Calls(os.system, command)),
        "score": entry(np.zeros((2, 2)), Calls(os.system, command)),
        "objects": entry(np.array([[Calls(os.system, command)]], dtype=object)),
        "numpy": entry(Calls(np.save, marker, 1)),
    }
    contents = {name: pickled({"a": call}) for name, call in calls.items() if name != "getattr"}
    # Written by hand: a module with dots in its name, and instructions of old protocols.
    quoted = command.encode()
    contents["dotted"] = b"\x80\x04\x8c\x05numpy\x8c\x0ef2py.os.system\x93\x8c" + (
        bytes([len(quoted)]) + quoted + b"\x85R."
    )
    contents["inst"] = b"\x80\x02(S'" + quoted + b"'\nios\nsystem\n."
    contents["obj"] = b"\x80\x02(cos\nsystem\nS'" + quoted + b"'\no."
    contents["persistent"] = b"\x80\x04\x8c\x01xQ."
    contents["extension"] = b"\x80\x04\x82\x01."
    return contents


def bombs() -> dict[str, bytes]:
    """Pickles that ask for more memory or time than they have content."""
    array = pickled({"a": entry(np.zeros((4, 4), np.uint8))})
    assert b"K\x04K\x04\x86" in array
    huge = array.replace(b"K\x04K\x04\x86", b"J\xff\xff\xff\x7fJ\xff\xff\xff\x7f\x86")
    return {
        "huge shape": huge,
        "huge reconstruct": pickled(
            {"a": entry(Calls(_reconstruct(), np.ndarray, (1 << 40,), b"b"))}
        ),
        "huge bytes": b"\x80\x04\x8e" + (1 << 60).to_bytes(8, "little") + b"x.",
        "huge bytearray": b"\x80\x05\x96" + (1 << 60).to_bytes(8, "little") + b"x.",
        "huge memo": b"\x80\x04}r\xff\xff\xff\x7f0.",
        "many instructions": b"\x80\x04" + b"N0" * 400_000 + b".",
        "deep": b"\x80\x04" + b")" + b"\x85" * 8_000 + b".",
        "deep dictionaries": b"\x80\x04" + b"}\x8c\x01a" * 3_000 + b"}" + b"s" * 3_000 + b".",
        "itself": b"\x80\x04}\x94\x8c\x01ah\x00s.",
        "long number": b"\x80\x04\x8b" + (100_000).to_bytes(4, "little") + b"\x7f" * 100_000 + b".",
        "long text": b"\x80\x04X" + (1 << 20).to_bytes(4, "little") + b"a" * (1 << 20) + b".",
    }


def broken() -> dict[str, bytes]:
    """Contents that are no complete pickle of masks."""
    whole = pickled({"a": entry(np.zeros((4, 4), np.uint8))})
    return {
        "cut short": whole[:-40],
        "no end": whole[:-1],
        "only a head": b"\x80\x04",
        "unknown instruction": b"\x80\x04\xff.",
        "empty stack": b"\x80\x040.",
        "no mark": b"\x80\x04t.",
        "not in the memo": b"\x80\x04h\x07.",
        "a list": pickled([1]),
        "a number": pickled(3),
        "no score": pickled({"a": {"pred_area": np.zeros((4, 4))}}),
        "a text as score": pickled({"a": entry(np.zeros((4, 4)), "3")}),
        "a truth as score": pickled({"a": entry(np.zeros((4, 4)), score=True)}),
        "an infinite score": pickled({"a": entry(np.zeros((4, 4)), float("inf"))}),
        "a list as mask": pickled({"a": entry([[0, 1]])}),
        "no mask": pickled({"a": entry(None)}),
        "three axes": pickled({"a": entry(np.zeros((1, 4, 4)))}),
        "one axis": pickled({"a": entry(np.zeros(4))}),
        "an empty mask": pickled({"a": entry(np.zeros((0, 4)))}),
        "a long side": pickled({"a": entry(np.zeros((1, 2049), np.uint8))}),
        "complex": pickled({"a": entry(np.zeros((4, 4), complex))}),
        "texts": pickled({"a": entry(np.full((4, 4), "a"))}),
        "records": pickled({"a": entry(np.zeros((4, 4), [("x", "u1")]))}),
        "not finite": pickled({"a": entry(np.full((4, 4), np.nan))}),
        "numbers as names": pickled({1: entry(np.zeros((4, 4)))}),
        "protocol 2": pickled({"a": entry(np.zeros((4, 4)))}, 2),
        "content does not fill": whole.replace(b"K\x04K\x04\x86", b"K\x04K\x03\x86"),
    }


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


def names_of(content: bytes) -> set[str]:
    """The instructions of a pickle, to see that a test holds what it says."""
    return {operation.name for operation, _, _ in pickletools.genops(content)}


def _reconstruct() -> Any:
    return np.zeros(1).__reduce__()[0]
