"""No route tells anybody of what is private, hidden or held, whoever asks and however."""

from __future__ import annotations

import io

import pyarrow.parquet as pq
import pytest

from leaderboard.api.routes import DOCUMENTS, OPERATIONS
from tests.leaderboard.api.asking import Asking, asking
from tests.leaderboard.house import ADA, CARDS, OLGA, House
from tests.leaderboard.pages.calling import session_of
from tests.leaderboard.pages.oauth_provider import CLIENT_SECRET

ROLES: dict[str, dict[str, str]] = {
    "guest": {},
    "author": {"Cookie": f"session={session_of('ada')}"},
    "operator": {"Cookie": f"session={session_of('olga')}", "X-Forwarded-User": "olga"},
    "bearer": {"Authorization": f"Bearer {CLIENT_SECRET}"},
}
OPEN_METRIC = "openmetric"


def house() -> tuple[House, dict[str, str]]:
    """A house with a public metric, and with others that nobody may know of."""
    made = House()
    ids = {
        "public": made.send(name=OPEN_METRIC),
        "hidden": made.send(name="secrethidden"),
        "private": made.send(name="secretprivate", private=True, description="secretwords"),
        "queued": made.send(name="secretqueued", private=True, version="secretversion"),
        "failed": made.send(name="secretfailed", private=True),
    }
    for name in ("public", "hidden", "private"):
        made.claim(ids[name])
        made.finish(ids[name], log="secretlog")
    made.claim(ids["failed"])
    made.fail(ids["failed"], "secretreason", log="secretlog")
    made.acts.hide(ids["hidden"], OLGA, "It is a copy.")
    return made, ids


@pytest.fixture(scope="module")
def asked() -> tuple[Asking, dict[str, str]]:
    made, ids = house()
    return asking(made.store, CARDS), ids


def every_address(ids: dict[str, str]) -> list[str]:
    paths = [operation.path for operation in OPERATIONS]
    found = [f"/v1{p}".replace("{benchmark}", b) for p in paths for b in ("open", "closed")]
    found = [a for a in dict.fromkeys(found) if "{entry_id}" not in a]
    entries = [f"/v1/entries/{ids['public']}/{OPEN_METRIC}"]
    pages = [f"/v1/queue?state={state}" for state in ("failed", "queued", "hidden", "held")]
    subjects = [f"/v1/ledger?subject={ident}&per_page=1000" for ident in ids.values()]
    return [*found, *entries, *pages, *subjects, *(f"/v1{path}" for path in DOCUMENTS)]


def text_of(content: bytes, address: str) -> str:
    if "format=parquet" not in address:
        return content.decode()
    table = pq.read_table(io.BytesIO(content))
    return f"{table.to_pylist()} {table.schema.metadata}"


@pytest.mark.parametrize("role", ROLES)
def test_no_route_shows_what_is_not_public_to_any_role(
    asked: tuple[Asking, dict[str, str]], role: str
) -> None:
    api, ids = asked
    seen = ""
    for plain in every_address(ids):
        formats = (
            ("json",) if plain.removeprefix("/v1") in DOCUMENTS else ("json", "csv", "parquet")
        )
        for kind in formats:
            mark = "&" if "?" in plain else "?"
            address = plain if len(formats) == 1 else f"{plain}{mark}format={kind}"
            answer = api.client.get(address, headers=ROLES[role])
            guest = api.client.get(address)
            assert (answer.status_code, answer.content) == (guest.status_code, guest.content)
            text = text_of(answer.content, address) if answer.status_code == 200 else answer.text
            lower = text.lower()
            # The ledger keeps that something was hidden, and its id, as it is in the store.
            told = lower.replace(ids["hidden"], "") if "/ledger" in address else lower
            assert "secret" not in told, address
            seen += lower
    assert OPEN_METRIC in seen


def test_entries_of_what_is_not_public_are_not_there(asked: tuple[Asking, dict[str, str]]) -> None:
    api, ids = asked
    for name, metric in (("hidden", "secrethidden"), ("private", "secretprivate")):
        assert api.refused(f"/v1/entries/{ids[name]}/{metric}", 404) == "unknown_entry"
        query = f"benchmark=open&a={ids[name]}/{metric}"
        assert api.refused(f"/v1/compare?{query}", 400) == "bad_query"
    listed = {row["submission_id"] for row in api.table("/v1/entries")["rows"]}
    assert listed == {ids["public"]}
    queued = {row["submission_id"] for row in api.table("/v1/queue")["rows"]}
    assert queued == {ids["public"]}
    whole = api.client.get("/v1/entries").text + api.client.get("/v1/queue").text
    assert not any(ids[name] in whole for name in ids if name != "public")


def test_what_its_author_publishes_is_answered_from_then_on() -> None:
    made, ids = house()
    api = asking(made.store, CARDS)
    assert len(api.table("/v1/boards/open")["rows"]) == 1
    made.acts.publish(ids["private"], ADA)
    names = {row["metric"] for row in api.table("/v1/boards/open")["rows"]}
    assert names == {OPEN_METRIC, "secretprivate"}
    made.acts.hide(ids["private"], OLGA, "No.")
    assert len(api.table("/v1/boards/open")["rows"]) == 1
    assert len(api.table("/v1/queue")["rows"]) == 1
