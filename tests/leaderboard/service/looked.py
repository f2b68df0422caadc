"""The health of a store at a moment, looked at once."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path

from leaderboard.service.health import DiskSpace, Health
from leaderboard.service.looking import HealthWatch
from leaderboard.store.interface import Store


def health_of(store: Store, now: datetime, disk: DiskSpace | None) -> Health:
    """As whoever looks then would be told."""
    then = replace(store, clock=lambda: now)
    return HealthWatch(then, Path("/"), disk=lambda _: disk).health()
