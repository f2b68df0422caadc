"""A submission that returns what is no score ends as it must, and leaves nothing behind."""

from __future__ import annotations

import pytest

from tests.hostile.case import Case, Category
from tests.hostile.corpus import of
from tests.hostile.judgement import let_loose
from tests.hostile.proving_ground import Ground
from tests.tiers import all_slow_but_one

pytestmark = pytest.mark.isolation


@pytest.mark.parametrize("case", all_slow_but_one(of(Category.VALUES)), ids=lambda case: case.name)
def test_a_submission_that_returns_what_is_no_score(ground: Ground, case: Case) -> None:
    let_loose(ground, case)
