"""How engines are spoken to, what a container starts from, and what is told where that fails."""

from __future__ import annotations

import io
import os
import signal
import stat
import subprocess
import sys
import tarfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from evaluator.isolation import containers
from evaluator.isolation.container_engine import (
    Container,
    Engine,
    EngineError,
    EngineKind,
    diagnose,
    named_pipes,
    skeleton,
)
from evaluator.isolation.containers import (
    ContainerSandbox,
    docker,
    podman,
    start_folder,
    sweep_folders,
    this_supervisor,
)
from tests.evaluator.isolation.inquiry import REPOSITORY
from tests.kit.processes import open_files


def test_pipes_have_no_names_once_a_box_runs_and_tell_when_nobody_reads(tmp_path: Path) -> None:
    with start_folder(tmp_path) as folder:
        pipes = named_pipes(folder)
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        reader = os.open(pipes.binds[0].source, os.O_RDONLY)
    assert not folder.exists()
    pipes.settle()
    os.write(pipes.requests, b"ask")
    assert os.read(reader, 9) == b"ask"
    os.close(reader)
    with pytest.raises(BrokenPipeError):
        os.write(pipes.requests, b"ask")
    pipes.close()


def test_pipes_that_cannot_be_made_leave_no_descriptor(tmp_path: Path) -> None:
    (tmp_path / "replies").touch()  # the second of them
    before = open_files()
    with pytest.raises(FileExistsError):
        named_pipes(tmp_path)
    assert not open_files() - before


def test_what_a_worker_killed_during_a_start_left_is_swept_by_the_next(tmp_path: Path) -> None:
    source = f"""
import os, signal
from pathlib import Path
from evaluator.isolation.container_engine import named_pipes
from evaluator.isolation.containers import start_folder
with start_folder(Path({str(tmp_path)!r})) as folder:
    named_pipes(folder)
    os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", source], cwd=REPOSITORY, check=False)
    assert done.returncode == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    assert {path.name for path in left.iterdir()} == {"requests", "replies"}
    with start_folder(tmp_path) as own:
        assert sweep_folders(tmp_path) == 1
        assert list(tmp_path.iterdir()) == [own]


def test_only_folders_of_ones_own_workers_that_are_gone_are_swept(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        pass
    namespace = this_supervisor().rpartition("-")[2]
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "kept").mkdir(parents=True)
    place = tmp_path / "place"
    place.mkdir()
    for name in (f"{gone.pid}-1-17-a", "odd", f"{gone.pid}-1-{namespace}", "--x-y-z"):
        (place / f"assay-start-{name}").mkdir()
    (place / f"assay-start-{gone.pid}-1-{namespace}-link").symlink_to(elsewhere)
    (place / f"assay-start-{gone.pid}-1-{namespace}-gone").mkdir()
    before = {path.name for path in place.iterdir()}
    assert sweep_folders(place) == 1
    left = {path.name for path in place.iterdir()}
    assert before - left == {f"assay-start-{gone.pid}-1-{namespace}-gone"}
    assert (elsewhere / "kept").is_dir()


def test_the_image_is_empty_folders_and_links_and_always_the_same() -> None:
    with tarfile.open(fileobj=io.BytesIO(skeleton())) as archive:
        entries = archive.getmembers()
    assert all(entry.isdir() or entry.issym() for entry in entries)
    assert {"usr", "submission", "runner", "scratch", "models", "lib64"} <= {
        e.name for e in entries
    }
    assert skeleton() == skeleton()


def test_without_an_engine_the_remedy_is_told(tmp_path: Path) -> None:
    environ = {"PATH": str(tmp_path)}
    for backend, package in ((docker(environ), "docker.io"), (podman(environ), "podman")):
        probe = backend.probe()
        assert not probe.ok
        assert "is not installed" in probe.reason
        assert f"apt install {package}" in probe.remedy


def test_clients_are_started_with_little_of_the_workers_environment() -> None:
    environ = {"PATH": "/usr/bin", "HF_TOKEN": "secret", "http_proxy": "x", "HOME": "/home/ada"}
    made = [Engine.docker(environ | {"DOCKER_CONFIG": "/home/ada"}), Engine.podman(environ)]
    for engine in made:
        assert set(engine.environment) <= {"PATH", "HOME", "DOCKER_CONFIG"}
    assert made[0].environment["DOCKER_CONFIG"] == "/nonexistent"


def test_the_workers_docker_host_counts_unless_another_is_named() -> None:
    environ = {"DOCKER_HOST": "unix:///run/user/1000/docker.sock"}
    assert Engine.docker(environ).options == ("--host", environ["DOCKER_HOST"])
    assert Engine.docker(environ, "unix:///x").options == ("--host", "unix:///x")
    assert Engine.docker({}).options == ()


@pytest.mark.parametrize(
    ("said", "reason", "remedy"),
    [
        ("Cannot connect to the Docker daemon at unix:///x", "does not run", "systemctl start"),
        ("permission denied while trying to connect to", "may not speak", "group docker"),
        ("unknown or invalid runtime name: runsc", "no runtime", "daemon.json"),
        ("crun: cgroups in hybrid mode not supported", "cgroups", "runc"),
        ("could not select device driver with capabilities", "graphics card", "toolkit"),
        ("Error: No such image: x", "not on this machine", "Pull"),
        ("something new", "something new", "by hand"),
        ("", "printed nothing", "by hand"),
    ],
)
def test_each_known_trouble_has_its_remedy(said: str, reason: str, remedy: str) -> None:
    told = diagnose(EngineKind.DOCKER, said)
    assert reason in told[0]
    assert remedy in told[1]


def test_an_engine_that_fails_says_why(tmp_path: Path) -> None:
    client = tmp_path / "docker"
    client.write_text("#!/bin/sh\necho 'bad \033[31mnews' >&2; exit 3\n")
    client.chmod(0o755)
    with pytest.raises(EngineError) as caught:
        Engine(EngineKind.DOCKER, str(client)).call("ps")
    assert caught.value.said == "bad news"


def test_a_client_that_cannot_be_started_is_an_engine_that_fails(tmp_path: Path) -> None:
    client = tmp_path / "docker"
    client.write_text("no program")
    client.chmod(0o755)
    engine = Engine(EngineKind.DOCKER, str(client))
    with pytest.raises(EngineError, match="could not be started"):
        engine.call("ps")
    with pytest.raises(EngineError, match="could not be started"):
        engine.attached("box")


# An engine that learns a moment later why a container ended is asked again
@dataclass
class _Client:
    returncode: int = 137

    def poll(self) -> int:
        return self.returncode


@dataclass
class _Late:
    """Says that a container was starved from the given time it is asked on."""

    from_ask: int
    asked: list[str] = field(default_factory=list)

    def container(self, name: str) -> Container | None:
        self.asked.append(name)
        return Container(0, 137, len(self.asked) >= self.from_ask)


def _box(engine: _Late, client: _Client) -> ContainerSandbox:
    return ContainerSandbox(cast(Any, client), engine=cast(Engine, engine), name="one")


def test_what_the_engine_learns_late_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(containers, "_ENDED_LOOK_EVERY_S", 0.0)
    engine = _Late(3)
    assert _box(engine, _Client()).out_of_memory()
    assert len(engine.asked) == 3


def test_it_is_not_asked_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(containers, "_STARVED_TOLD_WITHIN_S", 0.05)
    assert not _box(_Late(10**9), _Client()).out_of_memory()


def test_who_was_not_killed_was_not_starved() -> None:
    engine = _Late(1)
    assert not _box(engine, _Client(1)).out_of_memory()
    assert engine.asked == []
