"""The published demo, made once for all tests of this folder."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from tests.end_to_end.finished_demo import finished_demo


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the demo published; tests that change it take `store`, a copy."""
    return finished_demo(tmp_path_factory)


@pytest.fixture
def store(demo: Path, tmp_path: Path) -> Path:
    """A copy of the published demo."""
    copy = tmp_path / "store"
    shutil.copytree(demo, copy)
    return copy


@pytest.fixture
def page(chromium: str) -> Iterator[Page]:
    """A page of a desk, in a browser without a window."""
    expect.set_options(timeout=30_000)  # The machine has other work.
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser.new_page(viewport={"width": 1280, "height": 900})
        browser.close()
