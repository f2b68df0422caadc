"""A submission that ends otherwise than by an answer ends as it must, and leaves nothing behind."""

from __future__ import annotations

import pytest

from tests.hostile.case import Case, Category
from tests.hostile.corpus import of
from tests.hostile.judgement import let_loose
from tests.hostile.proving_ground import Ground

pytestmark = [pytest.mark.isolation, pytest.mark.slow]


@pytest.mark.parametrize("case", of(Category.ENDINGS), ids=lambda case: case.name)
def test_a_submission_that_ends_otherwise_than_by_an_answer(ground: Ground, case: Case) -> None:
    let_loose(ground, case)
