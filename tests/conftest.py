"""Fixtures every test may use, and the rule that in CI nothing is skipped."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import typer.main
from hypothesis import settings

from evaluator.isolation.bubblewrap import Bubblewrap
from tests.kit.hub.server import HubServer, running_hub
from tests.kit.python_starts import PythonStarts
from tests.kit.tiers import nightly

if TYPE_CHECKING:
    from playwright.sync_api import Browser

REPOSITORY = Path(__file__).resolve().parent.parent
BROWSER_PATIENCE_MS = 60_000
"""For what a page is expected to show, on a machine that has other work."""
LOADED = pytest.StashKey[set[str]]()
"""Packages that were imported when all tests were collected."""


# Tests run beside one another: libraries that each take all cores only wait for each other.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")


# Hundreds of tests type a command each: what its words are is read from its function once.
typer.main.get_params_from_function = cache(typer.main.get_params_from_function)  # type: ignore[attr-defined]


def pytest_configure(config: pytest.Config) -> None:
    """Make a run independent of chance and of how it was started, and hold its budgets.

    Properties get the same examples in each run, so that lines reached are the same, untimed. A shell
    starts background commands with SIGINT ignored, which the processes of tests would inherit.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.pluginmanager.register(PythonStarts())
    settings.register_profile("repeatable", deadline=None, derandomize=True)
    settings.load_profile("repeatable")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as slow all cases but the first of `first_quick` tests, and in a nightly run `nightly` ones."""
    quick: set[str] = set()
    for item in items:
        if item.get_closest_marker("nightly"):
            if nightly():
                item.add_marker("slow")
        elif item.get_closest_marker("first_quick"):
            name = item.nodeid.partition("[")[0]
            if name in quick:
                item.add_marker("slow")
            quick.add(name)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Keep which packages collecting has imported, before any test imports more."""
    session.config.stash[LOADED] = {name.partition(".")[0] for name in sys.modules}


def data_folder() -> Path:
    """Where real public data are looked for: ASSAY_DATA, or ../shared/data beside the checkout."""
    named = os.environ.get("ASSAY_DATA")
    return Path(named) if named else REPOSITORY.parent / "shared" / "data"


@pytest.fixture(scope="session")
def assay_data() -> Path:
    """The folder of real public data, see `data_folder`."""
    folder = data_folder()
    if not folder.is_dir():
        pytest.skip(f"no benchmark data: {folder} does not exist (set ASSAY_DATA)")
    return folder


@pytest.fixture
def hub() -> Iterator[HubServer]:
    """An empty Hub on this machine; starting and stopping it takes some 10 ms."""
    with running_hub() as server:
        yield server


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of a Chromium on this machine."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        found = shutil.which(name)
        if found:
            return found
    pytest.skip("no browser: install chromium to run the browser tests")


@pytest.fixture(scope="session")
def browser_and_loop(chromium: str) -> Iterator[tuple[Browser, asyncio.AbstractEventLoop]]:
    """The one browser of a session, without a window, and the event loop that it is driven by."""
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=BROWSER_PATIENCE_MS)
    with sync_playwright() as playwright:
        loop = asyncio.get_running_loop()
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        asyncio._set_running_loop(None)
        yield browser, loop
        asyncio._set_running_loop(loop)
        browser.close()


@pytest.fixture
def browser(browser_and_loop: tuple[Browser, asyncio.AbstractEventLoop]) -> Iterator[Browser]:
    """A browser whose contexts and pages are closed after the test.

    Playwright leaves its event loop marked as the running one of the thread. Between tests it is not,
    so that other tests can run loops of their own.
    """
    browser, loop = browser_and_loop
    asyncio._set_running_loop(loop)
    yield browser
    for context in browser.contexts:
        context.close()
    asyncio._set_running_loop(None)


@cache
def no_isolation() -> str:
    """Why this machine cannot run code in a sandbox of bubblewrap; empty where it can."""
    probe = Bubblewrap().probe()
    return "" if probe.ok else f"no isolation here: {probe.reason} {probe.remedy}"


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A test that is marked `isolation` is skipped where nothing can be isolated."""
    if item.get_closest_marker("isolation") and no_isolation():
        pytest.skip(no_isolation())


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """With ASSAY_TEST_ALL=1 (CI), a skipped test fails the run: nothing may hide there."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("ASSAY_TEST_ALL") != "1" or reporter is None:
        return
    if reporter.stats.get("skipped"):
        reporter.write_line("ASSAY_TEST_ALL=1: a skipped test fails the run.", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
