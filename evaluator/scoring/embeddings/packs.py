"""Files of embeddings: many rows each, written whole or not at all, named by the hash of their bytes.

Writers need no lock: nobody ever changes a file, and equal files have equal names. Rows are read
from the mapped file one by one, so that memory does not grow with what is kept.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from evaluator.scoring.images.decoding import Remark

Kind = Literal["image", "text"]
KINDS: tuple[Kind, ...] = ("image", "text")
SUFFIX = ".safetensors"
UNFINISHED = ".tmp"
DIGEST = np.dtype("S32")
"""SHA-256. Zeros at the end of such a string do not count, which tells no two digests apart less."""

_META = "assay"  # one key only: safetensors writes several in any order
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Row:
    """One embedding.

    Attributes:
        vector: shape (d,), float32.
        remarks: of the image it was made from (`decoding.Decoded`).
    """

    vector: NDArray[np.float32]
    remarks: tuple[Remark, ...] = ()


@dataclass(frozen=True, slots=True)
class About:
    """Whose embeddings a pack holds.

    Attributes:
        fingerprint: of the scorer: code, checkpoint, precision, kind of device.
        preprocessing: how its images are prepared.
        scorer: its name, for people.
    """

    fingerprint: str
    preprocessing: str
    scorer: str = ""


class DamagedPackError(Exception):
    """A file that may not be used."""


@dataclass(frozen=True)
class Pack:
    """An open pack.

    Attributes:
        keys: by kind, digests in ascending order, shape (n,).
        about: whose rows these are.
    """

    keys: Mapping[Kind, NDArray[np.bytes_]]
    about: About
    _vectors: Mapping[Kind, Any] = field(repr=False)
    _remarks: Mapping[int, tuple[Remark, ...]] = field(repr=False)

    def row(self, kind: Kind, place: int) -> Row:
        """One row, read from the file."""
        vector = np.array(self._vectors[kind][place], dtype=np.float32)
        return Row(vector, self._remarks.get(place, ()) if kind == "image" else ())


def write_pack(folder: Path, rows: Mapping[Kind, Mapping[bytes, Row]], about: About) -> Path:
    """Write rows as one file.

    Args:
        folder: made if it is not there.
        rows: by kind and digest; at least one.
        about: whose rows these are.
    """
    tensors: dict[str, NDArray[Any]] = {}
    remarks: dict[int, tuple[Remark, ...]] = {}
    for kind, of_kind in rows.items():
        if not of_kind:
            continue
        digests = sorted(of_kind)
        vectors = np.stack([of_kind[digest].vector for digest in digests])
        tensors[f"{kind}.vectors"] = vectors.astype(np.float32, copy=False)
        tensors[f"{kind}.keys"] = np.frombuffer(b"".join(digests), np.uint8).reshape(-1, 32)
        if kind == "image":
            noted = ((place, of_kind[digest].remarks) for place, digest in enumerate(digests))
            remarks = {place: said for place, said in noted if said}
    meta = {
        "format": _FORMAT,
        "fingerprint": about.fingerprint,
        "preprocessing": about.preprocessing,
        "scorer": about.scorer,
        "remarks": [[place, *said] for place, said in remarks.items()],
    }
    return _put(folder, save(tensors, metadata={_META: json.dumps(meta)}))


def _put(folder: Path, data: bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=folder, suffix=UNFINISHED, delete=False) as file:
        file.write(data)
    path = folder / f"{hashlib.sha256(data).hexdigest()}{SUFFIX}"
    Path(file.name).replace(path)
    return path


def open_pack(path: Path) -> Pack:
    """Open a pack, every byte of it checked.

    Raises:
        DamagedPackError: not finished, altered, or not a pack.
        FileNotFoundError: it was removed meanwhile.
    """
    with path.open("rb") as file:
        if path.name != f"{hashlib.file_digest(file, 'sha256').hexdigest()}{SUFFIX}":
            raise DamagedPackError("it is damaged or was not finished")
    try:
        handle = safe_open(path, framework="np")
        meta = json.loads((handle.metadata() or {})[_META])
        if meta["format"] != _FORMAT:
            raise DamagedPackError(f"its format is {meta['format']}, not {_FORMAT}")
        there = set(handle.keys())
        kinds = [kind for kind in KINDS if f"{kind}.keys" in there]
        return Pack(
            keys={kind: handle.get_tensor(f"{kind}.keys").view(DIGEST).ravel() for kind in kinds},
            about=About(meta["fingerprint"], meta["preprocessing"], meta["scorer"]),
            _vectors={kind: handle.get_slice(f"{kind}.vectors") for kind in kinds},
            _remarks={
                place: tuple((code, message) for code, message in said)
                for place, *said in meta["remarks"]
            },
        )
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise DamagedPackError(f"it is not a pack ({error})") from error
