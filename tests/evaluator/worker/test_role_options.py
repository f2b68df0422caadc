"""A host that scores may not hold what the opaque ids stand for."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.errors import SubmitterError
from evaluator.commands.worker_options import check_role
from evaluator.worker.roles import WorkerRole


def test_a_key_beside_the_questions_of_a_scoring_host_is_refused(tmp_path: Path) -> None:
    check_role(WorkerRole.SCORE, tmp_path, None)
    (tmp_path / "ts2.key.parquet").touch()
    with pytest.raises(SubmitterError) as caught:
        check_role(WorkerRole.SCORE, tmp_path, None)
    assert caught.value.code == "key_beside_questions"
