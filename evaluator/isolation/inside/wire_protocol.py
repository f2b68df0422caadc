"""Wire protocol between the supervisor and the box: pure encoding and decoding, used by both ends.

Every frame starts with one header: magic, sequence number, and one word whose meaning depends on
the magic. What comes *from* the box has a size that is known before a byte of it is read: a bare
header, a header and exactly n float64, or a header and at most 2048 bytes of text.

    box -> supervisor   HI01    word 0: set up, nothing untrusted has run yet
    supervisor -> box   GO01    word = length; body: limits
    box -> supervisor   RD01    word = bits of `Capability`: imported and constructed
    supervisor -> box   SC01    word = length; body: images, pairs
                        EL01    word = length; body: images (or "the ones before"), items
                        CM01    word = length; body: images, comparisons
                        RW01    word = length; body: number of outputs, images, pairs
    box -> supervisor   RE01    word = n, then n float64 (NaN: no score there)
                        ER01    word = kind << 16 | length, then text

Only the standard library: this file is also bound into the box.
"""

from __future__ import annotations

import math
import struct
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum, IntFlag

HEADER = struct.Struct("<4sII")
MAX_REQUEST = 64 * 1024 * 1024
MAX_ERROR_TEXT = 2048
SAME_IMAGES = 0xFFFF_FFFF
"""Stands for the number of images where a request is about the images of the one before."""

HI = b"HI01"
GO = b"GO01"
READY = b"RD01"
SCORE = b"SC01"
ELEMENTS = b"EL01"
COMPARE = b"CM01"
ROWS = b"RW01"
REPLY = b"RE01"
ERROR = b"ER01"

_U32 = struct.Struct("<I")
_PAIR = struct.Struct("<II")
_COMPARISON = struct.Struct("<III")
_GO = struct.Struct("<5Q")


class ProtocolError(ValueError):
    """The bytes are not the frame they should be."""


class Capability(IntFlag):
    """What a constructed scorer can do."""

    SCORE = 1
    SCORE_ELEMENTS = 2
    ENCODE = 4
    """Images and texts are encoded apart from each other, and their vectors compared."""
    SCORE_TEXTS = 8
    """All texts of an image are scored at once."""
    PREPARE = 16
    """Images are prepared once, for all its other methods."""
    COMPARE = 32
    """Two images of one prompt are compared."""


_ALL_CAPABILITIES = sum(Capability)  # as a number: a flag's own ~ drops unknown bits


class ErrorKind(IntEnum):
    """Why the box gives no numbers."""

    IMPORT_FAILED = 1
    INIT_FAILED = 2
    SCORER_RAISED = 3
    WRONG_COUNT = 4
    WRONG_TYPE = 5
    NOT_FINITE = 6
    OUT_OF_MEMORY = 7


@dataclass(frozen=True, slots=True)
class Header:
    """The start of any frame."""

    magic: bytes
    seq: int
    word: int


@dataclass(frozen=True, slots=True)
class Go:
    """Limits that a process sets on itself; 0 leaves one as it is."""

    data_bytes: int = 0
    file_bytes: int = 0
    open_files: int = 0
    cpu_s: int = 0
    processes: int = 0


@dataclass(frozen=True, slots=True)
class ScoreRequest:
    """Distinct images, and (image index, prompt) pairs over them."""

    images: tuple[bytes, ...]
    pairs: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class RowsRequest:
    """The same, with so many scores per pair."""

    outputs: int
    asked: ScoreRequest


