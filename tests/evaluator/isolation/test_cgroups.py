"""Bounds of a whole box by the kernel, and what is done where it has none."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.errors import PlatformError, SubmitterError
from evaluator.isolation import cgroups
from evaluator.isolation.backend import Layer
from evaluator.isolation.bubblewrap import Bubblewrap
from evaluator.isolation.cgroups import (
    Cgroup,
    Places,
    find,
    machine_cgroups,
    make,
    settings,
    sweep,
    without_refused,
)
from evaluator.isolation.job import MIB, Job, Limits
from tests.evaluator.isolation.boxes import CONSTANT, SHORT, Submit, box_of, png
from tests.kit.processes import finished

REPOSITORY = Path(__file__).resolve().parents[3]
LIMITS = Limits(memory_bytes=300 * MIB, processes=20, threads=2)
HOLDS_MUCH = """
class Scorer:
    def score(self, images, prompts):
        import os, time
        for _ in range(4):
            if os.fork() == 0:
                held = bytearray(150 * 2**20)
                time.sleep(60)
        os.wait()
        return [1.0]
"""


def tree(folder: Path, controllers: str = "cpu memory pids", enabled: str = "") -> Path:
    """A made-up folder of cgroups of version 2."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cgroup.controllers").write_text(controllers)
    (folder / "cgroup.subtree_control").write_text(enabled)
    return folder


