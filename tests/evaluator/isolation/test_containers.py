"""How engines are spoken to, what is told where they fail, and what the kernel says of a box."""

from __future__ import annotations

import io
import os
import stat
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from benchmarks.errors import PlatformError
from evaluator.isolation import container_sweep, layout
from evaluator.isolation.container_arguments import (
    BoxPlan,
    arguments,
    binds,
    process_bound,
    with_first,
)
from evaluator.isolation.container_cgroup import Bounds, bounds, cgroup_of, held_bytes
from evaluator.isolation.container_engine import Engine, EngineError, EngineKind
from evaluator.isolation.container_image import OperatorImage, skeleton
from evaluator.isolation.container_pipes import named_pipes
from evaluator.isolation.container_probe import Outside, seen_outside, verdict
from evaluator.isolation.container_trouble import diagnose
from evaluator.isolation.containers import Containers, docker, gvisor, podman
from evaluator.isolation.interpreter import Interpreter
from evaluator.isolation.job import Job
from evaluator.isolation.layers import REQUIRED, Layer
from evaluator.isolation.layout import Bind
from evaluator.isolation.limits import Limits
from tests.evaluator.isolation.engines import client_environment

BOTH = list(EngineKind)
DIGEST = f"registry.example/box@sha256:{'0' * 64}"


def plan(**others: object) -> BoxPlan:
    given: dict[str, object] = {
        "name": "assay-box-1",
        "supervisor": "1-2-3",
        "image": "localhost/assay-box:abc",
        "uid": 64000,
        "limits": Limits(threads=2, processes=99),
        "binds": (Bind(Path('/srv/a,b"c'), "/submission"),),
        "variables": {"HOME": "/scratch"},
        "command": ("/usr/bin/python3", "-I"),
        "profile": Path("/tmp/filter.json"),
        "processors": 1,
    }
    return BoxPlan(**(given | others))  # type: ignore[arg-type] # of the test's own making


def value_of(words: list[str], option: str) -> list[str]:
    return [words[i + 1] for i, word in enumerate(words) if word == option]


@pytest.mark.parametrize("kind", BOTH)
def test_every_wall_is_asked_of_either_engine(kind: EngineKind) -> None:
    words = arguments(kind, plan())
    assert value_of(words, "--network") == ["none"]
    assert value_of(words, "--user") == ["64000:64000"]
    assert value_of(words, "--cap-drop") == ["ALL"]
    assert value_of(words, "--security-opt") == [
        "no-new-privileges",
        "seccomp=/tmp/filter.json",
    ]
    assert value_of(words, "--pids-limit") == [
        str(process_bound(Limits(processes=99), gvisor=False))
    ]
    assert value_of(words, "--memory") == value_of(words, "--memory-swap")
    assert value_of(words, "--cpus") == ["1"]  # this machine has no more
    assert {"--read-only", "--interactive"} <= set(words)
    assert not {"--privileged", "--env", "--env-file", "--tty", "--volume", "-v"} & set(words)
    assert words[words.index("localhost/assay-box:abc") :] == [
        *("localhost/assay-box:abc", "-i", "HOME=/scratch", "/usr/bin/python3", "-I"),
    ]


@pytest.mark.parametrize("kind", BOTH)
def test_a_folder_with_an_odd_name_is_one_field_of_a_mount(kind: EngineKind) -> None:
    (mount,) = value_of(arguments(kind, plan()), "--mount")
    assert mount == 'type=bind,"source=/srv/a,b""c",target=/submission,readonly'


@pytest.mark.parametrize("kind", BOTH)
def test_only_folders_of_bounded_memory_can_be_written_to(kind: EngineKind) -> None:
    words = arguments(kind, plan(limits=Limits(scratch_bytes=7, shm_bytes=9)))
    folders = dict(word.split(":", 1) for word in value_of(words, "--tmpfs"))
    assert set(folders) == {"/tmp", "/scratch", "/dev/mqueue"}
    assert "size=7" in folders["/scratch"].split(",")
    assert folders["/dev/mqueue"].startswith("ro,")
    assert value_of(words, "--shm-size") == ["9"]


