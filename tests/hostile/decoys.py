"""What a submission is after, put where it would be: made up, watched, and worth nothing."""

from __future__ import annotations

import ctypes
import os
import secrets
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PLACE = Path("/var/tmp")
"""Below it the decoys are laid out."""


@dataclass(frozen=True)
class Decoys:
    """Secrets in files, in memory and behind sockets of this machine.

    Attributes:
        folder: holds the files.
        secret: what is in them; nothing that is published may hold it.
        places: what a submission that knows everything would put into its source.
        heard: what came in over the sockets.
    """

    folder: Path
    secret: str
    places: Mapping[str, str]
    heard: list[str] = field(default_factory=list)

    def fill(self, text: str) -> str:
        """The text with every `@place@` replaced."""
        for name, value in self.places.items():
            text = text.replace(f"@{name}@", value)
        return text

    @property
    def canary(self) -> Path:
        """A file that nobody may change."""
        return self.folder / "canary"


@contextmanager
def decoys(folder: Path) -> Iterator[Decoys]:
    """Lay them out; the sockets are closed afterwards."""
    folder.mkdir(parents=True, exist_ok=True)
    secret = secrets.token_hex(16)
    heard: list[str] = []
    held = ctypes.create_string_buffer(secret[:8].encode())
    with ExitStack() as stack:
        sockets = {
            name: stack.enter_context(listening(name, open_, heard))
            for name, open_ in _openers(folder).items()
        }
        places = {
            **_files(folder, secret),
            **sockets,
            "project": str(REPOSITORY / "pyproject.toml"),
            "home": str(Path.home()),
            "worker": str(os.getpid()),
            "disk": _disk(),
            "shared": stack.enter_context(shared_memory()),
            # Turned round, so that the submission does not carry what it looks for.
            "end_of_secret": secret[:8][::-1],
            "address": str(ctypes.addressof(held)),
        }
        yield Decoys(folder, secret, places, heard)
        del held


def _files(folder: Path, secret: str) -> dict[str, str]:
    files = {
        "labels": "data/labels.csv",
        "other": "scratch/unpacked/other/module/scorer.py",
        "upload": "store/private/uploads/other.zip",
        "token_file": "home/token",
        "canary": "canary",
    }
    for name in files.values():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(secret)
        path.chmod(0o666 if name == "canary" else 0o644)
    (folder / "free").mkdir()
    (folder / "free").chmod(0o777)
    return {
        **{place: str(folder / name) for place, name in files.items()},
        "decoys": str(folder / "free"),
        "scratch": str(folder / "free"),
    }


def _openers(folder: Path) -> dict[str, Callable[[], tuple[socket.socket, str]]]:
    return {
        "tcp4": lambda: _tcp(socket.AF_INET, "127.0.0.1"),
        "tcp6": lambda: _tcp(socket.AF_INET6, "::1"),
        "udp": _udp,
        "unix": lambda: _unix(str(folder / "socket")),
        "abstract": lambda: _unix("\0assay-" + secrets.token_hex(8)),
    }


def _tcp(family: socket.AddressFamily, host: str) -> tuple[socket.socket, str]:
    found = socket.create_server((host, 0), family=family)
    return found, str(found.getsockname()[1])


def _udp() -> tuple[socket.socket, str]:
    found = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    found.bind(("127.0.0.1", 0))
    return found, str(found.getsockname()[1])


def _unix(address: str) -> tuple[socket.socket, str]:
    found = socket.socket(socket.AF_UNIX)
    found.bind(address)
    found.listen()
    if not address.startswith("\0"):
        Path(address).chmod(0o777)
    return found, address.removeprefix("\0")


@contextmanager
def listening(
    name: str, open_: Callable[[], tuple[socket.socket, str]], heard: list[str]
) -> Iterator[str]:
    """Note whoever comes, until left."""
    found, address = open_()
    thread = threading.Thread(target=_listen, args=(found, name, heard), daemon=True)
    thread.start()
    try:
        yield address
    finally:
        # Wakes the thread; closing alone would leave it waiting on a number that is given anew.
        found.shutdown(socket.SHUT_RDWR) if found.type is socket.SOCK_STREAM else _wake(found)
        thread.join(60)
        found.close()


def _listen(found: socket.socket, name: str, heard: list[str]) -> None:
    while True:
        try:
            if found.type is socket.SOCK_STREAM:
                visitor, _ = found.accept()
                visitor.close()
            else:
                question, sender = found.recvfrom(999)
                if question == _ENOUGH:
                    return
                found.sendto(b"192.0.2.1", sender)
        except OSError:
            return
        heard.append(name)


_ENOUGH = b"enough"


def _wake(found: socket.socket) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
        last.sendto(_ENOUGH, found.getsockname())


@contextmanager
def shared_memory() -> Iterator[str]:
    """A piece of memory that every process of this machine may attach to, by its number."""
    libc = ctypes.CDLL(None, use_errno=True)
    number = libc.shmget(0, 4096, 0o1666)
    try:
        yield str(number)
    finally:
        libc.shmctl(number, 0, None)


def _disk() -> str:
    """A disk of this machine by its device file, if it has one."""
    with Path("/proc/partitions").open() as lines:
        names = [line.split()[-1] for line in lines if line.strip()[:1].isdigit()]
    return f"/dev/{names[0]}" if names else "/dev/disk-there-is-none"
