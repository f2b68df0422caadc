"""Options that say where and how a built-in metric is run, for `scorers score` and `scorers run`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from evaluator.commands.roles import by_role
from evaluator.scorers.registry import Runtime, ScorerRow


class Precision(StrEnum):
    """Of weights and forward pass."""

    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"
    FLOAT16 = "float16"


NameArgument = Annotated[str, typer.Argument(help="Built-in metric, for example clipscore-hessel.")]
DeviceOption = Annotated[
    str, typer.Option("--device", help="As torch names it: cpu, cuda, cuda:1.")
]
DtypeOption = Annotated[
    Precision | None, typer.Option("--dtype", help="Precision; by default the metric's own.")
]
CheckpointOption = Annotated[
    list[str] | None,
    typer.Option(
        "--checkpoint", metavar="ROLE=FOLDER", help="Folder in place of the Hub's; repeatable."
    ),
]
RevisionOption = Annotated[
    list[str] | None,
    typer.Option(
        "--revision", metavar="ROLE=COMMIT", help="Commit in place of the kept one; repeatable."
    ),
]
QuestionsOption = Annotated[
    Path | None, typer.Option("--questions", help="Question file, for metrics that ask.")
]
OfflineOption = Annotated[bool, typer.Option("--offline", help="Never ask the Hub.")]
AllowPickleOption = Annotated[
    bool, typer.Option("--allow-pickle", help="Read weights that are pickles; they can run code.")
]
TrustRemoteCodeOption = Annotated[
    bool, typer.Option("--trust-remote-code", help="Run code of the checkpoint's repository.")
]


@dataclass(frozen=True)
class Given:
    """The options of one call, as they were given."""

    device: str
    dtype: Precision | None
    checkpoint: Sequence[str] | None
    revision: Sequence[str] | None
    questions: Path | None
    offline: bool
    allow_pickle: bool
    trust_remote_code: bool

    def runtime(self, row: ScorerRow) -> Runtime:
        """What they ask for of a metric; paths become absolute, for an actor works elsewhere.

        Raises:
            SubmitterError: `unknown_role`.
        """
        folders = by_role(row, self.checkpoint or (), "--checkpoint")
        return Runtime(
            device=self.device,
            dtype=self.dtype.value if self.dtype else None,
            folders={role: Path(folder).resolve() for role, folder in folders.items()},
            revisions=by_role(row, self.revision or (), "--revision"),
            offline=self.offline,
            allow_pickle=self.allow_pickle,
            trust_remote_code=self.trust_remote_code,
            questions=self.questions.resolve() if self.questions else None,
        )