def test_podman_adds_nothing_of_the_worker() -> None:
    assert {"--http-proxy=false", "--no-hosts"} <= set(arguments(EngineKind.PODMAN, plan()))


@pytest.mark.parametrize(
    ("kind", "device", "words"),
    [
        (EngineKind.DOCKER, "cuda", ["--gpus", "device=0"]),
        (EngineKind.DOCKER, "cuda:3", ["--gpus", "device=3"]),
        (EngineKind.PODMAN, "cuda:3", ["--device", "nvidia.com/gpu=3"]),
    ],
)
def test_a_graphics_card_is_passed_on_by_number(
    kind: EngineKind, device: str, words: list[str]
) -> None:
    told = arguments(kind, plan(device=device))
    assert told[told.index(words[0]) + 1] == words[1]


@pytest.mark.parametrize("device", ["mps", "cuda:all", "cuda:0,capabilities=all"])
def test_any_other_device_is_refused(device: str) -> None:
    with pytest.raises(PlatformError) as caught:
        arguments(EngineKind.DOCKER, plan(device=device))
    assert caught.value.code == "device_unavailable"


def test_an_image_of_the_operator_sees_only_runner_and_submission(tmp_path: Path) -> None:
    inside = Interpreter("python3", ("/usr/lib/python3/dist-packages",))
    seen = binds(inside, Job(tmp_path), machine=False, exists=())
    assert all(bind.target.startswith((layout.RUNNER, layout.SUBMISSION)) for bind in seen)
    assert "/usr" in {bind.target for bind in binds(inside, None, machine=True, exists=())}


def test_the_first_process_of_a_container_starts_the_runner() -> None:
    command = layout.runner_command(Interpreter("/usr/bin/python3", ()), Job(Path("/srv/module")))
    words = with_first(command, "--wait")
    at = words.index(layout.RUNNER)
    assert words[at + 1 : at + 4] == ("first", "--wait", "runner")


def test_pipes_have_no_names_once_a_box_runs_and_tell_when_nobody_reads() -> None:
    with named_pipes() as pipes:
        folder = pipes.binds[0].source.parent
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


def test_the_image_is_empty_folders_and_links_and_always_the_same() -> None:
    with tarfile.open(fileobj=io.BytesIO(skeleton())) as archive:
        entries = archive.getmembers()
    assert all(entry.isdir() or entry.issym() for entry in entries)
    assert {"usr", "submission", "runner", "scratch", "models", "lib64"} <= {
        e.name for e in entries
    }
    assert skeleton() == skeleton()


@pytest.mark.parametrize(
    "reference", ["python:3.11", "python@sha256:12", "-v", "sha256:" + "g" * 64]
)
def test_an_image_that_may_change_is_refused(reference: str) -> None:
    engine = Engine(EngineKind.DOCKER, "no-such-client")
    with pytest.raises(PlatformError, match="not named by its digest"):
        OperatorImage(reference).ready(engine)


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


def grouped(root: Path, version: int) -> Path:
    """What the kernel shows of process 7, in control groups of either version."""
    proc, tree = root / "proc", root / "cgroup"
    (proc / "7").mkdir(parents=True)
    if version == 1:
        lines = "3:memory:/docker/x\n2:pids:/docker/x\n1:cpu,cpuacct:/docker/x\n0::/docker/x\n"
        folders = [tree / name / "docker/x" for name in ("memory", "pids", "cpu")]
        stat, limit = "rss 1\ntotal_rss 70\ntotal_cache 9\ntotal_shmem 5\n", "memory.limit_in_bytes"
        processors = {"cpu.cfs_quota_us": "150000\n", "cpu.cfs_period_us": "100000\n"}
    else:
        lines, folders = "0::/system.slice/x.scope\n", [tree / "system.slice/x.scope"] * 3
        stat, limit = "anon 70\nfile 9\nshmem 5\n", "memory.max"
        processors = {"cpu.max": "150000 100000\n"}
    (proc / "7/cgroup").write_text(lines)
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
    (folders[0] / "memory.stat").write_text(stat)
    (folders[0] / limit).write_text("1000\n")
    (folders[1] / "pids.max").write_text("40\n")
    (folders[1] / "cgroup.procs").write_text("7\n8\n")
    for name, text in processors.items():
        (folders[2] / name).write_text(text)
    return folders[0]


