"""The commands of submitters and operators, on a store with the toy benchmark."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SCORES = "pair_id,m,n\na,1,4\nb,2,5\nc,3,\n"


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Ended]


def sent(run: Run, folder: Path, *more: str, text: str = SCORES, name: str = "s") -> Any:
    """Submit a scores file, and give its status."""
    path = folder / f"{name}.csv"
    path.write_text(text)
    ended = run("submit", path, "--kind", "scores", "--benchmark", "toy", "--json", *more)
    assert ended.code == 0, ended.err
    return ended.json


def id_of(status: Any) -> str:
    return str(status["submission"]["submission_id"])
