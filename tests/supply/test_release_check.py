"""A release is refused until everything agrees on the version and nothing is left open."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from supply.locks import LOCKS
from supply.release_check import changes_of, problems

ROOT = Path(__file__).resolve().parents[2]
TODAY = datetime.now(UTC).date()
CHANGES = "# Changes\n\n## Unreleased\n\nnot this\n\n## 1.2.3 (2026-11-22)\n\n- One thing.\n\n## 1.2.2\n\nold\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A project that is fit to be released as 1.2.3."""
    (tmp_path / "supply").mkdir()
    (tmp_path / "deploy").mkdir()
    for name in (*LOCKS, "supply/advisories.toml"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "assay"\nversion = "1.2.3"\n')
    (tmp_path / "CHANGELOG.md").write_text(CHANGES)
    (tmp_path / "CITATION.cff").write_text("cff-version: 1.2.0\nversion: 1.2.3\n")
    (tmp_path / "deploy/base.env").write_text(f"BASE_DIGEST=@sha256:{'0' * 64}\n")
    return tmp_path


def found(tree: Path, tag: str | None = "v1.2.3") -> str:
    return "\n".join(problems(tree, tag, TODAY))


def test_what_agrees_may_be_released(tree: Path) -> None:
    assert found(tree) == ""
    assert found(tree, None) == ""


@pytest.mark.parametrize(
    ("tag", "said"),
    [("v1.2.4", "is not the version 1.2.3"), ("1.2.3", "is no version"), ("v1.2", "is no version")],
)
def test_another_tag_may_not(tree: Path, tag: str, said: str) -> None:
    assert said in found(tree, tag)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("CHANGELOG.md", "## 1.2.30\n\nlater\n\n## 1.2.3\n\n## 1.2.2\n", "says nothing of version"),
        ("CHANGELOG.md", "", "says nothing of version 1.2.3"),
        ("CITATION.cff", "version: 1.2.2\n", "cites version 1.2.2"),
        ("CITATION.cff", "title: x\n", "KeyError"),
        ("deploy/base.env", "BASE_DIGEST=\n", "pins no base image"),
        ("deploy/base.env", "BASE_DIGEST=@sha256:abc\n", "pins no base image"),
        ("requirements.txt", "torch==2.5.0\n", "has no hash"),
        ("requirements.txt", f"torch==2.5.0 --hash=sha256:{'a' * 64}\n", "CVE-2025-32434"),
    ],
)
def test_what_does_not_agree_may_not(tree: Path, name: str, content: str, said: str) -> None:
    (tree / name).write_text(content)
    assert said in found(tree)


def test_all_that_stands_in_the_way_is_said_at_once(tree: Path) -> None:
    (tree / "CHANGELOG.md").unlink()
    (tree / "CITATION.cff").unlink()
    (tree / "deploy/base.env").write_text("")
    said = found(tree, "v9.9.9").splitlines()
    assert len(said) == 4


def test_the_notes_of_a_release_are_its_part_of_the_changes(tree: Path) -> None:
    assert changes_of(tree, "1.2.3") == "- One thing."
    assert changes_of(tree, "1.2.2") == "old"
    assert changes_of(tree, "1.2") == ""
