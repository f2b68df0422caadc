"""Docker and Podman, by the command lines of their clients: arguments, errors, images, pipes.

An engine would copy every byte three times. The pipes have names, are bound into the container as
files, and are never on a disk; their names are gone once both sides have them open. gVisor lets no
pipe of this machine in; there the attached client carries the protocol.
"""

from __future__ import annotations

import csv
import fcntl
import hashlib
import io
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from benchmarks.errors import PlatformError
from evaluator.isolation import layout
from evaluator.isolation.job import MIB, Job, Limits
from evaluator.isolation.layout import BUNDLE_FOLDER, RUNNER, Bind, Interpreter
from evaluator.isolation.session import one_line

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


def ready_image(engine: Engine) -> str:
    """Reference of the empty image, made where it is not there yet, without any network."""
    archive = skeleton()
    name = f"localhost/assay-box:{hashlib.sha256(archive).hexdigest()[:16]}"
    try:
        engine.call("image", "inspect", "--format", "{{.Id}}", name)
    except EngineError as error:
        if "no such" not in error.said.lower() and "not known" not in error.said.lower():
            raise
        engine.call("import", "-", name, given=archive)
    return name


FIRST = "first"
"""Module of the bundle that is the first process of a container."""

BOX_LABEL = "assay.box"
SUPERVISOR_LABEL = "assay.supervisor"

_OWN_PROCESSES = 8
"""Beside the scorer's: the first one, and those that come and go while a container starts."""
_GVISOR_PROCESSES = 1024
"""Its own threads, and room to be stopped by the watchdog: at the bound it would crash instead."""
_GVISOR_BYTES = 64 * MIB
_FILES_PER_FOLDER = 100_000


@dataclass(frozen=True)
class BoxPlan:
    """One container, before it is started."""

    name: str  # unique on this machine
    supervisor: str  # who it belongs to, for those who sweep
    image: str  # reference that the engine has
    uid: int  # user and group inside
    limits: Limits  # of the job
    binds: tuple[Bind, ...]  # what it sees of this machine
    variables: Mapping[str, str]  # all of its environment
    command: tuple[str, ...]  # what runs in it
    profile: Path  # file with the system-call filter
    device: str = "cpu"  # `cpu`, or `cuda` with or without a number
    runtime: str | None = None  # what starts it; None for the engine's usual
    gvisor: bool = False  # whether that is gVisor, which needs some memory and processes itself
    processors: int = field(default_factory=lambda: os.cpu_count() or 1)


def memory_bound(limits: Limits, *, gvisor: bool) -> int:
    """Bytes that the kernel holds a container to."""
    return limits.memory_bytes + (_GVISOR_BYTES if gvisor else 0)


def process_bound(limits: Limits, *, gvisor: bool) -> int:
    """Processes and threads that the kernel lets a container have."""
    return limits.processes + (_GVISOR_PROCESSES if gvisor else _OWN_PROCESSES)


def arguments(kind: EngineKind, plan: BoxPlan) -> list[str]:
    """What creates it: the words behind the client's name and options."""
    return [
        *("create", "--interactive", "--pull", "never", "--name", plan.name),
        *("--label", f"{BOX_LABEL}=1", "--label", f"{SUPERVISOR_LABEL}={plan.supervisor}"),
        *("--network", "none", "--ipc", "private", "--cgroupns", "private"),
        *("--hostname", "sandbox", "--log-driver", "none", "--no-healthcheck"),
        *("--user", f"{plan.uid}:{plan.uid}", "--cap-drop", "ALL"),
        *("--security-opt", "no-new-privileges", "--security-opt", f"seccomp={plan.profile}"),
        *("--read-only", "--workdir", layout.SCRATCH),
        *_limits(plan),
        *_memory_folders(kind, plan.limits),
        *_only(kind, plan),
        *_device(kind, plan.device),
        *(word for bind in plan.binds for word in ("--mount", _mount(bind))),
        # Variables of the image and of the engine do not reach what runs.
        *("--entrypoint", "/usr/bin/env", plan.image, "-i"),
        *(f"{name}={value}" for name, value in plan.variables.items()),
        *plan.command,
    ]


def binds(interpreter: Interpreter, job: Job | None, *, exists: Iterable[Path]) -> tuple[Bind, ...]:
    """What a container sees of this machine."""
    return (
        Bind(BUNDLE_FOLDER / f"{FIRST}.py", f"{layout.RUNNER}/{FIRST}.py"),
        Bind(Path("/usr"), "/usr"),
        *(Bind(path, str(path)) for path in exists),
        *layout.binds(interpreter, job),
    )


def with_first(command: Sequence[str], *options: str) -> tuple[str, ...]:
    """A command of the bundle, run by the first process of a container."""
    module = list(command).index(layout.RUNNER) + 1
    return (*command[:module], FIRST, *options, *command[module:])


