"""The supervisor's side of one job: ask the box, believe nothing but n floats, end everything."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import threading
import time
import unicodedata
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from benchmarks.errors import AssayError, PlatformError
from evaluator.isolation import failures, processes
from evaluator.isolation.inside import wire_protocol
from evaluator.isolation.inside.wire_protocol import Capability
from evaluator.isolation.job import Limits

_SET_UP_S = 30.0
_LOG_ENDS_WITHIN_S = 5.0
_EXIT_SEEN_WITHIN_S = 2.0
_OF_THE_START = frozenset(
    {wire_protocol.ErrorKind.IMPORT_FAILED, wire_protocol.ErrorKind.INIT_FAILED}
)
"""Told before any question is asked, so that their words can hold nothing of one."""

Floats = NDArray[np.float64]


class ScorerSession:
    """One submission in one box, for one job.

    A backend hands it out when the box is set up and nothing of the submission has run yet.
    Entering it imports and constructs the scorer; leaving it kills and reaps every process of
    the box. Any error ends the box at once; `log` and `peak_memory_bytes` stay readable.

    Any thread may use it, one at a time.
    """

    def __init__(
        self,
        box: Sandbox,
        limits: Limits,
        *,
        bounds_data: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._box = box
        self._limits = limits
        # A graphics card's libraries reserve far more of the address space than they use.
        self._bounds_data = bounds_data
        self._clock = clock
        self._channel = Channel(box.request_fd, box.reply_fd, clock)
        self._log = LogDrain(_fd(box.process.stderr), limits.log_bytes)
        self._watchdog = Watchdog(box, limits)
        self._job_ends = float("inf")
        self._seq = 0
        self._open = True
        self._capabilities: Capability | None = None
        self._start_s: float | None = None

    def await_box(self) -> Self:
        """Wait until the box is set up; called by backends."""
        try:
            deadline = self._clock() + _SET_UP_S
            header = wire_protocol.decode_header(
                self._channel.receive(wire_protocol.HEADER.size, deadline)
            )
            if header != wire_protocol.Header(wire_protocol.HI, 0, 0):
                raise wire_protocol.ProtocolError("not a greeting")
        except (ChannelTimeoutError, ChannelClosedError, wire_protocol.ProtocolError) as error:
            self.close()
            raise failures.box_not_started(self.log) from error
        return self

    def __enter__(self) -> Self:
        """Import and construct the scorer."""
        started = self._clock()
        self._job_ends = started + self._limits.job_s
        self._watchdog.start()
        with self._judging("importing and constructing the scorer", self._limits.start_s) as by:
            self._channel.send(wire_protocol.encode_go(self._go()), by)
            header = self._receive_header(wire_protocol.READY, 0, by)
            self._capabilities = wire_protocol.decode_capabilities(header.word)
            self._watchdog.look()
        self._start_s = self._clock() - started
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def capabilities(self) -> Capability:
        """What the scorer said it can do."""
        if self._capabilities is None:
            raise PlatformError("session_not_started", "The session was not entered.")
        return self._capabilities

    @property
    def start_s(self) -> float | None:
        """Seconds in which the scorer was imported and constructed; None where it was not."""
        return self._start_s

    @property
    def log(self) -> str:
        """What the scorer printed: the first and last part, with control characters removed."""
        return self._log.text()

    @property
    def peak_memory_bytes(self) -> int:
        """The most memory that all processes of the box held together, as sampled."""
        return self._watchdog.peak_bytes

    def score(self, images: Sequence[bytes], pairs: Sequence[tuple[int, str]]) -> Floats:
        """One score per (index into images, prompt); NaN where the scorer gave none."""
        seq = self._next_seq()
        request = wire_protocol.encode_score(seq, images, pairs)
        return self._ask(request, seq, len(pairs))

    def score_rows(
        self, images: Sequence[bytes], pairs: Sequence[tuple[int, str]], outputs: int
    ) -> Floats:
        """The scores of each pair, shape (pairs, outputs); NaN where the scorer gave none."""
        seq = self._next_seq()
        request = wire_protocol.encode_rows(seq, images, pairs, outputs)
        return self._ask(request, seq, len(pairs) * outputs).reshape(len(pairs), outputs)

    def compare(
        self, images: Sequence[bytes], comparisons: Sequence[tuple[int, int, str]]
    ) -> Floats:
        """One margin per (index into images, another index, prompt); NaN where there is none."""
        seq = self._next_seq()
        request = wire_protocol.encode_compare(seq, images, comparisons)
        return self._ask(request, seq, len(comparisons))

    def score_elements(
        self,
        images: Sequence[bytes] | None,
        items: Sequence[tuple[int, str, Sequence[str]]],
    ) -> list[Floats]:
        """One array per item of (image index, prompt, elements), one score per element."""
        counts = [len(elements) for _, _, elements in items]
        seq = self._next_seq()
        request = wire_protocol.encode_elements(seq, images, items)
        flat = self._ask(request, seq, sum(counts))
        return np.split(flat, np.cumsum(counts)[:-1]) if counts else []

    def close(self) -> None:
        """End every process of the box; may be called again."""
        if not self._open:
            return
        self._open = False
        self._watchdog.stop()
        gone = self._box.end()
        if self._log.finish(_LOG_ENDS_WITHIN_S):
            self._box.release()
        if not gone:
            processes.mark_survivors(self._box.pids())
            raise failures.box_not_ended()

    def _go(self) -> wire_protocol.Go:
        limits = self._limits
        return wire_protocol.Go(
            data_bytes=limits.memory_bytes if self._bounds_data else 0,
            file_bytes=limits.file_bytes,
            open_files=limits.open_files,
            cpu_s=limits.cpu_s,
            processes=self._process_limit() if self._box.counts_processes else 0,
        )

    def _process_limit(self) -> int:
        """What the box's user may have: a second wall where a cgroup bounds, which tells more."""
        return self._limits.processes * (2 if self._box.bounds_processes else 1)

    def _next_seq(self) -> int:
        self._seq += 1
        return self._seq

    def _ask(self, request: bytes, seq: int, n: int) -> Floats:
        with self._judging(f"scoring batch {seq}", self._limits.batch_s) as deadline:
            self._refuse_unasked_bytes()
            self._channel.send(request, deadline)
            header = self._receive_header(wire_protocol.REPLY, seq, deadline)
            if header.word != n:
                raise wire_protocol.ProtocolError(f"{header.word} values instead of {n}")
            values = wire_protocol.decode_values(self._channel.receive(8 * n, deadline), n)
            self._refuse_unasked_bytes()
            if self._box.out_of_memory():  # of a helper that the watchdog has not missed yet
                raise _ReportedError(wire_protocol.ErrorKind.OUT_OF_MEMORY, "")
            return np.array(values, dtype=np.float64)

    def _receive_header(self, magic: bytes, seq: int, deadline: float) -> wire_protocol.Header:
        """The header that is due, or the error that the runner reports in its place."""
        header = wire_protocol.decode_header(
            self._channel.receive(wire_protocol.HEADER.size, deadline)
        )
        if header.seq != seq:
            raise wire_protocol.ProtocolError(f"an answer to request {header.seq} instead of {seq}")
        if header.magic == wire_protocol.ERROR:
            kind, length = wire_protocol.split_error_word(header.word)
            if seq and kind in _OF_THE_START:
                raise wire_protocol.ProtocolError("an error of the start, long after it")
            raise _ReportedError(kind, one_line(self._channel.receive(length, deadline)))
        if header.magic != magic:
            raise wire_protocol.ProtocolError("a frame of another kind than the one due")
        return header

    def _refuse_unasked_bytes(self) -> None:
        if self._channel.has_unasked_bytes():
            raise wire_protocol.ProtocolError("bytes that nobody asked for")

    @contextmanager
    def _judging(self, doing: str, limit_s: float) -> Iterator[float]:
        """Give a deadline; turn any breach into the author's error, and end the box with it."""
        if not self._open:
            raise PlatformError("session_over", "The session has ended; start another.")
        now = self._clock()
        deadline = min(now + limit_s, self._job_ends)
        try:
            yield deadline
        except (
            ChannelTimeoutError,
            ChannelClosedError,
            wire_protocol.ProtocolError,
            _ReportedError,
        ) as e:
            told = self._translated(e, doing, deadline - now)
            if self._box.out_of_memory():
                # A scorer whose helper was killed for it may have reported something else.
                told = failures.kernel_out_of_memory(self._limits.memory_bytes, doing)
            elif self._watchdog.out_of_processes() and told.code in failures.FOR_LACK_OF_PROCESSES:
                told = failures.out_of_processes(self._limits.processes, doing, told.message)
            self.close()
            raise told from None

    def _translated(self, error: Exception, doing: str, limit_s: float) -> AssayError:
        if isinstance(error, _ReportedError):
            return failures.reported(error.kind, error.text, doing)
        if isinstance(error, wire_protocol.ProtocolError):
            return failures.broken_protocol(doing, str(error))
        if isinstance(error, ChannelTimeoutError):
            if self._clock() >= self._job_ends:
                return failures.too_slow("the whole job", self._limits.job_s)
            return failures.too_slow(doing, limit_s)
        return self._why_gone(doing)

    def _why_gone(self, doing: str) -> AssayError:
        code = self._box.exit_code(_EXIT_SEEN_WITHIN_S)
        if breach := self._watchdog.breach or self._watchdog.look():
            return failures.breached(breach, doing)
        if self._box.killed_from_outside():
            return failures.killed_from_outside(doing)
        return failures.ended(code, doing)


