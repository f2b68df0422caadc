"""Docker and Podman, by the command lines of their clients."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from benchmarks.errors import PlatformError
from evaluator.isolation.supervising.text import one_line

_CALL_S = 60.0
_PIPE_BYTES = 1 << 20
_NO_FOLDER = "/nonexistent"


class EngineKind(StrEnum):
    """Which client is spoken to."""

    DOCKER = "docker"
    PODMAN = "podman"


class EngineError(Exception):
    """The client said no."""

    def __init__(self, said: str) -> None:
        super().__init__(said)
        self.said = said


@dataclass(frozen=True, slots=True)
class Container:
    """What an engine knows about a container.

    Attributes:
        pid: of its first process, as this machine sees it; 0 where it does not run.
        exit_code: once it has ended.
        out_of_memory: whether the kernel ended it for want of memory.
    """

    pid: int
    exit_code: int
    out_of_memory: bool


@dataclass(frozen=True)
class Engine:
    """How an engine is called here.

    Attributes:
        kind: which it is.
        executable: its client.
        options: of the client, before the command.
        runtime: what starts the containers; None for the engine's usual.
        environment: all that the client finds in its environment.
    """

    kind: EngineKind
    executable: str
    options: tuple[str, ...] = ()
    runtime: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def docker(
        cls, environ: Mapping[str, str], host: str | None = None, runtime: str | None = None
    ) -> Engine:
        """Docker, at its usual socket or at another of this machine.

        Args:
            environ: of the worker; a `DOCKER_HOST` there counts where no host is given.
            host: as `unix:///run/docker.sock`.
            runtime: one that the daemon is configured with.
        """
        where = host or environ.get("DOCKER_HOST")
        # Without a configuration of the user's: it can add variables to every container.
        own = _some(environ, "PATH", "HOME") | {"DOCKER_CONFIG": _NO_FOLDER}
        options = ("--host", where) if where else ()
        return cls(EngineKind.DOCKER, "docker", options, runtime, own)

    @classmethod
    def podman(
        cls,
        environ: Mapping[str, str],
        options: Sequence[str] = (),
        runtime: str | None = None,
    ) -> Engine:
        """Podman of the worker's user, as `containers.conf` sets it up.

        Args:
            environ: of the worker.
            options: further ones of the client, such as `--root`.
            runtime: one that Podman knows, or its path.
        """
        own = _some(environ, "PATH", "HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "TMPDIR")
        chosen = ("--runtime", runtime) if runtime else ()
        return cls(EngineKind.PODMAN, "podman", (*options, *chosen), runtime, own)

    def command(self, *words: str) -> list[str]:
        """The client with its options, and a command.

        Raises:
            PlatformError: `box_not_started`, the client is not installed.
        """
        found = shutil.which(self.executable, path=self.environment.get("PATH"))
        if found is None:
            raise PlatformError(
                "box_not_started",
                f"{self.kind.capitalize()} is not installed.",
                f"Install it (apt install {_PACKAGES[self.kind]}) and start the worker again.",
            )
        return [found, *self.options, *words]

    def call(self, *words: str, given: bytes = b"") -> str:
        """What a command prints.

        Args:
            words: the command.
            given: on its standard input.

        Raises:
            EngineError: it failed, or did not end in time.
            PlatformError: the client is not installed.
        """
        command = self.command(*words)
        try:
            done = subprocess.run(  # noqa: S603 - every word of it is ours or the operator's
                command, input=given, capture_output=True, timeout=_CALL_S, check=False,
                env=dict(self.environment), cwd="/",
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise EngineError(f"no answer within {_CALL_S:g} s") from error
        except OSError as error:
            raise _not_started(error) from error
        if done.returncode != 0:
            raise EngineError(one_line(done.stderr) or f"exit code {done.returncode}")
        return done.stdout.decode(errors="replace").strip()

    def attached(self, name: str) -> subprocess.Popen[bytes]:
        """Start a container that was created; the client stays attached to it by three pipes.

        Raises:
            EngineError: the client could not be started.
            PlatformError: it is not installed.
        """
        command = self.command("start", "--attach", "--interactive", name)
        try:
            return subprocess.Popen(  # noqa: S603 - every word of it is ours or the operator's
                command,
                bufsize=0,
                pipesize=_PIPE_BYTES,  # fewer turns between this process, client and engine
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=dict(self.environment),
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:
            raise _not_started(error) from error

    def container(self, name: str) -> Container | None:
        """What is known about a container; None where there is none of that name."""
        wanted = "{{.State.Pid}} {{.State.ExitCode}} {{.State.OOMKilled}}"
        try:
            told = self.call("container", "inspect", "--format", wanted, name).split()
        except EngineError as error:
            if "no such" in error.said.lower():
                return None
            raise
        return Container(int(told[0]), int(told[1]), told[2] == "true")

    def remove(self, name: str) -> None:
        """Kill and remove a container with all it has; nothing happens where there is none.

        Raises:
            EngineError: the engine could not.
        """
        # Podman would first ask kindly, and wait.
        at_once = ("--time", "0") if self.kind is EngineKind.PODMAN else ()
        try:
            self.call("rm", "--force", "--volumes", *at_once, name)
        except EngineError as error:
            if "no such" not in error.said.lower():
                raise

    def version(self) -> str:
        """Engine, version and runtime where one was chosen, as stored with results.

        Raises:
            EngineError: the engine does not run.
        """
        side = "Client" if self.kind is EngineKind.PODMAN else "Server"
        version = self.call("version", "--format", f"{{{{.{side}.Version}}}}")
        return f"{self.kind} {version}" + (f", {self.runtime}" if self.runtime else "")


_PACKAGES = {EngineKind.DOCKER: "docker.io", EngineKind.PODMAN: "podman"}


def this_machines() -> Mapping[str, str]:
    """The environment that clients are started with, if nothing else is said."""
    return dict(os.environ)


def _not_started(error: OSError) -> EngineError:
    return EngineError(f"its client could not be started: {error.strerror or error}")


def _some(environ: Mapping[str, str], *names: str) -> dict[str, str]:
    return {name: environ[name] for name in names if name in environ}
