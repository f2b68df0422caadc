"""Reader of TS2: semantic error graphs and their images."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

import pandas as pd

from benchmarks.released.bundle import released_table, sources_of
from benchmarks.schema import Answers, Pair, Questions
from benchmarks.sources.folder import DataFolder, folder_images


@dataclass(frozen=True)
class Ts2Answers(Answers):
    """Semantic error graphs. The clusters are the graphs."""

    # one row per image, in the benchmark's order, with columns `pair_id` (str), `graph` (str, a
    # cluster id), `label` (str, e.g. `2b`: node label), `level` (int: error count, the leading
    # integer of the label), `split` (str, e.g. `synth`), `skill` (str: kind of error a graph is
    # about; empty where none is named).
    nodes: pd.DataFrame
    # graphs that the published table never evaluates (SEG 164)
    not_in_paper: frozenset[str] = field(default_factory=frozenset)

    def counts(self) -> dict[str, int]:
        """Images and graphs, overall and by split."""
        by_split = self.nodes.groupby("split", sort=False)
        found = {"images": len(self.nodes), "graphs": len(self.clusters)}
        for split, nodes in by_split:
            found[f"{split}: graphs"] = nodes["graph"].nunique()
            found[f"{split}: images"] = len(nodes)
        return found


METADATA = "ts2/metadata.csv"
IMAGES = "ts2/images"
STRUCTURE = "ts2/structure.parquet"
"""The same graphs in the bundle of released results, without prompts."""
NOT_IN_PAPER = frozenset({"164"})
"""The published table ends before the last graph."""

_COLUMNS = ("id", "target_prompt", "file_name", "rank")
_LAST_SYNTH = 110
_LAST_NAT = 135
_LABEL = r"(\d+)[a-z]*"


def load_answers(folder: DataFolder) -> Ts2Answers:
    """Read the metadata: 2840 images of 165 semantic error graphs."""
    table = _metadata(folder)
    graph = table["id"].astype(int)
    return _answers(table["pair_id"], graph, table["rank"], folder.verified())


def released_answers() -> Ts2Answers:
    """The same from the bundle of released results."""
    table = released_table(STRUCTURE)
    graph = table["graph"].astype(int)
    return _answers(table["pair_id"], graph, table["label"], sources_of(STRUCTURE))


def load_questions(folder: DataFolder) -> Questions:
    """Each image with the prompt of its graph."""
    table = _metadata(folder)
    names = {
        pair_id: PurePosixPath(name).name
        for pair_id, name in zip(table["pair_id"], table["file_name"], strict=True)
    }
    return Questions(
        images=folder_images("ts2", folder.path(IMAGES), names),
        texts=dict(zip(table["id"], table["target_prompt"], strict=True)),
        pairs=tuple(map(Pair, table["pair_id"], table["pair_id"], table["id"])),
    )


def load_texts(folder: DataFolder) -> dict[str, str]:
    """Graph to the prompt of all its images."""
    table = _metadata(folder)
    return dict(zip(table["id"], table["target_prompt"], strict=True))


def split_of(graph: int) -> str:
    """Subset of a graph by its number: `synth` 0-110, `nat` 111-135, `real` 136-164."""
    if graph <= _LAST_SYNTH:
        return "synth"
    return "nat" if graph <= _LAST_NAT else "real"


def _answers(
    pair_ids: pd.Series, graph: pd.Series, label: pd.Series, sources: Mapping[str, str]
) -> Ts2Answers:
    nodes = pd.DataFrame(
        {
            "pair_id": pair_ids,
            "graph": graph.astype(str),
            "label": label,
            "level": label.str.extract(_LABEL, expand=False).astype(int),
            "split": graph.map(split_of),
            "skill": "",
        }
    )
    return Ts2Answers(
        pair_ids=tuple(pair_ids),
        clusters=tuple(str(number) for number in range(graph.nunique())),
        nodes=nodes,
        not_in_paper=NOT_IN_PAPER,
        sources=sources,
    )


def _metadata(folder: DataFolder) -> pd.DataFrame:
    """The checked table with a column `pair_id`, the stem of the image file."""
    # As text: a node label such as "0" or "2b" is a name, not a number.
    table = folder.read_table(METADATA, _COLUMNS)
    folder.check_count(METADATA, "images", len(table))
    graphs = set(table["id"])
    folder.check_count(METADATA, "graphs", len(graphs))
    if graphs != {str(number) for number in range(len(graphs))}:
        raise folder.malformed(
            METADATA, f"names {len(graphs)} graphs in column id; expected numbers from 0 on"
        )
    folder.check_cells(
        METADATA,
        table["rank"],
        table["rank"].str.fullmatch(_LABEL),
        "an error count and letters, such as 0 or 2b",
    )
    pair_id = table["file_name"].map(lambda name: PurePosixPath(name).stem)
    folder.check_cells(METADATA, table["file_name"], ~pair_id.duplicated(), "each image once")
    return table.assign(pair_id=pair_id)