class _ReportedError(Exception):
    """The runner said why there are no numbers."""

    def __init__(self, kind: wire_protocol.ErrorKind, text: str) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text


_CHUNK = 1 << 20


class ChannelTimeoutError(Exception):
    """The deadline passed."""


class ChannelClosedError(Exception):
    """The other end is gone."""


class Channel:
    """Two pipe ends with deadlines instead of blocking."""

    def __init__(
        self, write_fd: int, read_fd: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        os.set_blocking(write_fd, False)
        os.set_blocking(read_fd, False)
        self._write_fd = write_fd
        self._read_fd = read_fd
        self._clock = clock

    def send(self, data: bytes, deadline: float) -> None:
        """Write all of it."""
        view = memoryview(data)
        while view:
            self._wait(self._write_fd, select.POLLOUT, deadline)
            try:
                view = view[os.write(self._write_fd, view[:_CHUNK]) :]
            except BlockingIOError:
                continue
            except BrokenPipeError as error:
                raise ChannelClosedError from error

    def receive(self, size: int, deadline: float) -> bytes:
        """Read exactly so many bytes."""
        parts: list[bytes] = []
        while size:
            self._wait(self._read_fd, select.POLLIN, deadline)
            part = os.read(self._read_fd, min(size, _CHUNK))
            if not part:
                raise ChannelClosedError
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def has_unasked_bytes(self) -> bool:
        """Whether something can be read now (not counting the end of the pipe)."""
        poll = select.poll()
        poll.register(self._read_fd, select.POLLIN)
        return any(event & select.POLLIN for _, event in poll.poll(0))

    def _wait(self, fd: int, event: int, deadline: float) -> None:
        poll = select.poll()
        poll.register(fd, event)
        left = deadline - self._clock()
        if left <= 0 or not poll.poll(left * 1000):
            raise ChannelTimeoutError


_EVERY_S = 0.1


class Watchdog:
    """Looks ten times a second, and kills the box that takes too much."""

    def __init__(self, box: Sandbox, limits: Limits) -> None:
        self._box = box
        self._limits = limits
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="box watchdog", daemon=True)
        self._refused = False
        self.breach: failures.Breach | None = None
        self.peak_bytes = 0

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Cease; after this the box is no longer touched from here."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def look(self) -> failures.Breach | None:
        """One look: remembers the peak, and says which limit is passed."""
        pids = self._box.pids()
        memory = self._box.memory_bytes(pids)
        ended = self._box.out_of_memory()
        self.out_of_processes()
        if ended:  # between two looks
            memory = max(memory, self._limits.memory_bytes)
        self.peak_bytes = max(self.peak_bytes, memory)
        # Pages that processes share count once for each here, once in all where the kernel counts.
        if ended or (memory > self._limits.memory_bytes and not self._box.bounds_memory):
            return failures.Breach("memory", memory, self._limits.memory_bytes)
        if len(pids) > self._limits.processes:
            return failures.Breach("processes", len(pids), self._limits.processes)
        return None

    def out_of_processes(self) -> bool:
        """Whether the box was ever refused a process; asked in time, as its cgroup goes with it."""
        self._refused = self._refused or self._box.out_of_processes()
        return self._refused

    def _watch(self) -> None:
        while not self._stop.wait(_EVERY_S):
            if breach := self.look():
                # Set before the kill, so that whoever sees the end also sees the reason.
                self.breach = breach
                self._box.end()
                return


