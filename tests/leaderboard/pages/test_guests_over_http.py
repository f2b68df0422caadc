"""No event of the site, called by anyone over HTTP, does for a stranger what needs an account."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import gradio as gr
import pytest

from leaderboard.governance.signing_in import SignIn, Way, read_sign_in
from leaderboard.pages.site import create_app, launch_options
from leaderboard.store.interface import Store
from leaderboard.store.memory import memory_store
from tests.leaderboard.pages.calling import Caller, Endpoint, endpoints, session_of
from tests.leaderboard.pages.mine.own_submissions import ADA, HELD, QUEUED, give
from tests.leaderboard.pages.oauth_provider import CLIENT_ID, CLIENT_SECRET
from tests.leaderboard.pages.synthetic import NOW, StubDesk, cards, fill

pytestmark = [
    pytest.mark.filterwarnings(
        # Gradio looks for a package that only a Space has.
        "ignore::pytest.PytestUnhandledThreadExceptionWarning"
    ),
    pytest.mark.slow,
]
WRITES = {
    "submit": {"Check", "Submit module", "Submit scores", "Submit generations"},
    "mine": {
        *("Publish", "Withdraw", "Yes, withdraw it", "Hide", "Show again", "Run again"),
        *("Ban", "Lift ban", "Set policy"),
    },
}
"""Buttons that change something or look at what was uploaded. A test holds that there are no
others, so that a new one is thought of here."""


@dataclass(frozen=True)
class Site:
    """A served site with submissions of an account.

    Attributes:
        app: what is served.
        address: where.
        store: what it shows.
        desk: what takes submissions.
    """

    app: gr.Blocks
    address: str
    store: Store
    desk: StubDesk

    def writing(self) -> list[Endpoint]:
        """Events of the buttons that need an account."""
        return [e for e in endpoints(self.app) if e.clicked in WRITES.get(e.page, ())]

    def of(self, page: str, name: str) -> Endpoint:
        """The event of a page that runs a function, or that a button of that label triggers."""
        every = [e for e in endpoints(self.app) if e.page == page]
        return next(e for e in every if name in (e.clicked, e.name))

    def opening(self, page: str) -> Endpoint:
        """The event by which a page asks who its visitor is."""
        every = [e for e in endpoints(self.app) if e.page == page and not e.clicked]
        return next(e for e in every if e.inputs == 0 and e.name == "from_hub")

    def as_it_is(self) -> tuple[str, str, int]:
        """What any act would change."""
        return self.store.public.head(), self.store.private.head(), len(self.desk.taken)


def served(sign_in: SignIn) -> Iterator[Site]:
    store = give(fill(memory_store()), ADA)
    desk = StubDesk(store=store)
    app = create_app(store, desk, cards(), clock=lambda: NOW, sign_in=sign_in)
    _, address, _ = app.launch(
        server_name="127.0.0.1", prevent_thread_lock=True, quiet=True, **launch_options(sign_in)
    )
    yield Site(app, str(address), store, desk)
    app.close()


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
    yield from served(SignIn(Way.LOCAL, local="root"))


@pytest.mark.slow
def test_every_button_that_writes_is_known_to_these_tests(space: Site) -> None:
    found = [e for e in endpoints(space.app) if e.page in WRITES and e.clicked and e.inputs]
    assert {page: {e.clicked for e in found if e.page == page} for page in WRITES} == WRITES


@pytest.mark.parametrize("way", ["at_once", "by_queue"])
def test_no_button_does_anything_for_a_guest(space: Site, way: str) -> None:
    before = space.as_it_is()
    for endpoint in space.writing():
        answer = getattr(Caller(space.address), way)(endpoint.number, [None] * endpoint.inputs)
        direct = way == "at_once" and endpoint.queued  # A Space takes these by its queue only.
        assert ("not_signed_in" in answer) is not direct, (endpoint, answer[:400])
    assert space.as_it_is() == before


@pytest.mark.slow
def test_no_event_of_any_page_shows_or_changes_what_is_private(space: Site) -> None:
    before = space.as_it_is()
    for endpoint in endpoints(space.app):
        caller = Caller(space.address)
        for call in (caller.at_once, caller.by_queue):
            answer = call(
                endpoint.number, [None] * endpoint.inputs, submission=HELD, all="1", account=ADA.key
            )
            assert "secret-metric" not in answer, endpoint
            assert "Signed in as" not in answer, endpoint
    assert space.as_it_is() == before


FORGED = [
    {"Cookie": f"session={session_of('ada', secret='guessed')}"},
    {"Cookie": f"session={session_of('ada', secret='')}"},
    {"Cookie": "session=ada"},
    {"Cookie": f"session={session_of('ada', expires_at=1)}"},
    {"X-Forwarded-User": "ada", "Remote-User": "ada", "X-HF-User": "ada"},
    {"Authorization": "Bearer ada"},
    {"Cookie": f"session={session_of('ada')}", "Origin": "https://evil.example"},
    {"Cookie": f"session={session_of('ada')}", "Sec-Fetch-Site": "cross-site"},
]


@pytest.mark.parametrize("headers", FORGED)
def test_forged_headers_make_nobody_somebody(space: Site, headers: dict[str, str]) -> None:
    before = space.as_it_is()
    caller = Caller(space.address, headers)
    sent = caller.by_queue(
        space.of("submit", "Submit module").number, [None, None, "ada", True, ""]
    )
    assert "not_signed_in" in sent
    opened = space.of("mine", "Withdraw")
    assert "not_signed_in" in caller.by_queue(opened.number, [None])
    assert space.as_it_is() == before


def test_a_session_of_the_hub_is_known_and_sees_its_own_only(space: Site) -> None:
    """The same calls that guests are refused do work for the one they belong to."""
    for name, sees in (("ada", True), ("grace", False)):
        caller = Caller(space.address, {"Cookie": f"session={session_of(name)}"})
        load = space.opening("mine")
        answer = caller.at_once(load.number, [], submission=HELD)
        assert f"Signed in as <b><bdi>{name}</bdi></b>" in answer
        assert ("secret-metric" in answer) is sees
        assert ("not_yours" in answer) is not sees


def test_an_account_cannot_act_on_what_is_another_s(space: Site) -> None:
    before = space.as_it_is()
    caller = Caller(space.address, {"Cookie": f"session={session_of('grace')}"})
    load = space.opening("mine")
    for ident in (HELD, QUEUED):
        caller.at_once(load.number, [], submission=ident)
        for button in ("Publish", "Yes, withdraw it", "Hide", "Run again"):
            answer = caller.by_queue(space.of("mine", button).number, [None, "because"])
            assert "not_yours" in answer or "not_operator" in answer, (button, answer[:300])
    for button in ("Ban", "Lift ban"):
        answer = caller.by_queue(space.of("mine", button).number, ["hub:ada", "because"])
        assert "not_operator" in answer
    answer = caller.by_queue(
        space.of("mine", "Set policy").number, [7, 1, 1, 1, 1, 1, 1, "because"]
    )
    assert "not_operator" in answer
    assert space.as_it_is() == before


@pytest.mark.parametrize("headers", [{}, *FORGED])
def test_a_guest_cannot_leave_files_here(space: Site, headers: dict[str, str]) -> None:
    caller = Caller(space.address, headers)
    for path in ("gradio_api/upload", "gradio_api/upload/", "gradio_api/upload?upload_id=x"):
        assert caller.upload(path).status_code in {403, 404}


@pytest.mark.slow
def test_an_account_can_upload(space: Site, at_home: Site) -> None:
    known = {"Cookie": f"session={session_of('ada')}"}
    assert Caller(space.address, known).upload("gradio_api/upload").status_code == 200
    assert Caller(at_home.address).upload("gradio_api/upload").status_code == 200
    behind = Caller(at_home.address, {"X-Forwarded-For": "127.0.0.1"})
    assert behind.upload("gradio_api/upload").status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Forwarded-For": "127.0.0.1"},
        {"X-Forwarded-For": "203.0.113.9"},
        {"Forwarded": "for=127.0.0.1"},
        {"X-Real-IP": "127.0.0.1"},
        {"Host": "assay.example.org"},
        {"Origin": "http://evil.example"},
    ],
)
def test_behind_a_proxy_the_machine_s_own_address_is_nobody(
    at_home: Site, headers: dict[str, str]
) -> None:
    before = at_home.as_it_is()
    for endpoint in at_home.writing():
        answer = Caller(at_home.address, headers).by_queue(
            endpoint.number, [None] * endpoint.inputs
        )
        assert "not_signed_in" in answer, endpoint
    assert at_home.as_it_is() == before


def test_at_the_machine_itself_its_user_is_known_and_is_an_operator(at_home: Site) -> None:
    caller = Caller(at_home.address)
    answer = caller.by_queue(
        at_home.of("submit", "Submit module").number, [None, None, "", False, ""]
    )
    assert "<code>no_file</code>" in answer
    banned = caller.by_queue(at_home.of("mine", "Ban").number, ["hub:mallory", "Floods us."])
    assert "may not submit any more" in banned
