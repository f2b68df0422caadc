"""A worker beside which something of a finished job still runs takes no further code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evaluator.isolation.supervising.failures import box_not_ended
from leaderboard.ledger.ledger import Ledger
from leaderboard.states import State
from tests.evaluator.rig import BOB, FakeBackend, FakeSession, Rig

SCORES = "pair_id,m\na,1\nb,2\nc,3\n"


class Surviving(FakeSession):
    """Something of it cannot be ended."""

    def close(self) -> None:
        super().close()
        raise box_not_ended()


class SurvivingBackend(FakeBackend):
    """Hands out boxes that cannot be ended."""

    def start(self, *_: Any, **__: Any) -> Any:
        return Surviving(self)


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def test_no_code_is_run_beside_what_could_not_be_ended_and_scores_are_judged(rig: Rig) -> None:
    rig.backend = SurvivingBackend()
    first = rig.send().submission.submission_id
    worker = rig.worker()
    assert worker.gate.ok
    assert worker.run_next()
    status = Ledger(rig.store).status(first)
    assert (status.state, status.code, status.fault) == (State.FAILED, "box_not_ended", "platform")

    second = rig.send(account=BOB).submission.submission_id
    asked = len(rig.backend.asked)
    assert not worker.run_next()
    assert not worker.run(second)
    assert len(rig.backend.asked) == asked
    third = rig.send_scores(SCORES).submission.submission_id
    assert worker.run_next()
    assert Ledger(rig.store).status(third).state is State.PUBLISHED


def test_the_pulse_says_that_no_code_is_run_and_what_to_do(rig: Rig) -> None:
    rig.backend = SurvivingBackend()
    rig.send()
    worker = rig.worker()
    worker.run_next()
    worker.heart.beat()
    (pulse,) = rig.store.live.pulses()
    assert not pulse.isolation_ok
    assert "still running" in pulse.isolation
    assert "Restart the worker's machine" in pulse.isolation
    assert pulse.submission_id == ""
    assert not worker.gate.ok


def test_another_worker_takes_the_code_that_this_one_leaves(rig: Rig) -> None:
    rig.backend = SurvivingBackend()
    rig.send()
    rig.worker("w1").run_next()
    rig.backend = FakeBackend()
    second = rig.send(account=BOB).submission.submission_id
    assert rig.worker("w2").run_next()
    assert Ledger(rig.store).status(second).state is State.PUBLISHED
