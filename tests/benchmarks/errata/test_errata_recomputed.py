"""Every erratum that public data decide is what the data give, and the mistake what was printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.errata import Erratum, errata
from benchmarks.errata.recompute import recompute

pytestmark = [pytest.mark.paper, pytest.mark.slow]

FROM_DATA = [entry for entry in errata() if entry.data]


@pytest.mark.parametrize("entry", FROM_DATA, ids=lambda e: e.id)
def test_correct_figures_follow_from_the_released_data(entry: Erratum, assay_data: Path) -> None:
    """The table and the source are named in the entry itself."""
    cells = recompute(entry, assay_data)
    assert [cell.label for cell in cells] == [cell.label for cell in entry.cells]
    for cell in cells:
        assert cell.confirmed, cell
        assert cell.explained is not False, cell


def test_the_mistake_is_known_for_all_of_ts2_and_tifa160(assay_data: Path) -> None:
    for entry in FROM_DATA:
        if entry.paper in {"ts2", "tifa", "dsg", "ntire2025", "genai_bench"}:
            assert all(cell.explained for cell in recompute(entry, assay_data)), entry.id
