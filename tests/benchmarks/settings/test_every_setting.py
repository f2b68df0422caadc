"""The model and the source: no variable that is unknown, no setting that nobody reads."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from benchmarks.settings.fields import Field, fields, known_variables, unknown_variables
from benchmarks.settings.reference import rows

REPOSITORY = Path(__file__).resolve().parents[3]
PACKAGES = ("benchmarks", "leaderboard", "evaluator")
NAME = re.compile(r"\bASSAY_[A-Z0-9_]+\b")


def trees() -> Iterator[tuple[Path, ast.AST]]:
    files = [REPOSITORY / "app.py"]
    for package in PACKAGES:
        files += sorted((REPOSITORY / package).rglob("*.py"))
    for file in files:
        yield file, ast.parse(file.read_bytes())


@cache
def said() -> dict[str, tuple[str, ...]]:
    """Text constants by file."""
    return {
        str(file.relative_to(REPOSITORY)): tuple(
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        )
        for file, tree in trees()
    }


def test_every_variable_that_the_source_names_is_a_setting() -> None:
    named = {
        (file, name)
        for file, texts in said().items()
        for text in texts
        for name in NAME.findall(text)
    }
    unknown = set(unknown_variables(name for _, name in named))
    assert {(file, name) for file, name in named if name in unknown} == set()


def test_every_variable_of_the_deployment_is_a_setting_or_known_as_its_own() -> None:
    files = [REPOSITORY / name for name in ("compose.yaml", "Dockerfile", "Makefile")]
    files += [path for path in (REPOSITORY / "deploy").rglob("*") if path.is_file()]
    text = "\n".join(path.read_text("utf-8", "replace") for path in files if path.is_file())
    assert unknown_variables(NAME.findall(text)) == ()


@cache
def read_by_name() -> frozenset[str]:
    """Names of the model that something asks for."""
    texts = {t for file, ts in said().items() if "/settings/" not in file for t in ts}
    readers = ("app.py", "leaderboard/service/address.py")
    source = "".join((REPOSITORY / name).read_text() for name in readers)
    return frozenset(texts | set(re.findall(r"\bgiven\.(\w+)", source)))


@pytest.mark.parametrize("field", fields(), ids=lambda field: field.name)
def test_every_setting_is_read_somewhere(field: Field) -> None:
    variable = field.about.variable
    own = "benchmarks/settings/model.py"
    named = any(variable in texts for file, texts in said().items() if file != own)
    by_pattern = variable.endswith("_OLD") and variable.removesuffix("_OLD") in known_variables()
    assert named or by_pattern or field.name in read_by_name() or field.about.at_import


def test_the_reference_has_a_row_for_each_and_no_two_share_a_name() -> None:
    told = rows()
    assert len({row.variable for row in told}) == len(told) == len(fields())
    keys = [row.key for row in told if row.key]
    assert len(set(keys)) == len(keys)
    for row in told:
        assert row.text.endswith(".")
        assert row.who
        assert not row.secret or not row.default
