"""Starting a box from a thread that lasts as long as the box.

The kernel tells a box that its parent died when the *thread* that started it ends, so a box must
not depend on whichever thread happened to ask for it.
"""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable

Started = subprocess.Popen[bytes]


class Starter:
    """One thread, which starts one process and then waits until it is let go."""

    def __init__(self, start: Callable[[], Started]) -> None:
        self._start = start
        self._ready = threading.Event()
        self._over = threading.Event()
        self._process: Started | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="box starter", daemon=True)

    def start(self) -> Started:
        """Start the process.

        Raises:
            OSError, AssayError: whatever starting it raised.
        """
        self._thread.start()
        self._ready.wait()
        if self._process is None:
            raise self._error or RuntimeError("nothing was started")
        return self._process

    def release(self) -> None:
        """End the thread; call it only once the process has ended."""
        self._over.set()

    def _run(self) -> None:
        try:
            self._process = self._start()
        except BaseException as error:  # noqa: BLE001 - raised again where it was asked for
            self._error = error
        self._ready.set()
        if self._process is not None:
            self._over.wait()
