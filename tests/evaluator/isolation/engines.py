"""Container engines of the tests' own: private sockets and folders, ended whatever happens."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from evaluator.isolation.container_engine import Engine, EngineError
from evaluator.isolation.processes import PROC, pids_where
from tests.kit.processes import running

STARTS_WITHIN_S = 60.0
ENDS_WITHIN_S = 20.0
_TOOLS_OF_DOCKER = ("dockerd", "docker", "containerd", "runc", "setpriv")
_CGROUPS = Path("/sys/fs/cgroup")
_OF_PODMAN = "libpod_parent"


def client_environment() -> Mapping[str, str]:
    """What the clients are started with: where programs are, and no more."""
    return {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}


def require_tools(*names: str) -> None:
    """Skip where a program is missing, or where only root could start it."""
    missing = [name for name in names if shutil.which(name) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    if os.geteuid() != 0:
        pytest.skip("a daemon of the tests' own needs root")


@contextmanager
def docker_daemon() -> Iterator[str]:
    """A Docker daemon that knows gVisor where it is installed; gives the address of its socket."""
    require_tools(*_TOOLS_OF_DOCKER)
    # Not below pytest's folder: the name of a socket may have only a hundred characters.
    folder = Path(tempfile.mkdtemp(prefix="assay-docker-"))
    host = f"unix://{folder}/docker.sock"
    config = folder / "daemon.json"
    config.write_text(json.dumps({"runtimes": _runtimes()}))
    command = [
        # It ends with the process of the tests, should that be killed.
        "setpriv", "--pdeathsig", "TERM",
        "dockerd", "--config-file", config, "--host", host,
        "--data-root", folder / "data", "--exec-root", folder / "exec",
        "--pidfile", folder / "pid", "--iptables=false", "--ip6tables=false",
        "--bridge=none", "--storage-driver", "vfs", "--cgroup-parent", f"/{folder.name}",
    ]  # fmt: skip
    log = folder / "log"
    try:
        with (
            log.open("wb") as output,
            running(command, stdout=output, stderr=output, env=client_environment()) as daemon,
        ):
            _await_daemon(Engine.docker(client_environment(), host), daemon, log)
            yield host
            daemon.terminate()  # It ends what it started itself.
            with suppress(subprocess.TimeoutExpired):
                daemon.wait(ENDS_WITHIN_S)
    finally:
        _clear(folder)
        _remove_cgroups(_cgroups(folder.name))


@contextmanager
def podman_engine() -> Iterator[Engine]:
    """Podman with folders of its own, and a runtime that knows every version of cgroups."""
    require_tools("podman", "runc")
    folder = Path(tempfile.mkdtemp(prefix="assay-podman-"))
    options = (
        "--root", str(folder / "root"), "--runroot", str(folder / "run"),
        "--tmpdir", str(folder / "tmp"), "--storage-driver", "vfs",
        "--cgroup-manager", "cgroupfs", "--events-backend", "none",
    )  # fmt: skip
    engine = Engine.podman(client_environment(), options, runtime="runc")
    before = _cgroups(_OF_PODMAN)
    try:
        yield engine
    finally:
        with suppress(EngineError):  # whatever it says, nothing of it stays
            engine.call("rm", "--all", "--force", "--time", "0")
        _clear(folder)
        _remove_cgroups(_cgroups(_OF_PODMAN) - before)


def mounts_below(folder: Path) -> list[Path]:
    """Places below a folder where something is mounted, the deepest first."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    places = [Path(line.split()[4]) for line in lines]
    return sorted((p for p in places if p.is_relative_to(folder)), reverse=True)


def _runtimes() -> dict[str, object]:
    found = shutil.which("runsc")
    if found is None:
        return {}
    # Without a virtual machine below, gVisor watches calls by ptrace: slow, but everywhere.
    return {"runsc": {"path": found, "runtimeArgs": ["--network=none", "--platform=ptrace"]}}


def _await_daemon(engine: Engine, daemon: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + STARTS_WITHIN_S
    while daemon.poll() is None and time.monotonic() < deadline:
        try:
            engine.version()
        except EngineError:
            time.sleep(0.2)
        else:
            return
    pytest.fail(f"dockerd did not start: {log.read_text(errors='replace')[-1000:]}")


def _clear(folder: Path) -> None:
    """Kill whatever was started for a folder, which nobody else names, and remove the folder."""
    deadline = time.monotonic() + ENDS_WITHIN_S
    while left := pids_where(lambda pid: _names(pid, folder)):
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            pytest.fail(f"still running for {folder}: {left}")
        time.sleep(0.05)
    for place in mounts_below(folder):
        subprocess.run(["umount", "--lazy", str(place)], check=True)
    shutil.rmtree(folder)


def _names(pid: int, folder: Path) -> bool:
    command = (PROC / str(pid) / "cmdline").read_bytes()
    return pid != os.getpid() and os.fsencode(folder) in command


def _cgroups(name: str) -> set[Path]:
    """Control groups of a name, below the root of each tree."""
    return {path for path in (*_CGROUPS.glob(name), *_CGROUPS.glob(f"*/{name}")) if path.is_dir()}


def _remove_cgroups(places: Iterable[Path]) -> None:
    for place in places:
        for folder in sorted((path for path in place.rglob("*/") if path.is_dir()), reverse=True):
            with suppress(OSError):  # another's containers may be in it by now
                folder.rmdir()
        with suppress(OSError):
            place.rmdir()
