"""The walls of a worker that is not root: the same tests, run again as another user."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from evaluator.isolation.bubblewrap.backend import Bubblewrap
from tests.evaluator.isolation import as_another_user
from tests.evaluator.isolation.inquiry import REPOSITORY

pytestmark = pytest.mark.slow

NOBODY = 65534
CONFORMANCE = f"{Path(__file__).with_name('test_conformance.py')}::TestBubblewrap"


@pytest.mark.isolation
def test_all_holds_for_a_worker_without_root(bubblewrap: Bubblewrap) -> None:
    """Where the tests themselves are not run by root, they have shown it already."""
    assert bubblewrap.probe().ok
    if os.geteuid() != 0:
        return
    with tempfile.TemporaryDirectory(prefix="assay-ordinary-") as name:
        os.chown(name, NOBODY, NOBODY)
        words = (
            *("-n", "0", "-p", "no:cacheprovider", "--basetemp", f"{name}/base"),
            CONFORMANCE,
        )
        done = subprocess.run(
            [sys.executable, as_another_user.__file__, str(NOBODY), *words],
            cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=200,
            env={"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": name},
        )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\.{10,}", done.stdout), done.stdout
    assert "SKIPPED" not in done.stdout


def test_only_closed_folders_are_covered(tmp_path: Path) -> None:
    wanted = tmp_path / "open/closed/open/wanted"
    wanted.mkdir(parents=True)
    for folder in wanted.relative_to(tmp_path).parents:
        (tmp_path / folder).chmod(0o755)
    (tmp_path / "open/closed").chmod(0o700)
    below = [(f, s) for f, s in as_another_user.closed_steps(wanted) if tmp_path in f.parents]
    assert below == [(tmp_path / "open/closed", tmp_path / "open/closed/open")]


def test_two_ways_may_lead_through_the_same_closed_folders(tmp_path: Path) -> None:
    if os.geteuid() != 0:  # Only root can become another user.
        return
    inner = tmp_path / "closed" / "too"
    wanted = [inner / "one", inner / "two", tmp_path / "closed" / "three"]
    for folder in wanted:
        folder.mkdir(parents=True)
        (folder / "file").write_text(folder.name)
    (inner / "other").mkdir()
    for folder in (inner.parent, inner):
        folder.chmod(0o700)
    code = (
        "import sys; from pathlib import Path;"
        "from tests.evaluator.isolation.as_another_user import become;"
        "places = [Path(word) for word in sys.argv[1:]];"
        f"become({NOBODY}, *places);"
        "print(*((place / 'file').read_text() for place in places));"
        "print(*sorted(path.name for path in places[0].parent.iterdir()))"
    )
    said = subprocess.run(
        [sys.executable, "-c", code, *map(str, wanted)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.splitlines() == ["one two three", "one two"]
