"""Nobody is told of what is private, hidden, held or withheld, whoever asks and however."""

from __future__ import annotations

import io
from urllib.parse import quote

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from benchmarks.cases import cases_path, image_cases, of_five, write_cases
from benchmarks.parquet import write_stored
from benchmarks.schema import ScoreTable
from leaderboard.api.routes import DOCUMENTS
from tests.kit.governed import ADA, BOB, CARDS, CLOSED, OLGA, OPEN, House
from tests.kit.site import session_of
from tests.leaderboard.api.asking import OPERATIONS, Asking, asking
from tests.leaderboard.web.oauth_provider import CLIENT_SECRET

OPEN_METRIC = "openmetric"
FORMATS = ("json", "csv", "parquet")
ROLES: dict[str, dict[str, str]] = {
    "guest": {},
    "author": {"Cookie": f"session={session_of('ada')}"},
    "operator": {"Cookie": f"session={session_of('olga')}", "X-Forwarded-User": "olga"},
    "bearer": {"Authorization": f"Bearer {CLIENT_SECRET}"},
}
Ids = dict[str, str]


def text_of(api: Asking, address: str, role: str = "guest") -> str:
    """What is answered, tables as text: to a role the same as to anybody."""
    answer, guest = (api.client.get(address, headers=ROLES[who]) for who in (role, "guest"))
    assert (answer.status_code, answer.content) == (guest.status_code, guest.content)
    if answer.status_code != 200 or "format=parquet" not in address:
        return answer.text
    table = pq.read_table(io.BytesIO(answer.content))
    return f"{table.to_pylist()} {table.schema.metadata}"


# Submissions


def house() -> tuple[House, Ids]:
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
def asked() -> tuple[Asking, Ids]:
    made, ids = house()
    return asking(made.store, CARDS), ids


def every_address(ids: Ids) -> list[str]:
    paths = [f"/v1{path}" for path in OPERATIONS]
    found = [p.replace("{benchmark}", b) for p in paths for b in ("open", "closed")]
    found = [a for a in dict.fromkeys(found) if "{entry_id}" not in a]
    found += [f"/v1/entries/{ids['public']}/{OPEN_METRIC}"]
    found += [f"/v1/queue?state={state}" for state in ("failed", "queued", "hidden", "held")]
    found += [f"/v1/ledger?subject={ident}&per_page=1000" for ident in ids.values()]
    tables = [f"{a}{'&' if '?' in a else '?'}format={kind}" for a in found for kind in FORMATS]
    return [*tables, *(f"/v1{path}" for path in DOCUMENTS)]


@pytest.mark.first_quick
@pytest.mark.parametrize("role", ROLES)
def test_no_route_shows_any_role_what_is_not_public(asked: tuple[Asking, Ids], role: str) -> None:
    api, ids = asked
    seen = ""
    for address in every_address(ids):
        text = text_of(api, address, role).lower()
        # The ledger keeps that something was hidden, and its id, as it is in the store.
        told = text.replace(ids["hidden"], "") if "/ledger" in address else text
        assert "secret" not in told, address
        seen += text
    assert OPEN_METRIC in seen


def test_entries_of_what_is_not_public_are_not_there(asked: tuple[Asking, Ids]) -> None:
    api, ids = asked
    for name in ("hidden", "private"):
        entry = f"{ids[name]}/secret{name}"
        assert api.refused(f"/v1/entries/{entry}", 404) == "unknown_entry"
        assert api.refused(f"/v1/compare?benchmark=open&a={entry}", 400) == "bad_query"
    for address in ("/v1/entries", "/v1/queue"):
        assert {row["submission_id"] for row in api.rows(address)} == {ids["public"]}
        told = text_of(api, address)
        assert not [name for name in ids if name != "public" and ids[name] in told]


def test_what_its_author_publishes_is_answered_from_then_on() -> None:
    made, ids = house()
    api = asking(made.store, CARDS)
    assert len(api.rows("/v1/boards/open")) == 1
    made.acts.publish(ids["private"], ADA)
    names = {row["metric"] for row in api.rows("/v1/boards/open")}
    assert names == {OPEN_METRIC, "secretprivate"}
    made.acts.hide(ids["private"], OLGA, "No.")
    assert [len(api.rows(address)) for address in ("/v1/boards/open", "/v1/queue")] == [1, 1]


# Items, whose files may lie in the public store all the same: the cases of a benchmark that
# published its answers once, the scores of what is hidden now. Page and API read neither.

SEEN, SECRET, KEPT_BACK = "seenmetric", "secretmetric", "secretlyprivate"
N = 12


