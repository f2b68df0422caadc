"""`docs/api.md` names every route, parameter and refusal there is, and no other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from leaderboard.api.operations import LONGEST_QUERY, MOST_PER_PAGE, Operation
from leaderboard.api.routes import DOCUMENTS, OPERATIONS
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


def test_limits_tools_and_the_shape_of_refusals_are_those_of_the_code() -> None:
    assert f"at most {MOST_PER_PAGE}" in TEXT and f"than {LONGEST_QUERY} characters" in TEXT
    assert all(f"`{tool}`" in TEXT for tool in TOOLS)
    refused = asking().client.get("/v1/boards/nothing")
    assert refused.text.replace('":', '": ').replace(',"', ', "') in TEXT
