"""The page of votes over HTTP: who sees what, and what an answer leads to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient
from starlette.types import ASGIApp, Receive, Scope, Send

from benchmarks.errors import PlatformError, SubmitterError
from leaderboard.governance.authentication import Authentication, AuthenticationMethod
from leaderboard.votes.polls import close_poll
from leaderboard.votes.records import Choice
from leaderboard.votes.service import VoteLimits
from leaderboard.web.page import all_pages
from leaderboard.web.voting import answer_of, routes
from tests.kit.refusals import refused
from tests.leaderboard.votes.made_up_polls import OLGA, SET, Booth, voter

HUB = Authentication(AuthenticationMethod.HUB)
ADA = {"x-user": "ada"}
OWN = {"origin": "http://testserver", "sec-fetch-site": "same-origin"}
FOREIGN = {"origin": "https://evil.example", "sec-fetch-site": "cross-site"}
BALLOT = re.compile(r'name="ballot" value="(\w+)"')
IMAGE = re.compile(r'<img src="\./([^"]+)"')


class SignedIn:
    """Puts who a header names into the session, as the sign-in of the Hub does."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        name = dict(scope.get("headers", [])).get(b"x-user", b"").decode()
        info = {"expires_at": 1e12, "userinfo": {"preferred_username": name}}
        scope["session"] = {"oauth_info": info} if name else {}
        await self._app(scope, receive, send)


@pytest.fixture
def booth(tmp_path: Path) -> Booth:
    made = Booth(tmp_path, limits=VoteLimits(per_minute=3))
    made.open()
    return made


@pytest.fixture
def client(booth: Booth) -> Iterator[TestClient]:
    own = routes(booth.service, HUB, booth.reader.prompt_sets, all_pages())
    app = SignedIn(Starlette(routes=own))
    with TestClient(app, follow_redirects=False) as found:
        yield found


def shown(client: TestClient, headers: dict[str, str] = ADA) -> str:
    """Id of the ballot on the page."""
    found = BALLOT.search(client.get(f"/vote/{SET}", headers=headers).text)
    assert found
    return found[1]


def send(client: TestClient, ballot: str, choice: str = "left", **headers: str) -> tuple[int, str]:
    """Status and text of an answer."""
    got = client.post(
        f"/vote/{SET}", data={"ballot": ballot, "choice": choice}, headers={**OWN, **headers}
    )
    return got.status_code, got.headers.get("location") or got.text


def test_a_guest_is_asked_to_sign_in_and_led_back_here(client: TestClient) -> None:
    assert f'href="./vote/{SET}"' in client.get("/vote").text
    page = client.get(f"/vote/{SET}")
    assert page.status_code == 403
    assert f'href="./login/huggingface?_target_url=%2Fvote%2F{SET}"' in page.text
    assert "<form" not in page.text
    assert send(client, "0" * 32)[0] == 403


def test_a_ballot_shows_two_neutral_pictures_and_names_no_model(
    client: TestClient, booth: Booth
) -> None:
    page = client.get(f"/vote/{SET}", headers=ADA)
    assert page.headers["Cache-Control"] == "no-store"
    assert "cats" in page.text
    lower = page.text.lower()
    assert not [one for one in booth.models if one in lower]
    images = IMAGE.findall(page.text)
    assert [one.rpartition("/")[2] for one in images] == ["left", "right"]
    sizes = set()
    for one in images:
        got = client.get(f"/{one}", headers=ADA)
        assert (got.status_code, got.headers["content-type"]) == (200, "image/webp")
        sizes.add(frozenset(got.headers) - {"content-length"})
    assert len(sizes) == 1
    following = re.findall(r'rel="preload" as="image" href="\./([^"]+)"', page.text)
    assert len(following) == 2
    assert client.get(f"/{following[0]}", headers=ADA).status_code == 200


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("{ballot}/left", {}, 403),
        ("{ballot}/left", {"x-user": "bob"}, 409),
        ("{ballot}/middle", ADA, 404),
        ("0123/left", ADA, 409),
    ],
    ids=["a guest", "another account", "no side", "forged"],
)
def test_pictures_are_for_whom_they_were_issued_to(
    client: TestClient, path: str, headers: dict[str, str], status: int
) -> None:
    ballot = shown(client)
    got = client.get(f"/vote/{SET}/{path.format(ballot=ballot)}", headers=headers)
    assert got.status_code == status


