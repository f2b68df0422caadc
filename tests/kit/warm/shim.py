"""`python` for documents' commands: `-m` is run by a warm process, all else by the interpreter.

It is copied, with values for SOCKET and REAL, started in place of the interpreter, and imports next to
nothing. What it is typed with (words, environment, folder, mask, signals) the warm process
reads of this process itself; only the three standard streams are handed over.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import _socket
import os
import sys

SOCKET = ""
"""Of the server."""
REAL = ""
"""The interpreter."""
FORWARDED = (_signal.SIGHUP, _signal.SIGINT, _signal.SIGQUIT, _signal.SIGTERM, _signal.SIGUSR1,
             _signal.SIGUSR2)  # fmt: skip


def main() -> None:
    """Be the command, or ask for it and end as it ends."""
    connection = _asked() if sys.argv[1:2] == ["-m"] else None
    if connection is None:
        os.execv(REAL, [REAL, *sys.argv[1:]])
        return
    for number in FORWARDED:
        if _signal.getsignal(number) is not _signal.SIG_IGN:
            _signal.signal(number, lambda number, _: connection.send(bytes([number])))
    answer = connection.recv(4)
    if len(answer) < 4:
        os.write(2, b"The warm process is gone.\n")
        os._exit(70)
    status = int.from_bytes(answer, sys.byteorder)
    if os.WIFSIGNALED(status):
        if os.WTERMSIG(status) != _signal.SIGKILL:
            _signal.signal(os.WTERMSIG(status), _signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    os._exit(os.WEXITSTATUS(status))


def _asked() -> _socket.socket | None:
    """A connection over which the command runs; None where it has to be a process of its own."""
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    streams = b"".join(number.to_bytes(4, sys.byteorder) for number in range(3))
    try:
        connection.connect(SOCKET)
        connection.sendmsg([b"run\n"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
        return connection if connection.recv(1) == b"y" else None
    except OSError:
        return None


main()
