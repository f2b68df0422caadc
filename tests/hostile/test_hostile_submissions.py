"""Each submission of the corpus ends as it must, and leaves worker and machine as they were.

A nightly run lets all of them loose (ASSAY_NIGHTLY=1), any other run one of each kind.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.errors import SubmitterError
from evaluator.commands.check_report import verdict_of
from leaderboard.records import RunResult
from tests.hostile.case import Case, Category, RefusedArchive
from tests.hostile.corpus import ARCHIVES, CASES, of
from tests.hostile.judgement import (
    assert_nothing_left,
    assert_trusted_as_due,
    assert_untouched,
    let_loose,
)
from tests.hostile.leftovers import holdings, settled
from tests.hostile.proving_ground import BENCHMARK, Ground
from tests.kit.tiers import first_of_each, led_by

pytestmark = pytest.mark.isolation

ENDING = [case for case in CASES if case.category is not Category.INJECTION]


@pytest.mark.first_quick
@pytest.mark.parametrize(
    "case",
    led_by(
        first_of_each(ENDING, lambda case: case.kind), lambda case: case.category is Category.VALUES
    ),
    ids=lambda case: f"{case.category}: {case.name}",
)
def test_a_hostile_submission_ends_as_it_must_and_leaves_nothing(
    ground: Ground, case: Case
) -> None:
    outcome = let_loose(ground, case)
    if case.category is Category.CHEATING:
        assert_trusted_as_due(ground, outcome, case)


@pytest.mark.first_quick
@pytest.mark.parametrize(
    "case",
    led_by(
        first_of_each(of(Category.CHEATING), lambda case: case.kind),
        lambda case: "another scorer" in case.name,
    ),
    ids=lambda case: case.name,
)
def test_check_says_of_a_cheat_what_the_worker_says(ground: Ground, case: Case) -> None:
    found = ground.check(case)
    assert found.failure is None and found.trust is not None
    verdict = verdict_of(found)
    assert verdict.good is not bool(case.ending.unranked), verdict.said
    assert case.ending.unranked in verdict.said
    assert_nothing_left(ground)


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize(
    "case", first_of_each(ARCHIVES, lambda case: case.code), ids=lambda case: case.name
)
def test_a_crafted_archive_is_refused_and_nothing_of_it_is_kept(
    ground: Ground, tmp_path: Path, case: RefusedArchive
) -> None:
    sent = case.build(tmp_path)
    heads = ground.store.public.head(), ground.store.private.head()
    before = holdings(ground.unpacked, ground.temporary)
    with pytest.raises(SubmitterError) as caught:
        ground.submit(sent)
    assert caught.value.code == case.code, caught.value
    assert case.says in caught.value.message
    assert caught.value.hint
    assert (ground.store.public.head(), ground.store.private.head()) == heads
    left = settled(before, str(ground.folder), ground.unpacked, ground.temporary)
    assert not left, left
    assert not Path("/tmp/outside.py").exists()
    assert_untouched(ground)
