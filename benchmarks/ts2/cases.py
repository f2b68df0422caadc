"""Cases of TS2: a semantic error graph, whose images have more and more errors."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from benchmarks.cases import image_cases
from benchmarks.ts2.load import Ts2Answers


def cases(answers: Ts2Answers, texts: Mapping[str, str]) -> pd.DataFrame:
    """The images of each graph: the fewer errors, the better."""
    nodes = answers.nodes
    by_graph = nodes.drop_duplicates("graph").set_index("graph")
    return image_cases(
        nodes["pair_id"].tolist(),
        nodes["graph"].tolist(),
        0.0 - nodes["level"].to_numpy(np.float64),
        [_node_label(*node) for node in zip(nodes["level"], nodes["label"], strict=True)],
        texts=texts,
        skills={graph: [skill] for graph, skill in by_graph["skill"].items() if skill},
        splits=by_graph["split"].to_dict(),
    )


def _node_label(errors: int, label: str) -> str:
    """`2 errors (2b)`; the label is left out where it says no more than the number."""
    number = "no error" if errors == 0 else f"{errors} error{'s' if errors > 1 else ''}"
    return number if label == str(errors) else f"{number} ({label})"
