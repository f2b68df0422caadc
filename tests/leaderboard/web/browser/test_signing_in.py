"""From signing in to the ledger, in a real browser, with the real app and its real desk."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from leaderboard.ledger.audit_log import read_lines, verify
from leaderboard.store.folder import folder_store
from tests.kit.site import running_app
from tests.leaderboard.web.oauth_provider import Provider, provider

pytestmark = [pytest.mark.browser, pytest.mark.slow]
MANIFEST = (
    'name = "long-prompts"\nversion = "1.0"\ndescription = "Likes long prompts."\n'
    'benchmarks = ["demo_croc"]\n'
)
SCORER = (
    "class Scorer:\n    def score(self, images, prompts):\n"
    "        return [float(len(prompt)) for prompt in prompts]\n"
)


@pytest.fixture(scope="module")
def hub() -> Iterator[Provider]:
    with provider("ada", "grace", "root") as found:
        yield found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("app")


@pytest.fixture(scope="module")
def space(hub: Provider, folder: Path) -> Iterator[str]:
    """The app as a Space runs it; where it is served."""
    with running_app(folder, ASSAY_OPERATORS="hub:root", **hub.environment()) as address:
        yield address


def archive(folder: Path, name: str, **files: str) -> Path:
    path = folder / name
    with zipfile.ZipFile(path, "w") as archive:
        for inside, content in files.items():
            archive.writestr(inside.replace("__", "."), content)
    return path


def sign_in(context: BrowserContext, space: str, name: str) -> Page:
    page = context.new_page()
    page.goto(f"{space}submit")
    page.get_by_role("button", name="Sign in with Hugging Face").click()
    page.get_by_role("link", name=f"Continue as {name}").click()
    page.wait_for_url(f"{space}submit")
    expect(page.locator(".as-who")).to_contain_text(f"Signed in as {name}")
    return page


def test_from_signing_in_to_the_ledger(
    space: str, hub: Provider, folder: Path, browser: Browser
) -> None:
    page = sign_in(browser.new_context(), space, "ada")
    assert {asked["scope"] for asked in hub.asked} == {"openid profile"}
    expect(page.locator(".as-quota")).to_contain_text("10 left: 0 of 10 used")

    broken = archive(
        folder, "broken.zip", assay__toml='name = "x y"\n', scorer__py=SCORER, w__pkl="x"
    )
    upload(page, broken)
    page.get_by_role("button", name="Check", exact=True).click()
    problems = page.locator(".as-problems tbody tr")
    expect(problems.filter(has_text="assay.toml:1").first).to_be_visible()
    expect(problems.filter(has_text="w.pkl").first).to_be_visible()
    expect(page.get_by_role("button", name="Submit module")).to_be_disabled()

    page.get_by_role("button", name="Remove").or_(page.get_by_label("Clear")).first.click()
    upload(page, archive(folder, "good.zip", assay__toml=MANIFEST, scorer__py=SCORER))
    page.get_by_label("Keep private until I publish it").first.check()
    page.get_by_role("button", name="Check", exact=True).click()
    expect(page.get_by_role("status").filter(has_text="Nothing is wrong")).to_be_visible()
    expect(page.locator(".as-plan")).to_contain_text("1 benchmark")
    page.get_by_role("button", name="Submit module").click()
    expect(page.get_by_text("long-prompts is in.")).to_be_visible()
    expect(page.locator(".as-quota")).to_contain_text("1 of 3 waiting or in work")

    page.wait_for_url(re.compile(r"/submit\?id=private-[0-9a-f]{10}$"))
    ident = page.url.partition("=")[2]
    expect(page.locator("#chosen")).to_contain_text("long-prompts 1.0")
    page.get_by_role("button", name="Withdraw", exact=True).click()
    expect(page.get_by_text("for good?")).to_be_visible()
    page.get_by_role("button", name="Yes, withdraw it").click()
    expect(page.locator("#chosen .as-history")).to_contain_text("withdrawn")
    expect(page.get_by_role("button", name="Withdraw", exact=True)).to_be_hidden()

    page.goto(f"{space}ledger?subject={ident}")
    rows = page.locator(".as-lines tbody tr")
    expect(rows.first).to_contain_text("withdrawn")
    expect(page.get_by_text("Verified up to line")).to_be_visible()
    expect(page.locator(".as-lines")).not_to_contain_text("long-prompts")
    public = folder_store(folder / "store").public
    assert [line.action for line in read_lines(public, ident)] == [
        "received", "queued", "withdrawn",
    ]  # fmt: skip
    assert verify(public) == ()
    with page.expect_download() as download:
        page.get_by_role("link", name="Whole log").click()
    assert download.value.suggested_filename == "ledger.jsonl"


def test_the_session_cookie_is_for_the_server_alone(space: str, browser: Browser) -> None:
    context = browser.new_context()
    page = sign_in(context, space, "grace")
    (cookie,) = (c for c in context.cookies() if c["name"] == "session")
    assert (cookie["httpOnly"], cookie["secure"]) == (True, True)
    assert page.evaluate("document.cookie").find("session") == -1
    page.get_by_role("button", name="Sign out (grace)").click()
    expect(page.get_by_text("You are not signed in.")).to_be_visible()
    expect(page.get_by_role("button", name="Submit module")).to_be_disabled()


def test_a_guest_can_read_and_no_more(space: str, browser: Browser) -> None:
    page = browser.new_page()
    page.goto(f"{space}submit")
    expect(page.get_by_text("You are not signed in.")).to_be_visible()
    for button in ("Check", "Submit module"):
        expect(page.get_by_role("button", name=button, exact=True)).to_be_disabled()
    assert page.locator(".as-form input[type=file]").count() == 0
    page.goto(f"{space}operators")
    expect(page.get_by_text("You are not signed in.")).to_be_visible()
    expect(page.get_by_role("button", name="Set policy")).to_be_hidden()
    page.goto(f"{space}ledger")
    expect(page.locator("h1")).to_have_text("Audit log")


def test_an_operator_sets_the_policy_that_others_then_read(space: str, browser: Browser) -> None:
    page = sign_in(browser.new_context(), space, "root")
    page.get_by_role("link", name="Operators’ page").click()
    expect(page.get_by_role("heading", name="Policy")).to_be_visible()
    page.get_by_label("Modules scored").fill("4")
    page.get_by_label("Reason, shown to everyone").last.fill("Fewer machines.")
    page.get_by_role("button", name="Set policy").click()
    expect(page.get_by_text("The policy is set.")).to_be_visible()
    other = sign_in(browser.new_context(), space, "grace")
    expect(other.locator(".as-quota")).to_contain_text("0 of 4 used")
    other.goto(f"{space}ledger?action=policy")
    expect(other.locator(".as-lines")).to_contain_text("Fewer machines.")


def test_an_operator_is_told_what_a_built_in_metric_lacks(space: str, browser: Browser) -> None:
    page = sign_in(browser.new_context(), space, "root")
    page.goto(f"{space}operators")
    page.get_by_label("Metric", exact=True).fill("score-table")
    page.get_by_role("option", name="score-table").click()
    page.get_by_role("button", name="Check metric").click()
    expect(page.get_by_text("file_of_yours")).to_be_visible()
    expect(page.locator(".as-needs")).to_contain_text("Memory")
    page.get_by_role("button", name="Queue metric").click()
    expect(page.locator(".as-needs")).to_have_count(0)
    expect(page.get_by_text("file_of_yours")).to_be_visible()
    page.set_viewport_size({"width": 390, "height": 844})
    drop = page.locator(".as-drop-file")
    expect(drop.locator(".icon-wrap")).to_be_hidden()
    box, words = drop.bounding_box(), drop.locator(".upload-container .wrap").bounding_box()
    assert box is not None and words is not None and box["width"] > 340
    assert words["y"] + words["height"] <= box["y"] + box["height"] + 1


def upload(page: Page, path: Path) -> None:
    page.locator(".as-form input[type=file]").first.set_input_files(path)
    expect(page.locator(".as-form").get_by_text(re.compile(path.stem)).first).to_be_visible()
