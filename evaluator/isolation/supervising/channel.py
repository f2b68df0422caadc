"""Reading from and writing to a process that may do neither in time."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable

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
        """Write all of it.

        Raises:
            ChannelTimeoutError: the other end did not read in time.
            ChannelClosedError: the other end is gone.
        """
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
        """Read exactly so many bytes.

        Raises:
            ChannelTimeoutError: they did not come in time.
            ChannelClosedError: the other end is gone.
        """
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
