"""A small benchmark whose files lie on a test Hub, and how to fetch it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from benchmarks.errors import SubmitterError
from benchmarks.fetch import FetchReport, fetch
from benchmarks.schema import Answers
from benchmarks.sources.folder import DataFile, DataFolder
from benchmarks.sources.remote import Hub
from benchmarks.sources.transfer import Meter
from tests.kit.hub.server import HubServer
from tests.kit.toy import Toy

REPO = "authors/data"


class Remote(Toy):
    """A toy with declared files; its answers are the lines of `remote/answers.csv`, if declared."""

    def __init__(self, files: Sequence[DataFile], names: tuple[str, ...] = ()) -> None:
        self.card = Toy.card.model_copy(update={"name": "remote", "files": tuple(files)})
        self._names = names

    def answers(self, data: Path | None) -> Answers:
        folder = self.folder(data)
        table = self._table(folder)
        return Answers(
            pair_ids=tuple(table["pair_id"]),
            clusters=tuple(dict.fromkeys(table["prompt"])),
            sources=folder.verified(),
        )

    def prompts(self, data: Path | None) -> pd.DataFrame:
        table = self._table(self.folder(data))
        return pd.DataFrame(
            {"prompt_id": table["pair_id"], "prompt": table["prompt"], "split": "", "skills": ""}
        )

    def _table(self, folder: DataFolder) -> pd.DataFrame:
        if all(file.path != "remote/answers.csv" for file in self.card.files):
            raise SubmitterError("data_missing", "This toy declares no answers.")
        return folder.read_table("remote/answers.csv", ["pair_id", "prompt"])

    def remote_names(self, path: str, data: Path | None) -> tuple[str, ...]:
        return self._names


@dataclass
class RecordedMeter(Meter):
    """A meter that notes what it is told."""

    lines: list[str] = field(default_factory=list)
    bytes: int = 0
    planned: list[tuple[int, int | None]] = field(default_factory=list)

    def plan(self, files: int, size: int | None) -> None:
        self.planned.append((files, size))

    def advance(self, size: int) -> None:
        self.bytes += size

    def say(self, line: str) -> None:
        self.lines.append(line)


def on_hub(path: str, name: str = "", **more: object) -> DataFile:
    """A file of `authors/data`; images unless told otherwise."""
    given = {"path": path, "role": "images", "repo": REPO, "name": name, **more}
    return DataFile.model_validate(given)


def get(
    hub: HubServer,
    data: Path,
    *files: DataFile,
    subset: int | None = None,
    token: str | None = None,
    meter: RecordedMeter | None = None,
    pauses: list[float] | None = None,
    names: tuple[str, ...] = (),
) -> FetchReport:
    """Fetch from the test Hub without waiting between tries."""
    noted = [] if pauses is None else pauses
    client = Hub(hub.endpoint, token, sleep=noted.append)
    benchmark = Remote(files, names)
    return fetch(benchmark, data, client, subset=subset, meter=meter, sleep=noted.append)
