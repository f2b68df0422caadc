"""Checks the form of a safetensors file without loading a tensor of it.

Eight bytes of length, a JSON header of that length, then the tensors' bytes: each byte belongs to
one tensor, as the format wants it. Stricter than its readers, never laxer.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from benchmarks.problems import Problem
from evaluator.submission.archives.content import Content
from evaluator.submission.archives.kinds import HEAD_BYTES, WEIGHTS, looks_like_pickle
from evaluator.submission.archives.limits import ArchiveLimits, mb

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
    found = (_problem(content, name, limits) for name in names)
    return tuple(problem for problem in found if problem is not None)


def _problem(content: Content, name: str, limits: ArchiveLimits) -> Problem | None:
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
        fault = str(error) if isinstance(error, ValueError) else "its header is nested too deep"
        pickled = looks_like_pickle(content.head(name, HEAD_BYTES))
        return Problem(
            "bad_weights",
            f"{name!r} is {'a pickle and ' if pickled else ''}not a safetensors file: {fault}.",
            "Save the weights with the safetensors library (safetensors.torch.save_file).",
            file=name,
        )
    return None


def check_header(header: bytes, n_data: int) -> None:
    """Check the JSON in front of the tensors.

    Args:
        header: as it stands in the file.
        n_data: bytes that follow it.

    Raises:
        ValueError: what is wrong, as the end of a sentence.
        RecursionError: it is nested too deep.
    """
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
