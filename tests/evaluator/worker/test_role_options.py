"""Options of the worker that do not go with a role, or that would undo it."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.errors import SubmitterError
from evaluator.commands.work import check_role
from evaluator.worker.roles import WorkerRole


def test_a_key_beside_the_questions_of_a_scoring_host_is_refused(tmp_path: Path) -> None:
    check_role(WorkerRole.SCORE, tmp_path, None)
    (tmp_path / "ts2.key.parquet").touch()
    with pytest.raises(SubmitterError) as caught:
        check_role(WorkerRole.SCORE, tmp_path, None)
    assert caught.value.code == "key_beside_questions"


@pytest.mark.parametrize(
    ("role", "questions", "keys"),
    [
        (WorkerRole.BOTH, True, False),
        (WorkerRole.JUDGE, True, False),
        (WorkerRole.SCORE, True, True),
    ],
)
def test_options_that_do_not_go_with_a_role_are_refused(
    tmp_path: Path, role: WorkerRole, questions: bool, keys: bool
) -> None:
    with pytest.raises(SubmitterError) as caught:
        check_role(role, tmp_path if questions else None, tmp_path if keys else None)
    assert caught.value.code == "wrong_role"
