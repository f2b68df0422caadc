"""The walls of a worker that is not root: the same tests, run again as another user."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path

import pytest

from evaluator.isolation.bubblewrap import Bubblewrap
from tests.evaluator.isolation import as_another_user
from tests.evaluator.isolation.inquiry import REPOSITORY
from tests.kit.processes import finished

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

NOBODY = 65534
CONFORMANCE = f"{Path(__file__).with_name('test_conformance.py')}::TestBubblewrap"
PROGRAM = Path(__file__).with_name("test_program.py")


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
            PROGRAM,
        )
        # Behind everything else: only root could bring its boxes to the fore again.
        command = ["nice", "-n", 11, sys.executable, as_another_user.__file__, NOBODY, *words]
        env = {"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": name}
        done = finished(command, cwd=REPOSITORY, env=env, within_s=500)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\.{10,}", done.stdout), done.stdout
    assert "SKIPPED" not in done.stdout
