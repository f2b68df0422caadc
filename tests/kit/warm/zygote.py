"""A process that has imported what commands import, and is forked for each of them.

It is started as a script, of the standard library alone, and knows two requests:

- `run`, of `shim.py`: a child takes the streams that were handed over, and folder, environment, mask
  and signals of the process that asks, which the kernel tells. Then it runs the module as
  `python -m` does. How it ended is sent back; signals come the other way.
- `serve`: a child imports further modules in a folder and an environment of its own, and listens at a
  socket of its own. So packages of others are imported once, and the code of a folder once for each
  folder.

A command is refused, and is then a process of its own, where a new interpreter would have come to
another state: another user, folder or limit, a file open that is no standard stream, a changed file
in a folder that modules came from, a variable changed that was read while they were imported. What
is sent to the background is refused too: others signal it, and it may stay. All children of a server
have one seed of hashes.
"""

from __future__ import annotations

import gc
import importlib
import io
import json
import os
import runpy
import selectors
import shutil
import signal
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

READ_AT_START = ("PYTHON", "LD_", "LC_", "LANG", "TZ", "OMP_", "OPENBLAS_", "GOTO_", "MKL_", "NPY_",
                 "MALLOC_", "ARROW_", "RUST_", "GLIBC_", "FSSPEC_", "TQDM_")  # fmt: skip
"""Beginnings of variables that the interpreter, compiled libraries and those of WALKERS read."""
FOLLOWED = "PYTHONDONTWRITEBYTECODE", "PYTHONPATH"
"""Those of them that a child takes up."""
READ_LATE = ("PYTHONBREAKPOINT",)
"""Those that are read whenever they are used; Ray sets this one in a process that it starts from."""
WALKERS = {"fsspec", "tqdm"}
"""Packages that look through all variables for those whose beginning is theirs, which are above."""
BETWEEN = {"os", "posixpath", "_collections_abc", "collections.abc", __name__}
"""Modules through which they are read."""
IGNORED_BY_PYTHON = {signal.SIGPIPE, signal.SIGXFSZ}
CODE = Path(__file__).name


class RefusedError(Exception):
    """Why a command has to be a process of its own."""


@dataclass(frozen=True)
class Start:
    """What a process is started with."""

    words: tuple[str, ...]
    folder: str
    environment: Mapping[str, str]
    mask: int = 0o022
    ignored: frozenset[int] = frozenset()
    blocked: frozenset[int] = frozenset()

    @classmethod
    def of(cls, pid: int) -> Start:
        """Of a process that runs `shim.py`, by what the kernel tells of it."""
        place = Path("/proc") / str(pid)
        told = dict(line.split(":\t", 1) for line in (place / "status").read_text().splitlines())
        words = (os.fsdecode(word) for word in (place / "cmdline").read_bytes().split(b"\0")[:-1])
        return cls(
            tuple(words)[3:],  # behind the interpreter, its options and the shim
            str((place / "cwd").readlink()),
            _started_with(place),
            int(told["Umask"], 8),
            _signals(told["SigIgn"]),
            _signals(told["SigBlk"]),
        )

    @property
    def path(self) -> list[str]:
        """Folders that modules are looked for in before those of the interpreter."""
        folders = self.environment.get("PYTHONPATH", "").split(os.pathsep)
        return [str(Path(self.folder) / one) for one in ("", *filter(None, folders))]


def _signals(mask: str) -> frozenset[int]:
    bits = int(mask, 16)
    return frozenset(n for n in range(1, signal.NSIG) if bits >> (n - 1) & 1)


def _started_with(place: Path) -> dict[str, str]:
    """The environment that a process was started with."""
    pairs = (place / "environ").read_bytes().split(b"\0")
    return dict(os.fsdecode(pair).partition("=")[::2] for pair in pairs if b"=" in pair)


def _same_place(pid: int) -> str:
    """User, limits and namespaces of a process, as far as they can differ from this one's."""
    place = Path("/proc") / str(pid)
    kept = ("Uid", "Gid", "Groups", "CapEff", "NoNewPrivs", "Seccomp", "Cpus_allowed")
    told = [line for line in (place / "status").read_text().splitlines() if line.startswith(kept)]
    spaces = [str(link.readlink()) for link in sorted((place / "ns").iterdir())]
    return "\n".join([*told, (place / "limits").read_text(), *spaces])


