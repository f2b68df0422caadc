"""A command of the benchmarks, called in this process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest


@dataclass
class Command:
    """Calls `main` with options; keeps what it printed."""

    main: Callable[[], int]
    monkeypatch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]
    out: str = ""
    err: str = ""

    def __call__(self, *words: object) -> int:
        self.monkeypatch.setattr("sys.argv", ["command", *map(str, words)])
        try:
            code = self.main()
        except SystemExit as end:
            code = int(end.code or 0)
        self.out, self.err = self.capsys.readouterr()
        return code
