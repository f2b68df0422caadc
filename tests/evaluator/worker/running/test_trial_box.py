"""The run knows nothing of the trust checks: they are made in a box of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leaderboard.publication.snapshot import read_snapshot
from tests.benchmarks import toy
from tests.evaluator.rig import FakeBackend, FakeSession, Rig

N = 200
TRIED = 12 * 7


@dataclass
class Cunning(FakeSession):
    """Honest while it takes itself to be tested, and about all that it was shown then."""

    seen: set[bytes] = field(default_factory=set)
    asked: int = 0

    def score(self, images: Sequence[bytes], pairs: Sequence[tuple[int, str]]) -> Any:
        honest = super().score(images, pairs)
        if self.asked < TRIED:
            self.seen.update(images)
        self.asked += len(pairs)
        known = np.array([images[image] in self.seen for image, _ in pairs])
        return np.where(known, honest, 1000.0 - honest)


@dataclass
class Cunnings(FakeBackend):
    def start(self, *_: Any, **__: Any) -> Any:
        return Cunning(self)


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rig:
    """A benchmark of so many pairs that few of them are tried."""
    monkeypatch.setattr(toy, "PAIRS", tuple(f"pair {n}" for n in range(N)))
    return Rig(tmp_path)


def distrust(rig: Rig) -> str:
    shown = read_snapshot(rig.store.public)
    assert shown is not None
    (cell,) = shown.boards["toy"].cells
    return cell.distrust


def test_a_scorer_that_is_honest_about_the_pairs_it_was_tried_on_gets_no_rank(rig: Rig) -> None:
    rig.backend = Cunnings()
    rig.send()
    rig.worker().run_next()
    assert "was another when it was tested" in distrust(rig)


def test_an_honest_scorer_is_believed_and_both_its_boxes_have_ended(rig: Rig) -> None:
    rig.send()
    rig.worker().run_next()
    assert distrust(rig) == ""
    assert rig.backend.entered == 2
    assert rig.backend.closed >= 2
