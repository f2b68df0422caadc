"""Blocks of code are what they say; links, commands, options, addresses and pages exist."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from urllib.parse import unquote

import pytest
import yaml

from leaderboard.api.routes import DOCUMENTS
from leaderboard.web.page import all_pages
from tests.docs.command_names import every_option, named_in, problem
from tests.docs.markdown_text import (
    REPOSITORY,
    Document,
    Fence,
    every_document,
    project_files,
    run_documents,
)
from tests.docs.running_documents import NEEDS
from tests.leaderboard.api.asking import OPERATIONS

LANGUAGES = {
    "sh", "text", "toml", "python", "json", "yaml", "csv", "dockerfile", "ini", "http", "promql",
    "bibtex", "jsonl", "mermaid",
}  # fmt: skip
GROUPS = {"scorers", "questions", "models", "store"}
PARSERS = {"python": ast.parse, "toml": tomllib.loads, "json": json.loads, "yaml": yaml.safe_load}
EVERY = pytest.mark.parametrize("document", every_document(), ids=lambda document: document.name)
RUN = pytest.mark.parametrize("document", run_documents(), ids=lambda document: document.name)


# Blocks of code.


@RUN
def test_every_block_says_what_it_is_and_every_setting_is_known(document: Document) -> None:
    assert document.needs <= NEEDS
    for fence in document.fences:
        where = f"{document.name}:{fence.line}"
        assert fence.language in LANGUAGES, where
        if fence.settings and fence.language != "sh":
            assert set(fence.settings) <= {"with"}, f"{where}: only sh has settings"
        assert fence.settings.get("exits", "0").isdigit(), where
        if "by" in fence.settings:
            _check_named_test(where, fence)


@EVERY
def test_what_a_block_holds_can_be_parsed(document: Document) -> None:
    for fence in document.fences:
        PARSERS.get(fence.language, str)(fence.content)


def _check_named_test(where: str, fence: Fence) -> None:
    """A test that is named exists and runs these commands."""
    path, _, names = fence.settings["by"].partition("::")
    file = REPOSITORY / path
    assert file.is_file(), f"{where}: there is no {path}"
    text = file.read_text("utf-8")
    nodes = ast.walk(ast.parse(text))
    defined = {n.name for n in nodes if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    wanted = {name.partition("[")[0] for name in names.split("::") if name}
    assert wanted, f"{where}: name the test behind ::"
    assert wanted <= defined, f"{where}: {path} has no {sorted(wanted - defined)}"
    missing = [word for word in _telling_words(fence.content) if word not in text]
    assert not missing, f"{where}: {path} never names {missing}"


def _telling_words(content: str) -> list[str]:
    """What each command is known by: program or subcommand, and its options."""
    found: list[str] = []
    for line in re.sub(r"\\\n\s*", " ", content).splitlines():
        words = re.sub(r"(^|\s)#.*", "", line).split()
        while words and re.fullmatch(r"\w+=\S*", words[0]):
            words.pop(0)
        if words[:1] == ["python"] and "-m" in words[:2]:
            words = words[3:]
        if words:
            found += words[:2] if words[0] in GROUPS else words[:1]
            found += [word.partition("=")[0] for word in words if word.startswith("--")]
    return found


# Links.

MACHINES = re.compile(r"(?<![\w.~$}-])/(?:root|work|home|Users|mnt|scratch|nfs|media)/[\w.-]+")
"""Folders that some machine has and others have not."""
ELSEWHERE = re.compile(r"[a-z]+:")


@EVERY
def test_every_link_leads_to_a_file_of_the_project_and_a_heading_in_it(document: Document) -> None:
    files = set(project_files())
    folders = {str(parent) for name in files for parent in (REPOSITORY / name).parents}
    lost = []
    for line, target in document.links():
        if ELSEWHERE.match(target):
            continue
        path, _, anchor = target.partition("#")
        file = (document.path.parent / unquote(path)).resolve() if path else document.path
        known = file.is_relative_to(REPOSITORY) and (
            file.relative_to(REPOSITORY).as_posix() in files or str(file) in folders
        )
        if not known:
            lost.append(f"{document.name}:{line}: there is no {target}")
        elif anchor and file.suffix == ".md" and anchor not in Document(file).anchors:
            lost.append(f"{document.name}:{line}: {target} has no such heading")
    assert not lost, "\n".join(lost)


@EVERY
def test_no_document_names_a_folder_of_a_particular_machine(document: Document) -> None:
    lines = enumerate(document.text.splitlines(), 1)
    assert [(number, found[0]) for number, line in lines if (found := MACHINES.search(line))] == []


def test_every_document_can_be_reached_from_the_first_page() -> None:
    by_name = {document.name: document for document in every_document()}
    reached, waiting = set[str](), ["README.md"]
    while waiting:
        name = waiting.pop()
        if name in reached or name not in by_name:
            continue
        reached.add(name)
        for _, target in by_name[name].links():
            file = (by_name[name].path.parent / unquote(target.partition("#")[0])).resolve()
            if file.is_relative_to(REPOSITORY):
                waiting.append(file.relative_to(REPOSITORY).as_posix())
    guides = {name for name in by_name if name.startswith("docs/")}
    assert guides <= reached, f"no link leads to {sorted(guides - reached)}"


# Names.

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
    "/health", "/metrics", "/webhook", "/as-of", "/share.png", "/mcp", "/live/pulses",
    "/v1/images", "/v1/generations",
}  # fmt: skip
PUBLISHED = {"evaluator/demo/scorers/two_tower/README.md"}
"""Cards of submissions that stand in stores: they say how that version was made, and stay."""


@EVERY
def test_every_command_and_option_exists(document: Document) -> None:
    wrong = [
        f"{document.name}:{line}: {said}"
        for line, code in document.code()
        for named in named_in(code)
        if document.name not in PUBLISHED and (said := problem(named))
    ]
    assert not wrong, "\n".join(wrong)


def test_every_command_in_the_hint_of_an_error_exists() -> None:
    table = (REPOSITORY / "docs/reference/errors.md").read_text("utf-8").replace("\\", "")
    hints = [part for line in table.splitlines() for part in re.split(r"<br>|[|`)]", line)]
    named = [one for hint in hints for one in named_in(hint)]
    assert len(named) > 40
    assert [said for one in named if (said := problem(one))] == []


@RUN
def test_an_option_that_is_named_alone_is_one_of_some_command(document: Document) -> None:
    wrong = [
        f"{document.name}:{line}: {code}"
        for line, code in document.code()
        if (found := BARE_OPTION.fullmatch(code.strip()))
        and found[1] not in every_option()
        and not OTHER_PROGRAMS.match(code)
    ]
    assert not wrong, "\n".join(wrong)


@RUN
def test_every_address_and_every_page_that_is_named_exists(document: Document) -> None:
    titles = {page.title for page in all_pages()} | {"About"}
    served = {"", *SERVED, *(f"/{page.path}" for page in all_pages())}
    served |= {f"/v1{path}" for path in DOCUMENTS}
    served |= {f"/v1{path.partition('{')[0]}" for path in OPERATIONS}
    served |= {f"/{path}" for path in ADDED.findall(document.text)}
    served = {path.rstrip("/") for path in served}
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
