"""Collecting the tests is quick: what takes seconds to import is imported by the test that uses it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.conftest import REPOSITORY

HEAVY = {"diffusers", "open_clip", "ray", "torch", "torchvision", "transformers"}
COLLECT = """
import json, sys
import pytest
code = pytest.main(["--collect-only", "-qq", "-n", "0", "-p", "no:cacheprovider"])
print(json.dumps([int(code), sorted({name.partition(".")[0] for name in sys.modules})]))
"""


@pytest.mark.slow
def test_collecting_all_tests_imports_no_library_of_models() -> None:
    done = subprocess.run(
        [sys.executable, "-c", COLLECT], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    code, loaded = json.loads(done.stdout.splitlines()[-1])
    assert code == 0, done.stdout
    assert {"tests", "pytest"} <= set(loaded)
    assert not HEAVY & set(loaded)
