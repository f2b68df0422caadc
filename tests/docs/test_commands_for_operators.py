"""Every command of the documents for operators is run, in the document's order."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.markdown_text import Document
from tests.docs.shares import OPERATORS, check, of_each, patience, with_commands
from tests.docs.surroundings import Supplies

pytestmark = [patience, pytest.mark.slow]


@of_each([document for document in with_commands() if document.name in OPERATORS])
def test_the_commands_of_a_document_work(
    document: Document, tmp_path: Path, supplies: Supplies
) -> None:
    check(document, tmp_path, supplies)
