"""A rig whose store goes away and comes back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from leaderboard.store.memory import memory_store
from tests.evaluator.rig import Rig
from tests.evaluator.worker.ending.going_away import Outage, seen_through


@pytest.fixture
def outage() -> Outage:
    return Outage()


@pytest.fixture
def rig(tmp_path: Path, outage: Outage) -> Rig:
    rig = Rig(tmp_path, store=replace(memory_store(), jobs_per_commit=2))
    rig.store = seen_through(rig.store, outage)
    return rig
