"""Reads the released files of TS2: metadata into the answer side, images into the question side."""

from __future__ import annotations

from pathlib import PurePosixPath

import pandas as pd

from benchmarks.schema import Pair, Questions
from benchmarks.sources.folder import DataFolder, data_row
from benchmarks.sources.images import folder_images
from benchmarks.ts2.answers import Ts2Answers

METADATA = "ts2/metadata.csv"
IMAGES = "ts2/images"
NOT_IN_PAPER = frozenset({"164"})
"""The published table ends before the last graph."""

_COLUMNS = ("id", "target_prompt", "file_name", "rank")
_LAST_SYNTH = 110
_LAST_NAT = 135
_LABEL = r"(\d+)[a-z]*"


def load_answers(folder: DataFolder) -> Ts2Answers:
    """Read the metadata: 2840 images of 165 semantic error graphs.

    Raises:
        SubmitterError: `data_missing` (no folder, no file) or `data_malformed` (not the released
            table).
    """
    table = _metadata(folder)
    graph = table["id"].astype(int)
    label = table["rank"]
    nodes = pd.DataFrame(
        {
            "pair_id": table["pair_id"],
            "graph": graph.astype(str),
            "label": label,
            "level": label.str.extract(_LABEL, expand=False).astype(int),
            "split": graph.map(split_of),
            "skill": "",
        }
    )
    return Ts2Answers(
        pair_ids=tuple(table["pair_id"]),
        clusters=tuple(str(number) for number in range(graph.nunique())),
        nodes=nodes,
        not_in_paper=NOT_IN_PAPER,
        sources=folder.verified(),
    )


def load_questions(folder: DataFolder) -> Questions:
    """Each image with the prompt of its graph.

    Raises:
        SubmitterError: `images_missing`, and what `load_answers` raises.
    """
    table = _metadata(folder)
    names = {
        pair_id: PurePosixPath(name).name
        for pair_id, name in zip(table["pair_id"], table["file_name"], strict=True)
    }
    return Questions(
        images=folder_images("ts2", folder.path(IMAGES), names),
        texts=dict(zip(table["id"], table["target_prompt"], strict=True)),
        pairs=tuple(
            Pair(pair_id, pair_id, graph)
            for pair_id, graph in zip(table["pair_id"], table["id"], strict=True)
        ),
    )


def load_texts(folder: DataFolder) -> dict[str, str]:
    """Graph to the prompt of all its images.

    Raises:
        SubmitterError: what `load_answers` raises.
    """
    table = _metadata(folder)
    return dict(zip(table["id"], table["target_prompt"], strict=True))


def split_of(graph: int) -> str:
    """Subset of a graph by its number: `synth` 0-110, `nat` 111-135, `real` 136-164."""
    if graph <= _LAST_SYNTH:
        return "synth"
    return "nat" if graph <= _LAST_NAT else "real"


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
    odd = table.loc[~table["rank"].str.fullmatch(_LABEL), "rank"]
    if len(odd):
        raise folder.malformed(
            METADATA,
            f"has {len(odd)} node labels in column rank like {odd.iloc[0]!r} ("
            f"{data_row(odd.index[0])}); expected an error count and letters, such as 0 or 2b",
        )
    pair_id = table["file_name"].map(lambda name: PurePosixPath(name).stem)
    if pair_id.duplicated().any():
        raise folder.malformed(
            METADATA,
            f"names {pair_id.duplicated().sum()} images more than once in column file_name, such "
            f"as {table.loc[pair_id.duplicated(), 'file_name'].iloc[0]!r}; expected each once",
        )
    return table.assign(pair_id=pair_id)
