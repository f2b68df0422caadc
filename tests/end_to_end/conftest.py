"""The published demo, made once for all tests of this folder."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from filelock import FileLock
from playwright.sync_api import Page, sync_playwright

from tests.end_to_end.commands import evaluator


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the demo published; tests that change it take `store`, a copy."""
    # The processes of a parallel run share the folder above their own; a run alone has its own,
    # or it would take what an older state of the code made.
    base = tmp_path_factory.getbasetemp()
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "assay-demo"
    shared.mkdir(exist_ok=True)
    store, done = shared / "store", shared / "done"
    with FileLock(shared / "lock"):
        if not done.exists():
            ran = evaluator("demo", "--no-serve", "--store", store)
            assert ran.returncode == 0, ran.stdout + ran.stderr
            done.touch()
    return store


@pytest.fixture
def store(demo: Path, tmp_path: Path) -> Path:
    """A copy of the published demo."""
    copy = tmp_path / "store"
    shutil.copytree(demo, copy)
    return copy


@pytest.fixture
def page(chromium: str) -> Iterator[Page]:
    """A page of a desk, in a browser without a window."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser.new_page(viewport={"width": 1280, "height": 900})
        browser.close()
