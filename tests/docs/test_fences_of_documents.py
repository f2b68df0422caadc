"""Blocks of code say what they are, and are what they say."""

from __future__ import annotations

import ast
import json
import re
import tomllib

import pytest
import yaml

from tests.docs.markdown_text import REPOSITORY, Document, Fence, every_document, run_documents
from tests.docs.surroundings import NEEDS

LANGUAGES = frozenset(
    [
        "sh",
        "text",
        "toml",
        "python",
        "json",
        "yaml",
        "csv",
        "dockerfile",
        "ini",
        "http",
        "promql",
        "bibtex",
        "jsonl",
        "mermaid",
    ]
)
GROUPS = frozenset(["scorers", "questions", "models", "store"])
PARSERS = {"python": ast.parse, "toml": tomllib.loads, "json": json.loads, "yaml": yaml.safe_load}


@pytest.mark.parametrize("document", run_documents(), ids=lambda document: document.name)
def test_every_block_says_what_it_is_and_every_setting_is_known(document: Document) -> None:
    assert document.needs <= NEEDS, f"{document.name}: with: {sorted(document.needs - NEEDS)}"
    for fence in document.fences:
        where = f"{document.name}:{fence.line}"
        assert fence.language in LANGUAGES, f"{where}: {fence.language!r}"
        if fence.settings and fence.language != "sh":
            assert set(fence.settings) <= {"with"}, f"{where}: only sh has settings"
        assert fence.settings.get("exits", "0").isdigit(), where


@pytest.mark.parametrize("document", every_document(), ids=lambda document: document.name)
def test_what_a_block_holds_can_be_parsed(document: Document) -> None:
    for fence in document.fences:
        parse = PARSERS.get(fence.language)
        if parse is not None:
            parse(fence.content)


@pytest.mark.parametrize("document", run_documents(), ids=lambda document: document.name)
def test_a_test_that_is_named_exists_and_runs_these_commands(document: Document) -> None:
    for fence in document.fences:
        if "by" in fence.settings:
            _check_named_test(document, fence)


def _check_named_test(document: Document, fence: Fence) -> None:
    where = f"{document.name}:{fence.line}"
    path, _, names = fence.settings["by"].partition("::")
    file = REPOSITORY / path
    assert file.is_file(), f"{where}: there is no {path}"
    text = file.read_text("utf-8")
    defined = {
        node.name
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }
    wanted = {name.partition("[")[0] for name in names.split("::") if name}
    assert wanted, f"{where}: name the test behind ::"
    assert wanted <= defined, f"{where}: {path} has no {sorted(wanted - defined)}"
    for words in _telling_words(fence.content):
        missing = [word for word in words if word not in text]
        assert not missing, f"{where}: {path} never names {missing}"


def _telling_words(content: str) -> list[list[str]]:
    """Of each command what it is known by: program or subcommand, and its options."""
    found = []
    for line in re.sub(r"\\\n\s*", " ", content).splitlines():
        words = re.sub(r"(^|\s)#.*", "", line).split()
        while words and re.fullmatch(r"\w+=\S*", words[0]):
            words.pop(0)
        if words[:1] == ["python"] and "-m" in words[:2]:
            words = words[3:]
        if words:
            options = [word.partition("=")[0] for word in words if word.startswith("--")]
            first = words[:2] if words[0] in GROUPS else words[:1]
            found.append([*first, *options])
    return found
