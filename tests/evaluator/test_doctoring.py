"""What `doctor` says of a store on the Hub, of settings and secrets, of isolation and disks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.settings.model import load
from evaluator.doctoring import Row, cache_rows, hub_rows, isolation_rows, may_write, settings_rows
from evaluator.isolation.backend import LEGEND, IsolationStatus, Layer, Probe
from evaluator.isolation.bubblewrap import Bubblewrap
from leaderboard.publication.publisher import table_schemas
from leaderboard.store.hub.maintenance import write_cards
from leaderboard.store.interface import transact
from tests.kit.governed import CARDS
from tests.kit.hub.accounts import Account
from tests.kit.hub.server import HubServer
from tests.kit.hub_store import NAME, created, parts_of
from tests.kit.old_hub_store import add_old_store

# A store on the Hub ---------------------------------------------------------------------------

PARTS = {part: f"{NAME}-{part}" for part in ("requests", "submissions", "results")}
SCORED = {"results/x/y.json": b"{}"}


def rows(hub: HubServer, folder: Path, token: str | None = None) -> dict[str, Row]:
    place = folder / f"doctor-{len(list(folder.iterdir()))}"
    return {row.part.strip(): row for row in hub_rows(parts_of(hub, place, token=token), CARDS)}


@pytest.mark.parametrize("role", ["write", "read"])
def test_a_store_in_order_is_broken_only_for_who_may_not_write(
    hub: HubServer, tmp_path: Path, role: str
) -> None:
    parts = created(hub, tmp_path / "a")
    transact(parts.public, lambda: SCORED, "a result")
    found = rows(hub, tmp_path, hub.enroll("hf_lab_one", Account("lab", role=role)))
    assert {name for name, row in found.items() if row.broken} == ({"token"} if role == "read" else set())  # fmt: skip
    assert found["token"].state.startswith(f"of lab, {role}")
    head = parts.repositories["results"].fresh_head()  # type: ignore[index]
    assert found["pin of results"].state == str(head)[:12]
    assert found["clock"].state
    for part, name in PARTS.items():
        seen, rights = found[name].state.split("; ")
        assert seen.startswith("private" if part == "submissions" else "open")
        assert ("not written" in rights) is (role == "read")


def test_dataset_cards_that_are_out_of_date_are_told_with_the_command(
    hub: HubServer, tmp_path: Path
) -> None:
    parts = created(hub, tmp_path / "a")
    list(write_cards(parts, CARDS, table_schemas()))
    assert rows(hub, tmp_path)["dataset cards"].advice == ""
    hub.repositories[PARTS["results"]].change({"README.md": None})
    found = rows(hub, tmp_path)["dataset cards"]
    assert (PARTS["results"] in found.state, found.broken) == (True, False)
    assert f"store cards hub:{NAME}" in found.advice


def test_a_store_of_the_release_before_is_told_to_be_migrated(
    hub: HubServer, tmp_path: Path
) -> None:
    add_old_store(hub)
    found = rows(hub, tmp_path)["release"]
    assert (found.broken, "store migrate" in found.advice) == (True, True)


def test_what_lies_beyond_a_pin_is_told_and_a_repository_made_again_is_broken(
    hub: HubServer, tmp_path: Path
) -> None:
    parts = created(hub, tmp_path / "a")
    transact(parts.public.results, lambda: SCORED, "left by a crash")
    found = rows(hub, tmp_path)["pin of results"]
    assert "nobody reads" in found.state and not found.broken
    transact(parts.public, lambda: {"results/x/z.json": b"{}"}, "a result")
    del hub.repositories[PARTS["results"]]
    hub.add(PARTS["results"], {".gitattributes": b""})
    again = rows(hub, tmp_path)["pin of results"]
    assert again.broken and "made again" in again.state


def test_what_is_broken_comes_with_its_remedy(hub: HubServer, tmp_path: Path) -> None:
    created(hub, tmp_path / "a")
    hub.repositories[PARTS["submissions"]].private = False
    hub.clock.advance(-3600)
    found = rows(hub, tmp_path)
    assert (found[PARTS["submissions"]].broken, "NTP" in found["clock"].advice) == (True, True)
    assert "private" in found[PARTS["submissions"]].advice
    unknown = rows(hub, tmp_path, "hf_unknown_to_all")["token"]
    assert (unknown.broken, "HF_TOKEN" in unknown.advice) == (True, True)


@pytest.mark.parametrize(
    "answer",
    [
        b"null", b"[]", b'"lab"', b"<html>", b'{"name": "lab", "auth": null}',
        b'{"name": "ada", "auth": {"accessToken": {"role": "write"}}, "orgs": 7}',
        b'{"name": "ada", "auth": {"accessToken": {"role": "write"}}, "orgs": ["lab"]}',
        b'{"auth": {"accessToken": {"role": "fineGrained", "fineGrained": []}}}',
        b'{"auth": {"accessToken": {"role": "fineGrained", "fineGrained": {"scoped": '
        b'[{"entity": [], "permissions": ["repo.write"]}]}}}}',
    ],
    ids=bytes.decode,
)  # fmt: skip
def test_an_address_that_does_not_answer_like_a_hub_is_told(
    hub: HubServer, tmp_path: Path, answer: bytes
) -> None:
    created(hub, tmp_path / "a")
    hub.spoil("/api/whoami-v2", status=200, body=answer)
    found = rows(hub, tmp_path)
    assert found["token"].broken
    assert hub.endpoint in found["token"].state
    assert "HF_ENDPOINT" in found["token"].advice and "HF_TOKEN" not in found["token"].advice
    assert not found[PARTS["requests"]].broken


def test_a_store_that_was_never_created_is_broken(hub: HubServer, tmp_path: Path) -> None:
    found = rows(hub, tmp_path)
    assert found[PARTS["requests"]].broken
    assert found["pins"].broken
    assert "hf_open_sesame" not in str(found)


def told(role: str, *scopes: str, name: str = "lab", **more: Any) -> dict[str, Any]:
    """What the Hub tells of a token; scopes are of one repository or organisation."""
    entity = {"entity": {"name": name}, "permissions": list(scopes)}
    token = {"role": role, **({"fineGrained": {"scoped": [entity]}} if scopes else {})}
    return {"name": "ada", "auth": {"accessToken": token}, **more}


def lab(role: str) -> list[dict[str, str]]:
    return [{"name": "lab", "roleInOrg": role}]


@pytest.mark.parametrize(
    ("whoami", "expected"),
    [
        (told("read"), False),
        ({**told("write"), "name": "lab"}, True),
        (told("write", orgs=lab("admin")), True),
        (told("write", orgs=lab("read")), False),
        (told("write", orgs=[]), None),
        (told("fineGrained", "repo.write"), True),
        (told("fineGrained", "repo.content.read"), False),
        (told("fineGrained", "repo.write", name=PARTS["requests"]), False),
        (told("fineGrained"), None),
        ({}, None),
    ],
)
def test_rights_are_read_from_what_the_hub_tells_of_a_token(
    whoami: dict[str, Any], expected: bool | None
) -> None:
    assert may_write(whoami, (PARTS["requests"], PARTS["results"])) is expected


# Settings and secrets -------------------------------------------------------------------------

GOOD = "a-secret-of-the-house"


def of_settings(environment: dict[str, str]) -> dict[str, Row]:
    """The first row of each part."""
    return {row.part.strip(): row for row in reversed(list(settings_rows(environment, "me")))}


def broken(found: dict[str, Row]) -> set[str]:
    return {part for part, row in found.items() if row.broken}


def test_it_says_where_settings_and_secrets_are_from(tmp_path: Path) -> None:
    assert broken(of_settings({})) == set()
    file, token = tmp_path / "s.toml", tmp_path / "token"
    token.write_text("hf_of_the_house")
    file.write_text(f"data = 'x'\nhub.token_file = '{token}'")
    environment = {"ASSAY_SETTINGS": str(file), "ASSAY_USER": "ada"}
    load(environment, tmp_path)
    found = of_settings(environment)
    assert found["settings"].state.startswith(f"2 from {file}, 2 from variables")
    assert found["HF_TOKEN"].state == f"set, from {token}"


def test_what_is_unknown_weak_bad_or_missing_is_told() -> None:
    found = of_settings({
        "ASSAY_OPERATOR": "hub:ada", "ASSAY_OPERATORS": "ada", "ASSAY_WEBHOOK_SECRET": "short",
        "ASSAY_LIVE": "https://x.example", "PORT": "http",
    })  # fmt: skip
    assert broken(found) >= {"operators", "ASSAY_WEBHOOK_SECRET", "PORT"}
    assert "ASSAY_OPERATORS" in found["ASSAY_OPERATOR"].advice
    assert "missing" in found["ASSAY_LIVE_SECRET"].state
    rotation = of_settings({"ASSAY_LIVE_SECRET": GOOD, "ASSAY_LIVE_SECRET_OLD": GOOD[::-1]})
    assert rotation["ASSAY_LIVE_SECRET_OLD"].advice and broken(rotation) == set()


# The machine ----------------------------------------------------------------------------------


def test_sizes_stand_beside_their_limits(tmp_path: Path) -> None:
    for name in ("logs/a.jsonl", "outbox/x/scores", "contents/y"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"1" * (1 << 20))
    environment = {"ASSAY_LOGS_KEPT": "10", "ASSAY_LOG_DAYS": "2", "ASSAY_HUB_CACHE_GIB": "3"}
    kept = cache_rows(tmp_path, tmp_path, environment, on_hub=True)
    found = {row.part.strip(): row.state for row in kept}
    assert found["logs"] == "1.0 MiB; at most 20.0 MiB, of 10 submissions and 2 days"
    assert found["outbox"].startswith("1.0 MiB")
    assert found["cache of the Hub"].startswith("1.0 MiB; at most 3.0 GiB")
    (wrong,) = cache_rows(tmp_path, tmp_path, {"ASSAY_LOG_DAYS": "x"}, on_hub=False)
    assert wrong.broken


def test_isolation_says_what_each_layer_stops_and_how_to_get_more() -> None:
    layers = (str(Layer.PID), str(Layer.MEMORY_WATCHDOG))
    probe = Probe(ok=True, layers=layers, notes=("Landlock 7 is unused",))
    by, *others, last = isolation_rows(IsolationStatus(Bubblewrap(), (("bubblewrap", probe),)))
    assert "bubblewrap" in by.state
    assert Row("  pid", LEGEND[Layer.PID]) in others
    assert any("watchdog" in row.part and "cgroup" in row.advice for row in others)
    assert last.state == "Landlock 7 is unused"
    nothing = IsolationStatus(None, (("bubblewrap", Probe(False, (), "Not here.", "Do.")),))
    (row,) = isolation_rows(nothing)
    assert (row.state, row.advice) == ("Not here.", "Do.")
