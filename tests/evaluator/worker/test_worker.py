"""The worker: every submission ends in a state with a reason, nothing is lost or done twice."""

from __future__ import annotations

import itertools
import os
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.errors import SubmitterError, TransientError
from benchmarks.parquet import read_overall
from benchmarks.schema import Questions
from evaluator.isolation.failures import killed_from_outside
from leaderboard.governance.quota import quota_use
from leaderboard.ledger.policy import Policy
from leaderboard.publication.publisher import Update
from leaderboard.publication.results import read_results, with_draws
from leaderboard.publication.snapshot import Snapshot
from leaderboard.records import Kind, RunResult
from leaderboard.states import State
from leaderboard.submission_service import ScoresForm
from tests.kit.toy import Toy
from tests.kit.worker import ADA, ROOT, FakeBackend, Rig, Secret, raising

SCORES = "pair_id,m,n\na,1,4\nb,2,5\nc,3,\n"
SCORER_RAISED = SubmitterError("scorer_raised", "ValueError at scorer.py:3.", "Mend it.")


# What is published ----------------------------------------------------------------------------


def test_a_module_goes_from_received_to_published_in_three_commits(rig: Rig) -> None:
    before, name = rig.head, rig.sent()
    assert rig.worker().run_next()
    assert rig.states(name) == [
        State.RECEIVED, State.QUEUED, State.CLAIMED, State.SCORING, State.SCORED, State.JUDGING,
        State.PUBLISHED,
    ]  # fmt: skip
    assert rig.head == before + 3
    (cell,) = rig.cells()
    assert (cell.entry_id, cell.value) == (f"{name}/grey", 1.0)
    entry = rig.shown().entries[cell.entry_id]
    assert entry.isolation == {"toy": ("fake",)}
    assert entry.cost["toy"].pairs == 3
    assert not rig.worker().run_next()


def test_what_is_published_is_enough_to_compute_it_again(rig: Rig) -> None:
    status = rig.send()
    rig.worker().run_next()
    stem = f"results/{status.submission.submission_id}/toy"
    kept = {path.removeprefix(stem) for path in rig.store.public.list(stem)}
    assert kept == {
        ".json", ".scores.parquet", ".clusters.parquet", ".resamples.parquet", ".influence.parquet",
    }  # fmt: skip
    (result,) = read_results(rig.store, status.submission)
    run = with_draws(rig.store, status.submission, result, {"toy": Toy.card})
    assert run.result.resampling_seed > 0
    assert run.draws is not None
    assert run.draws.resamples.shape == (1, run.result.n_resamples)
    assert run.draws.contributions.shape == (1, 3)
    assert {"numpy", "scipy", "python"} <= set(run.result.versions)
    scores = read_overall(rig.store.public.read(f"{stem}.scores.parquet"))
    assert scores.to_dict() == {"grey": {"a": 0.0, "b": 1.0, "c": 2.0}}
    assert list(scores.index) == ["a", "b", "c"], "in the benchmark's order"


def test_all_metrics_of_a_scores_file_are_published_and_marked(rig: Rig) -> None:
    name = rig.send_scores(SCORES).submission.submission_id
    rig.ran()
    values = {c.entry_id.rpartition("/")[2]: (c.value, c.n_missing) for c in rig.cells()}
    assert values == {"m": (2.0, 0), "n": (4.5, 1), "grey": (1.0, 0)}
    entry = rig.shown().entries[f"{name}/m"]
    assert entry.isolation["toy"] == ("scores as submitted, not re-run",)
    assert entry.cost == {}


def test_a_metric_that_changes_when_asked_again_is_published_without_a_rank(rig: Rig) -> None:
    rig.send_scores(SCORES)
    calls = itertools.count()
    rig.backend = FakeBackend(score=lambda brightness, _: brightness + 100.0 * next(calls))
    entry_id = f"{rig.sent()}/grey"
    rig.worker().run_all()
    failed = {check.name for check in rig.shown().entries[entry_id].trust["toy"].failed}
    assert failed >= {"repeat", "order", "batch"}
    distrusted = {c.entry_id: (c.rank, c.value is None) for c in rig.cells() if c.distrust}
    assert distrusted == {entry_id: (None, False)}
    assert all(c.why_unranked for c in rig.cells() if c.entry_id == entry_id)


def test_scores_of_extreme_size_leave_boards_that_can_be_read(rig: Rig) -> None:
    rig.backend.score = lambda brightness, _: brightness * 1e200
    rig.ran()
    (entry,) = rig.shown().entries.values()
    assert entry.trust["toy"].why_not == ""