def item_files(ids: Ids) -> dict[str, bytes]:
    """Cases of both benchmarks, and scores of all but the private."""
    files: dict[str, bytes] = {}
    ratings = np.tile([1.0, 2.0, 4.0], N // 3)
    for card in (OPEN, CLOSED):
        pairs, prompts = ([f"{card.name}{one}{k}" for k in range(N)] for one in ("pair", "case"))
        prompts = [prompts[k // 3] for k in range(N)]
        words = {name: f"{card.name}words {name}" for name in prompts}
        cases = image_cases(pairs, prompts, ratings, of_five(ratings), texts=words)
        files[cases_path(card.name, card.revision)] = write_cases(cases)
        for place, name in enumerate((SEEN, SECRET)):
            # In no order of people's, each a number that is found wherever it is printed.
            score = np.arange(N) * (0.5 - place) + 7000.25 + 100 * place
            table = pd.DataFrame({name: score}, index=pd.Index(cases["pair_id"], name="pair_id"))
            told = {"benchmark": card.name, "revision": card.revision}
            stored = write_stored(ScoreTable(table), submission_id=ids[name], **told)
            files[f"results/{ids[name]}/{card.name}.scores.parquet"] = stored
    return files


@pytest.fixture
def kept() -> tuple[House, Ids]:
    made = House()
    ids = {name: made.done(who, name) for name, who in ((SEEN, BOB), (SECRET, ADA))}
    ids[KEPT_BACK] = made.done(ADA, KEPT_BACK, private=True)
    public = made.store.public
    public.commit(item_files(ids), parent=public.head(), message="items")
    return made, ids


def told(api: Asking, entry: str, state: dict[str, str]) -> str:
    """All that the API and the page tell, apart from repeating the id that was asked for."""
    query = "&".join(f"{name}={quote(value)}" for name, value in state.items())
    tables = [text_of(api, f"/v1/items?{query}&format={kind}") for kind in FORMATS]
    text = "".join([api.items_page(**state), *tables])
    return text.replace(entry, "").replace(quote(entry), "").replace(quote(entry, safe=""), "")


def every_state(entry: str, benchmark: str = "open") -> list[dict[str, str]]:
    case = f"{benchmark}case1"
    states: list[dict[str, str]] = [
        {}, {"a": entry}, {"b": entry}, {"a": entry, "show": "all"}, {"case": case},
        {"a": entry, "case": case}, {"b": entry, "show": "disagreements"},
    ]  # fmt: skip
    return [{"benchmark": benchmark, **state} for state in states]


TAKEN_OFF = {
    "hidden": lambda house, one: house.acts.hide(one, OLGA, "It is a copy."),
    "withdrawn": lambda house, one: house.acts.withdraw(one, ADA),
    "banned and hidden": lambda house, one: (
        house.acts.ban(ADA.key, OLGA, "Sent miners."), house.acts.hide(one, OLGA, "A miner."),
    ),
}  # fmt: skip


@pytest.mark.parametrize("how", TAKEN_OFF)
def test_what_was_taken_off_has_no_items_any_more(kept: tuple[House, Ids], how: str) -> None:
    made, ids = kept
    api, entry = asking(made.store, CARDS), f"{ids[SECRET]}/{SECRET}"
    before = told(api, "", {"benchmark": "open", "a": entry, "show": "all"})
    assert SECRET in before and ("7100" in before or "7099" in before)  # It is there, and kept.
    TAKEN_OFF[how](made, ids[SECRET])
    seen = ""
    for state in every_state(entry):
        said = told(api, entry, state)
        assert not [one for one in (SECRET, ids[SECRET], "7100", "709") if one in said], state
        seen += said
    assert SEEN in seen and "opencase1" in seen


def test_what_is_private_is_as_what_was_never_there(kept: tuple[House, Ids]) -> None:
    made, ids = kept
    api = asking(made.store, CARDS)
    entry, never = f"{ids[KEPT_BACK]}/{KEPT_BACK}", "never-was/there"
    for state, other in zip(every_state(entry), every_state(never), strict=True):
        said = told(api, entry, state)
        assert said == told(api, never, other)
        assert KEPT_BACK not in said


@pytest.mark.parametrize("where", ["the snapshot", "this server"])
def test_withheld_answers_are_told_by_neither_card(kept: tuple[House, Ids], where: str) -> None:
    made, ids = kept
    public = {**CARDS, "closed": CLOSED.model_copy(update={"answers_public": True})}
    api = asking(made.store, public if where == "the snapshot" else CARDS)
    if where == "this server":  # What was published before its card was changed.
        api.source.reader.view().boards["closed"].card = public["closed"]
    entry = f"{ids[SEEN]}/{SEEN}"
    for state in every_state(entry, "closed"):
        said = told(api, entry, state)
        assert "answers_withheld" in said
        said = said.replace("closedcase1", "")
        assert not [
            one for one in ("closedwords", "closedpair", "closedcase", "700") if one in said
        ]


def test_where_both_cards_publish_answers_it_is_answered(kept: tuple[House, Ids]) -> None:
    made, ids = kept
    api, entry = asking(made.store, CARDS), f"{ids[SEEN]}/{SEEN}"
    text = told(api, entry, {"benchmark": "open", "a": entry, "show": "all"})
    assert all(one in text for one in ("openwords", "opencase1", "700"))
    # The reader itself gives none, nor of a revision from before the answers were withheld.
    withheld = OPEN.model_copy(update={"answers_public": False})
    found = [api.source.items.cases(card) is not None for card in (OPEN, CLOSED, withheld)]
    assert found == [True, False, False]
