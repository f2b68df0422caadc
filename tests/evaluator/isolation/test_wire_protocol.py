"""The wire: whatever is encoded comes back, and nothing else is accepted."""

from __future__ import annotations

import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.isolation.inside import wire_protocol
from evaluator.isolation.inside.wire_protocol import Capability, ErrorKind, Go, ProtocolError

SEQ = st.integers(0, 2**32 - 1)
IMAGES = st.lists(st.binary(max_size=50), min_size=1, max_size=4)
FINITE_OR_NAN = st.floats(allow_infinity=False)


def body_of(frame: bytes) -> bytes:
    header = wire_protocol.decode_header(frame[: wire_protocol.HEADER.size])
    body = frame[wire_protocol.HEADER.size :]
    assert header.word == len(body)
    return body


@pytest.mark.slow
@given(st.data(), IMAGES, SEQ)
def test_score_requests_come_back(data: st.DataObject, images: list[bytes], seq: int) -> None:
    index = st.integers(0, len(images) - 1)
    pairs = data.draw(st.lists(st.tuples(index, st.text()), max_size=6))
    frame = wire_protocol.encode_score(seq, images, pairs)
    assert wire_protocol.decode_header(frame[:12]) == wire_protocol.Header(
        wire_protocol.SCORE, seq, len(frame) - 12
    )
    request = wire_protocol.decode_score(body_of(frame))
    assert list(request.images) == images
    assert list(request.pairs) == pairs


@given(st.data(), IMAGES, st.integers(1, 9))
def test_requests_for_rows_come_back(
    data: st.DataObject, images: list[bytes], outputs: int
) -> None:
    index = st.integers(0, len(images) - 1)
    pairs = data.draw(st.lists(st.tuples(index, st.text()), max_size=6))
    found = wire_protocol.decode_rows(body_of(wire_protocol.encode_rows(1, images, pairs, outputs)))
    assert found.outputs == outputs
    assert (list(found.asked.images), list(found.asked.pairs)) == (images, pairs)


@given(st.data(), st.none() | IMAGES, SEQ)
def test_elements_requests_come_back(
    data: st.DataObject, images: list[bytes] | None, seq: int
) -> None:
    index = st.integers(0, len(images) - 1 if images else 7)
    item = st.tuples(index, st.text(), st.lists(st.text(), max_size=3).map(tuple))
    items = data.draw(st.lists(item, max_size=4))
    request = wire_protocol.decode_elements(
        body_of(wire_protocol.encode_elements(seq, images, items))
    )
    assert (None if request.images is None else list(request.images)) == images
    assert list(request.items) == items


@given(IMAGES, st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.text(max_size=9))))
def test_comparisons_come_back_and_images_that_are_not_there_are_refused(
    images: list[bytes], comparisons: list[tuple[int, int, str]]
) -> None:
    n = len(images)
    if any(max(a, b) >= n for a, b, _ in comparisons):
        with pytest.raises(ProtocolError):
            wire_protocol.encode_compare(1, images, comparisons)
        return
    body = body_of(wire_protocol.encode_compare(1, images, comparisons))
    found = wire_protocol.decode_compare(body)
    assert (found.images, found.comparisons) == (tuple(images), tuple(comparisons))


@given(st.lists(FINITE_OR_NAN, max_size=20), SEQ)
def test_replies_come_back_to_the_bit(values: list[float], seq: int) -> None:
    frame = wire_protocol.encode_reply(seq, values)
    assert len(frame) == 12 + 8 * len(values)
    decoded = wire_protocol.decode_values(frame[12:], len(values))
    # NaN differs from itself, so bits are compared.
    assert decoded.tobytes() == struct.pack(f"<{len(values)}d", *values)


@given(st.integers(0, 2**60), st.integers(0, 2**60), st.integers(0, 4096))
def test_limits_come_back(memory: int, file: int, opened: int) -> None:
    go = Go(data_bytes=memory, file_bytes=file, open_files=opened, cpu_s=7, processes=9)
    assert wire_protocol.decode_go(body_of(wire_protocol.encode_go(go))) == go


@given(st.sampled_from(ErrorKind), st.text(max_size=3000))
def test_error_texts_are_cut_at_a_whole_character(kind: ErrorKind, text: str) -> None:
    frame = wire_protocol.encode_error(3, kind, text)
    assert len(frame) <= 12 + wire_protocol.MAX_ERROR_TEXT
    found, length = wire_protocol.split_error_word(wire_protocol.decode_header(frame[:12]).word)
    assert found == kind
    assert len(frame) == 12 + length
    assert text.startswith(frame[12:].decode())


@given(st.binary(max_size=200))
def test_no_bytes_break_the_decoders_in_another_way_than_a_frame_error(body: bytes) -> None:
    for decode in (
        wire_protocol.decode_score,
        wire_protocol.decode_elements,
        wire_protocol.decode_compare,
        wire_protocol.decode_go,
    ):
        try:
            decode(body)
        except ProtocolError:
            continue


@given(IMAGES, st.integers(1, 20))
def test_a_request_cut_short_is_refused(images: list[bytes], cut: int) -> None:
    body = body_of(wire_protocol.encode_score(1, images, [(0, "a cat")]))
    with pytest.raises(ProtocolError):
        wire_protocol.decode_score(body[:-cut])


def test_bytes_after_the_end_are_refused() -> None:
    body = body_of(wire_protocol.encode_score(1, [b"x"], [(0, "a cat")]))
    with pytest.raises(ProtocolError, match="after the end"):
        wire_protocol.decode_score(body + b"\0")


def test_an_image_that_is_not_in_the_table_is_refused_at_both_ends() -> None:
    with pytest.raises(ProtocolError, match="image 1 of 1"):
        wire_protocol.encode_score(1, [b"x"], [(1, "a cat")])
    body = bytearray(body_of(wire_protocol.encode_score(1, [b"x"], [(0, "a cat")])))
    body[13:17] = struct.pack("<I", 5)
    with pytest.raises(ProtocolError, match="image 5 of 1"):
        wire_protocol.decode_score(bytes(body))


def test_a_request_holds_at_most_64_mib() -> None:
    with pytest.raises(ProtocolError, match="at most"):
        wire_protocol.encode_score(1, [bytes(wire_protocol.MAX_REQUEST)], [(0, "a cat")])


def test_infinity_is_no_score() -> None:
    with pytest.raises(ProtocolError, match="infinite"):
        wire_protocol.decode_values(struct.pack("<2d", 1.0, -math.inf), 2)


@pytest.mark.parametrize("word", [0, 1 << 16 | 2049, 99 << 16])
def test_errors_of_unknown_kind_or_length_are_refused(word: int) -> None:
    with pytest.raises(ProtocolError):
        wire_protocol.split_error_word(word)


@pytest.mark.parametrize("word", [0, int(Capability.SCORE_ELEMENTS), 0b1000001])
def test_a_scorer_can_score_and_has_no_unknown_capability(word: int) -> None:
    with pytest.raises(ProtocolError):
        wire_protocol.decode_capabilities(word)
