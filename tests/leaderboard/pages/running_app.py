"""`python app.py` as its own process."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

REPOSITORY = Path(__file__).resolve().parents[3]


@contextmanager
def running_app(folder: Path, **settings: str) -> Iterator[str]:
    """Serves a store below a folder with the real app, and says where."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("ASSAY_", "OAUTH_"))}
    environment = {
        **clean, "ASSAY_STORE": str(folder / "store"), "PORT": str(port),
        "GRADIO_TEMP_DIR": str(folder / "uploads"), **settings,
    }  # fmt: skip
    with (folder / "app.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "app.py"], cwd=REPOSITORY, env=environment, stdout=log, stderr=log
        )
        try:
            address = f"http://127.0.0.1:{port}/"
            wait_for(address, process, folder / "app.log")
            yield address
        finally:
            process.terminate()
            process.wait(20)


def wait_for(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + 120
    while time.monotonic() < end:
        assert process.poll() is None, log.read_text()
        try:
            if httpx.get(address, timeout=5).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.3)
    pytest.fail(f"the app did not start: {log.read_text()}")
