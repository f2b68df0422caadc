"""Address at which the site listens."""

from __future__ import annotations

from benchmarks.settings.model import Settings

LOOPBACK = "127.0.0.1"


def listens_at(settings: Settings) -> str:
    """Address the site listens at: as is said, or as a Space says, or this machine alone."""
    return settings.host or settings.gradio_server_name or LOOPBACK