@pytest.mark.parametrize("toy", [Toy(), Secret()], ids=["public", "private answers"])
def test_what_a_run_cost_and_what_it_found_is_published(rig: Rig, toy: Toy) -> None:
    """Of private answers only counts of findings are."""
    rig.toy = toy
    rig.backend = FakeBackend(lambda brightness, _: np.nan if brightness == 1 else brightness)
    name = rig.ran()
    cost, found = rig.result(name).cost, rig.result(name).findings
    assert cost is not None
    assert (cost.calls, cost.images_decoded, cost.texts_encoded) == (1, 3, 0)
    assert found is not None
    assert (found.pairs, found.scored, found.unscored) == (3, 2, {"no_score": 1})
    assert found.counts == {"no_score": 1}
    assert found.environment["engine"] == "local"
    examples = [(one.code, one.item, one.item_id) for one in found.examples]
    assert examples == ([("no_score", "pair", "b")] if toy.card.answers_public else [])


@pytest.mark.parametrize(
    ("without", "state"),
    [({1}, State.PUBLISHED), ({1, 2}, State.FAILED), ({0, 1, 2}, State.FAILED)],
    ids=["few", "most", "all"],
)
def test_a_metric_that_gives_most_pairs_no_score_fails_with_the_reason_and_is_not_charged(
    rig: Rig, without: set[int], state: State
) -> None:
    rig.backend = FakeBackend(lambda brightness, _: np.nan if brightness in without else brightness)
    name = rig.ran()
    failed = state is State.FAILED
    assert rig.state(name) is state
    assert (rig.status(name).code == "mostly_missing", "no_score" in rig.status(name).reason) == (
        failed,
        failed,
    )
    assert rig.store.public.has(f"results/{name}/toy.json") is not failed
    charged = quota_use(ADA.key, rig.ledger.statuses(), Policy(), rig.clock())
    assert {one.kind: one.scored for one in charged}[Kind.METRIC] == int(not failed)


def test_results_older_than_findings_are_still_read(rig: Rig) -> None:
    record = rig.result(rig.ran()).model_dump(mode="json")
    del record["findings"]
    for name in ("calls", "images_decoded", "images_encoded", "texts_encoded"):
        del record["cost"][name]
    read = RunResult.model_validate(record)
    assert (read.findings, read.cost and read.cost.calls) == (None, 0)