def _limits(plan: BoxPlan) -> Iterator[str]:
    limits = plan.limits
    memory = str(memory_bound(limits, gvisor=plan.gvisor))
    yield from ("--memory", memory, "--memory-swap", memory)
    yield from ("--pids-limit", str(process_bound(limits, gvisor=plan.gvisor)))
    yield from ("--cpus", str(min(limits.threads, plan.processors)))
    yield from ("--ulimit", f"nofile={limits.open_files}:{limits.open_files}")
    yield from ("--ulimit", "core=0:0")


def _memory_folders(kind: EngineKind, limits: Limits) -> Iterator[str]:
    for folder, n_bytes in layout.memory_folders(limits).items():
        if folder == "/dev/shm":  # noqa: S108 - a name inside
            yield from ("--shm-size", str(n_bytes))
            continue
        options = f"rw,exec,nosuid,nodev,mode=1777,size={n_bytes}"
        if kind is EngineKind.DOCKER:  # Podman knows no such option
            options += f",nr_inodes={_FILES_PER_FOLDER}"
        yield from ("--tmpfs", f"{folder}:{options}")
    # Engines put a folder of message queues here that can be written to.
    yield from ("--tmpfs", "/dev/mqueue:ro,noexec,nosuid,nodev,size=4096,mode=0555")


def _only(kind: EngineKind, plan: BoxPlan) -> Iterator[str]:
    """What the two say differently, or only one of them does unasked."""
    if kind is EngineKind.DOCKER:
        yield from ("--runtime", plan.runtime) if plan.runtime else ()
        yield from ("--dns", "192.0.2.1")  # nobody's, instead of this machine's name servers
        return
    yield from ("--http-proxy=false", "--read-only-tmpfs=false", "--systemd=false")
    yield from ("--no-hosts", "--image-volume=ignore")
    # Its own default can be above what this machine allows. Above the other bound, which tells.
    processes = process_bound(plan.limits, gvisor=plan.gvisor) + _OWN_PROCESSES
    yield from ("--ulimit", f"nproc={processes}:{processes}")


def _device(kind: EngineKind, device: str) -> tuple[str, ...]:
    """A graphics card, by the NVIDIA container toolkit."""
    if device == "cpu":
        return ()
    family, _, number = device.partition(":")
    if family != "cuda" or not (number or "0").isdigit():
        raise PlatformError(
            "device_unavailable",
            f"A container cannot be given the device {device!r}.",
            "Score on the CPU, or on cuda or cuda:NUMBER.",
        )
    if kind is EngineKind.DOCKER:
        return ("--gpus", f"device={number or '0'}")
    return ("--device", f"nvidia.com/gpu={number or '0'}")


def _mount(bind: Bind) -> str:
    """One `--mount`, which is a row of comma-separated values."""
    row = io.StringIO()
    fields = ["type=bind", f"source={bind.source}", f"target={bind.target}", "readonly"]
    csv.writer(row, lineterminator="").writerow(fields)
    return row.getvalue()


PIPE_NAMES = ("requests", "replies")


@dataclass(frozen=True, slots=True)
class Pipes:
    """This side of two pipes."""

    requests: int  # descriptor that is written to
    replies: int  # descriptor that is read from
    binds: tuple[Bind, ...]  # the pipes, as the container sees them

    def settle(self) -> None:
        """Once the other side reads: hold nothing but the end that is written to.

        Until then this side holds both, so that neither waits for the other to open its end; from
        now on it is told when nobody reads any more.
        """
        writing = os.open(f"/proc/self/fd/{self.requests}", os.O_WRONLY | os.O_NONBLOCK)
        os.dup2(writing, self.requests, inheritable=False)
        os.close(writing)

    def close(self) -> None:
        """Let go of both."""
        os.close(self.requests)
        os.close(self.replies)


def named_pipes(folder: Path) -> Pipes:
    """Pipes with names in a folder, to be removed once a box has them open."""
    paths = [folder / each for each in PIPE_NAMES]
    with ExitStack() as undo:
        opened = []
        for path, way in zip(paths, (os.O_RDWR, os.O_RDONLY), strict=True):
            os.mkfifo(path)
            path.chmod(0o666)  # for the user of the box; the folder is for this one alone
            opened.append(os.open(path, way | os.O_NONBLOCK | os.O_CLOEXEC))
            undo.callback(os.close, opened[-1])
            with suppress(PermissionError):  # where this user has many large pipes already
                fcntl.fcntl(opened[-1], fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        undo.pop_all()
    targets = (f"{RUNNER}/{each}" for each in PIPE_NAMES)
    return Pipes(opened[0], opened[1], tuple(map(Bind, paths, targets)))
