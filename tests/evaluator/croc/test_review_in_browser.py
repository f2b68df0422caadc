"""The review page in a browser: keys, two raters at once, a killed server, and use by all on any screen."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import product
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright
from starlette.routing import Mount

from evaluator.croc.review_page import review_app
from tests.conftest import REPOSITORY
from tests.evaluator.croc.folders import hum_folder, review_of
from tests.kit.accessibility import broken_rules
from tests.kit.processes import await_answer, free_port, running
from tests.kit.serving import serving

pytestmark = [pytest.mark.browser, pytest.mark.slow]
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    expect.set_options(timeout=30_000)
    with sync_playwright() as playwright:
        chromium_here = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield chromium_here
        chromium_here.close()


@contextmanager
def killed(folder: Path) -> Iterator[str]:
    """The command itself, which is killed when the block ends."""
    port = free_port()
    address, log = f"http://127.0.0.1:{port}/", folder.parent / f"{port}.log"
    command = [sys.executable, "-m", "evaluator", "croc", "review", folder, "--port", port]
    with (
        log.open("w") as out,
        running([*command, "--repeats", "0"], cwd=REPOSITORY, stdout=out, stderr=out) as process,
    ):
        await_answer(address, process, log)
        yield address
        process.kill()


def keep_text(messages: list[str], message: ConsoleMessage) -> None:
    messages.append(message.text)


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
    pairs = {f"counting_{n}": ("A b.", "A c.", 2, 2) for n in range(3)}
    folder = hum_folder(tmp_path / "hum", pairs)
    pages = {rater: browser.new_page() for rater in ("Ada", "Grace")}
    with killed(folder) as address:
        for rater, page in pages.items():
            begin(page, address, rater)
        for number in range(2):
            for page in pages.values():
                at_row(page, number)
                page.keyboard.press("f")
                page.keyboard.press("k")
        for page in pages.values():
            at_row(page, 2)
        for key, row in (("u", 1), ("x", 2), ("n", 3)):
            pages["Ada"].keyboard.press(key)
            at_row(pages["Ada"], row)
    review = review_of(folder)
    assert [review.progress(rater).kept for rater in pages] == [1, 2]
    with serving([Mount("/", review_app(review))]) as address:
        page = pages["Ada"]
        begin(page, address, "Ada")
        for number in range(2, 6):
            at_row(page, number)
            page.keyboard.press("b")
        expect(page.get_by_role("heading")).to_have_text("All done")
    assert (review.progress("Ada").done, review.progress("Grace").done) == (6, 2)
    for page in pages.values():
        page.close()


def test_the_page_can_be_used_by_all_on_any_screen(tmp_path: Path, browser: Browser) -> None:
    review = review_of(hum_folder(tmp_path / "hum"))
    with serving([Mount("/", review_app(review))]) as address:
        for (width, touch), scheme in product(((1280, False), (390, True)), SCHEMES):
            context = browser.new_context(
                viewport={"width": width, "height": 844}, color_scheme=scheme, has_touch=touch
            )
            page, messages = context.new_page(), list[str]()
            page.on("console", partial(keep_text, messages))
            begin(page, address, f"{scheme} {width}")
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert (broken_rules(page), wide <= width, messages) == ([], True, [])
            for choice in page.locator("label", has_text="Keep").all():
                choice.tap() if touch else choice.click()
            page.get_by_role("button", name="Save").click()
            at_row(page, 1)
            page.goto(address)
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert (broken_rules(page), wide <= width, messages) == ([], True, [])
            dark = page.evaluate("document.documentElement.classList.contains('dark')")
            assert dark is (scheme == "dark")
            context.close()
