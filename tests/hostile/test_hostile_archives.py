"""Archives that are refused before anything of them is kept, with what is wrong and where."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.errors import SubmitterError
from leaderboard.states import State
from tests.hostile.case import RefusedArchive
from tests.hostile.corpus import ARCHIVES
from tests.hostile.judgement import assert_untouched
from tests.hostile.leftovers import holdings, settled
from tests.hostile.proving_ground import Ground

pytestmark = [pytest.mark.isolation, pytest.mark.slow]


@pytest.mark.parametrize("case", ARCHIVES, ids=lambda case: case.name)
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


def test_after_all_of_them_a_good_submission_is_published(ground: Ground, tmp_path: Path) -> None:
    for number, case in enumerate(ARCHIVES[:5]):
        folder = tmp_path / str(number)
        folder.mkdir()
        with pytest.raises(SubmitterError):
            ground.submit(case.build(folder))
    outcome, due = ground.run_honest()
    assert (outcome.status.state, outcome.scores) == (State.PUBLISHED, due)
