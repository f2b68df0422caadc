"""Commands as they are typed, on a store with the toy benchmark."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from evaluator.__main__ import command_line

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

    @property
    def told(self) -> str:
        """What was printed for people, on one line and without the frames of boxes."""
        return " ".join((self.out + self.err).replace("│", " ").split())


Run = Callable[..., Ended]


def submit_words(folder: Path, *, text: str = SCORES, name: str = "s") -> tuple[object, ...]:
    """A command that submits a scores file, which is written."""
    path = folder / f"{name}.csv"
    path.write_text(text)
    return ("submit", path, "--kind", "scores", "--benchmark", "toy", "--json")


def sent(run: Run, folder: Path, *more: str, text: str = SCORES, name: str = "s") -> Any:
    """The status of a submitted scores file."""
    ended = run(*submit_words(folder, text=text, name=name), *more)
    assert ended.code == 0, ended.err
    return ended.json


def id_of(status: Any) -> str:
    return str(status["submission"]["submission_id"])


def typed(*words: object) -> Result:
    """A command of its own, in this process: with the error that it ended with."""
    runner = CliRunner(env={"COLUMNS": "200"})
    return runner.invoke(command_line(), [str(word) for word in words])


def code_of(done: Result) -> str:
    """Of the error; empty if it ended otherwise."""
    return str(getattr(done.exception, "code", ""))


def said(*words: object) -> str:
    """What a command printed that ended well."""
    done = typed(*words)
    assert done.exit_code == 0, done.output
    return done.output


def record(*words: object, code: int = 0) -> Any:
    """What a command with `--json` printed."""
    done = typed(*words, "--json")
    assert done.exit_code == code, done.output
    return json.loads(done.stdout)


def refused(code: str, *words: object) -> str:
    """What a command printed that ended in an error of this code, and the error with its hint."""
    done = typed(*words)
    assert code_of(done) == code, done.output
    return f"{done.output}{done.exception} {getattr(done.exception, 'hint', '')}"
