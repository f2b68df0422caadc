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
from benchmarks.schema import Questions
from benchmarks.stored_scores import read_overall
from leaderboard.ledger.ledger import Ledger
from leaderboard.publication.results import read_results, with_draws
from leaderboard.publication.snapshot import Snapshot, read_snapshot
from leaderboard.publication.updating import Update
from leaderboard.records import Event, RunResult
from leaderboard.states import State
from leaderboard.store.interface import Changes
from tests.benchmarks.toy import Toy
from tests.evaluator.rig import ADA, FakeBackend, Rig

SCORES = "pair_id,m,n\na,1,4\nb,2,5\nc,3,\n"


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def states(rig: Rig, submission_id: str) -> list[State]:
    return [event.state for event in Ledger(rig.store).events(submission_id)]


def test_a_module_goes_from_received_to_published(rig: Rig) -> None:
    queued = rig.send()
    assert rig.worker().run_next()
    submission_id = queued.submission.submission_id
    assert states(rig, submission_id) == [
        State.RECEIVED,
        State.QUEUED,
        State.CLAIMED,
        State.SCORING,
        State.SCORED,
        State.JUDGING,
        State.PUBLISHED,
    ]
    shown = read_snapshot(rig.store.public)
    assert shown is not None
    (cell,) = shown.boards["toy"].cells
    assert (cell.entry_id, cell.value) == (f"{submission_id}/grey", 1.0)
    entry = shown.entries[cell.entry_id]
    assert entry.isolation == {"toy": ("fake",)}
    assert entry.cost["toy"].pairs == 3
    assert not rig.worker().run_next()


def test_a_submission_takes_three_public_commits(rig: Rig) -> None:
    before = int(rig.store.public.head())
    rig.send()
    rig.worker().run_next()
    assert int(rig.store.public.head()) == before + 3


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


def test_all_metrics_of_a_scores_file_are_published_and_marked(rig: Rig) -> None:
    status = rig.send_scores(SCORES)
    rig.worker().run_next()
    shown = read_snapshot(rig.store.public)
    assert shown is not None
    values = {
        c.entry_id.rpartition("/")[2]: (c.value, c.n_missing) for c in shown.boards["toy"].cells
    }
    assert values == {"m": (2.0, 0), "n": (4.5, 1)}
    entry = shown.entries[f"{status.submission.submission_id}/m"]
    assert entry.isolation["toy"] == ("scores as submitted, not re-run",)
    assert entry.cost == {}


def test_boards_hold_the_entries_of_all_submissions(rig: Rig) -> None:
    rig.send_scores(SCORES)
    rig.send()
    rig.worker().run_all()
    shown = read_snapshot(rig.store.public)
    assert shown is not None
    assert len(shown.boards["toy"].cells) == len(shown.entries) == 3


def test_a_metric_that_changes_when_asked_again_is_published_without_a_rank(rig: Rig) -> None:
    rig.send_scores(SCORES)
    calls = itertools.count()
    rig.backend = FakeBackend(score=lambda brightness, _: brightness + 100.0 * next(calls))
    status = rig.send()
    rig.worker().run_all()
    shown = read_snapshot(rig.store.public)
    assert shown is not None
    (entry_id,) = (e for e in shown.entries if e.startswith(status.submission.submission_id))
    trust = shown.entries[entry_id].trust["toy"]
    assert {check.name for check in trust.failed} >= {"repeat", "order", "batch"}
    own = [cell for cell in shown.boards["toy"].cells if cell.entry_id == entry_id]
    assert all(cell.rank is None and cell.value is not None for cell in own)
    assert own[0].why_unranked.startswith("score changes when repeated")
    others = [c for c in shown.boards["toy"].cells if c.entry_id != entry_id]
    assert all(not cell.distrust for cell in others)


def fail_with(error: BaseException) -> FakeBackend:
    def score(*_: object) -> float:
        raise error

    return FakeBackend(score)


def test_a_metric_that_raises_fails_with_its_reason_and_the_boards_stay(rig: Rig) -> None:
    rig.send_scores(SCORES)
    rig.worker().run_next()
    boards = rig.store.public.read("snapshot.parquet")
    error = SubmitterError("scorer_raised", "ValueError at scorer.py:3.", "Mend it.")
    rig.backend = fail_with(error)
    queued = rig.send()
    rig.worker().run_next()

    status = Ledger(rig.store).status(queued.submission.submission_id)
    assert (status.state, status.fault, status.code) == (State.FAILED, "submitter", "scorer_raised")
    assert (status.reason, status.hint) == ("ValueError at scorer.py:3.", "Mend it.")
    assert Ledger(rig.store).events(queued.submission.submission_id)[-1].log
    assert rig.store.public.read("snapshot.parquet") == boards
    assert rig.backend.closed >= 1


