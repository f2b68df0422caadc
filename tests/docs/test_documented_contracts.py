"""Guides list what the code has, all of it and nothing else: routes, files of a store, keys, errors."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path, PurePosixPath

import gradio as gr
import pytest

from benchmarks.errors import PlatformError
from benchmarks.registry import BUILT_IN, load_registry
from benchmarks.schema import Card
from evaluator.submission.manifest import Manifest
from evaluator.submission.templates import SkeletonKind
from leaderboard.api import picture_routes
from leaderboard.api.replies import RETRY_AFTER_S
from leaderboard.api.routes import DOCUMENTS
from leaderboard.api.schemas import LONGEST_QUERY, MOST_PER_PAGE
from leaderboard.api.source import AT_ONCE, IN_LINE, WAIT_S
from leaderboard.store.hub.layout import part_of
from leaderboard.store.interface import CONTROL
from leaderboard.thumbnails import WIDTHS
from leaderboard.web.page import all_pages
from leaderboard.web.site import add_endpoints
from tests.docs.markdown_text import REPOSITORY
from tests.docs.running_documents import Supplies
from tests.leaderboard.api.asking import OPERATIONS, asking
from tests.leaderboard.api.test_mcp_tools import TOOLS

API, METRIC, BOARDS, FORMATS = (
    (REPOSITORY / "docs" / f"{name}.md").read_text("utf-8")
    for name in ("api", "submit-a-metric", "read-the-boards", "data-formats")
)


def lines(text: str, *starts: str) -> dict[str, list[str]]:
    """First cell to the others of the lines of a table that begin so."""
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith(starts)]
    return {row[0].strip(): [cell.strip() for cell in row[1:]] for row in rows}


# docs/api.md

ROUTES = {route.strip("`"): cells for route, cells in lines(API, "| `/v1").items()}


def test_every_route_is_in_the_document_and_no_other() -> None:
    served = {f"/v1{path}" for path in (*OPERATIONS, *DOCUMENTS)}
    assert set(ROUTES) == served


@pytest.mark.parametrize("path", OPERATIONS)
def test_every_parameter_is_in_the_document(path: str) -> None:
    named = ROUTES[f"/v1{path}"][1]
    if named == "the same":
        named = ROUTES["/v1/boards/{benchmark}"][1]
    asked = {one["name"] for one in OPERATIONS[path]["parameters"] if one["in"] == "query"}
    assert {*re.findall(r"`(\w+)`", named), "format", "only"} == asked


@pytest.mark.slow
def test_the_endpoints_of_gradio_are_in_the_document_and_no_other() -> None:
    source = asking().source
    with gr.Blocks() as blocks:
        add_endpoints(source)
    served = blocks.get_api_info()["named_endpoints"]
    every = {name.strip("`"): cells for name, cells in lines(API, "| `/").items()}
    told = {name: cells for name, cells in every.items() if name not in ROUTES}
    assert set(told) == set(served)
    for name, (route, parameters) in told.items():
        asked = [one["parameter_name"] for one in served[name]["parameters"]]
        assert re.findall(r"`(\w+)`", parameters) == asked
        assert route.strip("`").removeprefix("/v1") in OPERATIONS


def test_limits_waiting_tools_and_the_shape_of_refusals_are_those_of_the_code() -> None:
    widths = f"{', '.join(map(str, WIDTHS[:-1]))} or\n{WIDTHS[-1]} pixels"
    for said in (
        f"{AT_ONCE} are computed at a time and {IN_LINE} wait, for {WAIT_S:.0f} seconds",
        f"`Retry-After: {RETRY_AFTER_S}`",
        f"{picture_routes.PATH}/{{benchmark}}/{{image_id}}?w=",
        widths,
        f"at most {MOST_PER_PAGE}",
        f"than {LONGEST_QUERY} characters",
        *(f"`{tool}`" for tool in TOOLS),
    ):
        assert said in API
    api = asking()
    with contextlib.ExitStack() as line:
        for _ in range(AT_ONCE):
            line.enter_context(api.source.turn())
        answer = api.client.get("/v1/boards/ratings?skill=counting")  # It waits for 0.2 s here.
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, str(RETRY_AFTER_S))
    refused = api.client.get("/v1/boards/nothing")
    assert refused.text.replace('":', '": ').replace(',"', ', "') in API


# docs/data-formats.md

NAMES = {"ID": "[^/]+", "BENCHMARK": "[a-z0-9_]+", "PROMPT_SET": "[a-z0-9_]+",
         "DIGEST": "[0-9a-f]{64}", "*": "[^/]+", "...": ".+"}  # fmt: skip
STORED = {
    path: cells[0].strip("`").removeprefix("-")
    for named, cells in lines(FORMATS, "| `public/", "| `priv").items()
    for path in re.findall(r"`([^`]+)`", named)
}
"""Path with its placeholders to the ending of the repository it is said to be in."""


@pytest.mark.slow
@pytest.mark.isolation
def test_every_file_of_a_store_is_documented(supplies: Supplies) -> None:
    store = supplies.store()
    placeholders = re.compile(f"({'|'.join(map(re.escape, NAMES))})")
    documented = re.compile(
        "|".join(
            "".join(NAMES.get(part, re.escape(part)) for part in placeholders.split(path))
            for path in STORED
            if path != "private/..."
        )
    )
    files = [
        str(PurePosixPath(file.relative_to(store)))
        for side in ("public", "private")
        for file in (store / side).rglob("*")
        if file.is_file() and CONTROL not in file.parts
    ]
    assert len(files) > 50
    assert [file for file in files if not documented.fullmatch(file)] == []


def test_every_path_is_said_to_be_in_the_repository_that_holds_it() -> None:
    assert len(STORED) > 20
    for path, repository in STORED.items():
        side, _, rest = path.partition("/")
        held = part_of(rest.replace("*", "x")).value if side == "public" else "submissions"
        assert repository == held, path


# docs/submit-a-metric.md, docs/read-the-boards.md and docs/extend.md


def first_column(text: str, heading: str) -> list[str]:
    """The code in the first cells of the table below a heading."""
    part = text.split(f"{heading}\n", 1)[1]
    rows = re.findall(r"^\| (`[^|]*) \|", part.split("\n#", 1)[0], re.MULTILINE)
    return [name for row in rows for name in re.findall(r"`(\w+)", row)]


def test_manifests_scorers_and_folders_are_documented_in_full() -> None:
    assert set(first_column(METRIC, "### `assay.toml`")) == set(Manifest.model_fields)
    contract = (REPOSITORY / "evaluator" / "scoring" / "contract.py").read_text("utf-8")
    methods = set(re.findall(r"^    (\w+)\(", contract.split('"""')[1], re.MULTILINE))
    assert set(first_column(METRIC, "## Code")) == methods - {"score", "compare"}
    assert "compare(prompts, images_a, images_b)" in METRIC
    kinds = set(SkeletonKind) - {SkeletonKind.GENERATIONS}
    assert all(f"`{kind.value}`" in METRIC or kind.value == "plain" for kind in kinds)


def test_every_page_for_visitors_is_in_the_table_of_questions() -> None:
    named = set(re.findall(r"\*([A-Z][\w ]+)\*", BOARDS))
    others = {
        "Submit", "My submissions", "Operators", "Docs", "Guide", "Benchmark", "About", "Methods", "Model", "Prompt", "Compare models",
        "Models over seeds",
    }  # fmt: skip
    assert {page.title for page in all_pages()} - others <= named


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('title = "', 'titel = "', "title: .*titel: "),
        ("[headline]", "[headline", "Expected"),
        ('measure = "srcc"', 'measure = "scrr"', r"headline\.measure: 'scrr' .*srcc"),
    ],
)
def test_a_card_with_a_mistake_is_named_with_what_is_wrong(
    before: str, after: str, said: str, tmp_path: Path
) -> None:
    good = (BUILT_IN / "demo" / "card_gecko.toml").read_text(encoding="utf-8")
    assert before in good
    path = tmp_path / "card.toml"
    path.write_text(good.replace(before, after, 1), encoding="utf-8")
    with pytest.raises(PlatformError, match=rf"card\.toml: {said}") as caught:
        Card.read(path, load_registry()["demo_gecko"].card.measures)
    assert caught.value.code == "invalid_benchmark"
