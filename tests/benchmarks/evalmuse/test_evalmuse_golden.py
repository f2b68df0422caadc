"""The EvalMuse protocol on the public TIFA160 ratings gives the figures worked out from them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.evalmuse.load import EvalMuseAnswers
from benchmarks.evalmuse.protocol import estimates
from benchmarks.rows import Row
from benchmarks.schema import ScoreTable
from benchmarks.statistics.resampling import ResamplingPlan

pytestmark = [pytest.mark.paper, pytest.mark.slow]

GOLDEN = {
    "clipscore_vitb32": (0.3198, 0.2314, 0.3502, 0.3335),
    "tifa_blip2-flant5xl": (0.5581, 0.4360, 0.5612, 0.5616),
    "tifa_mplug-large": (0.5922, 0.4717, 0.5984, 0.5968),
    "spice": (0.3073, 0.2318, 0.3294, 0.3296),
}
"""SRCC, KRCC, PLCC and PLCC in the order of the NTIRE script; gold: human_avg of 800 images."""
COLUMNS = (("srcc", "paper"), ("krcc", "paper"), ("plcc", "paper"), ("plcc", "ntire_code"))


@pytest.fixture(scope="module")
def rows(assay_data: Path) -> dict[tuple[str, str, str | None], Row]:
    file = assay_data / "tifa160" / "human_annotations_with_scores.json"
    items = json.loads(file.read_text(encoding="utf-8"))
    ids = list(items)
    labels = np.array([items[name]["human_avg"] for name in ids], np.float64)
    images = pd.DataFrame(
        {"pair_id": ids, "prompt_id": ids, "prompt": "", "split": "", "label": labels}
    )
    elements = pd.DataFrame(columns=["pair_id", "element_id", "skill", "label"])
    answers = EvalMuseAnswers(tuple(ids), tuple(ids), images, elements)
    scores = pd.DataFrame(
        {metric: [float(items[name][metric]) for name in ids] for metric in GOLDEN}, index=ids
    )
    plan = ResamplingPlan.for_revision("tifa160", "golden", ids)
    found = estimates(ScoreTable(scores), answers, plan, "tifa160", "golden")
    return {(one.row.metric, one.row.measure, one.row.variant): one.row for one in found}


@pytest.mark.parametrize("metric", list(GOLDEN))
def test_tifa160_in_the_manner_of_evalmuse(
    rows: dict[tuple[str, str, str | None], Row], metric: str
) -> None:
    for (name, variant), expected in zip(COLUMNS, GOLDEN[metric], strict=True):
        row = rows[metric, name, variant]
        tolerance = 2e-3 if name == "plcc" else 5e-5
        assert row.value == pytest.approx(expected, abs=tolerance), (name, variant)
        assert row.n_items == 800
    page = rows[metric, "plcc", "ntire_page"]
    assert page.value == pytest.approx(GOLDEN[metric][2], abs=2e-3)
