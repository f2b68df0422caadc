"""Strangers' code in namespaces of its own, made by bubblewrap.

Own pid, network, mount, ipc, uts and user namespaces; a read-only root without this machine's
folders; an empty environment; no capabilities; a filter of system calls; bounds by cgroups where
there are any; and, where the worker is root, a user of its own for every box.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from benchmarks.errors import PlatformError
from evaluator.isolation import layout
from evaluator.isolation.backend import Probe
from evaluator.isolation.bubblewrap import cgroups, graphics
from evaluator.isolation.bubblewrap.cgroup_places import Places
from evaluator.isolation.bubblewrap.faults import diagnose, not_started
from evaluator.isolation.bubblewrap.launch import Look, launch, nothing
from evaluator.isolation.bubblewrap.outside import Finding, kernel_notes, seen, sweep
from evaluator.isolation.bubblewrap.words import Plan
from evaluator.isolation.interpreter import Interpreter
from evaluator.isolation.job import Job
from evaluator.isolation.layers import REQUIRED, Layer
from evaluator.isolation.limits import Limits
from evaluator.isolation.supervising.box import NamespaceBox
from evaluator.isolation.supervising.session import ScorerSession
from evaluator.isolation.supervising.text import one_line
from evaluator.isolation.unseen import usually_hidden

_SET_UP_S = 30.0
_UNBOUNDED = 1 << 40
_REMEDY = (
    "Keep the project, its store and home folders out of /usr, which every box sees, and see what "
    "`python -m evaluator doctor` says about this machine."
)

SWITCHABLE = frozenset(
    {
        Layer.NETWORK, Layer.IPC, Layer.FILESYSTEM, Layer.MEMORY_FOLDERS, Layer.KERNEL_SETTINGS,
        Layer.ENVIRONMENT, Layer.CAPABILITIES, Layer.USER_NAMESPACES, Layer.KERNEL_UID,
        Layer.SYSTEM_CALLS, Layer.PROCESS_LIMIT, Layer.MEMORY_CGROUP, Layer.MEMORY_WATCHDOG,
        Layer.CPU_CGROUP, Layer.CPU_NICENESS,
    }
)  # fmt: skip
"""Layers that can be turned off one by one, to see what each of them stops."""


@dataclass(frozen=True)
class Bubblewrap:
    """The backend for strangers' code.

    Attributes:
        executable: how bubblewrap is called here.
        hidden: folders that a box must not see; a probe that sees one refuses.
        without: layers that are turned off, of `SWITCHABLE`: for tests only. A probe then refuses.
        places: where cgroups may be made.
    """

    executable: str = "bwrap"
    hidden: tuple[Path, ...] = field(default_factory=usually_hidden)
    name: str = "bubblewrap"
    without: frozenset[Layer] = frozenset()
    places: Callable[[], Places] = cgroups.machine_cgroups

    def __post_init__(self) -> None:
        if fixed := self.without - SWITCHABLE:
            raise ValueError(f"{', '.join(sorted(fixed))} cannot be turned off")

    def probe(self) -> Probe:
        """Start a real box without a submission and look at it, from inside and from outside."""
        if shutil.which(self.executable) is None:
            return Probe(
                ok=False,
                reason="Bubblewrap is not installed.",
                remedy="Install it (apt install bubblewrap) and start the worker again.",
            )
        interpreter = Interpreter.running_inside()
        command = layout.inspection_command(interpreter, self.hidden)
        sweep(self.places())
        found: list[Finding] = []
        try:
            plan = self._plan(interpreter, None, Limits())
            box = self._spawn(plan, command, lambda box: found.extend(seen(box)))
        except PlatformError as error:
            return Probe(ok=False, reason=error.message, remedy=error.hint)
        try:
            told, printed = box.process.communicate(timeout=_SET_UP_S)
        except subprocess.TimeoutExpired:
            return Probe(
                ok=False, reason="A box did not answer in time.", remedy="Look at the machine."
            )
        finally:
            box.end()
            box.release()
        if not told:
            reason, remedy = diagnose(one_line(printed))
            return Probe(ok=False, reason=reason, remedy=remedy)
        return judge(told.decode(errors="replace"), found, without=self.without)

    def start(self, job: Job) -> ScorerSession:
        """Start a box; see `Backend.start`.

        Raises:
            PlatformError: `box_not_started`, `device_unavailable`, `not_readable`,
                `no_user_for_box`, `no_system_call_filter` or `bound_refused`.
        """
        interpreter = Interpreter.running_inside()
        here = replace(job, device=graphics.inside(job.device))
        command = layout.runner_command(interpreter, here)
        box = self._spawn(self._plan(interpreter, job, job.limits), command)
        limits = _loosened(job.limits, self.without)
        session = ScorerSession(box, limits, bounds_data=job.device == graphics.CPU)
        try:
            return session.await_box()
        except PlatformError as error:
            raise not_started(" ".join(session.log.split())) from error

    def _plan(self, interpreter: Interpreter, job: Job | None, limits: Limits) -> Plan:
        return Plan(
            interpreter=interpreter,
            limits=limits,
            job=job,
            devices=graphics.nodes(job.device) if job else (),
            hidden=self.hidden,
            without=self.without,
            root_to_kernel=os.geteuid() == 0 and Layer.KERNEL_UID in self.without,
        )

    def _spawn(self, plan: Plan, command: list[str], look: Look = nothing) -> NamespaceBox:
        executable = shutil.which(self.executable)
        if executable is None:
            raise PlatformError("box_not_started", "Bubblewrap is not installed.")
        return launch(executable, plan, command, places=self._bounded_places(), look=look)

    def _bounded_places(self) -> Places:
        places = self.places()
        off = {Layer.MEMORY_CGROUP: "memory", Layer.PROCESS_LIMIT: "pids", Layer.CPU_CGROUP: "cpu"}
        gone = {controller for layer, controller in off.items() if layer in self.without}
        folders = {name: folder for name, folder in places.folders.items() if name not in gone}
        return Places(places.version, folders)


def judge(
    printed: str, found: Sequence[Finding] = (), *, without: frozenset[Layer] = frozenset()
) -> Probe:
    """What the findings about a box mean.

    Args:
        printed: by `inspection`, inside.
        found: outside.
        without: what was turned off, and is missing whatever else was found.
    """
    rows = [line.split("\t", 2) for line in printed.splitlines()]
    if not rows or any(len(row) != 3 for row in rows):
        return Probe(
            ok=False, reason="A box started, but nothing could be checked inside it.",
            remedy="Look at the Python installation of the worker.",
        )  # fmt: skip
    inside = [Finding(name, "" if held == "yes" else fault) for name, held, fault in rows]
    findings = [*found, *inside]
    missing = {row.layer for row in findings if row.fault} | without
    layers = tuple(dict.fromkeys(str(r.layer) for r in findings if r.layer not in missing))
    faults = [row.fault for row in findings if row.fault]
    faults += [f"{layer} was turned off" for layer in sorted(without)]
    if lacking := sorted(REQUIRED - {*layers, *missing}):
        faults.append(f"nothing was found out about {', '.join(lacking)}")
    if faults:
        reason = f"Inside a box, not all is as it must be: {'; '.join(faults)}."
        return Probe(ok=False, layers=layers, reason=reason, remedy=_REMEDY)
    return Probe(ok=True, layers=layers, notes=kernel_notes())


def _loosened(limits: Limits, without: frozenset[Layer]) -> Limits:
    """Limits without those that were turned off."""
    if Layer.PROCESS_LIMIT in without:
        limits = replace(limits, processes=_UNBOUNDED)
    if Layer.MEMORY_WATCHDOG in without:
        limits = replace(limits, memory_bytes=_UNBOUNDED)
    return limits
