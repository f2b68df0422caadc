"""Embeddings kept on disk, so that a second run on the same images encodes nothing.

    FOLDER/<fingerprint of the scorer>/<its way of preparing images>/<hash>.safetensors

A row is found by the SHA-256 of the encoded image or of the text. Files hold many rows each, are
written whole or not at all, and never change, so any number of processes may write to one folder
without a lock; what others write while a cache is open is seen when it is next opened. Where two of
them kept the same text, the row of the first pack by name counts from then on.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from benchmarks.errors import SubmitterError
from evaluator.scoring.images import Remark

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
    """One embedding."""

    vector: NDArray[np.float32]  # shape (d,), float32
    remarks: tuple[Remark, ...] = ()  # of the image it was made from (`decoding.Decoded`)


@dataclass(frozen=True, slots=True)
class About:
    """Whose embeddings a pack holds."""

    fingerprint: str  # of the scorer: code, checkpoint, precision, kind of device
    preprocessing: str  # how its images are prepared
    scorer: str = ""  # its name, for people


class DamagedPackError(Exception):
    """A file that may not be used."""


@dataclass(frozen=True)
class Pack:
    """An open pack."""

    keys: Mapping[Kind, NDArray[np.bytes_]]  # by kind, digests in ascending order, shape (n,)
    about: About  # whose rows these are
    _vectors: Mapping[Kind, Any] = field(repr=False)
    _remarks: Mapping[int, tuple[Remark, ...]] = field(repr=False)

    def row(self, kind: Kind, place: int) -> Row:
        """One row, read from the file."""
        vector = np.array(self._vectors[kind][place], dtype=np.float32)
        return Row(vector, self._remarks.get(place, ()) if kind == "image" else ())


def write_pack(folder: Path, rows: Mapping[Kind, Mapping[bytes, Row]], about: About) -> Path:
    """Write rows as one file."""
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
    """Open a pack, every byte of it checked."""
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


_LOG = logging.getLogger(__name__)
_FINGERPRINT = re.compile(r"[0-9a-f]{16,128}")
_ABANDONED_S = 24 * 3600.0


def digest_of_text(text: str) -> bytes:
    """The key of a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


class EmbeddingCache:
    """The embeddings of one scorer. `find` may be called by several threads at once."""

    def __init__(
        self,
        folder: Path,
        about: About,
        *,
        rows_per_pack: int = 1024,
        every_s: float = 120.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not _FINGERPRINT.fullmatch(about.fingerprint):
            raise SubmitterError("unknown_embeddings", f"{about.fingerprint!r} is no fingerprint.")
        prepared = hashlib.sha256(about.preprocessing.encode()).hexdigest()[:16]
        self._folder = folder / about.fingerprint / prepared
        self._about = about
        self._rows_per_pack = rows_per_pack
        self._every_s = every_s
        self._clock = clock
        self._written = clock()
        self._waiting: dict[tuple[Kind, bytes], Row] = {}
        packs = [_used(path, pack) for path, pack in _packs(self._folder) if pack.about == about]
        self._index = {kind: _Index(kind, packs) for kind in KINDS}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.flush()

    def find(self, kind: Kind, digest: bytes) -> Row | None:
        """The embedding of an image or text, if it is kept."""
        return self._waiting.get((kind, digest)) or self._index[kind].find(digest)

    def add(
        self,
        kind: Kind,
        digest: bytes,
        vector: NDArray[np.float32],
        remarks: tuple[Remark, ...] = (),
    ) -> None:
        """Keep an embedding, unless it holds what is no number: that may pass."""
        if np.isfinite(vector).all():
            self._waiting[kind, digest] = Row(np.array(vector, dtype=np.float32), remarks)

    def flush_if_due(self) -> None:
        """Write what waits if it is much, or has waited for long."""
        due = self._clock() - self._written >= self._every_s
        if due or len(self._waiting) >= self._rows_per_pack:
            self.flush()

    def flush(self) -> None:
        """Write what waits. A disk that takes no more costs time in later runs, but no score."""
        waiting, self._waiting = self._waiting, {}
        self._written = self._clock()
        if not waiting:
            return
        rows: dict[Kind, dict[bytes, Row]] = {kind: {} for kind in KINDS}
        for (kind, digest), row in waiting.items():
            rows[kind][digest] = row
        try:
            write_pack(self._folder, rows, self._about)
        except OSError as error:
            _LOG.warning("%d embeddings were not kept: %s", len(waiting), error)


class _Index:
    """Where the rows of one kind lie, over all packs."""

    def __init__(self, kind: Kind, packs: list[Pack]) -> None:
        self._kind = kind
        self._packs = [pack for pack in packs if kind in pack.keys]
        sizes = [pack.keys[kind].size for pack in self._packs]
        keys = np.concatenate([np.empty(0, DIGEST), *(pack.keys[kind] for pack in self._packs)])
        order = np.argsort(keys, kind="stable")
        self._keys = keys[order]
        self._pack = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)[order]
        self._place = np.concatenate(
            [np.empty(0, np.int32), *(np.arange(size, dtype=np.int32) for size in sizes)]
        )[order]

    @property
    def n_rows(self) -> int:
        return int(self._keys.size)

    def find(self, digest: bytes) -> Row | None:
        wanted = np.array(digest, dtype=DIGEST)
        at = int(np.searchsorted(self._keys, wanted))
        if at == self._keys.size or self._keys[at] != wanted:
            return None
        pack = self._packs[int(self._pack[at])]
        return pack.row(self._kind, int(self._place[at]))


def _packs(folder: Path) -> Iterator[tuple[Path, Pack]]:
    """All packs that can be trusted; the others are removed."""
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        try:
            yield path, open_pack(path)
        except DamagedPackError as error:
            _LOG.warning("Removed the pack of embeddings %s: %s", path.name, error)
            path.unlink(missing_ok=True)
        except FileNotFoundError:
            continue
    for path in folder.glob(f"*{UNFINISHED}"):
        _remove_abandoned(path)


def _used(path: Path, pack: Pack) -> Pack:
    """Note that a pack was used now: what is used longest ago goes first where there is too much."""
    with suppress(OSError):
        os.utime(path)
    return pack


def _remove_abandoned(path: Path) -> None:
    try:
        if time.time() - path.stat().st_mtime > _ABANDONED_S:
            path.unlink()
    except FileNotFoundError:
        return


def trim(folder: Path, most_bytes: int) -> int:
    """Remove the packs that were used longest ago, until all together are within a bound.

    A run that has one open reads on: its file goes when it is closed.
    """
    found: list[tuple[float, int, Path]] = []
    for path in folder.glob(f"*/*/*{SUFFIX}"):
        with suppress(FileNotFoundError):
            told = path.stat()
            found.append((told.st_mtime, told.st_size, path))
    over, freed = sum(size for _, size, _ in found) - most_bytes, 0
    for _, size, path in sorted(found):
        if freed >= over:
            break
        with suppress(OSError):
            path.unlink()
            freed += size
    return freed
