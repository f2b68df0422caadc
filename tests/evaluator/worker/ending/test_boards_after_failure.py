"""What a failed rerun leaves on the boards, where a newer version stands there already."""

from __future__ import annotations

from pathlib import Path

import pytest

from leaderboard.governance.acts import Acts
from leaderboard.ledger.ledger import Ledger
from leaderboard.publication.publisher import cards_of
from leaderboard.publication.rebuilding import differences, rebuilt
from leaderboard.publication.snapshot import read_snapshot
from leaderboard.states import State
from tests.evaluator.rig import MODULE, ROOT, FakeBackend, Rig

NEWER = {**MODULE, "assay.toml": b'name = "grey"\nversion = "2"'}


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def shown(rig: Rig) -> set[str]:
    snapshot = read_snapshot(rig.store.public)
    assert snapshot is not None
    return {entry.submission_id for entry in snapshot.entries.values()}


def test_a_version_that_gives_way_as_its_rerun_fails_leaves_the_boards_in_that_commit(
    rig: Rig,
) -> None:
    old = rig.send().submission.submission_id
    rig.worker("w1").run_all()
    Acts(rig.store, cards_of({"toy": rig.toy}), rig.clock).rerun(old, ROOT, "New data.")
    rig.clock.move(minutes=1)
    new = rig.send(NEWER).submission.submission_id
    assert rig.worker("w2").run(new)
    assert shown(rig) == {old, new}, "what is run again keeps its place until that has ended"

    def fails(*_: object) -> float:
        raise RuntimeError("a defect")

    rig.backend = FakeBackend(fails)
    rig.worker("w3").run_all()
    status = Ledger(rig.store).status(old)
    assert (status.state, status.on_boards) == (State.SUPERSEDED, False)
    assert shown(rig) == {new}
    right = rebuilt(rig.store, cards_of({"toy": rig.toy}), rig.clock())
    assert differences(read_snapshot(rig.store.public), right) == ()


def test_a_failure_that_changes_no_board_writes_none(rig: Rig) -> None:
    rig.send()
    rig.worker("w1").run_all()
    before = rig.store.public.read("snapshot.parquet")
    rig.clock.move(minutes=1)

    def fails(*_: object) -> float:
        raise RuntimeError("a defect")

    rig.backend = FakeBackend(fails)
    failed = rig.send(NEWER).submission.submission_id
    rig.worker("w2").run_all()
    assert Ledger(rig.store).status(failed).state is State.FAILED
    assert rig.store.public.read("snapshot.parquet") == before
