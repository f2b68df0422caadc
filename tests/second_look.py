"""Run the tests that just failed once more, alone, where they are few.

A defect fails again. A test that a busy machine starved passes, and is named so that it gets mended.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

MOST = 3
"""Where more tests failed, it was not the machine."""
LAST_FAILED = Path(".pytest_cache/v/cache/lastfailed")


def failed_tests(record: Path) -> tuple[str, ...]:
    """Names of the tests that failed in the last run, as pytest keeps them.

    Raises:
        OSError: there is no such record.
        ValueError: it is not what pytest writes.
    """
    return tuple(sorted(json.loads(record.read_text())))


def second_look(names: Sequence[str], root: Path, options: Sequence[str] = ()) -> int:
    """Run these tests one after the other in one process; the exit code of that.

    Args:
        names: of the tests.
        root: the folder of the project.
        options: further ones for pytest.
    """
    if not 0 < len(names) <= MOST:
        print(f"{len(names)} tests failed: no second look (at most {MOST} get one).")
        return 1
    print(f"A second look, alone, at: {', '.join(names)}", flush=True)
    command = [sys.executable, "-m", "pytest", "-n", "0", *options, *names]
    code = subprocess.run(command, cwd=root, check=False).returncode
    if code == 0:
        print(f"Passed alone, failed among the others, to be mended: {', '.join(names)}")
    return code


if __name__ == "__main__":
    sys.exit(second_look(failed_tests(LAST_FAILED), Path.cwd()))
