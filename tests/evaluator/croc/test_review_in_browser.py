"""The review page in a browser: keys, two raters at once, a killed server, and use by all on any screen."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

from evaluator.croc.decisions import DecisionLog
from evaluator.croc.review import Review
from evaluator.croc.review_set import read_review_set
from tests.conftest import REPOSITORY
from tests.evaluator.croc.folders import hum_folder
from tests.kit.processes import await_answer, free_port, running
from tests.leaderboard.web.browser.test_every_page import broken_rules

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    expect.set_options(timeout=30_000)
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield found
        found.close()


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The command itself, which is killed when the block ends."""
    port = free_port()
    address, log = f"http://127.0.0.1:{port}/", folder.parent / f"{port}.log"
    words = (
        "-m",
        "evaluator",
        "croc",
        "review",
        str(folder),
        "--port",
        str(port),
        "--repeats",
        "0",
    )
    with (
        log.open("w") as out,
        running(
            [sys.executable, *words], cwd=REPOSITORY, env=dict(os.environ), stdout=out, stderr=out
        ) as process,
    ):
        await_answer(address, process, log)
        yield address
        process.kill()


def keep_text(said: list[str], message: ConsoleMessage) -> None:
    said.append(message.text)


def begin(page: Page, address: str, rater: str) -> None:
    page.goto(address)
    page.get_by_label("Your name").fill(rater)
    page.keyboard.press("Enter")
    expect(page.locator("#row")).to_be_visible()


def at_row(page: Page, number: int) -> None:
    expect(page.locator("input[name=place]")).to_have_value(str(number))


def test_two_raters_review_by_key_and_nothing_is_lost_when_the_server_is_killed(
    tmp_path: Path, browser: Browser
) -> None:
    folder = hum_folder(
        tmp_path / "hum", {f"counting_{n}": ("A b.", "A c.", 2, 2) for n in range(3)}
    )
    pages = {rater: browser.new_page() for rater in ("Ada", "Grace")}
    with served(folder) as address:
        for rater, page in pages.items():
            begin(page, address, rater)
        for number in range(2):
            for page in pages.values():
                at_row(page, number)
                page.keyboard.press("f")
                page.keyboard.press("k")
        for page in pages.values():
            at_row(page, 2)
        pages["Ada"].keyboard.press("u")
        at_row(pages["Ada"], 1)
        pages["Ada"].keyboard.press("x")
        at_row(pages["Ada"], 2)
        pages["Ada"].keyboard.press("n")
        at_row(pages["Ada"], 3)
    review = Review(read_review_set(folder), DecisionLog(folder / "review.jsonl"), repeats=0.0)
    assert [review.progress(rater).kept for rater in pages] == [1, 2]
    with served(folder) as address:
        page = pages["Ada"]
        begin(page, address, "Ada")
        for number in range(2, 6):
            at_row(page, number)
            page.keyboard.press("b")
        expect(page.get_by_role("heading")).to_have_text("All done")
    review.log.refresh()
    assert (review.progress("Ada").done, review.progress("Grace").done) == (6, 2)
    for page in pages.values():
        page.close()


def test_the_page_can_be_used_by_all_on_any_screen(tmp_path: Path, browser: Browser) -> None:
    with served(hum_folder(tmp_path / "hum")) as address:
        schemes: tuple[Literal["light", "dark"], ...] = ("light", "dark")
        for width, touch in ((1280, False), (390, True)):
            for scheme in schemes:
                context = browser.new_context(
                    viewport={"width": width, "height": 844}, color_scheme=scheme, has_touch=touch
                )
                page = context.new_page()
                said: list[str] = []
                page.on("console", partial(keep_text, said))
                begin(page, address, f"{scheme} {width}")
                wide = page.evaluate("document.documentElement.scrollWidth")
                assert (broken_rules(page), wide <= width, said) == ([], True, [])
                for choice in page.locator("label", has_text="Keep").all():
                    choice.tap() if touch else choice.click()
                page.get_by_role("button", name="Save").click()
                at_row(page, 1)
                page.goto(address)
                wide = page.evaluate("document.documentElement.scrollWidth")
                assert (broken_rules(page), wide <= width, said) == ([], True, [])
                assert page.evaluate("document.documentElement.classList.contains('dark')") is (
                    scheme == "dark"
                )
                context.close()
