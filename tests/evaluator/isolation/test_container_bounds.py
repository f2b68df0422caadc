"""What the kernel says of a container, and what it takes to run strangers' code in one."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluator.isolation.backend import REQUIRED, Layer
from evaluator.isolation.cgroups import Bounds, bounds, cgroup_of, held_bytes
from evaluator.isolation.containers import Outside, seen_outside, verdict
from evaluator.isolation.job import Limits


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
