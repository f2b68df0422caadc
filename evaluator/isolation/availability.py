"""Sandbox availability on this machine, and the plain process where nothing is to isolate."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType

from evaluator.isolation import containers
from evaluator.isolation.backend import Backend, IsolationStatus, Layer, Probe, isolation_status
from evaluator.isolation.bubblewrap import Bubblewrap
from evaluator.isolation.job import Job
from evaluator.isolation.layout import BUNDLE_FOLDER, Interpreter, runner_arguments
from evaluator.isolation.session import ScorerSession, SessionBox
from leaderboard.submission_service import SandboxAvailability

_LOG = logging.getLogger(__name__)


_NO_HOME = "/nonexistent"


@dataclass(frozen=True)
class PlainProcess:
    """A process without walls, for our own scorers; its probe never says ok."""

    name: str = "plain"

    def probe(self) -> Probe:
        """Always refuses strangers' code, so that no list of backends can choose it by mistake."""
        return Probe(
            ok=False,
            layers=("process",),
            reason="A plain process does not isolate.",
            remedy="Choose another isolation.",
        )

    def start(self, job: Job) -> ScorerSession:
        """Start one of OUR scorers; see `Backend.start`."""
        interpreter = Interpreter.running()
        words = runner_arguments(
            submission=str(job.folder.resolve()),
            entry_point=job.entry_point,
            weights=job.weights,
            device=job.device,
            site=interpreter.site if job.environment is None else (str(job.environment.resolve()),),
            models={m.repo: str(m.folder.resolve() / "snapshots" / m.revision) for m in job.models},
        )
        process = subprocess.Popen(  # noqa: S603 - every word of it is ours
            interpreter.command(str(BUNDLE_FOLDER), "runner", words),
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=interpreter.environment(threads=job.limits.threads, home=_NO_HOME),
            cwd="/",
            start_new_session=True,
        )
        return ScorerSession(SessionBox(process), job.limits).await_box()


class IsolationChoice(StrEnum):
    """What is to isolate code."""

    AUTO = "auto"
    BUBBLEWRAP = "bubblewrap"
    DOCKER = "docker"
    PODMAN = "podman"
    GVISOR = "gvisor"
    NONE = "none"


def machine_isolation(
    *hidden: Path,
    choice: IsolationChoice = IsolationChoice.AUTO,
    required: Collection[str] = (),
) -> IsolationStatus:
    """Probe this machine's ways to isolate code."""
    if choice is IsolationChoice.NONE:
        return unsandboxed()
    if choice is IsolationChoice.AUTO:
        return isolation_status((make(hidden) for make in _usable()), required)
    return isolation_status([_BACKENDS[choice](hidden)], required)


def choice_of(status: IsolationStatus) -> IsolationChoice:
    """The choice that makes another machine isolate as this one does."""
    if status.backend is None:
        return IsolationChoice.AUTO
    if Layer.UNSANDBOXED in status.layers:
        return IsolationChoice.NONE
    known = status.backend.name in tuple(IsolationChoice)
    return IsolationChoice(status.backend.name) if known else IsolationChoice.AUTO


def unsandboxed() -> IsolationStatus:
    """No isolation at all, for an operator's own code; said loudly, and recorded with results."""
    _LOG.warning(
        "NOTHING ISOLATES THE CODE THAT IS SCORED: it can read every file of this user, reach the "
        "network and outlive its job. Run nothing but your own code like this. Its results are "
        "marked %r and get no ranks.",
        str(Layer.UNSANDBOXED),
    )
    found = Probe(ok=True, layers=(str(Layer.UNSANDBOXED),))
    return IsolationStatus(PlainProcess(), ((str(IsolationChoice.NONE), found),))


def isolation_gate(choice: IsolationChoice = IsolationChoice.AUTO) -> SandboxAvailability:
    """Whether this machine takes code, probed now."""
    status = machine_isolation(choice=choice)
    return SandboxAvailability(status.ok, status.reason, status.remedy)


def _usable() -> list[Callable[[tuple[Path, ...]], Backend]]:
    """Bubblewrap, whose absence is told; an engine only where it is installed."""
    engines = (IsolationChoice.PODMAN, IsolationChoice.DOCKER)
    found = [engine for engine in engines if shutil.which(engine)]
    return [_bubblewrap, *(_BACKENDS[engine] for engine in found)]


def _bubblewrap(hidden: tuple[Path, ...]) -> Backend:
    usual = Bubblewrap()
    return replace(usual, hidden=(*usual.hidden, *hidden))


def _docker(hidden: tuple[Path, ...]) -> Backend:
    usual = containers.docker(os.environ)
    return replace(usual, hidden=(*usual.hidden, *hidden))


def _podman(hidden: tuple[Path, ...]) -> Backend:
    usual = containers.podman(os.environ)
    return replace(usual, hidden=(*usual.hidden, *hidden))


def _gvisor(hidden: tuple[Path, ...]) -> Backend:
    usual = containers.gvisor(os.environ)
    return replace(usual, hidden=(*usual.hidden, *hidden))


_BACKENDS: Mapping[IsolationChoice, Callable[[tuple[Path, ...]], Backend]] = MappingProxyType(
    {
        IsolationChoice.BUBBLEWRAP: _bubblewrap,
        IsolationChoice.DOCKER: _docker,
        IsolationChoice.PODMAN: _podman,
        IsolationChoice.GVISOR: _gvisor,
    }
)