@pytest.mark.parametrize("version", [1, 2])
def test_what_the_kernel_counts_is_read_in_either_version(tmp_path: Path, version: int) -> None:
    grouped(tmp_path, version)
    cgroup = cgroup_of(7, tmp_path / "proc", tmp_path / "cgroup")
    assert cgroup is not None
    assert cgroup.pids() == {7, 8}
    assert held_bytes(cgroup) == 75
    assert bounds(cgroup) == Bounds(memory=1000, processes=40, processors=1.5)


@pytest.mark.parametrize("version", [1, 2])
def test_no_bound_is_told_from_a_bound(tmp_path: Path, version: int) -> None:
    memory = grouped(tmp_path, version)
    for path in memory.parents[2].rglob("*max"):
        path.write_text("max\n")
    for name, text in (("cpu.max", "max 100000"), ("cpu.cfs_quota_us", "-1")):
        for path in (tmp_path / "cgroup").rglob(name):
            path.write_text(text)
    cgroup = cgroup_of(7, tmp_path / "proc", tmp_path / "cgroup")
    assert cgroup is not None
    assert bounds(cgroup).processors is None
    assert bounds(cgroup).processes is None


def test_a_container_that_is_not_seen_from_here_has_no_cgroup(tmp_path: Path) -> None:
    grouped(tmp_path, 2)
    assert cgroup_of(8, tmp_path / "proc", tmp_path / "cgroup") is None
    assert cgroup_of(7, tmp_path / "proc", tmp_path / "elsewhere") is None
    (tmp_path / "proc/7/cgroup").write_text("0::/\n")
    assert cgroup_of(7, tmp_path / "proc", tmp_path / "cgroup") is None


GOOD = Outside(64000, (), Bounds(8192 << 20, 256, 2.0), "runsc-sandbox\0boot")


@pytest.mark.parametrize(
    ("outside", "layer"),
    [
        (Outside(0, (), GOOD.bounds, GOOD.command), Layer.KERNEL_UID),
        (Outside(1, ("ipc",), GOOD.bounds, GOOD.command), Layer.IPC),
        (Outside(1, (), None, GOOD.command), Layer.MEMORY_CGROUP),
        (Outside(1, (), Bounds(8192 << 20, None, 2.0), GOOD.command), Layer.PROCESS_LIMIT),
        (Outside(1, (), Bounds(8192 << 20, 256, 16.0), GOOD.command), Layer.CPU_CGROUP),
    ],
)
def test_a_layer_that_is_missing_outside_is_found(outside: Outside, layer: Layer) -> None:
    assert not any(seen_outside(GOOD, Limits(), gvisor=False).values())
    assert seen_outside(outside, Limits(), gvisor=False)[layer]


def test_a_runtime_that_only_claims_to_be_gvisor_is_found() -> None:
    assert not seen_outside(GOOD, Limits(), gvisor=True)[Layer.GVISOR]
    other = Outside(1, (), GOOD.bounds, "/usr/bin/python3\0runsc")
    assert seen_outside(other, Limits(), gvisor=True)[Layer.GVISOR]


def test_a_layer_that_nobody_looked_at_is_a_refusal() -> None:
    every = [str(layer) for layer in REQUIRED]
    assert verdict(every, {}, gvisor=False, version="docker 1").ok
    refused = verdict(every[1:], {}, gvisor=False, version="docker 1")
    assert not refused.ok
    assert f"{every[0]} was not checked" in refused.reason


