"""The few kinds of values that a pickle of masks is made of, none of them executable."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.evalmuse_track2.masks import MaskFileError, PackedMask
from benchmarks.evalmuse_track2.records import MAX_NAME

CONSTRUCTORS: frozenset[str] = frozenset(
    f"{package}.{name}"
    for package in ("numpy.core", "numpy._core")
    for name in ("multiarray._reconstruct", "multiarray.scalar", "numeric._frombuffer")
) | {"numpy.ndarray", "numpy.dtype"}
"""What may be named; everything else ends the reading."""
NUMBER_CODE = re.compile(r"b1|[iu][1248]|f[248]")
"""Types of numbers that are read."""
_SMALL = 64  # bytes; Python shares short ones, so they may be used again


@dataclass
class Mark:
    """Where a group of values begins on the stack."""


@dataclass
class Global:
    """The name of a constructor; never resolved."""

    name: str


@dataclass
class Blob:
    """Raw content that can be taken once, so that the memo keeps no array alive."""

    content: bytes | bytearray | None

    def take(self) -> bytes | bytearray:
        """The content, which is then gone from here.

        Raises:
            MaskFileError: it was taken before.
        """
        if self.content is None:
            raise MaskFileError("uses the content of one array twice")
        content, self.content = self.content, None
        return content


@dataclass
class Dtype:
    """A plain number type; its byte order is told after it was made."""

    code: str
    order: str = "="

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type as numpy has it; its code was checked against `NUMBER_CODE`."""
        return np.dtype(self.order + self.code)


@dataclass
class Array:
    """A mask; None until its content was read."""

    bits: PackedMask | None = None


def number(kind: Dtype, content: bytes) -> float:
    """A number from its raw content.

    Raises:
        MaskFileError: the content has another size.
    """
    if len(content) != kind.dtype.itemsize:
        raise MaskFileError("holds a number whose content does not fill it")
    return float(np.frombuffer(content, kind.dtype)[0])


def raw_content(content: bytes | bytearray) -> bytes | bytearray | Blob:
    """Bytes as they are where they are few, else as a `Blob`."""
    return content if len(content) <= _SMALL else Blob(content)


def short_text(text: str) -> str:
    """A text, if no name of an image, a field or a constructor is longer.

    Raises:
        MaskFileError: it is too long.
    """
    if len(text) > MAX_NAME:
        raise MaskFileError(f"holds a text of more than {MAX_NAME} characters")
    return text


def whole_number(value: int) -> int:
    """A whole number that a float can hold.

    Raises:
        OverflowError: it is too large.
    """
    float(value)
    return value
