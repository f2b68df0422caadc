"""The answer side of TS2 and of any benchmark with its structure."""

from __future__ import annotations

from dataclasses import dataclass, field

import pandas as pd

from benchmarks.schema import Answers


@dataclass(frozen=True)
class Ts2Answers(Answers):
    """Semantic error graphs. The clusters are the graphs.

    Attributes:
        nodes: one row per image, in the benchmark's order, with columns
            `pair_id` (str), `graph` (str, a cluster id), `label` (str, e.g. `2b`: node label),
            `level` (int: error count, the leading integer of the label), `split` (str, e.g.
            `synth`), `skill` (str: kind of error a graph is about; empty where none is named).
        not_in_paper: graphs that the published table never evaluates (SEG 164).
    """

    nodes: pd.DataFrame
    not_in_paper: frozenset[str] = field(default_factory=frozenset)

    def counts(self) -> dict[str, int]:
        """Images and graphs, overall and by split."""
        by_split = self.nodes.groupby("split", sort=False)
        found = {"images": len(self.nodes), "graphs": len(self.clusters)}
        for split, nodes in by_split:
            found[f"{split}: graphs"] = nodes["graph"].nunique()
            found[f"{split}: images"] = len(nodes)
        return found
