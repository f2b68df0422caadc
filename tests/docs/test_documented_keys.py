"""Guides that list what a model in the code has list all of it and nothing else."""

from __future__ import annotations

import re

from evaluator.submission.making.skeletons import SkeletonKind
from evaluator.submission.manifest import Manifest
from leaderboard.pages.page import all_pages
from tests.docs.markdown_text import REPOSITORY

METRIC = (REPOSITORY / "docs" / "submit-a-metric.md").read_text("utf-8")
BOARDS = (REPOSITORY / "docs" / "read-the-boards.md").read_text("utf-8")


def first_column(text: str, heading: str) -> list[str]:
    """The code in the first cells of the table below a heading."""
    part = text.split(f"{heading}\n", 1)[1]
    rows = re.findall(r"^\| (`[^|]*) \|", part.split("\n#", 1)[0], re.MULTILINE)
    return [name for row in rows for name in re.findall(r"`(\w+)", row)]


def test_every_key_of_a_manifest_is_documented() -> None:
    assert set(first_column(METRIC, "### `assay.toml`")) == set(Manifest.model_fields)


def test_every_optional_method_of_a_scorer_is_documented() -> None:
    contract = (REPOSITORY / "evaluator" / "scoring" / "contract.py").read_text("utf-8")
    head = contract.split('"""')[1]
    methods = set(re.findall(r"^    (\w+)\(", head, re.MULTILINE)) - {"score"}
    assert set(first_column(METRIC, "## Code")) == methods


def test_every_kind_of_folder_is_named() -> None:
    assert all(
        f"`{kind.value}`" in METRIC or kind.value == "plain"
        for kind in SkeletonKind
        if kind != SkeletonKind.GENERATIONS
    )


def test_every_page_for_visitors_is_in_the_table_of_questions() -> None:
    named = set(re.findall(r"\*([A-Z][\w ]+)\*", BOARDS))
    others = {"Overview", "Submit", "My submissions", "About", "Model", "Prompt"}
    others |= {"Compare models", "Models over seeds"}
    assert {page.title for page in all_pages()} - others <= named