_READ_BYTES = 65536


class BoundedLog:
    """Keeps the first and the last part of what it is fed, and counts what is between."""

    def __init__(self, limit: int) -> None:
        self._head_room = limit // 2
        self._tail_room = limit - limit // 2
        self._head = bytearray()
        self._tail: deque[int] = deque(maxlen=self._tail_room)
        self.total = 0

    def feed(self, data: bytes) -> None:
        """Take in more output."""
        self.total += len(data)
        room = self._head_room - len(self._head)
        self._head += data[:room]
        # Only the end of a chunk can survive in the tail.
        self._tail.extend(data[max(room, len(data) - self._tail_room, 0) :])

    def text(self) -> str:
        """What was kept, harmless to show."""
        left_out = self.total - len(self._head) - len(self._tail)
        middle = f"\n[{left_out} bytes left out]\n".encode() if left_out else b""
        return plain_text(bytes(self._head) + middle + bytes(self._tail))


class LogDrain:
    """Reads a pipe to its end on a thread of its own."""

    def __init__(self, fd: int, limit: int) -> None:
        self._fd = fd
        self._log = BoundedLog(limit)
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._drain, name="box log", daemon=True)
        self._thread.start()

    def text(self) -> str:
        """What was kept so far."""
        with self._lock:
            return self._log.text()

    def finish(self, timeout_s: float) -> bool:
        """Wait for the end of the pipe, which comes once every process of the box is gone."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _drain(self) -> None:
        while data := os.read(self._fd, _READ_BYTES):
            with self._lock:
                self._log.feed(data)


_TERMINAL_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|.)")
"""One that sets a title and never ends takes its own line with it, and no more."""
_KEPT_CONTROLS = {"\n", "\t"}


def plain_text(data: bytes) -> str:
    """Readable text without terminal sequences, control, bidirectional or invisible characters."""
    text = data.decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n")
    text = _TERMINAL_SEQUENCE.sub("", text)
    return "".join(
        c
        for c in text
        if c in _KEPT_CONTROLS
        or unicodedata.category(c) not in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
    )


def one_line(data: bytes) -> str:
    """The same on a single line."""
    return " ".join(plain_text(data).split())


KILLED = 128 + signal.SIGKILL
_GONE_WITHIN_S = 10.0
_LOOK_EVERY_S = 0.01


@dataclass(frozen=True)
class Sandbox(ABC):
    """A started process with three pipes, or tree of processes, that a session talks to."""

    process: subprocess.Popen[bytes]

    @property
    def request_fd(self) -> int:
        """Where requests are written."""
        return _fd(self.process.stdin)

    @property
    def reply_fd(self) -> int:
        """Where replies are read."""
        return _fd(self.process.stdout)

    @property
    def counts_processes(self) -> bool:
        """Whether the kernel's process limit counts this box alone, not all of the user's."""
        return False

    @property
    def bounds_memory(self) -> bool:
        """Whether the kernel bounds the memory of all its processes together."""
        return False

    def out_of_memory(self) -> bool:
        """Whether the kernel ended something in it for lack of memory."""
        return False

    @property
    def bounds_processes(self) -> bool:
        """Whether the kernel bounds its processes and threads together, and tells when it did."""
        return False

    def out_of_processes(self) -> bool:
        """Whether the kernel refused it a process or thread at that bound."""
        return False

    def killed_from_outside(self) -> bool:
        """Whether it ended by a SIGKILL that nothing in it can have sent; False if unknown."""
        return False

    @abstractmethod
    def pids(self) -> list[int]:
        """Processes of the box that are alive, however they detached themselves."""

    @abstractmethod
    def memory_bytes(self, pids: Sequence[int]) -> int:
        """Memory that these processes of the box hold together."""

    @abstractmethod
    def end(self) -> bool:
        """Kill and reap everything; False if something survived."""

    def release(self) -> None:
        """Close the descriptors, once nobody reads them any more."""
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()

    def exit_code(self, timeout_s: float) -> int | None:
        """Exit code as a shell gives it (128 + signal), or None while it runs."""
        try:
            code = self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None
        return 128 - code if code < 0 else code


@dataclass(frozen=True)
class SessionBox(Sandbox):
    """Processes in a session of their own: enough for code we trust, no wall for any other."""

    def pids(self) -> list[int]:
        """Living processes of the box."""
        return processes.pids_in_session(self.process.pid)

    def memory_bytes(self, pids: Sequence[int]) -> int:
        """Memory they hold together."""
        return processes.resident_bytes(pids)

    def end(self) -> bool:
        """Kill and reap everything; False if something survived."""
        for pid in self.pids():
            _kill(pid)
        self.process.kill()
        self.process.wait()
        return all_gone(self)


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def all_gone(box: Sandbox) -> bool:
    """Wait until no process of a box is left; False where one stays."""
    deadline = time.monotonic() + _GONE_WITHIN_S
    while box.pids():
        if time.monotonic() > deadline:
            return False
        time.sleep(_LOOK_EVERY_S)
    return True


def _fd(pipe: object) -> int:
    fileno = getattr(pipe, "fileno", None)
    if fileno is None:
        raise ValueError("the process was started without its pipes")
    return int(fileno())
