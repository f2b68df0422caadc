"""Log of lines: what it says of a disk that takes nothing."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock
from pydantic import BaseModel

from benchmarks.errors import SubmitterError
from benchmarks.sources.line_log import LineLog


class Line(BaseModel):
    """A number."""

    n: int


class Numbers(LineLog[Line]):
    """A log of numbers."""

    def __init__(self, path: Path) -> None:
        self.taken: list[int] = []
        super().__init__(path, Line)

    def take(self, line: Line) -> None:
        self.taken.append(line.n)

    def clear(self) -> None:
        self.taken.clear()


def enter(log: Numbers) -> None:
    with log.alone():
        pass


@pytest.mark.parametrize("use", [enter, lambda log: log.add(Line(n=2))], ids=["alone", "add"])
def test_a_full_disk_at_the_lock_is_an_error_of_the_house(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, use: Callable[[Numbers], None]
) -> None:
    log = Numbers(tmp_path / "numbers.jsonl")
    log.add(Line(n=1))

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(FileLock, "acquire", full)
        with pytest.raises(SubmitterError) as caught:
            use(log)
    assert caught.value.code == "cannot_write"
    assert log.taken == [1]
    log.add(Line(n=3))
    assert log.taken == [1, 3]


def test_an_error_of_the_work_that_is_done_alone_stays_as_it_is(tmp_path: Path) -> None:
    log = Numbers(tmp_path / "numbers.jsonl")
    with pytest.raises(FileNotFoundError), log.alone():
        raise FileNotFoundError
    log.add(Line(n=1))
    assert log.taken == [1]
