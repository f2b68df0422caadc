"""Waiting for what must come about, and never for a time."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any, TypeVar

from tests.end_to_end.trial.ground import Ground

PATIENCE_S = 400.0
Found = TypeVar("Found")


def until(ground: Ground, what: str, look: Callable[[], Found | None]) -> Found:
    """The first thing a look finds.

    Args:
        ground: whose processes must live meanwhile.
        what: is waited for, in words.
        look: None, or nothing: not yet.
    """
    end = time.monotonic() + PATIENCE_S
    while not (found := look()):
        ground.check_alive()
        logs = "\n".join(ground.log(name).read_text()[-2500:] for name in ground.children)
        assert time.monotonic() < end, f"{what}: it never came about\n{logs}"
        time.sleep(0.1)
    return found


def fetched(address: str) -> tuple[int, bytes]:
    """An answer of the app, whatever its status; 0 where there is none."""
    try:
        with urllib.request.urlopen(address, timeout=60) as reply:
            return reply.status, reply.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()
    except OSError:
        return 0, b""


def told(address: str) -> Any:
    """The JSON of an answer.

    Raises:
        AssertionError: it was refused.
    """
    status, body = fetched(address)
    assert status == 200, f"{address}: {status} {body[:2000]!r}"
    return json.loads(body)
