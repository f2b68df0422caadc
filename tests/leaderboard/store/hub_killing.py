"""Writers in another process that are killed before one of their requests."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.kit.hub.server import HubServer
from tests.kit.hub_store import NAME
from tests.kit.processes import running

ROOT = Path(__file__).resolve().parents[3]
Dies = Callable[[str, int], int]
KILLED = -9


@contextmanager
def dying_writers(hub: HubServer, folder: Path) -> Iterator[Dies]:
    """Do something in another process, killed before one of its requests; tells how it ended."""
    command = [sys.executable, "-m", "tests.leaderboard.store.hub_dying_writer"]
    pipe = subprocess.PIPE
    with running(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) as server:
        pipe_in, pipe_out = server.stdin, server.stdout
        assert pipe_in is not None
        assert pipe_out is not None

        def asked(what: str, last: int) -> int:
            own = str(folder / f"dying-{last}")
            given = (what, last, own, NAME, (hub.endpoint, hub.token))
            pipe_in.write(json.dumps(given) + "\n")
            pipe_in.flush()
            return int(pipe_out.readline())

        yield asked
