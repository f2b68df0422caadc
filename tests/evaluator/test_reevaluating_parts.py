"""Where one of two benchmarks has a new revision, only that one is run again."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.rows import Measured
from benchmarks.schema import ScoreTable
from benchmarks.statistics.resampling import ResamplingPlan
from evaluator.submission.receiving.desk import SubmissionDesk
from evaluator.worker.worker import Worker
from leaderboard.governance.acts import Acts
from leaderboard.ledger.ledger import Ledger
from leaderboard.publication.publisher import Publisher, cards_of
from leaderboard.publication.snapshot import read_snapshot
from leaderboard.reevaluation.requeue import requeue
from leaderboard.states import State
from tests.benchmarks.toy import Toy
from tests.evaluator.revised import Revised
from tests.evaluator.rig import ROOT, Rig


class Other(Toy):
    """The same under another name."""

    card = Toy.card.model_copy(update={"name": "other", "title": "Other"})

    def measure(self, scores: ScoreTable, answers: Any, plan: ResamplingPlan) -> Measured:
        found = super().measure(scores, answers, plan)
        return replace(found, rows=tuple(replace(row, benchmark="other") for row in found.rows))


@dataclass
class Two(Rig):
    """A rig with two benchmarks."""

    other: Other = field(default_factory=Other)

    @property
    def registry(self) -> dict[str, Toy]:
        return {"toy": self.toy, "other": self.other}

    @property
    def desk(self) -> SubmissionDesk:
        return replace(super().desk, registry=self.registry)

    def worker(self, name: str = "w1", **more: Any) -> Worker:
        role = super().worker(name).scorers
        return Worker(name, self.store, registry=self.registry, data=None, scorers=role, **more)

    def board(self, name: str) -> list[float | None]:
        shown = read_snapshot(self.store.public)
        assert shown is not None
        return [cell.value for cell in shown.boards[name].cells]


@pytest.fixture
def two(tmp_path: Path) -> Two:
    return Two(tmp_path)


def revised(two: Two) -> str:
    """A published submission whose `toy` result is outdated; its id."""
    name = two.send().submission.submission_id
    two.worker().run_all()
    assert (two.board("toy"), two.board("other")) == ([1.0], [1.0])
    two.toy = Revised()
    assert len(requeue(two.store, cards_of(two.registry)).found) == 1
    Publisher(two.store, cards_of(two.registry)).publish_cards(two.clock())
    return name


def test_only_the_benchmark_concerned_is_run_and_other_results_stay(two: Two) -> None:
    name = revised(two)
    status = Ledger(two.store).status(name)
    assert (status.again_on, status.job.benchmarks) == (("toy",), ("toy",))
    assert set(status.submission.benchmarks) == {"toy", "other"}
    assert two.board("other") == [1.0], "it stays on the other board meanwhile"
    other = two.store.public.read(f"results/{name}/other.json")
    asked = len(two.backend.asked)
    two.worker("second").run_all()
    assert two.board("toy") == [2.0]
    assert two.board("other") == [1.0]
    assert two.store.public.read(f"results/{name}/other.json") == other
    assert not [p for p in two.store.public.list(f"results/{name}/at/") if "other" in p]
    assert len(two.backend.asked) > asked
    assert Ledger(two.store).status(name).again_on == ()


def test_a_try_that_the_world_spoilt_is_repeated_on_the_same_part(two: Two) -> None:
    name = revised(two)
    worker = two.worker("stopped")

    def stopped(*_: object) -> float:
        raise KeyboardInterrupt

    score, two.backend.score = two.backend.score, stopped
    with pytest.raises(KeyboardInterrupt):
        worker.run_all()
    two.backend.score = score
    status = Ledger(two.store).status(name)
    assert (status.state, status.again_on) == (State.QUEUED, ("toy",))
    two.clock.move(hours=1)
    two.worker("second").run_all()
    assert (two.board("toy"), two.board("other")) == ([2.0], [1.0])


def test_an_operators_rerun_runs_all_of_it(two: Two) -> None:
    name = revised(two)
    two.worker("second").run_all()
    acts = Acts(two.store, cards_of(two.registry), two.clock)
    acts.rerun(name, ROOT, "all of it")
    status = Ledger(two.store).status(name)
    assert set(status.job.benchmarks) == {"toy", "other"}
