"""Address at which the site listens, and by which a visitor reached it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from benchmarks.settings.model import Settings

LOOPBACK = "127.0.0.1"
_HOST = re.compile(r"[A-Za-z0-9.-]{1,200}(?::[0-9]{1,5})?")


def listens_at(settings: Settings) -> str:
    """Address the site listens at: as is said, or as a Space says, or this machine alone."""
    return settings.host or settings.gradio_server_name or LOOPBACK


def root_of(headers: Mapping[str, str]) -> str:
    """Address of the site by the headers of a request; empty where they do not say it plainly."""
    host = headers.get("x-forwarded-host") or headers.get("host", "")
    scheme = headers.get("x-forwarded-proto", "http").partition(",")[0].strip()
    if scheme not in {"http", "https"} or not _HOST.fullmatch(host):
        return ""
    return f"{scheme}://{host}/"
