"""Every word that an engine is told about a box."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.errors import PlatformError
from evaluator.isolation import layout
from evaluator.isolation.container_engine import (
    BoxPlan,
    EngineKind,
    arguments,
    binds,
    process_bound,
    with_first,
)
from evaluator.isolation.containers import gvisor
from evaluator.isolation.job import Job, Limits
from evaluator.isolation.layout import Bind, Interpreter

BOTH = list(EngineKind)


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
    assert value_of(words, "--pull") == ["never"]
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


def test_a_container_sees_only_runner_submission_and_usr(tmp_path: Path) -> None:
    inside = Interpreter("python3", ("/usr/lib/python3/dist-packages",))
    seen = binds(inside, Job(tmp_path), exists=())
    others = {b.target for b in seen if not b.target.startswith((layout.RUNNER, layout.SUBMISSION))}
    assert others == {"/usr"}


def test_the_first_process_of_a_container_starts_the_runner() -> None:
    command = layout.runner_command(Interpreter("/usr/bin/python3", ()), Job(Path("/srv/module")))
    words = with_first(command, "--wait")
    at = words.index(layout.RUNNER)
    assert words[at + 1 : at + 4] == ("first", "--wait", "runner")


def test_gvisor_is_asked_of_docker_by_its_runtime() -> None:
    assert gvisor({}).engine.runtime == "runsc"
    assert value_of(
        arguments(EngineKind.DOCKER, plan(runtime="runsc", gvisor=True)), "--runtime"
    ) == ["runsc"]
