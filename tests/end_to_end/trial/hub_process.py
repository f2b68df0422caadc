"""The test Hub as a process of its own, and how a trial tells it what goes wrong.

It reads one request a line, in JSON, and answers each with one line.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.end_to_end.commands import REPOSITORY
from tests.hub.accounts import Account
from tests.hub.server import HubServer, running_hub
from tests.processes import running

_EVERYTHING = "*"
_WITHOUT_END = 1_000_000


class HubProcess:
    """A Hub elsewhere; see `hub_process`."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        told = self._line()
        self.endpoint: str = told["endpoint"]
        self.token: str = told["token"]

    def enroll(self, token: str, name: str, only: Mapping[str, str]) -> str:
        """Make a token known that opens these repositories alone; returns it."""
        self._asked(enroll=token, name=name, only=dict(only))
        return token

    def fall_silent(self, *, status: int = 0) -> None:
        """Answer nothing any more but this status; 0: close every connection without a word."""
        self._asked(fault=status)

    def refused(self) -> int:
        """How many requests met what `fall_silent` began last."""
        met: int = self._asked(refused=True)
        return met

    def mend(self) -> None:
        """Answer as before."""
        self._asked(mend=True)

    def everything_public(self, folder: Path) -> int:
        """Write what any commit of an open repository ever held, and what it says; how many files."""
        written: int = self._asked(dump=str(folder))
        return written

    def _asked(self, **question: Any) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        return self._line()

    def _line(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the Hub is gone"
        return json.loads(line)


@contextmanager
def hub_process() -> Iterator[HubProcess]:
    """A Hub for as long as the block runs."""
    command = [sys.executable, "-m", "tests.end_to_end.trial.hub_process"]
    pipe = subprocess.PIPE
    with running(command, cwd=REPOSITORY, stdin=pipe, stdout=pipe, text=True) as process:
        yield HubProcess(process)
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(timeout=60) == 0, "the Hub itself failed; its errors are above"


def _answer(hub: HubServer, question: Mapping[str, Any]) -> object:
    if "enroll" in question:
        hub.enroll(question["enroll"], Account(question["name"], only=question["only"]))
    elif "fault" in question:
        hub.faults.clear()
        status = question["fault"]
        hub.spoil(_EVERYTHING, times=_WITHOUT_END, status=status, drop=not status)
    elif "refused" in question:
        return sum(len(fault.seen) for fault in hub.faults.waiting())
    elif "mend" in question:
        hub.faults.clear()
    elif "dump" in question:
        return _dump(hub, Path(question["dump"]))
    return None


def _dump(hub: HubServer, folder: Path) -> int:
    written = 0
    for repository in list(hub.repositories.values()):
        if repository.private:
            continue
        place = folder / repository.name.replace("/", "--")
        for commit in list(repository.commits.values()):
            at = place / commit.sha
            at.mkdir(parents=True)
            (at / "said.txt").write_text(f"{commit.title}\n{commit.message}\n")
            before = repository.files(commit.parent)
            for path, file in commit.files.items():
                if before.get(path) is file:
                    continue
                target = at / "files" / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(file.content)
                written += 1
    return written


def main() -> None:
    """Serve until the input ends."""
    with running_hub() as hub:
        print(json.dumps({"endpoint": hub.endpoint, "token": hub.token}), flush=True)
        for line in sys.stdin:
            print(json.dumps(_answer(hub, json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
