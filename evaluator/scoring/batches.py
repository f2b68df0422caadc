"""Batches: images read a bounded way ahead, put into order, and cut."""

from __future__ import annotations

import io
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from PIL import Image

from benchmarks.errors import SubmitterError
from benchmarks.schema import Questions
from evaluator.scoring.asking import Batch, PairRequest, RawItem
from evaluator.scoring.plan import Unit


@dataclass(frozen=True, slots=True)
class Fetched:
    """A unit with its image at hand."""

    unit: Unit  # what is asked about the image
    data: bytes  # the image as it is kept
    # width and height as the header tells them; (0, 0) where they were not looked for, or cannot be
    # told
    size: tuple[int, int] = (0, 0)
    problem: str = ""  # why there is no data; empty where there is


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads units' images."""

    # the bytes of an image; `OSError`, or `SubmitterError` about the benchmark's files, where it
    # cannot be read
    read: Callable[[str], bytes]
    threads: int  # that read
    ahead: int  # images that wait at most
    ahead_bytes: int  # about how much they may hold
    measure: bool  # whether the size of an image is told as well

    def all(self, units: Iterable[Unit]) -> Generator[Fetched, None, None]:
        """The images in the order of the units."""
        held = _BytesInFlight()
        with ThreadPoolExecutor(self.threads, thread_name_prefix="images") as pool:
            waiting: deque[Future[Fetched]] = deque()
            try:
                for unit in units:
                    waiting.append(pool.submit(self._one, unit, held))
                    while waiting and (
                        len(waiting) > self.ahead or held.expected(len(waiting)) > self.ahead_bytes
                    ):
                        yield held.given(waiting.popleft().result())
                while waiting:
                    yield held.given(waiting.popleft().result())
            finally:
                for future in waiting:
                    future.cancel()

    def _one(self, unit: Unit, held: _BytesInFlight) -> Fetched:
        try:
            data = self.read(unit.image_id)
        except (OSError, SubmitterError) as error:
            return Fetched(unit, b"", problem=str(error) or type(error).__name__)
        held.add(len(data))
        return Fetched(unit, data, header_size(data) if self.measure else (0, 0))


class _BytesInFlight:
    """Counts the bytes of what was read and not given away yet."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._bytes = self._read = self._read_bytes = self._given = 0

    def add(self, n_bytes: int) -> None:
        with self._lock:
            self._bytes += n_bytes
            self._read += 1
            self._read_bytes += n_bytes

    def given(self, fetched: Fetched) -> Fetched:
        with self._lock:
            self._bytes -= len(fetched.data)
            self._given += 1
        return fetched

    def expected(self, waiting: int) -> int:
        """What so many images will hold, those that are still to be read as large as the others."""
        with self._lock:
            unread = max(0, waiting - (self._read - self._given))
            mean = self._read_bytes // self._read if self._read else 0
            return self._bytes + unread * mean


def header_size(data: bytes) -> tuple[int, int]:
    """Width and height of an encoded image without decoding it; (0, 0) where that cannot be told."""
    try:
        with Image.open(io.BytesIO(data)) as image:
            return image.size
    except Exception:  # noqa: BLE001 - damaged bytes raise anything; whoever decodes them says what
        return 0, 0


def in_windows(
    fetched: Iterable[Fetched], texts: Callable[[Unit], int], *, images: int, max_bytes: int
) -> Iterator[Fetched]:
    """The same images, within short stretches ordered by size and by their longest text.

    The order depends on the images and texts of the stretch alone, and on the order of the plan
    where these are equal. Batches of like items are filled up with less padding.
    """
    window: list[Fetched] = []
    n_bytes = 0
    for one in fetched:
        window.append(one)
        n_bytes += len(one.data)
        if len(window) >= images or n_bytes >= max_bytes:
            yield from _ordered(window, texts)
            window, n_bytes = [], 0
    yield from _ordered(window, texts)


def batches(
    fetched: Iterable[Fetched], questions: Questions, *, max_pairs: int, max_bytes: int
) -> Iterator[Batch]:
    """Cut at image boundaries; only a single image may pass a limit, for it is sent but once."""
    batch: list[RawItem] = []
    number = pairs = size = 0
    for one in fetched:
        n, n_bytes = len(one.unit.pairs), len(one.data)
        if batch and (pairs + n > max_pairs or size + n_bytes > max_bytes):
            yield Batch(number, tuple(batch))
            number, pairs, size, batch = number + 1, 0, 0, []
        batch.append(RawItem(one.unit.image_id, one.data, asked_of(one.unit, questions)))
        pairs, size = pairs + n, size + n_bytes
    if batch:
        yield Batch(number, tuple(batch))


def asked_of(unit: Unit, questions: Questions) -> tuple[PairRequest, ...]:
    """What is asked about an image, prompts and elements spelled out."""
    return tuple(
        PairRequest(
            pair.pair_id,
            pair.text_id,
            questions.texts[pair.text_id],
            questions.elements.get(pair.text_id, ()),
        )
        for pair in unit.pairs
    )


def _ordered(window: Sequence[Fetched], texts: Callable[[Unit], int]) -> list[Fetched]:
    if len(window) < 2:
        return list(window)
    return sorted(window, key=lambda one: (*one.size, texts(one.unit)))