def test_a_fault_of_ours_is_said_to_be_ours_and_can_be_sent_again(rig: Rig) -> None:
    rig.backend = fail_with(RuntimeError("bug"))
    queued = rig.send()
    rig.worker().run_next()
    status = Ledger(rig.store).status(queued.submission.submission_id)
    assert (status.state, status.fault, status.code) == (State.FAILED, "platform", "incident")

    rig.backend = FakeBackend()
    again = rig.send()
    assert (again.submission, again.state) == (queued.submission, State.QUEUED)
    rig.worker().run_next()
    assert Ledger(rig.store).status(again.submission.submission_id).state is State.PUBLISHED


def test_a_fault_of_the_world_is_tried_three_times_with_a_rest_between(rig: Rig) -> None:
    rig.backend = fail_with(TransientError("hub_down", "The Hub is down."))
    submission_id = rig.send().submission.submission_id
    worker = rig.worker()
    for attempt in (1, 2):
        assert worker.run_next()
        status = Ledger(rig.store).status(submission_id)
        assert (status.state, status.attempts, status.fault) == (State.QUEUED, attempt, "world")
        assert not worker.run_next(), "it rests"
        rig.clock.move(minutes=2)
    assert worker.run_next()
    status = Ledger(rig.store).status(submission_id)
    assert (status.state, status.fault) == (State.FAILED, "platform")
    assert "after 3 attempts" in status.reason


def test_being_stopped_is_no_failed_attempt(rig: Rig) -> None:
    submission_id = rig.send().submission.submission_id
    rig.backend = fail_with(KeyboardInterrupt())
    for _ in range(4):
        with pytest.raises(KeyboardInterrupt):
            rig.worker().run_next()
    assert Ledger(rig.store).status(submission_id).attempts == 0


class Killed(BaseException):
    """What no handler of ours may catch, like a signal."""


def test_a_submission_that_kills_its_workers_is_given_up(rig: Rig) -> None:
    rig.backend = fail_with(Killed())
    submission_id = rig.send().submission.submission_id
    for number in range(3):
        worker = rig.worker(f"w{number}")
        worker.heart.beat()
        with pytest.raises(Killed):
            worker.run_next()
        rig.clock.move(minutes=2)
    assert not rig.worker("w9").run_next()
    status = Ledger(rig.store).status(submission_id)
    assert (status.state, status.code, status.fault) == (State.FAILED, "worker_lost", "platform")


def test_a_worker_that_beats_keeps_its_submission_beyond_its_lease(rig: Rig) -> None:
    other = rig.worker("w2")

    def long_work(*_: object) -> float:
        rig.clock.move(hours=9)
        worker.heart.beat()
        assert not other.run_next()
        return 1.0

    rig.backend = FakeBackend(long_work)
    rig.send()
    worker = rig.worker("w1")
    assert worker.run_next()


def test_a_worker_without_the_data_leaves_the_submission_to_others(rig: Rig) -> None:
    rig.send()
    rig.toy.has_questions = lambda data: False  # type: ignore[method-assign]
    assert not rig.worker().run_next()


def test_data_that_vanished_is_not_the_submitters_fault(rig: Rig) -> None:
    submission_id = rig.send().submission.submission_id

    def gone(data: Path | None) -> Questions:
        raise SubmitterError("images_missing", "The images are gone.")

    rig.toy.questions = gone  # type: ignore[method-assign]
    assert rig.worker().run_next()
    assert Ledger(rig.store).status(submission_id).fault == "platform"


def test_an_end_that_the_store_could_not_take_is_recorded_later(rig: Rig) -> None:
    rig.backend = fail_with(SubmitterError("scorer_raised", "No."))
    submission_id = rig.send().submission.submission_id
    repository = rig.store.public
    commit = repository.commit

    def busy(changes: Changes, *, parent: str, message: str) -> str:
        if message.startswith("failed"):
            raise TransientError("store_busy", "The store is busy.")
        return commit(changes, parent=parent, message=message)

    repository.commit = busy  # type: ignore[method-assign]
    worker = rig.worker()
    assert worker.run_next()
    assert Ledger(rig.store).status(submission_id).state is State.SCORING
    repository.commit = commit  # type: ignore[method-assign]
    assert not worker.run_next()
    assert Ledger(rig.store).status(submission_id).state is State.FAILED


