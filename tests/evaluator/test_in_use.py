"""What is in use stays, until whoever uses it is done or dead."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from evaluator.in_use import in_use, unused
from tests.conftest import REPOSITORY
from tests.kit.processes import running

HOLD = """
import sys
from pathlib import Path
from evaluator.in_use import in_use
with in_use(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def free(mark: Path) -> bool:
    with unused(mark) as is_free:
        return is_free


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_what_somebody_uses_is_not_unused(tmp_path: Path, kind: str) -> None:
    mark = tmp_path if kind == "folder" else tmp_path / "mark"
    assert free(mark)
    with in_use(mark), in_use(mark):
        assert not free(mark)
    assert free(mark)


def test_a_process_that_is_killed_uses_nothing_any_more(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    command, pipe = [sys.executable, "-c", HOLD, tmp_path], subprocess.PIPE
    with running(
        command, grace_s=0.0, stdin=pipe, stdout=pipe, text=True, cwd=REPOSITORY
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert not free(tmp_path)
    assert free(tmp_path)
