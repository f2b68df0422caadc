"""Docker and Podman, by the command lines of their clients; their errors, and the images they start."""

from __future__ import annotations

import hashlib
import io
import re
import shutil
import subprocess
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from benchmarks.errors import PlatformError
from evaluator.isolation import layout
from evaluator.isolation.layout import Interpreter
from evaluator.isolation.supervising.log import one_line

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
    """What an engine knows about a container."""

    pid: int  # of its first process, as this machine sees it; 0 where it does not run
    exit_code: int  # once it has ended
    out_of_memory: bool  # whether the kernel ended it for want of memory


@dataclass(frozen=True)
class Engine:
    """How an engine is called here."""

    kind: EngineKind  # which it is
    executable: str  # its client
    options: tuple[str, ...] = ()  # of the client, before the command
    runtime: str | None = None  # what starts the containers; None for the engine's usual
    # all that the client finds in its environment
    environment: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def docker(
        cls, environ: Mapping[str, str], host: str | None = None, runtime: str | None = None
    ) -> Engine:
        """Docker, at its usual socket or at another of this machine."""
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
        """Podman of the worker's user, as `containers.conf` sets it up."""
        own = _some(environ, "PATH", "HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "TMPDIR")
        chosen = ("--runtime", runtime) if runtime else ()
        return cls(EngineKind.PODMAN, "podman", (*options, *chosen), runtime, own)

    def command(self, *words: str) -> list[str]:
        """The client with its options, and a command."""
        found = shutil.which(self.executable, path=self.environment.get("PATH"))
        if found is None:
            raise PlatformError(
                "box_not_started",
                f"{self.kind.capitalize()} is not installed.",
                f"Install it (apt install {_PACKAGES[self.kind]}) and start the worker again.",
            )
        return [found, *self.options, *words]

    def call(self, *words: str, given: bytes = b"") -> str:
        """What a command prints."""
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
        """Start a container that was created; the client stays attached to it by three pipes."""
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
        """Kill and remove a container with all it has; nothing happens where there is none."""
        # Podman would first ask kindly, and wait.
        at_once = ("--time", "0") if self.kind is EngineKind.PODMAN else ()
        try:
            self.call("rm", "--force", "--volumes", *at_once, name)
        except EngineError as error:
            if "no such" not in error.said.lower():
                raise

    def version(self) -> str:
        """Engine, version and runtime where one was chosen, as stored with results."""
        side = "Client" if self.kind is EngineKind.PODMAN else "Server"
        version = self.call("version", "--format", f"{{{{.{side}.Version}}}}")
        return f"{self.kind} {version}" + (f", {self.runtime}" if self.runtime else "")


_PACKAGES = {EngineKind.DOCKER: "docker.io", EngineKind.PODMAN: "podman"}


def _not_started(error: OSError) -> EngineError:
    return EngineError(f"its client could not be started: {error.strerror or error}")


def _some(environ: Mapping[str, str], *names: str) -> dict[str, str]:
    return {name: environ[name] for name in names if name in environ}


_RUNTIME = (
    'Install runsc, name it in /etc/docker/daemon.json ({"runtimes": {"runsc": '
    '{"path": "/usr/bin/runsc"}}}) and restart Docker.'
)
_CGROUPS = (
    'Start the machine with cgroups of version 2, or set `runtime = "runc"` under [engine] in '
    "/etc/containers/containers.conf."
)
_TOOLKIT = "Install the NVIDIA container toolkit and its CDI files, or score on the CPU."
_PULL = "Pull the image on this machine; boxes never do."

_REMEDIES: tuple[tuple[str, str, str], ...] = (
    ("permission denied while trying to connect",
     "the worker's user may not speak to Docker",
     "Add it to the group docker, which makes it as good as root here, or use rootless Podman."),
    ("unknown runtime", "Docker knows no runtime of that name", _RUNTIME),
    ("unknown or invalid runtime", "Docker knows no runtime of that name", _RUNTIME),
    ("runtime not found", "Docker knows no runtime of that name", _RUNTIME),
    ("default oci runtime", "Podman does not find its runtime",
     "Install it (apt install runc), or name another in /etc/containers/containers.conf."),
    ("could not select device driver", "the engine cannot pass a graphics card on", _TOOLKIT),
    ("unresolvable cdi devices", "the engine cannot pass a graphics card on", _TOOLKIT),
    ("no such image", "the image is not on this machine", _PULL),
    ("unable to find image", "the image is not on this machine", _PULL),
    ("image not known", "the image is not on this machine", _PULL),
    ("hybrid mode", "Podman's runtime does not know this machine's cgroups", _CGROUPS),
    ("cgroup", "the engine cannot bound what a container takes", _CGROUPS),
    ("rlimit", "the engine may not set the limits of a process",
     "Raise the limits of the user that the engine runs as."),
    ("seccomp", "the engine does not take the system-call filter",
     "Install an engine and a runtime that are built with seccomp."),
    ("permission denied", "the engine cannot read what a box must hold",
     "Let every user read the Python installation, and look at the logs of SELinux or AppArmor."),
)  # fmt: skip
_NOT_RUNNING = ("cannot connect to the docker daemon", "connection refused", "is the docker daemon")


def diagnose(kind: EngineKind, said: str) -> tuple[str, str]:
    """Reason and remedy for what an engine's client said."""
    lower = said.lower()
    if any(sign in lower for sign in _NOT_RUNNING):
        return (
            f"Docker does not run, or not where it is looked for ({said}).",
            "Start it (systemctl start docker), or set DOCKER_HOST to its socket.",
        )
    for sign, reason, remedy in _REMEDIES:
        if sign in lower:
            return f"{reason[0].upper()}{reason[1:]} ({said}).", remedy
    told = said or "it printed nothing"
    return (
        f"{kind.capitalize()} could not start a box ({told}).",
        f"Try `{kind} run --rm --network none` by hand to see why.",
    )


_FOLDERS = (
    "dev", "etc", "opt", "proc", "run", "sys", "tmp", "usr",
    layout.RUNNER.lstrip("/"), layout.SUBMISSION.lstrip("/"),
    layout.SCRATCH.lstrip("/"), layout.MODELS.lstrip("/"),
)  # fmt: skip
_WRITABLE = {folder.lstrip("/") for folder in layout.MEMORY_FOLDERS}
_LINKS = ("bin", "lib", "lib64", "sbin")
_BY_DIGEST = re.compile(r"(?:[\w.:/-]+@)?sha256:[0-9a-f]{64}")
_SITE = "import sysconfig as s; print(s.get_path('purelib'), s.get_path('platlib'), sep='\\n')"


def skeleton() -> bytes:
    """A file system of empty folders and links into `/usr`, as an archive; always the same bytes."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name in sorted(_FOLDERS):
            entry = tarfile.TarInfo(name)
            # Memory that is put over a folder takes over its mode, whatever the engine is told.
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if name in _WRITABLE else 0o755
            archive.addfile(entry)
        for name in _LINKS:
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, f"usr/{name}"
            archive.addfile(entry)
    return buffer.getvalue()


class Image(Protocol):
    """Where a container starts from."""

    @property
    def binds_this_machine(self) -> bool:
        """Whether `/usr` of this machine is bound over it."""

    def ready(self, engine: Engine) -> str:
        """See that the engine has it, and give its reference."""

    def interpreter(self, engine: Engine) -> Interpreter:
        """Python and its libraries, by the names they have inside."""


@dataclass(frozen=True, slots=True)
class Skeleton:
    """The empty image, made where it is not there yet, without any network."""

    binds_this_machine: bool = True

    def ready(self, engine: Engine) -> str:
        """See `Image.ready`."""
        archive = skeleton()
        name = f"localhost/assay-box:{hashlib.sha256(archive).hexdigest()[:16]}"
        try:
            engine.call("image", "inspect", "--format", "{{.Id}}", name)
        except EngineError as error:
            if "no such" not in error.said.lower() and "not known" not in error.said.lower():
                raise
            engine.call("import", "-", name, given=archive)
        return name

    def interpreter(self, engine: Engine) -> Interpreter:  # noqa: ARG002 - of this machine
        """The running Python."""
        return Interpreter.running_inside()


@dataclass(frozen=True, slots=True)
class OperatorImage:
    """An image that has Python and the libraries itself."""

    reference: str  # with its digest, so that it cannot change unnoticed; pulled by the operator
    python: str = "python3"  # what is run in it
    binds_this_machine: bool = False

    def ready(self, engine: Engine) -> str:
        """See `Image.ready`."""
        if not _BY_DIGEST.fullmatch(self.reference):
            raise PlatformError(
                "box_not_started",
                f"The image {self.reference} is not named by its digest, so it may change.",
                "Name it as REPOSITORY@sha256:DIGEST; `docker images --digests` shows it.",
            )
        volumes = engine.call(
            "image", "inspect", "--format", "{{len .Config.Volumes}}", self.reference
        )
        if volumes != "0":
            raise PlatformError(
                "box_not_started",
                f"The image {self.reference} declares volumes, which a box could fill.",
                "Build it without VOLUME.",
            )
        return self.reference

    def interpreter(self, engine: Engine) -> Interpreter:
        """Ask the image where its libraries are."""
        printed = engine.call(
            "run", "--rm", "--network", "none", "--read-only", "--pull", "never",
            "--user", "65534:65534", "--cap-drop", "ALL", "--log-driver", "none",
            "--entrypoint", self.python, self.reference, "-I", "-c", _SITE,
        )  # fmt: skip
        return Interpreter(self.python, tuple(dict.fromkeys(printed.splitlines())))
