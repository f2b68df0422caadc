"""Sandbox availability on this machine, for the command line and the app."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType

from evaluator.isolation import containers
from evaluator.isolation.backend import Backend, IsolationStatus, Layer, Probe, isolation_status
from evaluator.isolation.bubblewrap import Bubblewrap
from evaluator.isolation.plain import PlainProcess
from leaderboard.submission_service import SandboxAvailability

_LOG = logging.getLogger(__name__)


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
