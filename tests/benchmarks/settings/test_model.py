"""The model and the source: no variable that is unknown, no setting that nobody reads."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from benchmarks.settings.model import KEYS, SETTINGS, VARIABLES, unknown_variables

REPOSITORY = Path(__file__).resolve().parents[3]
NAME = re.compile(r"\bASSAY_[A-Z0-9_]+\b")
READERS = ("app.py", "leaderboard/service/address.py", "evaluator/commands/demo.py")


@cache
def texts() -> dict[str, frozenset[str]]:
    """Text constants by file."""
    files = [REPOSITORY / "app.py"]
    for package in ("benchmarks", "leaderboard", "evaluator"):
        files += sorted((REPOSITORY / package).rglob("*.py"))
    return {
        str(file.relative_to(REPOSITORY)): frozenset(
            node.value
            for node in ast.walk(ast.parse(file.read_bytes()))
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        )
        for file in files
    }


@pytest.mark.slow
def test_every_variable_that_the_source_names_is_a_setting() -> None:
    named = {
        (name, file)
        for file, found in texts().items()
        for text in found
        for name in NAME.findall(text)
    }
    unknown = unknown_variables({name for name, _ in named})
    assert {(name, file) for name, file in named if name in unknown} == set()


def test_every_variable_of_the_deployment_is_a_setting_or_known_as_its_own() -> None:
    files = [REPOSITORY / name for name in ("compose.yaml", "Dockerfile", "Makefile")]
    files += [path for path in (REPOSITORY / "deploy").rglob("*") if path.is_file()]
    text = "\n".join(path.read_text("utf-8", "replace") for path in files)
    assert unknown_variables(NAME.findall(text)) == ()


def test_every_setting_is_read_somewhere() -> None:
    outside = frozenset().union(*(t for file, t in texts().items() if "/settings/" not in file))
    source = "".join((REPOSITORY / name).read_text() for name in READERS)
    read = outside | set(re.findall(r"\b(?:values|settings)\.(\w+)", source))
    assert [
        setting.name
        for setting in SETTINGS.values()
        if not setting.at_import
        and not {setting.variable, setting.name} & read
        and setting.variable.removesuffix("_OLD") not in VARIABLES - {setting.variable}
        and setting.name != "settings"
    ] == []


def test_every_setting_is_explained_and_has_a_key_of_its_own() -> None:
    assert len(KEYS) == len([setting for setting in SETTINGS.values() if setting.key])
    for setting in SETTINGS.values():
        assert setting.text.endswith(".")
        assert setting.readers
        assert not setting.secret or not setting.default_text


@pytest.mark.parametrize(
    ("name", "unknown"),
    [
        ("ASSAY_OPERATOR", True),
        ("ASSAY_TOKEN", True),
        ("ASSAY_SERVICE_HOST", False),
        ("ASSAY_PORT_7860_TCP_ADDR", False),
        ("ASSAY_PORT", False),
        ("ASSAY_TEST_ALL", False),
        ("ASSAY_LIVE_SECRET_FILE", False),
        ("ASSAY_SETTINGS_ORIGINS", False),
        ("HF_TOKENS", False),
    ],
)
def test_variables_of_others_are_passed_over(name: str, unknown: bool) -> None:
    assert bool(unknown_variables([name])) is unknown
