"""Kinds of files that are refused, told by their names and by their first bytes.

Weights come as safetensors only. Whatever is loaded runs in a box all the same; this is so that a
reader of a submission can tell what it will do from its sources.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from benchmarks.problems import Problem
from evaluator.submission.archives.names import shown

HEAD_BYTES = 64 * 1024
WEIGHTS = ".safetensors"


@dataclass(frozen=True)
class _Kind:
    """A kind of file that is not taken: what it is, why not, and what to send in its place."""

    what: str
    hint: str


_SAVE = "Save weights with the safetensors library and send the .safetensors file."
_PICKLE = _Kind("a pickle, which runs code of its own when it is loaded", _SAVE)
_TORCH = _Kind("a file of torch.save, a pickle, which runs code when it is loaded", _SAVE)
_JOBLIB = _Kind("a compressed pickle, which runs code of its own when it is loaded", _SAVE)
_OBJECTS = _Kind("an array of Python objects, a pickle, which runs code when it is loaded", _SAVE)
_WEIGHTS = _Kind("a file of weights in a form that is not taken", _SAVE)
_ARCHIVE = _Kind(
    "an archive inside the archive, whose content nobody would see",
    "Unpack it, and send what is in it as files; arrays as .npy or .safetensors.",
)
_MACHINE = _Kind(
    "machine code, which nobody can read", "Send Python sources; compiled extensions do not run."
)
_START = _Kind(
    "run by Python at every start, before the scorer",
    "Remove it, and do what it does in the scorer's constructor.",
)
_PATHS = _Kind(
    "either a pickle of weights or a list of code that Python runs at every start", _SAVE
)

_SUFFIXES: Mapping[str, _Kind] = {
    **dict.fromkeys((".pkl", ".pickle", ".p", ".dill", ".cloudpickle"), _PICKLE),
    **dict.fromkeys((".pt", ".ptc", ".ckpt", ".bin", ".mar"), _TORCH),
    **dict.fromkeys((".joblib",), _JOBLIB),
    **dict.fromkeys(
        (".h5", ".hdf5", ".keras", ".onnx", ".gguf", ".ggml", ".tflite", ".pb", ".msgpack"),
        _WEIGHTS,
    ),
    **dict.fromkeys(
        (".zip", ".npz", ".tar", ".tgz", ".7z", ".rar", ".xz", ".bz2", ".zst", ".whl", ".egg"),
        _ARCHIVE,
    ),
    **dict.fromkeys((".so", ".dll", ".dylib", ".pyd", ".exe", ".o", ".a"), _MACHINE),
    ".pth": _PATHS,
}
_FILES: Mapping[str, _Kind] = dict.fromkeys(("sitecustomize", "usercustomize"), _START)

_ARCHIVE_MAGIC = (
    b"PK\3\4",
    b"PK\5\6",
    b"BZh",
    b"\xfd7zXZ\0",
    b"7z\xbc\xaf\x27\x1c",
    b"Rar!\x1a\x07",
    b"\x28\xb5\x2f\xfd",
    b"\x04\x22\x4d\x18",
)
_MACHINE_MAGIC = (
    b"\x7fELF",
    b"\xfe\xed\xfa\xce",
    b"\xfe\xed\xfa\xcf",
    b"\xce\xfa\xed\xfe",
    b"\xcf\xfa\xed\xfe",
    b"\xca\xfe\xba\xbe",
    b"\xca\xfe\xba\xbf",
    b"\0asm",
    b"!<arch>\n",
)
_WEIGHTS_MAGIC = (b"\x89HDF\r\n\x1a\n", b"GGUF", b"PTMG")
# Old protocols of pickle begin like text; these are the beginnings that no text has.
_OLD_PICKLE = re.compile(
    rb"\(?(?:c(?:os|posix|nt|sys|builtins|__builtin__|copy_?reg|subprocess|runpy|numpy[\w.]*|"
    rb"torch[\w.]*|collections)\n\w+\n|[dl]p\d+\n)"
)
_OBJECT_FIELD = re.compile(rb"'[<>|=]?O\d*'")


def name_kind(name: str) -> Problem | None:
    """Why a file of that name is not taken, if it is not."""
    path = PurePosixPath(name.lower())
    kind = _FILES.get(path.stem if path.suffix == ".py" else "") or _SUFFIXES.get(path.suffix)
    if kind is None and ".so." in path.name:
        kind = _MACHINE
    if kind is None and any(part in _FILES for part in path.parts):
        kind = _START
    return _problem(name, kind)


def content_kind(name: str, head: bytes) -> Problem | None:
    """Why a file that begins so is not taken, if it is not.

    Args:
        name: of the file; the header of a safetensors file is checked elsewhere.
        head: its first bytes, `HEAD_BYTES` of them.
    """
    return None if name.lower().endswith(WEIGHTS) else _problem(name, _kind(head))


def looks_like_pickle(head: bytes) -> bool:
    """Whether bytes begin as a pickle does, or a file of torch.save."""
    return _kind(head) in (_PICKLE, _TORCH, _JOBLIB)


def _kind(head: bytes) -> _Kind | None:
    return next(_kinds(head), None)


def _kinds(head: bytes) -> Iterator[_Kind]:
    if head[:1] == b"\x80" and head[1:2] in (b"\2", b"\3", b"\4", b"\5"):
        yield _PICKLE
    if _OLD_PICKLE.match(head):
        yield _PICKLE
    if head.startswith(b"PK\3\4") and b"data.pkl" in head[:4096]:
        yield _TORCH
    if head.startswith(_ARCHIVE_MAGIC) or head[257:262] == b"ustar":
        yield _ARCHIVE
    if head.startswith(_MACHINE_MAGIC) or (head.startswith(b"MZ") and b"\0" in head[:64]):
        yield _MACHINE
    if head.startswith(_WEIGHTS_MAGIC):
        yield _WEIGHTS
    if head.startswith(b"\x93NUMPY") and _OBJECT_FIELD.search(head):
        yield _OBJECTS
    yield from _compressed_kinds(head)


def _compressed_kinds(head: bytes) -> Iterator[_Kind]:
    """A compressed text, as tokenizers have them, is taken; a pickle or an archive is not."""
    gzipped = head.startswith(b"\x1f\x8b")
    if not (gzipped or head[:2] in (b"\x78\x01", b"\x78\x9c", b"\x78\xda")):
        return
    try:
        inside = zlib.decompressobj(zlib.MAX_WBITS | (16 if gzipped else 0)).decompress(head, 4096)
    except zlib.error:
        return
    within = None if inside[:2] == head[:2] else _kind(inside)
    if within in (_PICKLE, _TORCH):
        yield _JOBLIB
    elif within is not None or inside[:2] == head[:2]:
        yield _ARCHIVE


def _problem(name: str, kind: _Kind | None) -> Problem | None:
    if kind is None:
        return None
    return Problem("refused_file", f"{shown(name)!r} is {kind.what}.", kind.hint, file=shown(name))
