"""What `doctor` says of a store on the Hub: token, repositories, pins."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evaluator.doctoring.hub_parts import hub_rows, may_write
from evaluator.doctoring.rows import Row
from leaderboard.store.interface import transact
from tests.hub.accounts import Account
from tests.hub.server import HubServer, running_hub
from tests.leaderboard.store.hub_rig import NAME, created, parts_of

OURS = (f"{NAME}-requests", f"{NAME}-results")


@pytest.fixture
def hub() -> Iterator[HubServer]:
    with running_hub() as server:
        yield server


def rows(hub: HubServer, folder: Path, token: str | None = None) -> dict[str, Row]:
    return {row.part.strip(): row for row in hub_rows(parts_of(hub, folder, token=token))}


def test_a_store_in_order_has_nothing_broken(hub: HubServer, tmp_path: Path) -> None:
    parts = created(hub, tmp_path / "a")
    transact(parts.public, lambda: {"results/x/y.json": b"{}"}, "a result")
    token = hub.enroll("hf_lab_writer", Account("lab"))
    found = rows(hub, tmp_path / "b", token)
    assert not any(row.broken for row in found.values())
    assert found["token"].state == "of lab, write"
    assert found[f"{NAME}-submissions"].state.startswith("private, at ")
    assert found[f"{NAME}-requests"].state.startswith("open, at ")
    assert found["pin of results"].state == parts.repositories["results"].fresh_head()[:12]  # type: ignore[index]


def test_what_lies_beyond_a_pin_is_told(hub: HubServer, tmp_path: Path) -> None:
    parts = created(hub, tmp_path / "a")
    results = parts.public.payload["results"]  # type: ignore[index]
    transact(results, lambda: {"results/x/y.json": b"{}"}, "left by a crash")
    assert "nobody reads" in rows(hub, tmp_path / "b")["pin of results"].state


def test_a_pin_on_a_repository_that_was_made_again_is_broken(
    hub: HubServer, tmp_path: Path
) -> None:
    parts = created(hub, tmp_path / "a")
    transact(parts.public, lambda: {"results/x/y.json": b"{}"}, "a result")
    del hub.repositories[f"{NAME}-results"]
    hub.add(f"{NAME}-results", {".gitattributes": b""})
    found = rows(hub, tmp_path / "b")
    assert found["pin of results"].broken
    assert "deleted and made again" in found["pin of results"].state
    assert not found["pin of scores"].broken


def test_a_token_that_may_only_read_is_broken(hub: HubServer, tmp_path: Path) -> None:
    created(hub, tmp_path / "a")
    token = hub.enroll("hf_lab_reader", Account("lab", role="read"))
    row = rows(hub, tmp_path / "b", token)["token"]
    assert row.broken
    assert "may not write" in row.state


def test_a_token_nobody_knows_is_broken_with_the_remedy(hub: HubServer, tmp_path: Path) -> None:
    created(hub, tmp_path / "a")
    row = rows(hub, tmp_path / "b", "hf_unknown_to_all")["token"]
    assert row.broken
    assert "HF_TOKEN" in row.advice


def test_uploads_that_everybody_can_read_are_broken(hub: HubServer, tmp_path: Path) -> None:
    created(hub, tmp_path / "a")
    hub.repositories[f"{NAME}-submissions"].private = False
    row = rows(hub, tmp_path / "b")[f"{NAME}-submissions"]
    assert row.broken
    assert "private" in row.advice


def test_a_store_that_was_never_created_is_broken(hub: HubServer, tmp_path: Path) -> None:
    found = rows(hub, tmp_path)
    assert found[f"{NAME}-requests"].broken
    assert found["pins"].broken
    assert "hf_open_sesame" not in str(found)


def told(role: str, **more: Any) -> dict[str, Any]:
    token = {"role": role, **more.pop("token", {})}
    return {"name": "ada", "auth": {"accessToken": token}, **more}


def scoped(name: str, *permissions: str) -> dict[str, Any]:
    entity = {"entity": {"name": name}, "permissions": list(permissions)}
    return {"fineGrained": {"scoped": [entity]}}


@pytest.mark.parametrize(
    ("whoami", "expected"),
    [
        (told("read"), False),
        ({**told("write"), "name": "lab"}, True),
        (told("write", orgs=[{"name": "lab", "roleInOrg": "admin"}]), True),
        (told("write", orgs=[{"name": "lab", "roleInOrg": "read"}]), False),
        (told("write", orgs=[]), None),
        (told("fineGrained", token=scoped("lab", "repo.write")), True),
        (told("fineGrained", token=scoped("lab", "repo.content.read")), False),
        (told("fineGrained", token=scoped(OURS[0], "repo.write")), False),
        (told("fineGrained"), None),
        ({}, None),
    ],
)
def test_rights_are_read_from_what_the_hub_tells_of_a_token(
    whoami: dict[str, Any], expected: bool | None
) -> None:
    assert may_write(whoami, OURS) is expected


def test_each_repository_says_whether_it_may_be_written(hub: HubServer, tmp_path: Path) -> None:
    created(hub, tmp_path / "a")
    writer = rows(hub, tmp_path / "b", hub.enroll("hf_writer", Account("lab")))
    reader = rows(hub, tmp_path / "c", hub.enroll("hf_reader", Account("lab", role="read")))
    for part in ("requests", "submissions", "scores", "results"):
        assert writer[f"{NAME}-{part}"].state.endswith("; may be read and written")
        assert reader[f"{NAME}-{part}"].state.endswith("; may be read, not written")


def test_a_clock_that_is_wrong_is_told(hub: HubServer, tmp_path: Path) -> None:
    created(hub, tmp_path / "a")
    assert rows(hub, tmp_path / "b")["clock"].state == "as the Hub's"
    hub.clock.advance(-3600)
    wrong = rows(hub, tmp_path / "c")["clock"]
    assert "ahead of the Hub's" in wrong.state
    assert "NTP" in wrong.advice
