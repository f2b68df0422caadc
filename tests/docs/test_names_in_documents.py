"""Commands, options and pages that a document names exist."""

from __future__ import annotations

import re

import pytest

from leaderboard.api.operations import Operation
from leaderboard.api.routes import DOCUMENTS, OPERATIONS
from leaderboard.pages.page import all_pages
from tests.docs.command_names import every_option, named_in, problem
from tests.docs.markdown_text import Document, every_document, run_documents

BARE_OPTION = re.compile(r"(--[a-z][\w-]*)(?:[ =][\w./:-]+)*")
OTHER_PROGRAMS = re.compile(
    r"^\s*(?:sudo |[A-Z_]+=\S+ )*(?:docker|podman|git|make|uv|pip|pytest|apt|apt-get|curl|ray|srun|"
    r"sbatch|hf|cosign|gh|act|cp|rsync|tar|openssl|kill|runsc|systemctl|bwrap|bash|sh)\b"
)
ADDRESS = re.compile(r"(?:127\.0\.0\.1|localhost):7860(/[\w./{}-]*)?")
PAGE = re.compile(r"\b[Pp]ages? (?!of\b)(?:\*([A-Z][\w ]*)\*|([A-Z][a-z]+)\b)")
ADDED = re.compile(r"""Page\("[^"]+", "([\w-]+)\"""")
"""A page that the document itself adds to the site."""
SERVED = {
    "/health",
    "/metrics",
    "/webhook",
    "/as-of",
    "/share.png",
    "/mcp",
    "/live/pulses",
    "/v1/images",
    "/v1/generations",
}


PUBLISHED = {"evaluator/demo/scorers/two_tower/README.md"}
"""Cards of submissions that stand in stores: they say how that version was made, and stay."""


@pytest.mark.parametrize(
    "document",
    [one for one in every_document() if one.name not in PUBLISHED],
    ids=lambda document: document.name,
)
def test_every_command_and_option_exists(document: Document) -> None:
    wrong = [
        f"{document.name}:{line}: {said}"
        for line, code in document.code()
        for named in named_in(code)
        if (said := problem(named))
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("document", run_documents(), ids=lambda document: document.name)
def test_an_option_that_is_named_alone_is_one_of_some_command(document: Document) -> None:
    wrong = [
        f"{document.name}:{line}: {code}"
        for line, code in document.code()
        if (found := BARE_OPTION.fullmatch(code.strip()))
        and found[1] not in every_option()
        and not OTHER_PROGRAMS.match(code)
    ]
    assert not wrong, "\n".join(wrong)


def paths_served() -> set[str]:
    return {
        "",
        *SERVED,
        *(f"/{page.path}" for page in all_pages()),
        *(f"/v1{path}" for path in DOCUMENTS),
        *(f"/v1{_fixed(operation)}" for operation in OPERATIONS),
    }


def _fixed(operation: Operation) -> str:
    return operation.path.partition("{")[0]


@pytest.mark.parametrize("document", run_documents(), ids=lambda document: document.name)
def test_every_address_and_every_page_that_is_named_exists(document: Document) -> None:
    titles = {page.title for page in all_pages()} | {"About"}
    added = {f"/{path}" for path in ADDED.findall(document.text)}
    served = {path.rstrip("/") for path in paths_served()} | added
    wrong = []
    for number, line in enumerate(document.text.splitlines(), 1):
        for found in ADDRESS.finditer(line):
            path = (found[1] or "").rstrip("./")
            below = any(path.startswith(f"{one}/") for one in served if one.startswith("/v1/"))
            if path not in served and not below:
                wrong.append(f"{document.name}:{number}: nothing is served at {path}")
        for found in PAGE.finditer(line):
            name = found[1] or found[2]
            if not any(name == title or title.startswith(f"{name} ") for title in titles):
                wrong.append(f"{document.name}:{number}: there is no page {name!r}")
    assert not wrong, "\n".join(wrong)
