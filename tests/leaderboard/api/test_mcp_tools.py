"""Assistants ask by the Model Context Protocol, with the client of its SDK over HTTP."""

from __future__ import annotations

import gzip
import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import anyio
import httpx
import pytest
from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client

from leaderboard.api.mcp import MOST_BYTES, Tools, routes
from leaderboard.api.replies import RefusedError
from leaderboard.api.tables.boards import board_skills
from leaderboard.views.boards import BoardQuery
from tests.kit.serving import serving
from tests.leaderboard.api.asking import Asking, asking

TOOLS = {"list_benchmarks", "board", "compare", "metrics_for_skill", "models", "entry"}
HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


@pytest.fixture(scope="module")
def api() -> Asking:
    return asking()


@pytest.fixture(scope="module")
def address(api: Asking) -> Iterator[str]:
    with serving(routes(api.source)) as found:
        yield f"{found}/mcp"


def in_session(address: str, ask: Callable[[ClientSession, Any], Awaitable[Any]]) -> Any:
    """Ask with a session and what it was offered when it began."""

    async def go() -> Any:
        async with streamablehttp_client(address) as (read, write, _):  # noqa: SIM117
            async with ClientSession(read, write) as session:
                return await ask(session, await session.initialize())

    return anyio.run(go)


def ask(address: str, *calls: tuple[str, dict[str, Any]]) -> list[Any]:
    async def answers(session: ClientSession, _: Any) -> list[Any]:
        return [await session.call_tool(name, given) for name, given in calls]

    found: list[Any] = in_session(address, answers)
    return found


def test_there_are_only_tools_that_read_and_each_says_what_it_does(address: str) -> None:
    async def listed(session: ClientSession, offered: Any) -> tuple[Any, list[Any]]:
        return offered, list((await session.list_tools()).tools)

    offered, tools = in_session(address, listed)
    assert "metrics" in offered.instructions
    able = offered.capabilities
    assert (able.tools is None, able.resources, able.prompts) == (False, None, None)
    assert {tool.name for tool in tools} == TOOLS
    for tool in tools:
        assert tool.annotations.readOnlyHint is True
        assert len(tool.description) > 40
        assert all(f"{name}: " in tool.description for name in tool.inputSchema["properties"])


@pytest.mark.slow
def test_an_assistant_finds_metrics_and_compares_them(address: str, api: Asking) -> None:
    found, board, benchmarks = ask(
        address,
        ("metrics_for_skill", {"skill": "Counting", "ratings": "simulated"}),
        ("board", {"benchmark": "ratings", "limit": 3}),
        ("list_benchmarks", {}),
    )
    drawn = api.rows("/v1/boards/ratings/skills")
    expected = [r["entry_id"] for r in drawn if r["skill"] == "counting" and r["maybe_best"]]
    assert [row["entry_id"] for row in found.structuredContent["rows"]] == expected != []
    rows = board.structuredContent["rows"]
    every = api.rows("/v1/boards/ratings")
    assert [row["value"] for row in rows] == [row["value"] for row in every[:3]]
    known = {row["name"]: row for row in benchmarks.structuredContent["rows"]}["ratings"]
    assert (known["simulated"], known["skills"]["counting"]) == (True, "Counting")
    a, b = rows[0]["entry_id"], rows[1]["entry_id"]
    compared, entry = ask(
        address, ("compare", {"benchmark": "ratings", "a": a, "b": b}), ("entry", {"entry_id": a})
    )
    chosen = compared.structuredContent["rows"][0]
    assert chosen["difference"] == pytest.approx(rows[0]["value"] - rows[1]["value"])
    assert entry.structuredContent["about"]["entry"]["entry_id"] == a
    assert json.loads(entry.content[0].text) == entry.structuredContent


# What is cut, and what is refused


