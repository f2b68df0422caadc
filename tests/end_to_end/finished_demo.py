"""The published demo, made once for every process of a test run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from filelock import FileLock

from tests.end_to_end.commands import evaluator


def finished_demo(folders: pytest.TempPathFactory) -> Path:
    """A store with the demo published, that nobody may change: whoever does takes a copy."""
    # The processes of a parallel run share the folder above their own; a run alone has its own,
    # or it would take what an older state of the code made.
    base = folders.getbasetemp()
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "assay-demo"
    shared.mkdir(exist_ok=True)
    store, done = shared / "store", shared / "done"
    with FileLock(shared / "lock"):
        if not done.exists():
            ran = evaluator("demo", "--no-serve", "--store", store)
            assert ran.returncode == 0, ran.stdout + ran.stderr
            done.touch()
    return store