@dataclass
class Imported:
    """What was imported, and what that was made of."""

    reads: dict[str, str | None] = field(default_factory=dict)  # variables that were read
    writes: dict[str, str | None] = field(default_factory=dict)  # and those that were set
    start: dict[str, str] = field(default_factory=dict)  # variables read by compiled code
    path: list[str] = field(default_factory=list)
    files: frozenset[tuple[str, int, int]] = frozenset()

    def load(self, modules: Iterable[str], path: list[str]) -> None:
        """Import modules, of which none may start a thread."""
        before = dict(os.environ)
        theirs = {name: value for name, value in before.items() if name not in self.writes}
        with _noted_reads() as names:
            for name in modules:
                importlib.import_module(name)
        self.reads |= {name: before.get(name) for name in names - {*self.reads, *self.writes}}
        changed = {name for name in before | os.environ if before.get(name) != os.environ.get(name)}
        self.writes |= {name: os.environ.get(name) for name in changed}
        self.start = _read_at_start(theirs)
        self.path, self.files = path, _files(path)
        threads = len(list(Path("/proc/self/task").iterdir()))
        assert threading.active_count() == threads == 1, f"{threads} threads run before a fork"

    def check(self, environment: Mapping[str, str], path: list[str], *, grow: bool = False) -> None:
        """Refuse what would have been imported otherwise; `grow`: nothing of a folder is here yet."""
        if not grow and (path != self.path or _files(path) != self.files):
            raise RefusedError("other code")
        other = {name for name, value in self.reads.items() if environment.get(name) != value}
        other |= {name for name, _ in self.start.items() ^ _read_at_start(environment).items()}
        if other:
            raise RefusedError(f"other variables: {', '.join(sorted(other))}")


def _read_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in environment.items()
        if name.startswith(READ_AT_START) and name not in {*FOLLOWED, *READ_LATE}
    }


@contextmanager
def _noted_reads() -> Iterator[set[str]]:
    """Names of the variables that are read in the block."""
    names: set[str] = set()
    kind: Any = type(os.environ)
    get, walk = kind.__getitem__, kind.__iter__

    def noting(self: Any, name: Any) -> Any:
        if _reader() not in (("sysconfig",) if name == "HOME" else WALKERS):
            names.add(os.fsdecode(name))
        return get(self, name)

    def walking(self: Any) -> Any:
        assert _reader() in WALKERS, f"{_reader()} reads all variables: say which it uses"
        return walk(self)

    kind.__getitem__, kind.__iter__ = noting, walking
    try:
        yield names
    finally:
        kind.__getitem__, kind.__iter__ = get, walk


