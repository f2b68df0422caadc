"""Every command of the documents for operators is run."""

from __future__ import annotations

from tests.docs.running_documents import commands_of

test_the_commands_of_a_document_work = commands_of("operators")