def test_a_rerun_that_fails_leaves_the_results_on_the_boards(rig: Rig) -> None:
    submission_id = rig.send().submission.submission_id
    rig.worker().run_next()
    Ledger(rig.store).append(submission_id, [Event(at=rig.clock(), state=State.QUEUED, by="op")])
    rig.backend = fail_with(SubmitterError("scorer_raised", "No."))
    rig.worker().run_next()
    rig.send_scores(SCORES)
    rig.worker().run_next()
    shown = read_snapshot(rig.store.public)
    assert shown is not None
    assert {c.entry_id.rpartition("/")[2] for c in shown.boards["toy"].cells} == {"grey", "m", "n"}


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


def test_identical_content_is_recognised(rig: Rig) -> None:
    first = rig.send()
    rig.worker().run_next()
    head = rig.store.public.head()
    second = rig.send()
    assert (second.submission, second.state) == (first.submission, State.PUBLISHED)
    assert rig.store.public.head() == head


def test_a_dead_workers_submission_is_finished_by_another(rig: Rig) -> None:
    def die_after_one(*_: object) -> float:
        if len(rig.backend.asked) > 1:
            raise Killed
        return 1.0

    rig.backend = FakeBackend(die_after_one)
    queued = rig.send()
    first = rig.worker("w1")
    first.heart.beat()
    with pytest.raises(Killed):
        first.run_next()
    submission_id = queued.submission.submission_id
    assert Ledger(rig.store).status(submission_id).state is State.SCORING

    rig.backend = FakeBackend()
    assert not rig.worker("w2").run_next(), "the first worker's lease still holds"
    rig.clock.move(seconds=61)
    assert rig.worker("w2").run_next()
    assert states(rig, submission_id).count(State.CLAIMED) == 2
    assert states(rig, submission_id)[-1] is State.PUBLISHED


def test_a_worker_that_lost_its_lease_publishes_nothing(rig: Rig) -> None:
    other = rig.worker("w2")

    def overtaken(*_: object) -> float:
        rig.clock.move(hours=9)
        if not rig.backend.closed and len(rig.backend.asked) == 1:
            rig.backend.score = lambda *_: 1.0
            assert other.run_next()
        return 0.0

    rig.backend = FakeBackend(overtaken)
    queued = rig.send()
    rig.worker("w1").run_next()
    submission_id = queued.submission.submission_id
    assert states(rig, submission_id).count(State.PUBLISHED) == 1
    assert Ledger(rig.store).status(submission_id).by == "w2"


def test_without_isolation_code_is_refused_with_the_remedy_and_scores_are_taken(rig: Rig) -> None:
    rig.isolated = False
    head = rig.store.public.head()
    with pytest.raises(SubmitterError, match=r"No box.*Build one") as caught:
        rig.send()
    assert caught.value.code == "code_refused"
    assert rig.store.public.head() == head
    rig.send_scores(SCORES)
    assert rig.worker().run_next()


def test_a_worker_without_isolation_leaves_strangers_code_to_others(rig: Rig) -> None:
    rig.send()
    rig.isolated = False
    assert not rig.worker().run_next()
    rig.isolated = True
    assert rig.worker().run_next()


def test_a_wrong_scores_file_leaves_the_store_as_it_was(rig: Rig) -> None:
    heads = rig.store.public.head(), rig.store.private.head()
    with pytest.raises(SubmitterError, match="lacks 1 of the 3 pairs"):
        rig.send_scores("pair_id,m\na,1\nb,2\n")
    assert (rig.store.public.head(), rig.store.private.head()) == heads


@pytest.mark.parametrize("submitter", ["x" * 81, "<script>", "a\u202eb"])
def test_odd_submitters_are_refused(rig: Rig, submitter: str) -> None:
    with pytest.raises(SubmitterError, match="submitter's name"):
        rig.send(submitter=submitter)


def test_published_scores_are_in_the_benchmarks_order(rig: Rig) -> None:
    status = rig.send()
    rig.worker().run_next()
    stem = f"results/{status.submission.submission_id}/toy"
    scores = read_overall(rig.store.public.read(f"{stem}.scores.parquet"))
    assert scores.to_dict() == {"grey": {"a": 0.0, "b": 1.0, "c": 2.0}}
    assert list(scores.index) == ["a", "b", "c"]