def _reader() -> str:
    """The package that reads a variable, through whichever functions of the standard library."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_globals.get("__name__") in BETWEEN:
        frame = frame.f_back
    return str(frame.f_globals.get("__name__")).partition(".")[0]


def _files(path: list[str]) -> frozenset[tuple[str, int, int]]:
    """Files in the folders that imported packages came from, and what would hide one of them."""
    loaded = {name.partition(".")[0] for name in sys.modules}
    found: list[tuple[str, int, int]] = []
    for folder in path:
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.partition(".")[0] in loaded:
                    found += _below(entry)
    return frozenset(found)


def _below(entry: os.DirEntry[str]) -> Iterator[tuple[str, int, int]]:
    if entry.name in {"__pycache__", "node_modules"}:
        return
    if entry.is_dir():
        yield entry.path, 0, 0
        with os.scandir(entry.path) as entries:
            for one in entries:
                yield from _below(one)
    else:
        of = entry.stat()
        yield entry.path, of.st_mtime_ns, of.st_size


class Zygote:
    """The loop of a server, until it is the child of a request or nobody is there any more."""

    def __init__(
        self, listener: socket.socket, link: socket.socket, imported: Imported, base: list[str]
    ) -> None:
        self.listener, self.link, self.imported, self.base = listener, link, imported, base
        self.own = _same_place(os.getpid())
        self.children: dict[int, tuple[int, socket.socket]] = {}  # by what tells of the end
        self.told: Counter[str] = Counter()
        self.waiting = selectors.DefaultSelector()
        for one in (listener, link):
            self.waiting.register(one, selectors.EVENT_READ)

    def serve(self) -> tuple[Start, list[int], socket.socket, bytes]:
        """Only children come back: with what they are to be, streams, connection and request."""
        gc.collect()
        gc.freeze()
        while True:
            for key, _ in self.waiting.select():
                if key.fileobj is self.listener:
                    if request := self._accept():
                        return request
                elif key.fileobj is self.link:
                    self._end()
                elif isinstance(key.fileobj, int):
                    self._reap(key.fileobj)
                else:
                    self._forward(*key.data)

    def _accept(self) -> tuple[Start, list[int], socket.socket, bytes] | None:
        connection, _ = self.listener.accept()
        request, streams, _, _ = socket.recv_fds(connection, 1 << 16, 3)
        try:
            asker = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
            pid = int.from_bytes(asker[:4], sys.byteorder)
            start = self._checked(request, pid)
        except (RefusedError, OSError) as why:
            self.told[str(why)] += 1
            if request.startswith(b"{"):
                print(why, flush=True)
            connection.close()
            for number in streams:
                os.close(number)
            return None
        self.told["warm"] += 1
        if child := os.fork():
            for number in streams:
                os.close(number)
            ended = os.pidfd_open(child)
            self.waiting.register(ended, selectors.EVENT_READ)
            if request.startswith(b"{"):
                connection.close()  # it is a server, and ends when the connection does
            else:
                self.waiting.register(connection, selectors.EVENT_READ, (connection, child))
            self.children[ended] = child, connection
            return None
        self._forget()
        return start, streams, connection, request

    def _checked(self, request: bytes, pid: int) -> Start:
        if request.startswith(b"{"):
            asked = json.loads(request)
            start = Start((), asked["folder"], asked["environment"])
            self.imported.check(start.environment, start.path, grow=True)
            return start
        start = Start.of(pid)
        if _same_place(pid) != self.own:
            raise RefusedError("another user, limit or namespace")
        if signal.SIGINT in start.ignored:
            raise RefusedError("in the background")
        streams = {"0", "1", "2"}
        others = [
            file for file in (Path("/proc") / str(pid) / "fd").iterdir()
            if file.name not in streams and not str(file.readlink()).startswith("socket:")
        ]  # fmt: skip
        if others:
            raise RefusedError("a file open that is no stream")
        if start.words[1].partition(".")[0] not in sys.modules:
            raise RefusedError("another module")
        self.imported.check(start.environment, start.path)
        return start

    def _reap(self, ended: int) -> None:
        child, connection = self.children.pop(ended)
        _, status = os.waitpid(child, 0)
        with suppress(OSError):
            connection.sendall(status.to_bytes(4, sys.byteorder))
        with suppress(KeyError, ValueError):
            self.waiting.unregister(connection)
        self.waiting.unregister(ended)
        connection.close()
        os.close(ended)

    def _forward(self, connection: socket.socket, child: int) -> None:
        """Signals for a child; whoever asked for it and is gone takes it along."""
        if connection.fileno() < 0:
            return  # it has just ended
        try:
            numbers = connection.recv(16)
        except OSError:
            numbers = b""
        for number in numbers or (signal.SIGKILL,):
            os.kill(child, number)
        if not numbers:
            self.waiting.unregister(connection)

    def _end(self) -> None:
        """End with all children: nobody is there any more who wants them."""
        for child, _ in self.children.values():
            os.kill(child, signal.SIGKILL)
        with suppress(OSError):
            self.link.sendall(json.dumps(self.told).encode() + b"\n")
        # Whoever started it may be gone without a word.
        with suppress(OSError):
            shutil.rmtree(Path(self.listener.getsockname()).parent, ignore_errors=True)
        os._exit(0)

    def _forget(self) -> None:
        """In a child: close what is the server's."""
        self.waiting.close()
        for ended, (_, connection) in self.children.items():
            os.close(ended)
            connection.close()
        self.listener.close()
        self.link.close()


