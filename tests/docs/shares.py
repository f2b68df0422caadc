"""Documents with commands in shares, each a file of tests, so that several processes run them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.markdown_text import Document, run_documents
from tests.docs.surroundings import LIMIT_S, Supplies, run_document
from tests.tiers import all_slow_but_one

AUTHORS = (
    "docs/start.md",
    "docs/submit-a-metric.md",
    "docs/submit-a-model.md",
    "docs/built-in-metrics.md",
)
OPERATORS = (
    "docs/run-your-own.md",
    "docs/operations.md",
    "docs/containers.md",
    "docs/space.md",
    "docs/gpu-and-cluster.md",
    "docs/upgrading.md",
)

QUICK = "docs/security.md"

patience = pytest.mark.timeout(LIMIT_S + 300)


def with_commands() -> list[Document]:
    """Documents of which something is run here."""
    return [
        document
        for document in run_documents()
        if any(f.language == "sh" and "by" not in f.settings for f in document.fences)
    ]


def of_each(documents: list[Document]) -> pytest.MarkDecorator:
    """A test for each document; one of them is in the default tier."""
    cases = all_slow_but_one(documents, lambda document: document.name == QUICK)
    return pytest.mark.parametrize("document", cases, ids=lambda document: document.name)


def check(document: Document, home: Path, supplies: Supplies) -> None:
    """Run the commands of a document; every one must do what the document says."""
    ran = run_document(document, home, supplies)
    assert ran.code == 0, ran.told(document)
