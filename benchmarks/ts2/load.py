"""Reads the released metadata of TS2 into the answer side."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pandas as pd

from benchmarks.errors import SubmitterError
from benchmarks.ts2.answers import Ts2Answers

N_IMAGES = 2840
N_GRAPHS = 165
NOT_IN_PAPER = frozenset({"164"})
"""The published table ends before the last graph."""

_FILE = "ts2/metadata.csv"
_COLUMNS = ("id", "file_name", "rank")
_LAST_SYNTH = 110
_LAST_NAT = 135
_LABEL = r"(\d+)[a-z]*"
_SOURCE = "Take data/metadata.csv of github.com/michaelsaxon/T2IScoreScore at commit 93ebf89"


def load_answers(data: Path | None) -> Ts2Answers:
    """Read `<data>/ts2/metadata.csv`: 2840 images of 165 semantic error graphs.

    Args:
        data: folder of data files (`--data` or ASSAY_DATA); None where none was given.

    Raises:
        SubmitterError: `data_missing` (no folder, no file) or `data_malformed` (not the released
            table).
    """
    table = _read(_metadata_file(data))
    _check(table)
    graph = table["id"].astype(int)
    label = table["rank"]
    pair_id = table["file_name"].map(lambda name: PurePosixPath(name).stem)
    nodes = pd.DataFrame(
        {
            "pair_id": pair_id,
            "graph": graph.astype(str),
            "label": label,
            "level": label.str.extract(_LABEL, expand=False).astype(int),
            "split": graph.map(split_of),
            "skill": "",
        }
    )
    return Ts2Answers(
        pair_ids=tuple(pair_id),
        clusters=tuple(str(number) for number in range(N_GRAPHS)),
        nodes=nodes,
        not_in_paper=NOT_IN_PAPER,
    )


def split_of(graph: int) -> str:
    """Subset of a graph by its number: `synth` 0-110, `nat` 111-135, `real` 136-164."""
    if graph <= _LAST_SYNTH:
        return "synth"
    return "nat" if graph <= _LAST_NAT else "real"


def _metadata_file(data: Path | None) -> Path:
    if data is None:
        raise SubmitterError(
            "data_missing",
            f"TS2 needs the file {_FILE} in a folder of data, and no folder was given.",
            f"{_SOURCE}, put it in FOLDER/{_FILE} and give --data FOLDER or set ASSAY_DATA.",
        )
    path = data / _FILE
    if not path.is_file():
        raise SubmitterError(
            "data_missing",
            f"TS2 needs the file {path}, which does not exist.",
            f"{_SOURCE}, put it there, or name another folder with --data or ASSAY_DATA.",
        )
    return path


def _read(path: Path) -> pd.DataFrame:
    try:
        # As text: a node label such as "0" or "2b" is a name, not a number.
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
    except ValueError as error:  # not CSV, not UTF-8, or empty
        raise _malformed(f"cannot be read as CSV ({str(error).splitlines()[0]})") from error
    missing = [name for name in _COLUMNS if name not in table]
    if missing:
        raise _malformed(f"has no column {', '.join(missing)}; expected {', '.join(_COLUMNS)}")
    return table


def _check(table: pd.DataFrame) -> None:
    if len(table) != N_IMAGES:
        raise _malformed(f"has {len(table)} rows; expected {N_IMAGES}")
    graphs = set(table["id"])
    if graphs != {str(number) for number in range(N_GRAPHS)}:
        raise _malformed(
            f"names {len(graphs)} graphs in column id; expected {N_GRAPHS}, numbered from 0"
        )
    odd = table.loc[~table["rank"].str.fullmatch(_LABEL), "rank"]
    if len(odd):
        raise _malformed(
            f"has {len(odd)} node labels in column rank like {odd.iloc[0]!r} (line "
            f"{odd.index[0] + 2}); expected an error count and letters, such as 0 or 2b"
        )
    doubled = table["file_name"].map(lambda name: PurePosixPath(name).stem).duplicated()
    if doubled.any():
        first = table.loc[doubled, "file_name"].iloc[0]
        raise _malformed(
            f"names {doubled.sum()} images more than once in column file_name, such as {first!r}; "
            "expected each once"
        )


def _malformed(what: str) -> SubmitterError:
    return SubmitterError(
        "data_malformed", f"{_FILE} {what}.", f"{_SOURCE}; later copies may differ."
    )
