"""The demo's app and worker, served as a person serves them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.end_to_end.commands import REPOSITORY, environment
from tests.kit.processes import await_answer, free_port, running


@contextmanager
def served(store: Path, log: Path) -> Iterator[str]:
    """The app and its worker, as `make demo` starts them a second time."""
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "evaluator", "demo", "--serve", "--store", store]
    with (
        log.open("wb") as output,
        running(
            command,
            cwd=REPOSITORY,
            env=environment(PORT=port),
            stdout=output,
            stderr=subprocess.STDOUT,
        ) as process,
    ):
        await_answer(address, process, log)
        yield address
        process.terminate()  # It ends its worker itself.
        process.wait(timeout=40)
