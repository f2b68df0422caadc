"""One proving ground for all hostile submissions of a test file."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hostile.decoys import PLACE
from tests.hostile.judgement import assert_next_unaffected
from tests.hostile.proving_ground import Ground, proving_ground


@pytest.fixture(scope="module")
def ground() -> Iterator[Ground]:
    """A worker that lives as long as the file, through everything that is submitted to it."""
    # Not below pytest's own folder, which is for its owner alone: a box may run as another user.
    folder = Path(tempfile.mkdtemp(prefix="assay-ground-", dir=PLACE))
    try:
        with proving_ground(folder) as laid_out:
            assert_next_unaffected(laid_out)
            yield laid_out
            assert_next_unaffected(laid_out)
    finally:
        shutil.rmtree(folder)
