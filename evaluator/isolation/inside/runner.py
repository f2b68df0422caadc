"""Stage 0, inside the box: set limits, load the scorer, answer requests until the pipe closes.

Started with the protocol on its standard input and output and the log on standard error. Before
anything of the submission runs, the protocol moves to high descriptors, so that a `print` ends up
in the log instead of between two frames.

Standard library and Pillow only, until the submission imports what it likes.
"""

from __future__ import annotations

import argparse
import fcntl
import io
import os
import resource
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import calls, wire_protocol
from .wire_protocol import Capability

HIGH_FD = 200
"""Out of the way of whatever counts descriptors from below, and within any open-file limit."""


class _EndOfInput(Exception):  # noqa: N818 - the ordinary end of a job
    """The supervisor closed the pipe, or died."""


@dataclass(frozen=True, slots=True)
class Wire:
    """The two protocol descriptors."""

    requests: int
    replies: int

    def read(self, size: int) -> bytes:
        """Exactly so many bytes."""
        parts: list[bytes] = []
        while size:
            part = os.read(self.requests, min(size, 1 << 20))
            if not part:
                raise _EndOfInput
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def send(self, data: bytes) -> None:
        """All of it, with whatever was printed before it out of the way."""
        _flush("stdout")
        _flush("stderr")
        view = memoryview(data)
        while view:
            view = view[os.write(self.replies, view) :]


def _flush(name: str) -> None:
    """Empty a stream, by whatever the scorer put in its place; that it raises harms the log alone."""
    with suppress(Exception):
        getattr(sys, name).flush()


def main(arguments: Sequence[str]) -> None:
    """Serve one job."""
    options = _options(arguments)
    wire = _claim_wire()
    try:
        wire.send(wire_protocol.encode_header(wire_protocol.HI, 0))
        _set_limits(_receive_go(wire))
        sys.path.extend(options.site)
        _serve(wire, options)
    except _EndOfInput:
        return


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--submission", type=Path, required=True)
    parser.add_argument("--entry-point", required=True)
    parser.add_argument("--device", required=True)
    parser.add_argument("--weights")
    parser.add_argument("--site", action="append", default=[])
    parser.add_argument("--model", action="append", default=[], nargs=2)
    return parser.parse_args(arguments)


def _claim_wire() -> Wire:
    wire = Wire(
        fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, HIGH_FD),
        fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, HIGH_FD),
    )
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return wire


def _receive_go(wire: Wire) -> wire_protocol.Go:
    header = wire_protocol.decode_header(wire.read(wire_protocol.HEADER.size))
    if header.magic != wire_protocol.GO:
        raise wire_protocol.ProtocolError("the first frame is not a go frame")
    return wire_protocol.decode_go(wire.read(header.word))


def _set_limits(go: wire_protocol.Go) -> None:
    _set_limit(resource.RLIMIT_CORE, 0)
    for kind, value in (
        (resource.RLIMIT_DATA, go.data_bytes),
        (resource.RLIMIT_FSIZE, go.file_bytes),
        (resource.RLIMIT_NOFILE, go.open_files),
        (resource.RLIMIT_NPROC, go.processes),
    ):
        if value:
            _set_limit(kind, value)
    if go.cpu_s:
        # The soft limit ends it with a signal of its own; a hard one would be a kill without a word.
        _set_limit(resource.RLIMIT_CPU, go.cpu_s, sys.maxsize)


def _set_limit(kind: int, soft: int, hard: int | None = None) -> None:
    _, given = resource.getrlimit(kind)
    ceiling = sys.maxsize if given == resource.RLIM_INFINITY else given
    resource.setrlimit(kind, (min(soft, ceiling), min(soft if hard is None else hard, ceiling)))


def _serve(wire: Wire, options: argparse.Namespace) -> None:
    seq = 0
    try:
        scorer_class = calls.import_scorer(options.submission, options.entry_point)
        scorer = calls.construct(
            scorer_class,
            options.submission,
            device=options.device,
            weights=options.weights,
            models=dict(options.model),
        )
        # A method may be a property, so that to look for it runs the submission's code.
        with calls.reporting(wire_protocol.ErrorKind.INIT_FAILED, options.submission, "A property"):
            ready = calls.capabilities(scorer)
            if not ready & (Capability.SCORE | Capability.COMPARE):
                text = f"What {options.entry_point} makes has no method score or compare"
                raise calls.ScorerFailure(wire_protocol.ErrorKind.INIT_FAILED, text)
            answers = _Answers(scorer, options.submission)
        wire.send(wire_protocol.encode_header(wire_protocol.READY, 0, ready))
        while True:
            header = wire_protocol.decode_header(wire.read(wire_protocol.HEADER.size))
            seq = header.seq
            values = answers.answer(header.magic, wire.read(header.word))
            wire.send(wire_protocol.encode_reply(seq, values))
    except calls.ScorerFailure as failure:
        wire.send(wire_protocol.encode_error(seq, failure.kind, failure.text))
    except MemoryError:
        text = "No memory was left to decode the images of a batch"
        wire.send(wire_protocol.encode_error(seq, wire_protocol.ErrorKind.OUT_OF_MEMORY, text))


class _Answers:
    """Answers requests, and keeps the images of the last one, decoded and prepared."""

    def __init__(self, scorer: Any, root: Path) -> None:
        self._scorer = calls.ScoringPath(scorer, root)
        self._images: list[Any] = []

    def answer(self, magic: bytes, body: bytes) -> list[float]:
        if magic == wire_protocol.SCORE:
            return self._score(wire_protocol.decode_score(body))
        if magic == wire_protocol.ELEMENTS:
            return self._score_elements(wire_protocol.decode_elements(body))
        if magic == wire_protocol.ROWS:
            return self._rows(wire_protocol.decode_rows(body))
        if magic == wire_protocol.COMPARE:
            return self._compare(wire_protocol.decode_compare(body))
        raise wire_protocol.ProtocolError("a request of unknown kind")

    def _score(self, request: wire_protocol.ScoreRequest) -> list[float]:
        self._images = self._scorer.prepared(_decoded(request.images))
        return self._scorer.scores(self._images, request.pairs)

    def _rows(self, request: wire_protocol.RowsRequest) -> list[float]:
        self._images = self._scorer.prepared(_decoded(request.asked.images))
        return self._scorer.rows(self._images, request.asked.pairs, request.outputs)

    def _compare(self, request: wire_protocol.CompareRequest) -> list[float]:
        self._images = self._scorer.prepared(_decoded(request.images))
        return self._scorer.margins(self._images, request.comparisons)

    def _score_elements(self, request: wire_protocol.ElementsRequest) -> list[float]:
        if request.images is not None:
            self._images = self._scorer.prepared(_decoded(request.images))
        return self._scorer.element_scores(self._images, request.items)


def _decoded(images: Sequence[bytes]) -> list[Any]:
    from PIL import Image  # noqa: PLC0415 - found only once the library folders are on the path

    decoded = []
    for data in images:
        image = Image.open(io.BytesIO(data))
        image.load()
        decoded.append(image)
    return decoded