def test_losing_a_race_to_a_newcomer_builds_the_boards_only_once(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.send()
    built: list[int] = []
    build = Update.snapshot

    def count_and_meddle(*words: Any) -> Snapshot:
        if not built:
            rig.send_scores(SCORES)
        built.append(1)
        return build(*words)

    monkeypatch.setattr(Update, "snapshot", count_and_meddle)
    assert rig.worker().run_next()
    assert len(built) == 1


# Whose fault it is ----------------------------------------------------------------------------


def test_a_metric_that_raises_fails_with_its_reason_and_the_boards_stay(rig: Rig) -> None:
    rig.send_scores(SCORES)
    rig.worker().run_next()
    boards = rig.store.public.read("snapshot.parquet")
    rig.clock.move(minutes=1)
    rig.backend = raising(SCORER_RAISED)
    name = rig.ran()
    status = rig.status(name)
    assert rig.ended(name) == (State.FAILED, "scorer_raised", "submitter")
    assert (status.reason, status.hint) == (SCORER_RAISED.message, SCORER_RAISED.hint)
    assert rig.ledger.events(name)[-1].log
    assert rig.store.public.read("snapshot.parquet") == boards
    assert rig.backend.closed >= 1


def test_a_fault_of_ours_is_said_to_be_ours_and_can_be_sent_again(rig: Rig) -> None:
    rig.backend = raising(RuntimeError("bug"))
    name = rig.ran()
    assert rig.ended(name) == (State.FAILED, "incident", "platform")
    rig.backend = FakeBackend()
    assert rig.sent() == name
    rig.worker().run_next()
    assert rig.state(name) is State.PUBLISHED


def test_a_fault_of_the_world_is_tried_three_times_with_a_rest_between(rig: Rig) -> None:
    name, worker = rig.sent(), rig.worker()
    for attempt in (1, 2):
        rig.backend.score = raising(TransientError("hub_down", f"Outage {attempt}.")).score
        assert worker.run_next()
        status = rig.status(name)
        assert (status.state, status.attempts, status.fault) == (State.QUEUED, attempt, "world")
        assert not worker.run_next(), "it rests"
        rig.clock.move(minutes=2)
    assert worker.run_next()
    status = rig.status(name)
    assert (status.state, status.fault) == (State.FAILED, "platform")
    assert all(word in status.reason for word in ("after 3 attempts", "Outage 1.", "Outage 2."))


def test_a_box_that_was_killed_from_outside_is_tried_once_more_and_never_charged(rig: Rig) -> None:
    rig.backend.score = raising(killed_from_outside("scoring batch 1")).score
    name, worker = rig.sent(), rig.worker()
    assert worker.run_next()
    assert rig.status(name).state is State.QUEUED
    rig.clock.move(minutes=2)
    assert worker.run_next()
    assert rig.ended(name) == (State.FAILED, "killed_from_outside", "platform")
    assert not rig.worker().run_next()


def test_a_worker_that_is_stopped_hands_its_submission_back_unharmed(rig: Rig) -> None:
    rig.backend = raising(KeyboardInterrupt())
    name = rig.sent()
    for _ in range(4):
        with pytest.raises(KeyboardInterrupt):
            rig.worker().run_all()
    status = rig.status(name)
    assert (status.state, status.fault, status.attempts) == (State.QUEUED, "", 0)
    assert "stopped" in status.reason
    rig.backend = FakeBackend()
    assert rig.worker("w2").run_next()


def test_data_that_vanished_is_not_the_submitters_fault(rig: Rig) -> None:
    name = rig.sent()

    def gone(data: Path | None) -> Questions:
        raise SubmitterError("images_missing", "The images are gone.")

    rig.toy.questions = gone  # type: ignore[method-assign]
    assert rig.worker().run_next()
    assert rig.status(name).fault == "platform"


def test_a_rerun_that_fails_leaves_the_results_on_the_boards(rig: Rig) -> None:
    name = rig.ran()
    rig.acts.rerun(name, ROOT, "In doubt.")
    rig.backend = raising(SCORER_RAISED)
    rig.worker().run_next()
    assert rig.state(name) is State.FAILED
    rig.send_scores(SCORES)
    rig.worker().run_next()
    assert {c.entry_id.rpartition("/")[2] for c in rig.cells()} == {"grey", "m", "n"}


# What a worker may and may not take -----------------------------------------------------------


def test_a_worker_that_lost_its_lease_publishes_nothing(rig: Rig) -> None:
    other = rig.worker("w2")

    def overtaken(*_: object) -> float:
        rig.clock.move(hours=9)
        if not rig.backend.closed and len(rig.backend.asked) == 1:
            rig.backend.score = lambda *_: 1.0
            assert other.run_next()
        return 0.0

    rig.backend = FakeBackend(overtaken)
    name = rig.ran()
    assert rig.states(name).count(State.PUBLISHED) == 1
    assert rig.status(name).by == "w2"


def test_a_worker_without_the_data_leaves_the_submission_to_others(rig: Rig) -> None:
    rig.send()
    rig.toy.has_questions = lambda data: False  # type: ignore[method-assign]
    assert not rig.worker().run_next()


def test_without_isolation_code_is_refused_or_left_to_others_and_scores_are_taken(rig: Rig) -> None:
    name = rig.sent()
    rig.isolated, head = False, rig.head
    with pytest.raises(SubmitterError, match="Build one") as caught:
        rig.send(account=ROOT)
    assert (caught.value.code, rig.head) == ("code_refused", head)
    assert not rig.worker().run_next()
    rig.send_scores(SCORES)
    assert rig.worker().run_next()
    rig.isolated = True
    assert rig.worker().run_next()
    assert rig.state(name) is State.PUBLISHED


def test_what_a_killed_worker_left_unpacked_is_swept_after_a_day(rig: Rig) -> None:
    old, young = (rig.folder / "scratch" / "unpacked" / name for name in ("old", "young"))
    for folder, age in ((old, timedelta(days=2)), (young, timedelta(hours=1))):
        folder.mkdir(parents=True)
        stamp = (rig.clock() - age).timestamp()
        os.utime(folder, (stamp, stamp))
    stop = threading.Event()
    stop.set()
    rig.worker().run_forever(stop)
    assert (young.exists(), old.exists()) == (True, False)


# What is refused at the desk leaves no trace --------------------------------------------------


def test_a_scores_file_is_named_after_itself_if_nobody_names_it(rig: Rig) -> None:
    path = rig.scores("pair_id,score\na,1\nb,2\nc,3\n", "my scores (1).csv")
    status = rig.desk.submit_scores(path, ScoresForm("toy"), account=ADA).status
    assert status.submission.metrics == ("my-scores-1",)
    with pytest.raises(SubmitterError, match="<b>"):
        rig.desk.submit_scores(path, ScoresForm("toy", "<b>"), account=ADA)
