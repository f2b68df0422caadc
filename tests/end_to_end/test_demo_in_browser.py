"""A stranger's metric from the submit page to the board, in a real browser; with pictures."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.end_to_end.commands import REPOSITORY
from tests.end_to_end.serving import served
from tests.kit.processes import answers

pytestmark = [pytest.mark.browser, pytest.mark.isolation, pytest.mark.slow]

PICTURES = REPOSITORY / "screenshots"
BRIGHTNESS = """
import numpy as np


class Scorer:
    def score(self, images, prompts):
        return [float(np.asarray(image).mean()) + len(p) / 100 for image, p in zip(images, prompts)]
"""
BROKEN = (
    "class Scorer:\n    def score(self, images, prompts):\n        raise ValueError('no luck')\n"
)


def module(path: Path, name: str, source: str) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("assay.toml", f'name = "{name}"\nversion = "2"\n')
        archive.writestr("scorer.py", source)
    return path


def keep(page: Page, name: str) -> None:
    PICTURES.mkdir(exist_ok=True)
    page.screenshot(path=PICTURES / f"{name}.png", full_page=True)


def check(page: Page, address: str, archive: Path) -> None:
    page.goto(f"{address}/submit")
    expect(page.get_by_role("heading", name="Submit a metric")).to_be_visible()
    page.locator("input[type=file]").first.set_input_files(archive)
    page.get_by_label("Signed as").first.fill("Grace")
    # The button to clear the choice comes when the upload is complete.
    expect(page.get_by_role("button", name="Clear")).to_be_visible()
    page.get_by_role("button", name="Check").first.click()


def submit(page: Page, address: str, archive: Path) -> None:
    check(page, address, archive)
    send = page.get_by_role("button", name="Submit module")
    expect(send).to_be_enabled()
    send.click()


def test_a_module_goes_from_the_submit_page_through_the_queue_to_the_board(
    store: Path, tmp_path: Path, page: Page
) -> None:
    good = module(tmp_path / "brightness.zip", "brightness", BRIGHTNESS)
    broken = module(tmp_path / "broken.zip", "broken", BROKEN)
    with served(store, tmp_path / "served.log") as address:
        submit(page, address, good)
        expect(page.get_by_text("brightness is in.")).to_be_visible()
        keep(page, "1-submitted")

        page.goto(f"{address}/submit")
        own = page.get_by_role("region", name="My submissions")
        mine = own.locator("tr", has_text="brightness")
        expect(mine.get_by_text("published")).to_be_visible(timeout=90_000)
        keep(page, "2-queue")

        page.goto(f"{address}/?tab=benchmark:demo_croc")
        board = page.locator(".as-board").first
        expect(board.get_by_role("button", name="brightness", exact=True)).to_be_visible()
        expect(board.get_by_role("button", name="two-tower", exact=True)).to_be_visible()
        keep(page, "3-board")

        submit(page, address, broken)
        expect(page.get_by_text("broken is in.")).to_be_visible()
        page.goto(f"{address}/submit")
        mine = own.locator("tr", has_text="broken")
        expect(mine.get_by_text("failed").first).to_be_visible(timeout=60_000)
        mine.get_by_role("link").first.click()
        expect(page.locator("#chosen")).to_contain_text("ValueError: no luck")
        keep(page, "4-failed")

        (tmp_path / "not.zip").write_text("hello")
        check(page, address, tmp_path / "not.zip")
        expect(page.get_by_text("neither a zip nor a tar archive")).to_be_visible()
        keep(page, "5-refused")
        page.goto(f"{address}/?tab=benchmark:demo_croc")
        board = page.locator(".as-board").first
        expect(board.get_by_role("button", name="two-tower", exact=True)).to_be_visible()


def test_stopping_the_demo_leaves_no_process(store: Path, tmp_path: Path) -> None:
    with served(store, tmp_path / "served.log") as address:
        assert answers(address)
    assert not answers(address)
    processes = [folder for folder in Path("/proc").iterdir() if folder.name.isdecimal()]
    left = [p.name for p in processes if str(store).encode() in _environment_of(p)]
    assert left == []


def _environment_of(process: Path) -> bytes:
    try:
        return (process / "environ").read_bytes()
    except OSError:
        return b""


# From a question to the images that answer it, by what is on the screen and nothing else
PATIENCE_MS = 60_000
"""The first look at a page reads the whole store, on a machine that has other work."""
LOADED = "image => image.complete && image.naturalWidth > 0"


class Visitor:
    """Somebody who only presses what is named on the screen.

    `clicks`: how often.
    """

    def __init__(self, page: Page) -> None:
        self.page, self.clicks = page, 0

    def click(self, link: Locator) -> None:
        expect(link).to_be_visible(timeout=PATIENCE_MS)
        link.click()
        self.clicks += 1


def seen_pictures(within: Locator) -> list[Locator]:
    """The images that have arrived, of those a visitor can scroll to."""
    seen = []
    for image in within.get_by_role("img", name=re.compile(r"^Image \d+ for: .+")).all():
        image.scroll_into_view_if_needed()
        image.evaluate("image => image.decode()")
        if image.evaluate(LOADED):
            seen.append(image)
    return seen


def test_three_clicks_lead_from_the_front_page_to_images_where_the_best_affordable_metric_fails(
    store: Path, tmp_path: Path, page: Page
) -> None:
    with served(store, tmp_path / "served.log") as address:
        visitor = Visitor(page)
        page.goto(address)
        visitor.click(page.get_by_role("link", name="Simulated ratings", exact=True))
        visitor.click(page.get_by_role("tab", name="Counting", exact=True))
        affordable = page.locator(".as-answers-for > div", has_text="Best affordable")
        chosen = affordable.get_by_role("link").first
        expect(chosen).to_be_visible(timeout=PATIENCE_MS)
        metric = chosen.inner_text()
        visitor.click(affordable.get_by_role("link", name=re.compile("^Images where it fails")))

        failing = re.compile(rf"^Images where {re.escape(metric)}.* fails")
        expect(page.get_by_role("heading", name=failing)).to_be_visible(timeout=PATIENCE_MS)
        assert visitor.clicks == 3
        cases = page.get_by_role("article", name=re.compile("^Case "))
        expect(cases.nth(2)).to_be_visible(timeout=PATIENCE_MS)
        pictures = []
        for case in cases.all()[:3]:
            pictures += seen_pictures(case)
            prefers = re.compile(rf"^{re.escape(metric)}.* prefers image ")
            expect(case.get_by_text(prefers).first).to_be_visible()
        assert len(pictures) >= 3