def test_of_very_many_metrics_the_best_are_told(
    api: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leaderboard.api.tables.boards.MOST_IN_SKILLS", 5)
    with pytest.raises(RefusedError, match="too many"):
        board_skills(api.source, "ratings", BoardQuery())
    found = Tools(api.source).metrics_for_skill("counting", "simulated")
    (said,) = found["about"]["remarks"]
    assert said.startswith("ratings has 12 metrics")
    board = api.source.reader.view().boards["ratings"]
    cells = board.cells(board.selectors("counting")[0], "counting")
    listed = [row["entry_id"] for row in found["rows"] if row["benchmark"] == "ratings"]
    assert listed == [cell.entry_id for cell in cells if cell.rank_low == 1] != []
    assert all(row["skill"] == "counting" for row in found["rows"])


def test_what_is_cut_or_left_out_is_said(api: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = Tools(api.source)
    whole = tools.metrics_for_skill("t", "simulated")
    n = len(whole["rows"])
    assert "remarks" not in whole["about"] and whole["about"]["rows"] == n > 1
    monkeypatch.setattr("leaderboard.api.mcp.MOST_ROWS", 1)
    assert len(tools.board("ratings", limit=10**9)["rows"]) == 1
    cut = tools.metrics_for_skill("t", "simulated")
    assert (len(cut["rows"]), cut["about"]["rows"]) == (1, n)
    assert any(f"1 of {n}" in said for said in cut["about"]["remarks"])
    monkeypatch.setattr("leaderboard.api.mcp._MOST_BOARDS", 0)
    none = tools.metrics_for_skill("counting", "simulated")
    assert "ratings" in none["about"]["remarks"][0] and not none["rows"]


def test_a_metric_at_chance_is_named_nowhere(api: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leaderboard.api.mcp.leading_cells", lambda *_: ())
    found = Tools(api.source).metrics_for_skill("counting", "simulated")
    assert found["rows"] == []
    assert any("above chance" in said for said in found["about"]["remarks"])


@pytest.mark.parametrize(
    ("tool", "given", "code"),
    [
        ("board", {"benchmark": "nothing"}, "unknown_benchmark"),
        ("board", {"benchmark": "ratings", "measure": "nothing"}, "bad_query"),
        ("entry", {"entry_id": "nothing/x"}, "unknown_entry"),
        ("metrics_for_skill", {"skill": "nothing like it"}, "unknown_skill"),
        ("metrics_for_skill", {"skill": " "}, "no_skill"),
        ("compare", {"benchmark": "ratings", "a": "x", "b": "y"}, "bad_query"),
    ],
)
def test_an_error_says_what_is_wrong(
    address: str, tool: str, given: dict[str, Any], code: str
) -> None:
    (answer,) = ask(address, (tool, given))
    assert answer.isError and f"[{code}]" in answer.content[0].text


# As HTTP


def called(address: str, name: str, **given: object) -> dict[str, Any]:
    params = {"name": name, "arguments": given}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    # A site is asked under whatever name it has.
    headers = {**HEADERS, "Host": "assay.example.org"}
    answer = httpx.post(address, content=json.dumps(call), headers=headers)
    assert answer.status_code == 200
    found: dict[str, Any] = answer.json()["result"]
    return found


def test_no_stream_is_held_open_and_no_request_is_large(address: str) -> None:
    assert httpx.get(address, headers={"Accept": "text/event-stream"}).status_code == 405
    assert httpx.delete(address).status_code == 405
    large = httpx.post(address, content=b" " * (MOST_BYTES + 1))
    assert (large.status_code, large.json()["error"]["code"]) == (413, "too_large")
    assert httpx.post(address, content=b"{").status_code in {400, 406}


@pytest.mark.parametrize(
    "content",
    [gzip.compress(b"0" * 1_000_000), b"[" * 60_000, b"\xff\xfe{}", b'{"id":', b"", b"\x00"],
    ids=["bomb", "deep", "not utf-8", "half", "nothing", "nul"],
)
def test_no_json_fills_no_log(
    address: str, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    packed = {"Content-Encoding": "gzip"} if content.startswith(b"\x1f") else {}
    answer = httpx.post(address, content=content, headers=HEADERS | packed)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "not_json")
    assert not caplog.records


def test_odd_calls_are_answered_unlogged(address: str, caplog: pytest.LogCaptureFixture) -> None:
    odd: list[dict[str, Any]] = [{"limit": "x"}, {"limit": [1]}, {"skill": "\x00" * 1000}]
    for given in (*odd, {"benchmark": "\ud800"}):
        assert called(address, "board", **{"benchmark": "ratings", **given})["isError"]
    assert called(address, "nothing")["isError"]
    for limit in (-5, 0, 10**30):
        assert len(called(address, "board", benchmark="ratings", limit=limit)["content"]) == 1
    calls: tuple[object, ...] = (
        {"jsonrpc": "2.0", "id": 1, "method": "nothing/at"},
        [],
        7,
        {"id": 1},
    )
    for call in calls:
        answer = httpx.post(address, content=json.dumps(call), headers=HEADERS)
        assert answer.status_code < 500 and "error" in answer.json()
    assert not [record for record in caplog.records if record.name.startswith("mcp")]


def test_a_defect_is_logged_and_says_nothing_of_the_machine(
    address: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("/root/secret/path")

    monkeypatch.setattr("leaderboard.api.tables.catalogue.entry", fails)
    found = called(address, "entry", entry_id="a/b")
    assert found["isError"] and "[defect]" in found["content"][0]["text"]
    assert "secret" not in json.dumps(found)
    assert "/root/secret/path" in caplog.text