@pytest.fixture
def switching(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has controllers switched on as the kernel does it: not beside a process."""
    really = Path.write_text

    def write(self: Path, text: str) -> int:
        if self.name == "cgroup.subtree_control":
            procs = self.parent / "cgroup.procs"
            if procs.exists() and procs.read_text():
                raise OSError(16, "Device or resource busy")
            text = " ".join(word.removeprefix("+") for word in text.split())
        if self.name == "cgroup.procs":  # a process is in one folder at a time
            for other in self.parents[1].glob("cgroup.procs"):
                really(other, "")
        return really(self, text)

    monkeypatch.setattr(Path, "write_text", write)


def mounted(place: Path, kind: str = "cgroup2", options: str = "rw", root: str = "/") -> str:
    return f"41 31 0:38 {root} {place} rw,relatime - {kind} none {options}\n"


def test_version_2_bounds_memory_without_swap_processes_and_processors(tmp_path: Path) -> None:
    places = Places(2, dict.fromkeys(("memory", "pids", "cpu"), tmp_path))
    made = make(places, LIMITS)
    assert made is not None
    (folder,) = set(made.folders.values())
    read = {path.name: path.read_text() for path in folder.iterdir()}
    assert read == {
        "memory.max": str(300 * MIB),
        "memory.swap.max": "0",
        "memory.oom.group": "1",
        "pids.max": "28",
        "cpu.max": "200000 100000",
    }


def test_version_1_bounds_memory_with_swap(tmp_path: Path) -> None:
    written = {s.file: s.text for rows in settings(1, LIMITS).values() for s in rows}
    assert written["memory.limit_in_bytes"] == written["memory.memsw.limit_in_bytes"]
    assert int(written["cpu.cfs_quota_us"]) / int(written["cpu.cfs_period_us"]) == 2


def test_a_bound_that_is_not_taken_is_an_error_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cgroups, "_REMOVED_WITHIN_S", 0.0)
    monkeypatch.setattr(Path, "read_text", lambda self: "max")
    with pytest.raises(PlatformError) as caught:
        make(Places(2, {"pids": tmp_path}), LIMITS)
    assert caught.value.code == "bound_refused"
    assert "pids.max holds 'max' instead of 28" in caught.value.message
    assert without_refused(Places(2, {"pids": tmp_path})).folders == {}


def test_a_machine_without_controllers_has_no_places(tmp_path: Path) -> None:
    place = tree(tmp_path / "unified", controllers="")
    assert find(mounted(place), "0::/\n", worker_pid=1).folders == {}


@pytest.mark.usefixtures("switching")
def test_controllers_are_switched_on_where_the_worker_is(tmp_path: Path) -> None:
    service = tree(tmp_path / "system.slice/assay.service")
    places = find(mounted(tmp_path), "0::/system.slice/assay.service\n", worker_pid=1)
    assert places == Places(2, dict.fromkeys(("memory", "pids", "cpu"), service))
    assert (service / "cgroup.subtree_control").read_text() == "memory pids cpu"


@pytest.mark.usefixtures("switching")
def test_a_worker_that_stands_in_the_way_steps_aside(tmp_path: Path) -> None:
    service = tree(tmp_path / "assay.service")
    (service / "cgroup.procs").touch()
    with (service / "cgroup.procs").open("w") as file:
        file.write("77")
    places = find(mounted(tmp_path), "0::/assay.service\n", worker_pid=77)
    assert places.folders["memory"] == service
    assert (service / "assay-worker/cgroup.procs").read_text() == "77"
    again = find(mounted(tmp_path), "0::/assay.service/assay-worker\n", worker_pid=77)
    assert again.folders["memory"] == service


def test_a_container_sees_a_part_of_the_tree(tmp_path: Path) -> None:
    tree(tmp_path / "inner", enabled="memory pids cpu")
    shown = find(mounted(tmp_path, root="/pod7"), "0::/pod7/inner\n", worker_pid=1)
    assert shown.folders["memory"] == tmp_path / "inner"
    assert find(mounted(tmp_path, root="/pod7"), "0::/elsewhere\n", worker_pid=1).folders == {}


def test_version_1_is_found_controller_by_controller(tmp_path: Path) -> None:
    (tmp_path / "memory/own").mkdir(parents=True)
    (tmp_path / "pids").mkdir()
    mounts = mounted(tmp_path / "memory", "cgroup", "rw,memory")
    mounts += mounted(tmp_path / "pids", "cgroup", "rw,pids")
    places = find(mounts, "3:memory:/own\n2:pids:/\n", worker_pid=1)
    assert places == Places(1, {"memory": tmp_path / "memory/own", "pids": tmp_path / "pids"})


FULL = {"memory.limit_in_bytes": "300000000\n", "memory.max_usage_in_bytes": "299999232\n"}


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({}, False),
        ({"memory.events": "low 0\noom 0\noom_kill 0\n"}, False),
        ({"memory.events": "low 0\noom 1\noom_kill 1\n"}, True),
        ({"memory.oom_control": "oom_kill 1\n", **FULL}, True),
        ({"memory.oom_control": "oom_kill 0\n", **FULL}, False),
        # The machine had no memory left, and the box was below its own bound.
        ({"memory.events": "low 0\noom 0\noom_kill 1\n"}, False),
        ({"memory.oom_control": "oom_kill 1\n", **FULL, "memory.max_usage_in_bytes": "9"}, False),
    ],
)
def test_what_the_kernel_ended_for_lack_of_memory_is_read(
    tmp_path: Path, files: dict[str, str], told: bool
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert Cgroup({"memory": tmp_path}).out_of_memory() is told


def test_a_process_that_the_kernel_refused_is_read(tmp_path: Path) -> None:
    cgroup = Cgroup({"pids": tmp_path})
    assert not cgroup.out_of_processes()
    (tmp_path / "pids.events").write_text("max 0\n")
    assert not cgroup.out_of_processes()
    (tmp_path / "pids.events").write_text("max 2\n")
    assert cgroup.out_of_processes()


def test_only_what_killed_workers_left_is_swept(tmp_path: Path) -> None:
    places = Places(2, {"memory": tmp_path})
    made = make(places, LIMITS)
    assert made is not None
    dead = subprocess.Popen(["true"])
    dead.wait()
    orphan = tmp_path / f"assay-box-{dead.pid}-1-0"
    orphan.mkdir()
    (tmp_path / "assay-box-of-somebody").mkdir()
    assert sweep(places) == 1
    assert not orphan.exists()
    assert made.folders["memory"].exists()
    assert (tmp_path / "assay-box-of-somebody").exists()


@pytest.mark.isolation
def test_memory_is_bounded_by_the_kernel_or_else_watched_and_either_is_said(
    bubblewrap: Bubblewrap, submit: Submit
) -> None:
    job = Job(submit(HOLDS_MUCH), limits=replace(SHORT, memory_bytes=300 * MIB))
    bounded = "memory" in machine_cgroups().folders
    assert (Layer.MEMORY_CGROUP in bubblewrap.probe().layers) == bounded
    session = bubblewrap.start(job)
    with pytest.raises(SubmitterError) as caught, session:
        session.score([png()], [(0, "a cat")])
    assert caught.value.code == "out_of_memory"
    assert "the limit is 300 MiB" in caught.value.message
    assert ("The kernel" in caught.value.message) == bounded


@pytest.mark.slow
@pytest.mark.isolation
def test_without_cgroups_the_watchdog_is_left_and_marked(
    bubblewrap: Bubblewrap, submit: Submit
) -> None:
    backend = replace(bubblewrap, places=Places)
    probe = backend.probe()
    assert probe.ok
    assert {Layer.MEMORY_WATCHDOG, Layer.CPU_NICENESS} <= set(probe.layers)
    session = backend.start(Job(submit(HOLDS_MUCH), limits=replace(SHORT, memory_bytes=300 * MIB)))
    box = box_of(session)
    assert os.getpriority(os.PRIO_PROCESS, box.init_pid) == 10
    assert len(os.sched_getaffinity(box.init_pid)) <= SHORT.threads
    with pytest.raises(SubmitterError) as caught, session:
        session.score([png()], [(0, "a cat")])
    assert caught.value.code == "out_of_memory"
    assert "The scorer held" in caught.value.message


@pytest.mark.isolation
def test_the_cgroup_of_a_box_goes_with_it(bubblewrap: Bubblewrap, submit: Submit) -> None:
    folder = submit(CONSTANT)
    session = bubblewrap.start(Job(folder, limits=SHORT))
    box = box_of(session)
    folders = set(box.held.cgroup.folders.values()) if box.held.cgroup else set()
    assert bool(folders) == bool(machine_cgroups().folders)
    with session:
        for path in folders:
            assert set(box.pids()) <= set(map(int, (path / "cgroup.procs").read_text().split()))
    assert not any(path.exists() for path in folders)


@pytest.mark.isolation
def test_the_cgroups_of_a_killed_worker_are_swept_at_the_next_start(
    bubblewrap: Bubblewrap, submit: Submit
) -> None:
    folder = submit(CONSTANT)
    program = f"""
        import os, signal
        from pathlib import Path
        from evaluator.isolation.bubblewrap import Bubblewrap
        from evaluator.isolation.job import Job
        session = Bubblewrap().start(Job(Path({str(folder)!r})))
        cgroup = session._box.held.cgroup
        print(*(cgroup.folders.values() if cgroup else ()), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    done = finished([sys.executable, "-c", textwrap.dedent(program)], cwd=REPOSITORY)
    assert done.returncode == -signal.SIGKILL, done.stderr
    left = [Path(name) for name in done.stdout.split()]
    assert bool(left) == bool(machine_cgroups().folders)
    assert bubblewrap.probe().ok
    assert not any(path.exists() for path in left)


def test_the_module_finds_what_it_names() -> None:
    assert set(settings(1, LIMITS)) == set(settings(2, LIMITS)) == {"memory", "pids", "cpu"}
    assert cgroups.without_refused(Places()).folders == {}
