"""The erratum of Table 2: how its delta cells arise."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.ts2.errata import printed_delta, printed_deltas


def test_each_cell_slides_one_row_down_over_sigma_and_the_cells_above() -> None:
    deltas = np.arange(164.0)
    cells = printed_delta(deltas, 2.0)
    total = deltas.sum()
    everything = total / 164 / 2
    synth = (total - 0 + 2) / 164 / 2
    nat = (total - 0 - 1 + 2 + everything) / 164 / 2
    real = (total - 0 - 1 - 2 + 2 + everything + synth) / 164 / 2
    assert cells == pytest.approx({"all": everything, "synth": synth, "nat": nat, "real": real})


def test_the_columns_of_the_two_llmscores_change_places() -> None:
    one, two, three = (np.full(164, value) for value in (1.0, 2.0, 3.0))
    cells = printed_deltas(
        {"llmscore_ec": one, "llmscore_over": two, "clipscore": three},
        {"llmscore_ec": -1.0, "llmscore_over": -1.0, "clipscore": 1.0},
    )
    assert [cells[name]["all"] for name in ("llmscore_ec", "llmscore_over", "clipscore")] == [
        -2.0,
        -1.0,
        3.0,
    ]


def test_one_llmscore_alone_has_no_printed_cells() -> None:
    assert printed_deltas({"llmscore_ec": np.ones(164)}, {"llmscore_ec": -1.0}) == {}