def test_only_gvisor_may_answer_system_calls_in_place_of_a_filter() -> None:
    held = [str(layer) for layer in REQUIRED - {Layer.SYSTEM_CALLS}]
    fault = {str(Layer.SYSTEM_CALLS): "ptrace is not refused by the filter"}
    assert verdict(held, fault, gvisor=True, version="docker 1").ok
    assert not verdict(held, fault, gvisor=False, version="docker 1").ok


@pytest.mark.isolation
def test_a_daemon_that_does_not_run_is_told_with_what_to_start(
    docker_host: str, tmp_path: Path
) -> None:
    probe = docker(client_environment(), f"unix://{tmp_path}/none.sock").probe()
    assert not probe.ok
    assert "does not run" in probe.reason
    assert "systemctl start docker" in probe.remedy


@pytest.mark.isolation
def test_a_runtime_that_docker_lacks_is_told_with_how_to_add_it(docker_host: str) -> None:
    engine = Engine.docker(client_environment(), docker_host, runtime="no-such-runtime")
    probe = Containers(engine, "gvisor", gvisor=True).probe()
    assert not probe.ok
    assert "daemon.json" in probe.remedy


@pytest.mark.isolation
def test_what_is_not_gvisor_does_not_pass_for_it(docker_host: str) -> None:
    engine = Engine.docker(client_environment(), docker_host)
    probe = Containers(engine, "gvisor", gvisor=True).probe()
    assert not probe.ok
    assert "not gVisor" in probe.reason


@pytest.mark.isolation
def test_an_image_that_is_not_there_is_never_pulled(docker_host: str, tmp_path: Path) -> None:
    backend = docker(client_environment(), docker_host, OperatorImage(DIGEST))
    with pytest.raises(PlatformError, match="not on this machine"):
        backend.start(Job(tmp_path))


@pytest.mark.isolation
def test_a_submission_that_the_boxs_user_cannot_read_blames_nobody_but_us(
    docker_backend: Containers, tmp_path: Path
) -> None:
    folder = tmp_path / "submission"
    folder.mkdir()
    (folder / "scorer.py").touch(mode=0o600)
    with pytest.raises(PlatformError, match="cannot read") as caught:
        docker_backend.start(Job(folder))
    assert "chmod" in caught.value.hint


@pytest.mark.isolation
def test_only_boxes_of_workers_that_are_gone_are_swept(docker_backend: Containers) -> None:
    engine = docker_backend.engine
    docker_backend.probe()  # which has the image made
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        pass
    namespace = container_sweep.this_supervisor().rpartition("-")[2]
    supervisors = {
        "of-this-worker": container_sweep.this_supervisor(),
        "of-one-that-is-gone": f"{gone.pid}-1-{namespace}",
        "of-another-machine": f"{gone.pid}-1-17",
    }
    image = docker_backend.image.ready(engine)
    for name, supervisor in supervisors.items():
        labelled = ("--label", "assay.box=1", "--label", f"assay.supervisor={supervisor}")
        engine.call("create", "--name", name, *labelled, image, "/none")
    try:
        assert container_sweep.sweep(engine) == 1
        left = [name for name in supervisors if engine.container(name) is not None]
        assert left == ["of-this-worker", "of-another-machine"]
    finally:
        for name in supervisors:
            engine.remove(name)


def test_an_engine_that_fails_says_why(tmp_path: Path) -> None:
    client = tmp_path / "docker"
    client.write_text("#!/bin/sh\necho 'bad \033[31mnews' >&2; exit 3\n")
    client.chmod(0o755)
    with pytest.raises(EngineError) as caught:
        Engine(EngineKind.DOCKER, str(client)).call("ps")
    assert caught.value.said == "bad news"


def test_gvisor_is_asked_of_docker_by_its_runtime() -> None:
    assert gvisor({}).engine.runtime == "runsc"
    assert value_of(
        arguments(EngineKind.DOCKER, plan(runtime="runsc", gvisor=True)), "--runtime"
    ) == ["runsc"]
