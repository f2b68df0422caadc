"""`docs/api.md` names every route, parameter and refusal there is, and no other."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import gradio as gr
import pytest

from leaderboard.api.operations import LONGEST_QUERY, MOST_PER_PAGE, Operation
from leaderboard.api.problems import RETRY_AFTER_S
from leaderboard.api.routes import DOCUMENTS, OPERATIONS
from leaderboard.api.source import AT_ONCE, IN_LINE, WAIT_S
from leaderboard.pages.api_tools import add_endpoints
from leaderboard.service import picture_routes
from leaderboard.service.thumbnails import WIDTHS
from tests.leaderboard.api.asking import asking
from tests.leaderboard.api.test_mcp_tools import TOOLS

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "api.md").read_text("utf-8")


def lines() -> dict[str, list[str]]:
    """Route to the other cells of its line."""
    rows = [line.strip("|").split("|") for line in TEXT.splitlines() if line.startswith("| `/v1")]
    return {row[0].strip().strip("`"): [cell.strip() for cell in row[1:]] for row in rows}


def test_every_route_is_in_the_document_and_no_other() -> None:
    served = {f"/v1{o.path}" for o in OPERATIONS} | {f"/v1{path}" for path in DOCUMENTS}
    assert set(lines()) == served


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_every_parameter_is_in_the_document(operation: Operation) -> None:
    named = lines()[f"/v1{operation.path}"][1]
    if named == "the same":
        named = lines()["/v1/boards/{benchmark}"][1]
    assert set(re.findall(r"`(\w+)`", named)) == {p.name for p in operation.parameters}


@pytest.mark.slow
def test_the_endpoints_of_gradio_are_in_the_document_and_no_other() -> None:
    source = asking().source
    with gr.Blocks() as blocks:
        add_endpoints(source)
    served = blocks.get_api_info()["named_endpoints"]
    told = {
        row[0]: row[1:]
        for line in TEXT.splitlines()
        if line.startswith("| `/") and not line.startswith("| `/v1")
        for row in [[cell.strip() for cell in line.strip("|").split("|")]]
    }
    assert {name.strip("`") for name in told} == set(served)
    for name, (route, parameters) in told.items():
        asked = [one["parameter_name"] for one in served[name.strip("`")]["parameters"]]
        assert re.findall(r"`(\w+)`", parameters) == asked
        assert route.strip("`").removeprefix("/v1") in {o.path for o in OPERATIONS}


def test_what_is_said_of_waiting_and_of_images_is_what_happens() -> None:
    assert f"{AT_ONCE} are computed at a time and {IN_LINE} wait, for {WAIT_S:.0f} seconds" in TEXT
    assert f"`Retry-After: {RETRY_AFTER_S}`" in TEXT
    api = asking()
    with contextlib.ExitStack() as line:
        for _ in range(AT_ONCE):
            line.enter_context(api.source.turn())
        answer = api.client.get("/v1/boards/ratings?skill=counting")  # It waits for 0.2 s here.
    assert answer.status_code == 503
    assert answer.headers["Retry-After"] == str(RETRY_AFTER_S)
    widths = ", ".join(map(str, WIDTHS[:-1]))
    assert f"{picture_routes.PATH}/{{benchmark}}/{{image_id}}?w=" in TEXT
    assert f"{widths} or\n{WIDTHS[-1]} pixels" in TEXT


def test_limits_tools_and_the_shape_of_refusals_are_those_of_the_code() -> None:
    assert f"at most {MOST_PER_PAGE}" in TEXT and f"than {LONGEST_QUERY} characters" in TEXT
    assert all(f"`{tool}`" in TEXT for tool in TOOLS)
    refused = asking().client.get("/v1/boards/nothing")
    assert refused.text.replace('":', '": ').replace(',"', ', "') in TEXT
