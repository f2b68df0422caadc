"""Probe of a container, from inside and from outside."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass

from evaluator.isolation.backend import Probe
from evaluator.isolation.containers.arguments import memory_bound, process_bound
from evaluator.isolation.containers.box import ContainerBox
from evaluator.isolation.containers.cgroup import Bounds, bounds
from evaluator.isolation.containers.engine import EngineError
from evaluator.isolation.layers import REQUIRED, Layer
from evaluator.isolation.limits import Limits
from evaluator.isolation.supervising.processes import PROC, user_of
from evaluator.isolation.supervising.text import one_line

_WITHIN_S = 60.0
_LOOK_EVERY_S = 0.05
_NAMESPACES = ("ipc", "mnt", "net", "pid", "uts")
_REMEDY = (
    "Keep the project, its store and home folders out of /usr, which every box sees, and see that "
    "the engine has control groups for memory, processes and processors."
)

ANSWERED_BY_GVISOR = frozenset({Layer.SYSTEM_CALLS, Layer.USER_NAMESPACES})
"""With gVisor no call reaches this machine's kernel, and a namespace inside is gVisor's own."""


class ClientEndedError(EngineError):
    """The attached client ended before there was a container."""


@dataclass(frozen=True, slots=True)
class Outside:
    """What this machine says about a running container.

    Attributes:
        uid: as whom its first process runs.
        shared: namespaces that it has in common with the worker.
        bounds: what the kernel holds it to; None where it cannot be seen.
        command: how that process was started.
    """

    uid: int
    shared: tuple[str, ...]
    bounds: Bounds | None
    command: str


def looked_at(box: ContainerBox, limits: Limits, *, gvisor: bool, version: str) -> Probe:
    """Look at a box whose first process waits for a byte, then let it look around inside.

    Args:
        box: started with `inspection` as what runs in it.
        limits: that it was started with.
        gvisor: whether it must be one of gVisor's.
        version: of the engine, to be recorded.

    Raises:
        EngineError: it did not start.
    """
    try:
        outside = _outside(running(box), box)
    except ClientEndedError as error:
        _, said = box.process.communicate()
        raise EngineError(one_line(said)) from error
    printed = _told(box)
    found = {name: fault for name, held, fault in _rows(printed) if held != "yes"}
    held = [name for name, is_held, _ in _rows(printed) if is_held == "yes"]
    if not held:
        return Probe(
            ok=False,
            reason="A container started, but nothing could be checked inside it.",
            remedy="Look at the Python installation of the worker, or of the image.",
        )
    # What both sides judge, this one knows better.
    for layer, fault in seen_outside(outside, limits, gvisor=gvisor).items():
        found.pop(layer, None)
        if fault:
            found[layer] = fault
        else:
            held.append(layer)
    return verdict(held, found, gvisor=gvisor, version=version)


def seen_outside(outside: Outside, limits: Limits, *, gvisor: bool) -> Mapping[Layer, str]:
    """Layers that only this side can judge, and what is wrong with each; empty for nothing."""
    held = outside.bounds or Bounds(None, None, None)
    judged = {
        Layer.PROCESS: "",
        Layer.IPC: _kept_apart(outside.shared, gvisor=gvisor),
        Layer.KERNEL_UID: "" if outside.uid else "to the kernel, its user is root",
        Layer.PROCESS_LIMIT: _bounded(
            held.processes, process_bound(limits, gvisor=gvisor), "processes"
        ),
        Layer.MEMORY_CGROUP: _bounded(held.memory, memory_bound(limits, gvisor=gvisor), "memory"),
        Layer.CPU_CGROUP: _bounded(held.processors, limits.threads, "processors"),
    }
    if gvisor:
        is_gvisor = "runsc" in outside.command.split("\0")[0]
        judged[Layer.GVISOR] = "" if is_gvisor else "it is not gVisor that runs it"
    return judged


def verdict(held: list[str], faults: Mapping[str, str], *, gvisor: bool, version: str) -> Probe:
    """Whether strangers' code may run in such a box.

    Args:
        held: layers that hold.
        faults: layers that do not, with what is wrong.
        gvisor: whether gVisor answers its calls.
        version: of the engine.
    """
    excused = ANSWERED_BY_GVISOR if gvisor else frozenset()
    told = {name: fault for name, fault in faults.items() if name not in excused}
    missing = REQUIRED - excused - set(held) - set(told)
    told |= {layer: f"{layer} was not checked" for layer in sorted(missing)}
    layers = (*dict.fromkeys(held), version)
    if told:
        reason = f"Inside a container, not all is as it must be: {'; '.join(told.values())}."
        return Probe(ok=False, layers=layers, reason=reason, remedy=_REMEDY)
    return Probe(ok=True, layers=layers)


def running(box: ContainerBox) -> int:
    """The first process of a box that is being started.

    Raises:
        ClientEndedError: it never came; the client printed why.
        EngineError: it did not come in time.
    """
    deadline = time.monotonic() + _WITHIN_S
    while time.monotonic() < deadline:
        if pid := box.adopt():
            return pid
        if box.process.poll() is not None:
            raise ClientEndedError("the container ended at once")
        time.sleep(_LOOK_EVERY_S)
    raise EngineError(f"no container within {_WITHIN_S:g} s")


def _outside(pid: int, box: ContainerBox) -> Outside:
    cgroup = box.known.cgroup
    try:
        return Outside(
            uid=user_of(pid),
            shared=_shared(pid, box),
            bounds=None if cgroup is None else bounds(cgroup),
            command=(PROC / str(pid) / "cmdline").read_text(errors="replace"),
        )
    except (FileNotFoundError, ProcessLookupError) as error:
        message = "its processes cannot be seen from the worker, which must be on the same machine"
        raise EngineError(message) from error


def _shared(pid: int, box: ContainerBox) -> tuple[str, ...]:
    """Namespaces in common with this process, as the kernel says, or else the engine."""
    try:
        return tuple(
            name
            for name in _NAMESPACES
            if (PROC / str(pid) / "ns" / name).stat().st_ino
            == (PROC / "self/ns" / name).stat().st_ino
        )
    except PermissionError:  # a user other than root may not look
        mode = box.engine.call(
            "container", "inspect", "--format", "{{.HostConfig.IpcMode}}", box.name
        )
        return () if mode == "private" else ("ipc",)


def _kept_apart(shared: tuple[str, ...], *, gvisor: bool) -> str:
    # Of these, gVisor needs none of this machine's: it has its own inside.
    return f"it shares namespaces: {', '.join(shared)}" if shared and not gvisor else ""


def _told(box: ContainerBox) -> str:
    """What `inspection` prints, once it may begin.

    Raises:
        EngineError: it did not end in time.
    """
    process = box.process
    process.stdin.write(b"!")  # type: ignore[union-attr] # it has its three pipes
    # Its input stays open: to its first process, the end of it is the end of the worker.
    kept, process.stdin = process.stdin, None
    try:
        printed, _ = process.communicate(timeout=_WITHIN_S)
    except subprocess.TimeoutExpired as error:
        raise EngineError(f"a container did not answer within {_WITHIN_S:g} s") from error
    finally:
        process.stdin = kept
    return printed.decode(errors="replace")


def _rows(printed: str) -> list[tuple[str, str, str]]:
    rows = [line.split("\t", 2) for line in printed.splitlines()]
    return [(row[0], row[1], row[2]) for row in rows if len(row) == 3]


def _bounded(held: float | None, wanted: float, what: str) -> str:
    """What is wrong with a bound, as it was read back."""
    if held is not None and held <= wanted:
        return ""
    return f"the kernel does not bound its {what}"
