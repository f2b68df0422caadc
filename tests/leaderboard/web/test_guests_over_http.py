"""No event of the site, called by anyone over HTTP, does for a stranger what needs an account."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import gradio as gr
import pytest

from leaderboard.governance.authentication import Authentication, AuthenticationMethod, read_sign_in
from leaderboard.store.interface import Store
from tests.kit.boards import StubDesk, cards, fill
from tests.kit.site import Caller, Endpoint, app_of, endpoints, session_of
from tests.kit.site import served as served_app
from tests.kit.store import memory_store
from tests.leaderboard.web import own_submissions
from tests.leaderboard.web.oauth_provider import CLIENT_ID, CLIENT_SECRET

pytestmark = [
    # Gradio looks for a package that only a Space has.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
    pytest.mark.slow,
]
ACTIONS = ("Publish", "Withdraw", "Yes, withdraw it", "Hide", "Show again", "Run again")
WRITES = {
    "submit": {"Check", "Submit module", "Submit scores", "Submit images", *ACTIONS},
    "operators": {"Ban", "Lift ban", "Set policy", "Check metric", "Queue metric", *ACTIONS},
}  # fmt: skip
"""Buttons that change something or look at what was uploaded. A test holds that there are no
others, so that a new one is thought of here."""
UPLOAD = "gradio_api/upload"


def cookie(*of: object, **more: object) -> dict[str, str]:
    return {"Cookie": f"session={session_of(*of, **more)}"}  # type: ignore[arg-type]


@dataclass(frozen=True)
class Site:
    """A served site with submissions of an account."""

    app: gr.Blocks
    address: str
    store: Store
    desk: StubDesk

    def caller(self, headers: dict[str, str] | None = None) -> Caller:
        return Caller(self.address, headers or {})

    def writing(self) -> list[Endpoint]:
        """Events of the buttons that need an account."""
        return [e for e in endpoints(self.app) if e.clicked in WRITES.get(e.page, ())]

    def of(self, page: str, button: str) -> int:
        every = [e for e in endpoints(self.app) if e.page == page]
        return next(e.number for e in every if button in (e.clicked, e.name))

    def opening(self) -> int:
        """The event by which the page of one's own asks who its visitor is."""
        every = [e for e in endpoints(self.app) if e.page == "submit" and not e.clicked]
        return next(e.number for e in every if e.inputs == 0 and e.name == "from_hub")

    def as_it_is(self) -> tuple[str, str, int]:
        """What any act would change."""
        return self.store.public.head(), self.store.private.head(), len(self.desk.taken)


def served(sign_in: Authentication) -> Iterator[Site]:
    store = own_submissions.give(fill(memory_store()), own_submissions.ADA)
    desk = StubDesk(store=store)
    app, options = app_of(store, cards(), sign_in, desk=desk)
    with served_app(app, options) as address:
        yield Site(app, address, store, desk)


@pytest.fixture(scope="module")
def space() -> Iterator[Site]:
    """A Space, whose visitors sign in through the Hub."""
    environment = {
        "SYSTEM": "spaces", "SPACE_ID": "made-up/assay", "OAUTH_CLIENT_ID": CLIENT_ID,
        "OAUTH_CLIENT_SECRET": CLIENT_SECRET, "OAUTH_SCOPES": "openid profile",
        "OPENID_PROVIDER_URL": "http://127.0.0.1:9",
    }  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
            if name.startswith("O"):  # Gradio read these when it was imported.
                patch.setattr(f"gradio.oauth.{name}", value)
        yield from served(read_sign_in(environment, "me"))


@pytest.fixture(scope="module")
def at_home() -> Iterator[Site]:
    """An installation that knows the people at its own machine."""
    yield from served(Authentication(AuthenticationMethod.LOCAL, local="root"))


@pytest.fixture(autouse=True)
def unchanged(request: pytest.FixtureRequest) -> Iterator[None]:
    """Nothing that these tests do changes a site, but for the last."""
    sites = [request.getfixturevalue(n) for n in ("space", "at_home") if n in request.fixturenames]
    before = [site.as_it_is() for site in sites]
    yield
    if "its_user" not in request.node.name:
        assert [site.as_it_is() for site in sites] == before


def test_every_button_that_writes_is_known_to_these_tests(space: Site) -> None:
    found = [e for e in endpoints(space.app) if e.page in WRITES and e.clicked and e.inputs]
    assert {page: {e.clicked for e in found if e.page == page} for page in WRITES} == WRITES


@pytest.mark.parametrize("way", ["at_once", "by_queue"])
def test_no_button_does_anything_for_a_guest(space: Site, way: str) -> None:
    for endpoint in space.writing():
        answer = getattr(space.caller(), way)(endpoint.number, [None] * endpoint.inputs)
        direct = way == "at_once" and endpoint.queued  # A Space takes these by its queue only.
        assert ("not_signed_in" in answer) is not direct, (endpoint, answer[:400])