def become(start: Start, streams: list[int], imported: Imported, base: list[str]) -> None:
    """Make this process what a new interpreter would be."""
    for number in range(1, signal.NSIG):
        with suppress(OSError, ValueError):
            ignored = number in start.ignored or number in IGNORED_BY_PYTHON
            default = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            signal.signal(number, signal.SIG_IGN if ignored else default)
    signal.pthread_sigmask(signal.SIG_SETMASK, start.blocked)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(start.folder)
    os.umask(start.mask)
    os.environ.clear()
    os.environ.update(start.environment)
    for name, value in imported.writes.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value
    time.tzset()
    sys.dont_write_bytecode = bool(start.environment.get("PYTHONDONTWRITEBYTECODE"))
    sys.path[:] = list(dict.fromkeys([*start.path, *base]))
    importlib.invalidate_caches()
    sys.stdin = sys.__stdin__ = _stream(0, "<stdin>", "r")  # type: ignore[misc]
    sys.stdout = sys.__stdout__ = _stream(1, "<stdout>", "w")  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _stream(2, "<stderr>", "w")  # type: ignore[misc]
    if "sysconfig" in sys.modules:
        sysconfig = sys.modules["sysconfig"]
        sysconfig.get_config_vars()["userbase"] = sysconfig._getuserbase()  # of another HOME
    if "tempfile" in sys.modules:
        sys.modules["tempfile"].tempdir = None  # type: ignore[attr-defined]
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()


def _stream(number: int, name: str, mode: str) -> io.TextIOWrapper:
    """A standard stream as the interpreter opens it."""
    raw = io.FileIO(number, mode, closefd=False)
    raw.name = name
    at_once = mode == "w" and bool(os.environ.get("PYTHONUNBUFFERED"))
    buffered: Any = raw
    if not at_once:
        buffered = io.BufferedReader(raw) if mode == "r" else io.BufferedWriter(raw)
    old = (sys.stdin, sys.stdout, sys.stderr)[number]
    stream = io.TextIOWrapper(
        buffered, old.encoding, old.errors,
        newline=None if mode == "r" else "\n",
        line_buffering=number == 2 or (mode == "w" and raw.isatty()), write_through=at_once,
    )  # fmt: skip
    stream.mode = mode  # type: ignore[misc]
    return stream


def run(words: tuple[str, ...]) -> None:
    """What `python -m MODULE ...` does, in this interpreter."""
    _, module, *more = words
    sys.orig_argv = [sys.executable, *words]
    sys.argv = ["-m", *more]
    sys.modules["__main__"] = ModuleType("__main__")
    sys.modules["__main__"].__dict__["__builtins__"] = __builtins__
    # It is executed, so nobody may have imported it.
    for name in (module, f"{module}.__main__"):
        if not hasattr(sys.modules.get(name, runpy), "__path__"):
            sys.modules.pop(name, None)
    try:
        runpy._run_module_as_main(module)  # type: ignore[attr-defined]
    except Exception as error:  # noqa: BLE001 - an interpreter prints whatever it is
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename.endswith(CODE):
            trace = trace.tb_next
        sys.excepthook(type(error), error.with_traceback(trace), trace)
    else:
        return
    sys.exit(1)


def main() -> None:
    """Import what the command line names; then serve, until the standard input is closed."""
    listener, link = socket.socket(fileno=int(sys.argv[1])), socket.socket(fileno=0)
    base, imported = sys.path[1:], Imported()
    started_with = _started_with(Path("/proc/self"))
    # What an interpreter sets when it starts: LC_CTYPE, where no language is named.
    imported.writes = dict(os.environ.items() - started_with.items())
    imported.load(sys.argv[2:], [])
    link.sendall(b"y")
    start, streams, connection, request = Zygote(listener, link, imported, base).serve()
    while request.startswith(b"{"):
        become(start, streams, imported, base)
        asked = json.loads(request)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(asked["socket"])
        listener.listen(64)
        connection.sendall(b"y")
        imported.load(asked["modules"], start.path)
        start, streams, connection, request = Zygote(listener, connection, imported, base).serve()
    connection.sendall(b"y")
    become(start, streams, imported, base)
    # The server hears of the end by this process's end.
    connection.close()
    run(start.words)


if __name__ == "__main__":
    main()
