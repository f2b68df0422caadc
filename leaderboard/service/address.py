"""Where the site listens."""

from __future__ import annotations

from benchmarks.settings.model import Settings

LOOPBACK = "127.0.0.1"


def listens_at(given: Settings) -> str:
    """Address the site listens at: as is said, or as a Space says, or this machine alone."""
    return given.host or given.server_name or LOOPBACK
