"""Scores that are no function of picture and prompt are published, and get no rank."""

from __future__ import annotations

import pytest

from leaderboard.records import RunResult
from tests.hostile.case import Case, Category
from tests.hostile.corpus import of
from tests.hostile.judgement import assert_trusted_as_due, let_loose
from tests.hostile.proving_ground import BENCHMARK, Ground

pytestmark = [pytest.mark.isolation, pytest.mark.slow]


@pytest.mark.parametrize("case", of(Category.CHEATING), ids=lambda case: case.name)
def test_a_scorer_that_cheats_gets_no_rank(ground: Ground, case: Case) -> None:
    assert_trusted_as_due(ground, let_loose(ground, case), case)


def test_of_a_table_by_exact_picture_it_is_shown_how_it_turns_at_one_step(ground: Ground) -> None:
    """The limit of what asking again can find, and what a reader is shown of it instead."""
    (case,) = (
        c for c in of(Category.CHEATING) if c.name == "scores looked up by the exact picture"
    )
    submission_id = ground.run(case).status.submission.submission_id
    record = ground.store.public.read(f"results/{submission_id}/{BENCHMARK}.json")
    trust = RunResult.model_validate_json(record).trust
    assert trust is not None
    (step,) = (check for check in trust.checks if check.name == "one_pixel")
    assert step.largest > 3 * trust.spread