def test_an_answer_leads_to_the_next_pair_and_a_second_one_changes_nothing(
    client: TestClient, booth: Booth
) -> None:
    ballot = shown(client)
    assert send(client, ballot, **ADA) == (303, f"{SET}?done=counted")
    assert send(client, ballot, "right", **ADA) == (303, f"{SET}?done=again")
    assert shown(client) != ballot
    assert booth.service.votes(SET).answers[ballot].choice is Choice.LEFT
    assert "the first one counts" in client.get(f"/vote/{SET}?done=again", headers=ADA).text


@pytest.mark.parametrize(
    ("headers", "status"),
    [({**ADA, **FOREIGN}, 403), ({"x-user": "bob"}, 409), ({}, 403)],
    ids=["from another site", "of another account", "of a guest"],
)
def test_an_answer_from_elsewhere_counts_nothing(
    client: TestClient, booth: Booth, headers: dict[str, str], status: int
) -> None:
    ballot = shown(client)
    assert send(client, ballot, **headers)[0] == status
    assert not booth.service.votes(SET).answers


def test_a_link_from_another_site_and_the_sign_in_find_the_visitor_signed_in(
    client: TestClient,
) -> None:
    assert shown(client, {**ADA, "sec-fetch-site": "cross-site"})


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "bad_answer"),
        (b"ballot=1", "bad_answer"),
        (b"ballot=1&choice=best", "bad_answer"),
        (b"\xff\xfe", "bad_answer"),
        (b"a=1&b=2&c=3&d=4&e=5", "bad_answer"),
    ],
)
def test_what_is_no_answer_is_refused(content: bytes, code: str) -> None:
    with refused(code, kind=SubmitterError):
        answer_of(content)


def test_a_refused_answer_shows_the_same_pair_again_and_says_why(
    client: TestClient, booth: Booth, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        send(client, shown(client), **ADA)
    ballot = shown(client)
    status, page = send(client, ballot, **ADA)
    assert (status, BALLOT.findall(page)) == (429, [ballot])
    assert 'role="alert"' in page

    def full(*_: object) -> None:
        raise PlatformError("cannot_write", "No space is left.")

    booth.clock.wait(100)
    with monkeypatch.context() as patched:
        patched.setattr("benchmarks.sources.line_log.append_lines", full)
        assert send(client, ballot, **ADA)[0] == 503
    assert send(client, "forged", **ADA)[0] == 409
    assert send(client, ballot, "nonsense", **ADA)[0] == 400
    assert send(client, ballot, **ADA)[0] == 303


def test_what_is_not_open_or_never_was_is_said(client: TestClient, booth: Booth) -> None:
    unknown = client.get("/vote/other", headers=ADA)
    assert (unknown.status_code, "<form" in unknown.text) == (404, False)
    close_poll(booth.store, SET, OLGA, booth.clock())
    assert "nothing to vote on" in client.get("/vote", headers=ADA).text
    assert client.get(f"/vote/{SET}", headers={"x-user": "carol"}).status_code == 200


def test_names_of_strangers_are_escaped(booth: Booth) -> None:
    local = Authentication(AuthenticationMethod.LOCAL, local="ada")
    own = routes(booth.service, local, {}, all_pages())
    client = TestClient(
        Starlette(routes=own), base_url="http://127.0.0.1", client=("127.0.0.1", 5000)
    )
    assert "&lt;img" in client.get("/vote/<img src=x>").text
    assert BALLOT.search(client.get(f"/vote/{SET}").text)
    assert voter("ada").key not in booth.service.votes(SET).of_account
