"""`python app.py` as its own process."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.processes import await_answer, free_port, running

REPOSITORY = Path(__file__).resolve().parents[3]


@contextmanager
def running_app(folder: Path, **settings: str) -> Iterator[str]:
    """Serves a store below a folder with the real app, and says where."""
    port = free_port()
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("ASSAY_", "OAUTH_"))}
    environment = {
        **clean, "ASSAY_STORE": str(folder / "store"), "PORT": str(port),
        "GRADIO_TEMP_DIR": str(folder / "uploads"), **settings,
    }  # fmt: skip
    address, log = f"http://127.0.0.1:{port}/", folder / "app.log"
    command = [sys.executable, "app.py"]
    with (
        log.open("w") as output,
        running(command, cwd=REPOSITORY, env=environment, stdout=output, stderr=output) as process,
    ):
        await_answer(address, process, log)
        yield address