def test_a_scores_file_is_named_after_itself_if_nobody_names_it(rig: Rig) -> None:
    single = "pair_id,score\na,1\nb,2\nc,3\n"
    path = rig.scores(single, "my scores (1).csv")
    status = rig.desk.submit_scores(path, benchmark="toy", account=ADA).status
    assert status.submission.metrics == ("my-scores-1",)
    with pytest.raises(SubmitterError, match="cannot name a metric"):
        rig.desk.submit_scores(path, benchmark="toy", account=ADA, name="<b>")


def test_a_worker_that_is_stopped_hands_its_submission_back(rig: Rig) -> None:
    rig.backend = fail_with(KeyboardInterrupt())
    queued = rig.send()
    with pytest.raises(KeyboardInterrupt):
        rig.worker("w1").run_all()
    status = Ledger(rig.store).status(queued.submission.submission_id)
    assert (status.state, status.fault) == (State.QUEUED, "")
    assert "stopped" in status.reason
    rig.backend = FakeBackend()
    assert rig.worker("w2").run_next()


def test_what_a_killed_worker_left_unpacked_is_swept_after_a_day(rig: Rig) -> None:
    worker = rig.worker()
    old, young = (rig.folder / "scratch" / "unpacked" / name for name in ("old", "young"))
    for folder, age in ((old, timedelta(days=2)), (young, timedelta(hours=1))):
        folder.mkdir(parents=True)
        stamp = (rig.clock() - age).timestamp()
        os.utime(folder, (stamp, stamp))
    stop = threading.Event()
    stop.set()
    worker.run_forever(stop)
    assert young.exists()
    assert not old.exists()


def run_result(rig: Rig, submission_id: str) -> RunResult:
    path = f"results/{submission_id}/toy.json"
    return RunResult.model_validate_json(rig.store.public.read(path))


def test_what_a_run_cost_and_what_it_found_is_published(rig: Rig) -> None:
    rig.backend = FakeBackend(lambda brightness, _: np.nan if brightness == 1 else brightness)
    status = rig.send()
    rig.worker().run_next()
    result = run_result(rig, status.submission.submission_id)
    assert result.cost is not None
    assert (result.cost.calls, result.cost.images_decoded, result.cost.texts_encoded) == (1, 3, 0)
    found = result.findings
    assert found is not None
    assert (found.pairs, found.scored, found.unscored) == (3, 2, {"no_score": 1})
    assert found.counts == {"no_score": 1}
    (example,) = found.examples
    assert (example.code, example.item, example.item_id) == ("no_score", "pair", "b")
    assert "no number" in example.message
    assert found.environment["engine"] == "local"


def test_of_private_answers_only_counts_of_findings_are_published(rig: Rig) -> None:
    class Private(Toy):
        card = Toy.card.model_copy(update={"answers_public": False})

    rig.toy = Private()
    rig.backend = FakeBackend(lambda brightness, _: np.nan if brightness == 1 else brightness)
    status = rig.send()
    rig.worker().run_next()
    found = run_result(rig, status.submission.submission_id).findings
    assert found is not None
    assert (found.scored, found.counts, found.examples) == (2, {"no_score": 1}, ())


def test_results_older_than_findings_are_still_read(rig: Rig) -> None:
    status = rig.send()
    rig.worker().run_next()
    record = run_result(rig, status.submission.submission_id).model_dump(mode="json")
    del record["findings"]
    old = ("pairs", "images", "seconds", "pairs_per_s", "peak_memory_bytes")
    record["cost"] = {name: record["cost"][name] for name in old}
    read = RunResult.model_validate(record)
    assert read.findings is None
    assert read.cost is not None
    assert read.cost.calls == 0


def test_a_scorer_that_changes_after_the_trust_checks_gets_no_rank(rig: Rig) -> None:
    asked_in_checks = 7 * 3
    rig.backend.score = lambda brightness, _: float(
        brightness if len(rig.backend.asked) <= asked_in_checks else -brightness
    )
    rig.send()
    rig.worker().run_next()
    shown = read_snapshot(rig.store.public)
    assert shown is not None
    (cell,) = shown.boards["toy"].cells
    assert cell.distrust == "score was another when it was tested"


def test_scores_of_extreme_size_leave_boards_that_can_be_read(rig: Rig) -> None:
    rig.backend.score = lambda brightness, _: brightness * 1e200
    rig.send()
    rig.worker().run_next()
    shown = read_snapshot(rig.store.public)
    assert shown is not None
    (entry,) = shown.entries.values()
    assert entry.trust["toy"].why_not == ""
