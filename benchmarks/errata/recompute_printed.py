"""Contradictions that show in the printed tables alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.errata.recompute import Finding, Findings, Recompute
from benchmarks.published import PublishedCell, published


def _cells(paper: str, table: str, **fields: str | None) -> Iterator[PublishedCell]:
    for cell in published():
        if (cell.paper, cell.table) == (paper, table) and all(
            getattr(cell, name) == value for name, value in fields.items()
        ):
            yield cell


def gecko_alpha(data: Path) -> Findings:
    """Mean over the six model pairs of the printed side-by-side agreement."""
    del data
    pairs = [c.value for c in _cells("gecko", "SxS agreement", split="s") if c.model]
    return {"Gecko(S)": Finding(float(np.mean(pairs)))}


def evalmuse_readme(data: Path) -> Findings:
    """The two cells as the paper prints them."""
    del data
    cells = _cells("evalmuse", "Table 10", skill="object")
    by_model = {f"{cell.model}, object": cell.value for cell in cells}
    return {label: Finding(by_model[label]) for label in ("DALLE 3, object", "FLUX 1.1, object")}


def evalmuse_vq2(data: Path) -> Findings:
    """The overall accuracy that the other rows' weight of real and synthetic elements implies."""
    del data
    rows: dict[str, dict[str | None, float]] = {}
    for cell in _cells("evalmuse", "Table 3", measure="element_accuracy"):
        rows.setdefault(cell.metric, {})[cell.split] = 100.0 * cell.value
    doubted = rows.pop("vq2_qwen2-vl")
    gap = np.array([row["real"] - row["synth"] for row in rows.values()])
    above = np.array([row["all"] - row["synth"] for row in rows.values()])
    weight = float(gap @ above / (gap @ gap))
    overall = weight * doubted["real"] + (1.0 - weight) * doubted["synth"]
    return {"VQ2, Qwen2-VL": Finding(overall)}


RECOMPUTE: dict[str, Recompute] = {
    "gecko-sxs-alpha": gecko_alpha,
    "evalmuse-readme-table-10": evalmuse_readme,
    "evalmuse-vq2-overall": evalmuse_vq2,
}
