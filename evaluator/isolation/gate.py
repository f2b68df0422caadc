"""What this machine can isolate, as the command line and the app ask for it."""

from __future__ import annotations

from evaluator.isolation.backend import IsolationStatus, isolation_status
from evaluator.isolation.bubblewrap import Bubblewrap
from leaderboard.desk import Gate


def machine_isolation() -> IsolationStatus:
    """Probe this machine's ways to isolate code."""
    return isolation_status([Bubblewrap()])


def isolation_gate() -> Gate:
    """Whether this machine takes strangers' code, probed now."""
    status = machine_isolation()
    return Gate(status.ok, status.reason, status.remedy)
