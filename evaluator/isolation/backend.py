"""The ways to run a submission, and which of them this machine can."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from benchmarks.errors import PlatformError
from evaluator.isolation.job import Job
from evaluator.isolation.layers import Layer
from evaluator.isolation.supervising import failures, processes
from evaluator.isolation.supervising.session import ScorerSession


@dataclass(frozen=True, slots=True)
class Probe:
    """What a real box of this backend was found to be."""

    ok: bool  # whether strangers' code may run in it
    layers: tuple[str, ...] = ()  # what was checked from inside and holds; stored with each result
    reason: str = ""  # why not, in one sentence; empty where it may
    remedy: str = ""  # what an operator can do about it; empty where nothing is needed
    notes: tuple[str, ...] = ()  # what else an operator may want to know


class Backend(Protocol):
    """One way to start a box."""

    @property
    def name(self) -> str:
        """Stable name, stored with each result."""

    def probe(self) -> Probe:
        """Start a box that holds nothing and look around inside; tens of milliseconds."""

    def start(self, job: Job) -> ScorerSession:
        """Start a box; nothing of the submission runs before the session is entered."""


@dataclass(frozen=True, slots=True)
class IsolationStatus:
    """Whether strangers' code can run here; made once at start and passed to who asks."""

    backend: Backend | None  # the first that may run it, or None
    probes: tuple[tuple[str, Probe], ...]  # name and findings of each backend that was looked at

    @property
    def ok(self) -> bool:
        """Whether code can be run here: now, as a box may have failed to end since."""
        return self.backend is not None and not processes.survivors()

    @property
    def isolates(self) -> bool:
        """Whether strangers' code may be run: not where an operator has turned isolation off."""
        return self.ok and Layer.UNSANDBOXED not in self.layers

    @property
    def layers(self) -> tuple[str, ...]:
        """What holds in the chosen backend."""
        return next((probe.layers for _, probe in self.probes if probe.ok), ())

    @property
    def notes(self) -> tuple[str, ...]:
        """What else an operator may want to know."""
        return next((probe.notes for _, probe in self.probes if probe.ok), ())

    @property
    def reason(self) -> str:
        """Why no code is taken, in words for the page; empty where it is."""
        if self.ok:
            return ""
        if self.backend is not None:
            return failures.box_not_ended().message
        return " ".join(probe.reason for _, probe in self.probes)

    @property
    def remedy(self) -> str:
        """What an operator can do; empty where nothing is needed."""
        if self.ok:
            return ""
        if self.backend is not None:
            return failures.box_not_ended().hint
        return " ".join(probe.remedy for _, probe in self.probes)

    def require(self) -> Backend:
        """The backend."""
        if self.backend is None or not self.ok:
            message = f"Code cannot be scored on this machine. {self.reason}"
            raise PlatformError("isolation_unavailable", message, self.remedy)
        return self.backend


def isolation_status(
    backends: Sequence[Backend], required: Collection[str] = ()
) -> IsolationStatus:
    """Probe the backends in order of preference, up to the first that holds."""
    probes: list[tuple[str, Probe]] = []
    for backend in backends:
        probe = _held_to(backend.probe(), required)
        probes.append((backend.name, probe))
        if probe.ok:
            return IsolationStatus(backend, tuple(probes))
    return IsolationStatus(None, tuple(probes))


def _held_to(probe: Probe, required: Collection[str]) -> Probe:
    lacking = sorted(set(required) - set(probe.layers))
    if not probe.ok or not lacking:
        return probe
    return replace(
        probe,
        ok=False,
        reason=f"This worker was told to require {', '.join(lacking)}, which cannot be had.",
        remedy="See what `doctor` says of it, or do not require it.",
    )
