"""What the documents' commands need, made once for all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.running_documents import Supplies
from tests.end_to_end.finished_demo import finished_demo


@pytest.fixture(scope="session")
def supplies(assay_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Supplies:
    """Public data and the finished demo, which is made when a document first asks for it."""
    return Supplies(assay_data, lambda: finished_demo(tmp_path_factory))
