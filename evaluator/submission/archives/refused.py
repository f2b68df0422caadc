"""Kinds of files that are refused, told by their names and first bytes, and the form of weights.

Weights come as safetensors only. Whatever is loaded runs in a sandbox all the same; this is so that
a reader of a submission can tell what it will do from its sources. A safetensors file is eight bytes
of length, a JSON header of that length, then the tensors' bytes: each byte belongs to one tensor, as
the format wants it; no tensor is loaded. Stricter than its readers, never laxer.
"""

from __future__ import annotations

import json
import math
import re
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, NoReturn

from benchmarks.parsing import syntax_fault
from benchmarks.problems import Problem
from evaluator.submission.archives.content import Content
from evaluator.submission.archives.entries import ArchiveLimits, mb, printable

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
_NAMED_TORCH = _Kind(
    "named like a file of torch.save, a pickle, which runs code when it is loaded", _SAVE
)
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
    **dict.fromkeys((".pt", ".ptc", ".ckpt", ".bin", ".mar"), _NAMED_TORCH),
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
    return _refusal(name, kind)


def content_kind(name: str, head: bytes) -> Problem | None:
    """Why a file that begins so is not taken, if it is not."""
    return None if name.lower().endswith(WEIGHTS) else _refusal(name, _kind(head))


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


def _refusal(name: str, kind: _Kind | None) -> Problem | None:
    if kind is None:
        return None
    return Problem(
        "refused_file", f"{printable(name)!r} is {kind.what}.", kind.hint, file=printable(name)
    )


_BITS: Mapping[str, int] = {
    **dict.fromkeys(("BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E8M0"), 8),
    **dict.fromkeys(("F8_E4M3FNUZ", "F8_E5M2FNUZ"), 8),
    **dict.fromkeys(("U16", "I16", "F16", "BF16"), 16),
    **dict.fromkeys(("U32", "I32", "F32"), 32),
    **dict.fromkeys(("U64", "I64", "F64", "C64"), 64),
    **dict.fromkeys(("F6_E2M3", "F6_E3M2"), 6),
    "F4": 4,
}
_LENGTH = struct.Struct("<Q")
_METADATA = "__metadata__"
_KEYS = {"dtype", "shape", "data_offsets"}
_MOST = 1 << 63


def weights_problems(content: Content, limits: ArchiveLimits) -> tuple[Problem, ...]:
    """What is wrong with the safetensors files of a submission, at most one problem a file."""
    names = sorted(name for name in content.files if name.lower().endswith(WEIGHTS))
    found = (_weights_problem(content, name, limits) for name in names)
    return tuple(problem for problem in found if problem is not None)


def _weights_problem(content: Content, name: str, limits: ArchiveLimits) -> Problem | None:
    n_bytes = content.files[name].n_bytes
    head = content.head(name, _LENGTH.size)
    try:
        if len(head) < _LENGTH.size:
            raise ValueError("it is too short for a header")
        (length,) = _LENGTH.unpack(head)
        if length > n_bytes - _LENGTH.size:
            raise ValueError("its header is longer than the file")
        if length > limits.weights_header_bytes:
            raise ValueError(
                f"its header has {mb(length)}, and {mb(limits.weights_header_bytes)} is the most"
            )
        header = content.head(name, _LENGTH.size + length)[_LENGTH.size :]
        check_header(header, n_bytes - _LENGTH.size - length)
    except (ValueError, RecursionError) as error:
        fault = syntax_fault(error)
        pickled = looks_like_pickle(content.head(name, HEAD_BYTES))
        return Problem(
            "bad_weights",
            f"{name!r} is {'a pickle and ' if pickled else ''}not a safetensors file: {fault}.",
            "Save the weights with the safetensors library (safetensors.torch.save_file).",
            file=name,
        )
    return None


def check_header(header: bytes, n_data: int) -> None:
    """Check the JSON in front of the tensors."""
    if not header.startswith(b"{"):
        raise ValueError("its header does not begin with {")
    tensors = _json(header)
    if not isinstance(tensors, dict):
        raise ValueError("its header is no JSON object")  # noqa: TRY004 (of the file, not of a caller)
    _check_metadata(tensors.pop(_METADATA, {}))
    spans = sorted(_span(name, tensor) for name, tensor in tensors.items())
    end = 0
    for begin, after, name in spans:
        if begin != end:
            what = "shares bytes with the one before" if begin < end else "leaves bytes unused"
            raise ValueError(f"the tensor {name[:100]!r} {what}")
        end = after
    if end != n_data:
        raise ValueError(f"its tensors have {end} bytes and {n_data} follow the header")


def _json(header: bytes) -> Any:
    try:
        text = header.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError("its header is not UTF-8") from error
    try:
        return json.loads(text, object_pairs_hook=_without_doubles, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise ValueError("its header is not JSON") from error


def _without_doubles(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("its header names something twice")
    return found


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"its header holds {constant}")


def _check_metadata(metadata: Any) -> None:
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise ValueError(f"{_METADATA} in its header is not a list of texts")


def _span(name: str, tensor: Any) -> tuple[int, int, str]:
    """Where a tensor begins and ends behind the header."""
    shown = repr(name[:100])
    if not isinstance(tensor, dict) or tensor.keys() != _KEYS:
        raise ValueError(f"the tensor {shown} has other keys than {', '.join(sorted(_KEYS))}")
    dtype, shape, offsets = tensor["dtype"], tensor["shape"], tensor["data_offsets"]
    bits = _BITS.get(dtype) if isinstance(dtype, str) else None
    if bits is None:
        raise ValueError(f"the tensor {shown} has an unknown type of number")
    if not _are_sizes(shape) or not _are_sizes(offsets) or len(offsets) != 2:
        raise ValueError(f"the tensor {shown} has a shape or offsets that are no plain numbers")
    begin, after = offsets
    if math.prod(shape) * bits != (after - begin) * 8:
        raise ValueError(f"the tensor {shown} has another number of bytes than its shape needs")
    return begin, after, name


def _are_sizes(values: Any) -> bool:
    return (
        isinstance(values, list)
        and len(values) <= 64
        and all(type(v) is int and 0 <= v < _MOST for v in values)
    )
