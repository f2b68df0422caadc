"""A `python` for commands of tests that has imported already what they import.

`shared_server` has the packages of others. Its `python` is for one folder and environment: first on
PATH it runs `python -m evaluator ...` there, and whatever cannot be run so by the interpreter itself.
See `zygote`.
"""

from __future__ import annotations

import atexit
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.kit.processes import running
from tests.kit.warm.zygote import FOLLOWED

HERE = Path(__file__).resolve().parent
COMMANDS = HERE.parents[2] / "evaluator" / "commands"
LIBRARIES = (
    "PIL.Image", "jinja2", "numpy", "pandas", "pydantic", "pyarrow", "rich.console", "scipy.stats",
    "typer", "yaml",
)  # fmt: skip
"""Packages that commands import, whatever is set in the environment."""
MODULES = (
    "evaluator.__main__",
    *sorted(f"evaluator.commands.{file.stem}" for file in COMMANDS.glob("[!_]*.py")),
)
START_S = 240.0
ONE_THREAD = {"JE_ARROW_MALLOC_CONF": "background_thread:false", "OPENBLAS_NUM_THREADS": "1"}
"""Of the server alone: what libraries would start a thread for when they are imported."""


@dataclass(frozen=True)
class WarmServer:
    """A server of all folders, with the libraries imported."""

    folder: Path

    @contextmanager
    def python(
        self, folder: Path, environment: Mapping[str, str], modules: Sequence[str] = MODULES
    ) -> Iterator[WarmPython]:
        """A `python` for the commands that are typed in a folder with such an environment."""
        with ExitStack() as around:
            place = Path(around.enter_context(tempfile.TemporaryDirectory(dir=self.folder)))
            named, link = str(place / "socket"), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            asked = {
                "socket": named,
                "folder": str(folder.resolve()),
                "environment": dict(environment),
                "modules": list(modules),
            }
            link = around.enter_context(link)
            link.settimeout(START_S)
            link.connect(str(self.folder / "socket"))
            with (place / "log").open("wb") as log, Path(os.devnull).open("rb") as nothing:
                streams = [nothing.fileno(), log.fileno(), log.fileno()]
                socket.send_fds(link, [json.dumps(asked).encode()], streams)
            assert link.recv(1) == b"y", (place / "log").read_text() or (
                self.folder / "log"
            ).read_text()
            yield WarmPython(_shim(place / "bin", named), link, place / "log")


@dataclass(frozen=True)
class WarmPython:
    """A `python` in a folder of its own."""

    folder: Path
    link: socket.socket
    log: Path

    @property
    def program(self) -> Path:
        return self.folder / "python"

    def stop(self) -> dict[str, int]:
        """End it: how many commands it ran (`warm`), and how many it refused, by reason."""
        self.link.shutdown(socket.SHUT_WR)
        with self.link.makefile("rb") as answer:
            counts: dict[str, int] = json.loads(answer.readline() or "{}")
        return counts

    def ended(self) -> str:
        """What it printed, once it has ended by itself."""
        assert self.link.recv(1) == b""
        return self.log.read_text()


@contextmanager
def warm_server(
    environment: Mapping[str, str], libraries: Sequence[str] = LIBRARIES
) -> Iterator[WarmServer]:
    """A server with libraries imported; it ends with the block, and so do all its children."""
    ours, theirs = socket.socketpair()
    with (
        tempfile.TemporaryDirectory(prefix="assay-warm-") as name,
        Path(name, "log").open("wb") as log,
        ours,
        theirs,
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener,
    ):
        listener.bind(f"{name}/socket")
        listener.listen(64)
        clean = {k: v for k, v in environment.items() if k not in FOLLOWED}
        command = [sys.executable, HERE / "zygote.py", listener.fileno(), *libraries]
        with running(
            command, cwd=name, env={**clean, **ONE_THREAD}, stdin=theirs, stdout=log,
            stderr=subprocess.STDOUT,
            pass_fds=[listener.fileno()],
        ):  # fmt: skip
            theirs.close()
            yield WarmServer(Path(name))
            ours.close()


@cache
def lasting() -> ExitStack:
    """What lasts as long as this process."""
    stack = ExitStack()
    atexit.register(stack.close)
    return stack


@cache
def shared_server() -> WarmServer:
    """The server of this process, with the libraries imported; it ends when this process does."""
    return lasting().enter_context(warm_server(os.environ))


def _shim(folder: Path, named: str) -> Path:
    """A folder with a `python` that asks the server at a socket."""
    folder.mkdir()
    source = (HERE / "shim.py").read_text()
    source = source.replace('SOCKET = ""\n', f"SOCKET = {named!r}\n")
    source = source.replace('REAL = ""\n', f"REAL = {sys.executable!r}\n")
    program = folder / "python"
    program.write_text(f"#!{sys.executable} -IS\n{source}")
    program.chmod(0o755)
    return folder
