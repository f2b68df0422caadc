"""What one submits and follows in a browser: images checked and sent, logs, and an outage."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Request, expect

from evaluator.submission.service import SubmissionService
from leaderboard.accounts import Account, Origin
from leaderboard.governance.authentication import Authentication, AuthenticationMethod
from leaderboard.ledger.ledger import Ledger
from leaderboard.records import Event, Kind
from leaderboard.states import State
from leaderboard.store.interface import Store
from leaderboard.submission_service import SandboxAvailability
from tests.evaluator.submission.generations import made_images
from tests.kit import boards
from tests.kit.site import app_of
from tests.kit.store import memory_store
from tests.leaderboard.web import failing_store
from tests.leaderboard.web import own_submissions as sent
from tests.leaderboard.web.browser.views import HEIGHT, Inspector
from tests.leaderboard.web.conftest import Opener, Serve

pytestmark = [pytest.mark.browser, pytest.mark.slow]
HERE = Authentication(AuthenticationMethod.LOCAL, local="root")
ROOT = Account(origin=Origin.LOCAL, name="root")
WAIT_MS = 60_000
BAND = """() => {
  const { components, dependencies } = window.gradio_config;
  const band = components.find(one => one.props.elem_classes?.includes('as-band')).id;
  return dependencies.filter(one => one.outputs.includes(band)).map(one => one.id);
}"""
"""Functions of the page that renew the band for outages, which never rests."""
ENDED = (State.CLAIMED, State.SCORING, State.FAILED)


def place(page: Page) -> int:
    """How far the log is from its end."""
    found = page.evaluate(
        "(() => { const log = document.querySelector('.as-running');"
        " return log.scrollHeight - log.clientHeight - log.scrollTop; })()"
    )
    return int(found)


def test_a_running_log_is_followed_unless_its_reader_went_back(
    serve: Serve, open_page: Opener
) -> None:
    store = sent.run_one(boards.fill(memory_store()), ROOT)
    page = open_page(f"{serve(app_of(store, boards.cards(), HERE))}submit?id={sent.RUNNING}")
    log = page.locator(".as-running")
    expect(log).to_contain_text("batch 59")
    page.wait_for_function("document.querySelector('.as-running').dataset.placed === '1'")
    assert place(page) <= 1
    later = sent.SAID + "".join(f"later {n}\n" for n in range(9))
    store.live.set_log(sent.RUNNING, later)
    expect(log).to_contain_text("later 8")
    page.wait_for_function("document.querySelector('.as-running').dataset.placed === '1'")
    assert place(page) <= 1
    page.evaluate("document.querySelector('.as-running').scrollTop = 100")
    page.evaluate("() => new Promise(requestAnimationFrame)")  # Then it is told that it scrolled.
    store.live.set_log(sent.RUNNING, f"{later}the last\n<b>bold</b>\n")
    expect(log).to_contain_text("<b>bold</b>")
    page.wait_for_function("document.querySelector('.as-running').dataset.placed === '1'")
    assert page.evaluate("document.querySelector('.as-running').scrollTop") == 100
    assert log.locator("*").count() == 0
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": HEIGHT})
        box = log.bounding_box()
        assert box is not None and box["height"] <= 242
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_an_outage_is_told_acts_fail_in_words_and_all_goes_on_after_it(
    serve: Serve, browser: Browser
) -> None:
    switch = failing_store.Switch()
    store = failing_store.failing(sent.give(boards.fill(memory_store()), ROOT), switch)
    page = browser.new_page()
    address = serve(app_of(store, boards.cards(), HERE))
    page.goto(f"{address}submit?id={sent.QUEUED}")
    expect(page.locator("#chosen")).to_contain_text("waiting-metric")
    band = page.locator(".as-band .as-note")
    expect(band).to_have_count(0)
    switch.out = True
    expect(band).to_contain_text("shown as of 12:00 UTC", timeout=WAIT_MS)
    expect(page.locator("#chosen")).to_contain_text("waiting-metric")
    page.get_by_role("button", name="Withdraw", exact=True).click()
    expect(page.get_by_text("Something outside failed.").first).to_be_visible()
    page.get_by_role("button", name="Yes, withdraw it").click()
    expect(page.get_by_text("Something outside failed.").first).to_be_visible()
    other = browser.new_page()
    other.goto(f"{address}operators")
    expect(other.locator(".as-band .as-note")).to_contain_text("The store does not answer")
    expect(other.locator(".as-queue")).to_contain_text("waiting-metric")
    assert other.get_by_text("Error", exact=True).count() == 0
    switch.out = False
    expect(band).to_have_count(0, timeout=WAIT_MS)
    expect(other.locator(".as-band .as-note")).to_have_count(0, timeout=WAIT_MS)
    page.get_by_role("button", name="Withdraw", exact=True).click()
    page.get_by_role("button", name="Yes, withdraw it").click()
    expect(other.locator(".as-queue")).to_contain_text("withdrawn", timeout=WAIT_MS)


@pytest.mark.parametrize("path", ["submit?id=", "operators?id="])
def test_an_open_log_stays_open_and_where_it_was(serve: Serve, browser: Browser, path: str) -> None:
    store = sent.give(boards.fill(memory_store()), sent.ADA)
    page = browser.new_page()
    page.goto(f"{serve(app_of(store, boards.cards(), HERE))}{path}{sent.FAILED}")
    happened = page.locator(".as-what-happened")
    expect(happened).to_have_attribute("open", "")
    log = page.locator(".as-history details").first
    log.locator("summary").click()
    scroll(page, 120)
    # Renewed as it is, and renewed with something new in it.
    for place in range(2):
        happen(store, place)
        expect(page.locator(".as-history li")).to_have_count(6 + place)
        expect(log).to_have_attribute("open", "")
        assert page.evaluate("document.querySelector('.as-history pre').scrollTop") == 120
    log.locator("summary").click()
    happen(store, 2)
    expect(page.locator(".as-history li")).to_have_count(8)
    expect(log).not_to_have_attribute("open", "")


def scroll(page: Page, to: int) -> None:
    expect(page.locator(".as-history pre").first).to_be_visible()
    page.evaluate(f"document.querySelector('.as-history pre').scrollTop = {to}")
    page.wait_for_function("[...window.asKept.values()].includes(120)")


def happen(store: Store, place: int) -> None:
    """Add an event, so that the history is drawn anew."""
    states = (State.QUEUED, State.CLAIMED, State.SCORING)
    event = Event(at=boards.NOW + timedelta(seconds=place), state=states[place], by="worker-1")
    Ledger(store).append(sent.FAILED, [event])


def functions(request: Request) -> set[int]:
    """Which function of the page a request asks for, if any."""
    return {int(n) for n in re.findall(r'"fn_index":\s*(\d+)', request.post_data or "")}


@pytest.fixture(scope="module")
def store() -> Store:
    return memory_store()


@pytest.fixture(scope="module")
def site(store: Store, serve: Serve) -> str:
    desk = SubmissionService(
        store,
        {},
        None,
        lambda: SandboxAvailability(True),
        store.clock,
        prompt_sets=made_images.SETS,
    )
    return serve(app_of(store, boards.cards(), desk=desk, clock=store.clock))


def opened(open_page: Opener, site: str) -> Page:
    page = open_page(f"{site}submit?kind=generations")
    # The form can be used once the page knows who asks, and sent once its check has passed.
    expect(page.get_by_role("button", name="Check", exact=True)).to_be_enabled(timeout=WAIT_MS)
    expect(page.get_by_role("button", name="Submit images")).to_be_disabled()
    return page


def choose(page: Page, path: Path) -> None:
    page.locator("input[type=file]").first.set_input_files(str(path))
    expect(page.locator(".file-preview").last).to_be_visible(timeout=WAIT_MS)


def test_all_that_is_wrong_is_listed_and_fits(site: str, open_page: Opener, tmp_path: Path) -> None:
    images = made_images.made()
    for name in list(images.files)[:3]:
        del images.files[name]
    images.rows["p3", 2]["prompt"] = "<img src=x onerror=alert(1)>"
    page = opened(open_page, site)
    choose(page, images.zipped(tmp_path / "bad.zip"))
    page.get_by_role("button", name="Check", exact=True).click()
    rows = page.locator(".as-problems tbody tr")
    expect(rows).to_have_count(2, timeout=WAIT_MS)
    for code, number in (("missing", "3"), ("wrong_prompt", "1")):
        expect(rows.filter(has_text=code).locator("td").first).to_have_text(number)
    expect(page.get_by_role("button", name="Submit images")).to_be_disabled()
    assert Inspector().problems(page) == []


def test_parquet_is_named_in_the_form_and_sent(
    site: str, open_page: Opener, store: Store, tmp_path: Path
) -> None:
    page = opened(open_page, site)
    choose(page, made_images.made().parquet(tmp_path / "images.parquet"))
    page.get_by_text("Parquet without assay.toml").click()
    page.get_by_label("Prompt set").click()
    page.get_by_role("option", name=made_images.SET.name).click()
    page.get_by_label("Name of the model").fill("painter")
    page.get_by_role("button", name="Check", exact=True).click()
    expect(page.get_by_text("Nothing is wrong with")).to_be_visible(timeout=WAIT_MS)
    expect(page.get_by_text("8 of 8 images of demo_prompts")).to_be_visible()
    page.get_by_label("Version").fill("2")  # What is changed has to be checked again.
    send = page.get_by_role("button", name="Submit images")
    expect(send).to_be_disabled()
    page.get_by_role("button", name="Check", exact=True).click()
    expect(send).to_be_enabled(timeout=WAIT_MS)
    send.click()
    expect(page.get_by_text("is in.")).to_be_visible(timeout=WAIT_MS)
    [status] = Ledger(store).statuses()
    own = status.submission
    assert (own.kind, own.name, own.version) == (Kind.GENERATIONS, "painter", "2")
    # What was sent is followed at once, until its final state and no longer.
    chosen = page.locator("#chosen")
    expect(chosen.locator("[aria-current=step]")).to_have_text("queued")
    page.wait_for_url(f"**/submit?kind=generations&id={own.submission_id}")
    band = set(page.evaluate(BAND))
    assert band
    with page.expect_request(lambda request: bool(functions(request) - band), timeout=WAIT_MS):
        pass
    events = [Event(at=boards.NOW, state=state, by="worker-1") for state in ENDED]
    Ledger(store).append(own.submission_id, events)
    expect(chosen).to_have_attribute("data-final", "yes", timeout=WAIT_MS)
    expect(chosen).to_contain_text("painter failed")

    def of_band(request: Request) -> bool:
        return bool(functions(request) & band)

    numbers: set[int] = set()
    with page.expect_request(of_band, timeout=WAIT_MS):
        pass
    # The band is looked at every five seconds, a submission that is followed every two.
    page.on("request", lambda request: numbers.update(functions(request)))
    with page.expect_request(of_band, timeout=WAIT_MS):
        pass
    assert numbers <= band
