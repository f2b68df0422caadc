"""What this machine can isolate, as the command line and the app ask for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from evaluator.isolation.backend import IsolationStatus, isolation_status
from evaluator.isolation.bubblewrap import Bubblewrap
from leaderboard.desk import Gate


def machine_isolation(*hidden: Path) -> IsolationStatus:
    """Probe this machine's ways to isolate code.

    Args:
        hidden: folders that code must not see, beside the project and the home folder.
    """
    usual = Bubblewrap()
    return isolation_status([replace(usual, hidden=(*usual.hidden, *hidden))])


def isolation_gate() -> Gate:
    """Whether this machine takes strangers' code, probed now."""
    status = machine_isolation()
    return Gate(status.ok, status.reason, status.remedy)