def test_no_event_of_any_page_shows_or_changes_what_is_private(space: Site) -> None:
    asked = {
        "submission": own_submissions.HELD,
        "id": own_submissions.HELD,
        "all": "1",
        "account": own_submissions.ADA.key,
    }
    for endpoint in endpoints(space.app):
        caller = space.caller()
        for call in (caller.at_once, caller.by_queue):
            answer = call(endpoint.number, [None] * endpoint.inputs, **asked)
            assert "secret-metric" not in answer and "Signed in as" not in answer, endpoint


FORGED = [
    cookie("ada", secret="guessed"), cookie("ada", secret=""), {"Cookie": "session=ada"},
    cookie("ada", expires_at=1), {"Authorization": "Bearer ada"},
    {"X-Forwarded-User": "ada", "Remote-User": "ada", "X-HF-User": "ada"},
    {**cookie("ada"), "Origin": "https://evil.example"},
    {**cookie("ada"), "Sec-Fetch-Site": "cross-site"},
]  # fmt: skip


@pytest.mark.parametrize("headers", [{}, *FORGED])
def test_forged_headers_make_nobody_somebody_and_leave_no_files(
    space: Site, headers: dict[str, str]
) -> None:
    caller = space.caller(headers)
    sent = caller.by_queue(space.of("submit", "Submit module"), [None, None, "", None, "ada", True])
    opened = caller.by_queue(space.of("submit", "Withdraw"), [None])
    assert "not_signed_in" in sent and "not_signed_in" in opened
    for path in (UPLOAD, f"{UPLOAD}/", f"{UPLOAD}?upload_id=x"):
        assert caller.upload(path).status_code in {403, 404}


def test_a_session_of_the_hub_is_known_and_sees_its_own_only(space: Site) -> None:
    """The same calls that guests are refused do work for the one they belong to."""
    for name, sees in (("ada", True), ("grace", False)):
        answer = space.caller(cookie(name)).at_once(space.opening(), [], id=own_submissions.HELD)
        assert f"<bdi>{name}</bdi>" in answer
        assert ("secret-metric" in answer, "private submission" in answer) == (sees, not sees)


def test_an_account_cannot_act_on_what_is_another_s(space: Site) -> None:
    caller = space.caller(cookie("grace"))
    for ident in (own_submissions.HELD, own_submissions.QUEUED):
        caller.at_once(space.opening(), [], id=ident)
        for button in ("Publish", "Yes, withdraw it", "Hide", "Run again"):
            answer = caller.by_queue(space.of("submit", button), [None, "because"])
            assert "not_yours" in answer or "not_operator" in answer, (button, answer[:300])
    policy = [7, 1, 1, 1, 1, 1, 1, "because"]
    for button, data in (("Ban", ["hub:ada", "x"]), ("Lift ban", ["hub:ada", "x"]),
                         ("Set policy", policy)):  # fmt: skip
        assert "not_operator" in caller.by_queue(space.of("operators", button), data)


def test_an_account_can_upload(space: Site, at_home: Site) -> None:
    assert space.caller(cookie("ada")).upload(UPLOAD).status_code == 200
    assert at_home.caller().upload(UPLOAD).status_code == 200
    behind = at_home.caller({"X-Forwarded-For": "127.0.0.1"})
    assert behind.upload(UPLOAD).status_code == 403


@pytest.mark.parametrize(
    "headers",
    [{"X-Forwarded-For": "127.0.0.1"}, {"X-Forwarded-For": "203.0.113.9"},
     {"Forwarded": "for=127.0.0.1"}, {"X-Real-IP": "127.0.0.1"}, {"Host": "assay.example.org"},
     {"Origin": "http://evil.example"}],
)  # fmt: skip
def test_behind_a_proxy_the_machine_s_own_address_is_nobody(
    at_home: Site, headers: dict[str, str]
) -> None:
    for page, button, inputs in (("submit", "Submit module", 6), ("operators", "Ban", 2)):
        answer = at_home.caller(headers).by_queue(at_home.of(page, button), [None] * inputs)
        assert "not_signed_in" in answer, button


def test_at_the_machine_itself_its_user_is_known_and_is_an_operator(at_home: Site) -> None:
    caller = at_home.caller()
    empty = [None, None, "", None, "", False]
    assert "no_file" in caller.by_queue(at_home.of("submit", "Submit module"), empty)
    banned = caller.by_queue(at_home.of("operators", "Ban"), ["hub:mallory", "Floods us."])
    assert "may not submit" in banned