@dataclass(frozen=True, slots=True)
class ElementsRequest:
    """Distinct images (None: those of the request before) and (image, prompt, elements) items."""

    images: tuple[bytes, ...] | None
    items: tuple[tuple[int, str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class CompareRequest:
    """Distinct images, and (image index, image index, prompt) comparisons over them."""

    images: tuple[bytes, ...]
    comparisons: tuple[tuple[int, int, str], ...]


def encode_header(magic: bytes, seq: int, word: int = 0) -> bytes:
    """A bare header, as HI01 and RD01 are."""
    return HEADER.pack(magic, seq, word)


def decode_header(data: bytes) -> Header:
    """Read a header."""
    if len(data) != HEADER.size:
        raise ProtocolError(f"a header has {HEADER.size} bytes, not {len(data)}")
    return Header(*HEADER.unpack(data))


def encode_go(go: Go) -> bytes:
    """The frame that lets the box begin."""
    body = _GO.pack(go.data_bytes, go.file_bytes, go.open_files, go.cpu_s, go.processes)
    return encode_header(GO, 0, len(body)) + body


def decode_go(body: bytes) -> Go:
    """Read the body of a go frame."""
    if len(body) != _GO.size:
        raise ProtocolError("a go frame of another length")
    return Go(*_GO.unpack(body))


def encode_score(seq: int, images: Sequence[bytes], pairs: Sequence[tuple[int, str]]) -> bytes:
    """A request for one score per pair."""
    return _request(SCORE, seq, _pair_parts(images, pairs))


def encode_rows(
    seq: int, images: Sequence[bytes], pairs: Sequence[tuple[int, str]], outputs: int
) -> bytes:
    """A request for a row of so many scores per pair."""
    return _request(ROWS, seq, [_U32.pack(outputs), *_pair_parts(images, pairs)])


def encode_elements(
    seq: int,
    images: Sequence[bytes] | None,
    items: Sequence[tuple[int, str, Sequence[str]]],
) -> bytes:
    """A request for one score per element of each item; no images: those of the request before."""
    parts = [_U32.pack(SAME_IMAGES)] if images is None else _image_table(images)
    parts.append(_U32.pack(len(items)))
    for image, prompt, elements in items:
        if images is not None:
            _check_index(image, len(images))
        text = prompt.encode()
        parts += (_PAIR.pack(image, len(text)), text, _U32.pack(len(elements)))
        for element in elements:
            text = element.encode()
            parts += (_U32.pack(len(text)), text)
    return _request(ELEMENTS, seq, parts)


def encode_compare(
    seq: int, images: Sequence[bytes], comparisons: Sequence[tuple[int, int, str]]
) -> bytes:
    """A request for one margin per comparison of two images of a prompt."""
    parts = [*_image_table(images), _U32.pack(len(comparisons))]
    for first, second, prompt in comparisons:
        _check_index(first, len(images))
        _check_index(second, len(images))
        text = prompt.encode()
        parts += (_COMPARISON.pack(first, second, len(text)), text)
    return _request(COMPARE, seq, parts)


def decode_score(body: bytes) -> ScoreRequest:
    """Read the body of a score request."""
    return _score_request(_Cursor(body))


def decode_rows(body: bytes) -> RowsRequest:
    """Read the body of a request for rows of scores."""
    cursor = _Cursor(body)
    return RowsRequest(cursor.u32(), _score_request(cursor))


def _score_request(cursor: _Cursor) -> ScoreRequest:
    images = cursor.images(cursor.u32())
    pairs = []
    for _ in range(cursor.u32()):
        image, prompt = cursor.u32(), cursor.text()
        _check_index(image, len(images))
        pairs.append((image, prompt))
    cursor.finish()
    return ScoreRequest(images, tuple(pairs))


def decode_compare(body: bytes) -> CompareRequest:
    """Read the body of a request for margins."""
    cursor = _Cursor(body)
    images = cursor.images(cursor.u32())
    comparisons = []
    for _ in range(cursor.u32()):
        first, second, prompt = cursor.u32(), cursor.u32(), cursor.text()
        _check_index(first, len(images))
        _check_index(second, len(images))
        comparisons.append((first, second, prompt))
    cursor.finish()
    return CompareRequest(images, tuple(comparisons))


def decode_elements(body: bytes) -> ElementsRequest:
    """Read the body of an elements request."""
    cursor = _Cursor(body)
    n_images = cursor.u32()
    images = None if n_images == SAME_IMAGES else cursor.images(n_images)
    items = []
    for _ in range(cursor.u32()):
        image, prompt = cursor.u32(), cursor.text()
        if images is not None:
            _check_index(image, len(images))
        items.append((image, prompt, tuple(cursor.text() for _ in range(cursor.u32()))))
    cursor.finish()
    return ElementsRequest(images, tuple(items))


def encode_reply(seq: int, values: Sequence[float]) -> bytes:
    """Exactly 12 + 8n bytes."""
    return encode_header(REPLY, seq, len(values)) + struct.pack(f"<{len(values)}d", *values)


def decode_values(data: bytes, n: int) -> array[float]:
    """Read the n float64 behind a reply header."""
    if len(data) != 8 * n:
        raise ProtocolError(f"{n} values have {8 * n} bytes, not {len(data)}")
    values = array("d", struct.unpack(f"<{n}d", data))
    if any(math.isinf(value) for value in values):
        raise ProtocolError("an infinite value")
    return values


def encode_error(seq: int, kind: ErrorKind, text: str) -> bytes:
    """An error reply; the text is cut at a whole character to what the frame may hold."""
    data = text.encode(errors="replace")[:MAX_ERROR_TEXT].decode(errors="ignore").encode()
    return encode_header(ERROR, seq, kind << 16 | len(data)) + data


def split_error_word(word: int) -> tuple[ErrorKind, int]:
    """Kind and length of the text of an error reply."""
    kind, length = word >> 16, word & 0xFFFF
    if length > MAX_ERROR_TEXT:
        raise ProtocolError(f"an error text of {length} bytes")
    try:
        return ErrorKind(kind), length
    except ValueError as error:
        raise ProtocolError(f"an error of unknown kind {kind}") from error


def decode_capabilities(word: int) -> Capability:
    """The bits of a ready frame."""
    if word & ~_ALL_CAPABILITIES or not word & (Capability.SCORE | Capability.COMPARE):
        raise ProtocolError(f"unknown capabilities {word:#x}")
    return Capability(word)


class _Cursor:
    """Reads a body from front to back and never past its end."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._at = 0

    def take(self, size: int) -> bytes:
        end = self._at + size
        if end > len(self._body):
            raise ProtocolError("a frame that is cut short")
        part = self._body[self._at : end]
        self._at = end
        return part

    def u32(self) -> int:
        return int(_U32.unpack(self.take(4))[0])

    def text(self) -> str:
        try:
            return self.take(self.u32()).decode()
        except UnicodeDecodeError as error:
            raise ProtocolError("a text that is not UTF-8") from error

    def images(self, n: int) -> tuple[bytes, ...]:
        return tuple(self._each_image(n))

    def _each_image(self, n: int) -> Iterator[bytes]:
        for _ in range(n):
            yield self.take(self.u32())

    def finish(self) -> None:
        if self._at != len(self._body):
            raise ProtocolError("bytes after the end of a frame")


def _image_table(images: Sequence[bytes]) -> list[bytes]:
    parts = [_U32.pack(len(images))]
    for image in images:
        parts += (_U32.pack(len(image)), image)
    return parts


def _pair_parts(images: Sequence[bytes], pairs: Sequence[tuple[int, str]]) -> list[bytes]:
    parts = [*_image_table(images), _U32.pack(len(pairs))]
    for image, prompt in pairs:
        _check_index(image, len(images))
        text = prompt.encode()
        parts += (_PAIR.pack(image, len(text)), text)
    return parts


def _check_index(image: int, n_images: int) -> None:
    if not 0 <= image < n_images:
        raise ProtocolError(f"image {image} of {n_images}")


def _request(magic: bytes, seq: int, parts: list[bytes]) -> bytes:
    size = sum(map(len, parts))
    if size > MAX_REQUEST:
        raise ProtocolError(f"a request of {size} bytes; at most {MAX_REQUEST} fit")
    return b"".join([encode_header(magic, seq, size), *parts])
