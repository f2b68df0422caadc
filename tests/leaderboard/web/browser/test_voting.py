"""Voting in a browser: by key, by touch on a phone, in any scheme, with the service killed in between."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from leaderboard.votes.records import Choice
from leaderboard.web.page import all_pages
from leaderboard.web.voting import routes
from tests.kit.boards import cards
from tests.kit.site import LOCAL, app_of, served
from tests.leaderboard.views.model_track import reader_of
from tests.leaderboard.votes.made_up_polls import SET, Booth
from tests.leaderboard.web.browser import views
from tests.leaderboard.web.conftest import Opener

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@contextmanager
def site(booth: Booth) -> Iterator[str]:
    """The site with the page of votes."""
    app, options = app_of(booth.store, cards(), models=reader_of(booth.store))
    own = routes(booth.restarted(), LOCAL, booth.reader.prompt_sets, all_pages())
    options["app_kwargs"]["routes"] = [*own, *options["app_kwargs"]["routes"]]
    with served(app, options) as address:
        yield address


@pytest.fixture
def booth(tmp_path: Path) -> Booth:
    made = Booth(tmp_path, n_prompts=30)
    made.open()
    return made


def ballot(page: Page) -> str:
    return page.locator("input[name=ballot]").input_value()


def expect_next(page: Page, before: str) -> str:
    expect(page.locator("input[name=ballot]")).not_to_have_value(before)
    expect(page.locator("#ballot button").first).to_be_enabled()
    return ballot(page)


def test_votes_are_given_by_key_counted_once_and_outlast_the_server(
    booth: Booth, browser: Browser
) -> None:
    page = browser.new_context(viewport={"width": 1280, "height": views.HEIGHT}).new_page()
    given: dict[str, Choice] = {}
    keys = (
        ("1", Choice.LEFT), ("ArrowRight", Choice.RIGHT), ("3", Choice.EQUAL),
        ("4", Choice.BOTH_BAD), ("ArrowLeft", Choice.LEFT), ("4", Choice.BOTH_BAD),
    )  # fmt: skip
    with site(booth) as address:
        page.goto(f"{address}vote")
        page.get_by_role("link", name="Drawn").click()
        current = ballot(page)
        expect(page.locator("#ballot button").first).to_be_enabled()
        for key, choice in keys:
            given[current] = choice
            page.keyboard.press(key)
            current = expect_next(page, current)
            expect(page.get_by_role("status")).to_contain_text("Your vote is counted")
        # A second tab that shows the same pair answers it after this one did.
        other = page.context.new_page()
        other.goto(page.url)
        assert ballot(other) == current
        given[current] = Choice.EQUAL
        page.get_by_role("button", name="Equal").dblclick()
        waiting = expect_next(page, current)
        expect(other.locator("#ballot button").first).to_be_enabled()
        other.keyboard.press("1")
        expect(other.get_by_role("status")).to_contain_text("the first one counts")
        assert ballot(other) == waiting
    with site(booth) as address:
        page.goto(f"{address}vote/{SET}")
        assert ballot(page) == waiting
    answers = booth.restarted().votes(SET).answers
    assert {one: answer.choice for one, answer in answers.items()} == given


def test_keys_answer_only_from_the_ballot_and_while_they_are_switched_on(
    booth: Booth, browser: Browser
) -> None:
    page = browser.new_page()
    with site(booth) as address:
        page.goto(f"{address}vote/{SET}")
        current = ballot(page)
        first = page.locator("#ballot button").first
        expect(first).to_be_enabled()
        for key in ("ArrowUp", "ArrowDown"):
            page.keyboard.press(key)
        page.get_by_role("link", name="Votes", exact=True).focus()
        page.keyboard.press("1")
        page.get_by_role("checkbox").uncheck()
        first.focus()
        page.keyboard.press("1")
        page.reload()
        expect(first).to_be_enabled()
        assert not page.get_by_role("checkbox").is_checked()
        page.keyboard.press("ArrowRight")
        assert ballot(page) == current
        page.get_by_role("checkbox").check()
        first.focus()
        page.keyboard.press("2")
        expect_next(page, current)
    answers = booth.restarted().votes(SET).answers
    assert [one.choice for one in answers.values()] == [Choice.RIGHT]


def test_a_pair_whose_image_does_not_come_cannot_be_answered(
    booth: Booth, browser: Browser
) -> None:
    page = browser.new_page()
    with site(booth) as address:
        page.route("**/right", lambda route: route.fulfill(status=404))
        page.goto(f"{address}vote/{SET}")
        expect(page.locator("#said")).to_contain_text("cannot be shown")
        for name in ("Left", "Right", "Equal", "Both bad"):
            expect(page.get_by_role("button", name=name)).to_be_disabled()
        page.keyboard.press("1")
    assert not booth.restarted().votes(SET).answers


def test_the_page_works_by_touch_without_a_script_and_with_nothing_that_moves(
    booth: Booth, browser: Browser
) -> None:
    context = browser.new_context(
        viewport={"width": 390, "height": views.HEIGHT}, has_touch=True, is_mobile=True,
        java_script_enabled=False,
    )  # fmt: skip
    page = context.new_page()
    with site(booth) as address:
        page.goto(f"{address}vote/{SET}")
        current = ballot(page)
        for name in ("Left", "Right", "Equal", "Both bad"):
            button = page.get_by_role("button", name=name)
            expect(button).to_be_in_viewport(ratio=1)
            size = button.bounding_box()
            assert size is not None and size["height"] >= 44
            button.tap()
            current = expect_next(page, current)
    assert len(booth.restarted().votes(SET).answers) == 4


def test_the_page_breaks_no_rule_and_does_not_shift_on_a_phone_or_a_desk(
    booth: Booth, open_page: Opener
) -> None:
    inspector = views.Inspector()
    with site(booth) as address:
        for width, path in product((390, 1280), ("vote", f"vote/{SET}", "vote/nothing")):
            page = open_page(f"{address}{path}", width=width)
            page.wait_for_load_state("load")
            assert views.shift_of(page) <= 0.01, path
            for image in page.locator(".as-vote-images img").all():
                assert image.evaluate("image => image.naturalWidth") == 512
            assert inspector.problems(page) == [], path
    # The browser itself says of an address without a vote that it was answered with 404.
    assert [error for error in open_page.errors if "404" not in error] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_has_the_scheme_of_the_system(
    booth: Booth, open_page: Opener, scheme: str
) -> None:
    with site(booth) as address:
        page = open_page(f"{address}vote", color_scheme=scheme)
        assert page.evaluate("document.body.classList.contains('dark')") is (scheme == "dark")
