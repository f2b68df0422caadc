"""Two workers of one role each: one runs code and sees no answers, one judges and runs no code."""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.errors import PlatformError, SubmitterError, TransientError
from benchmarks.questions import QuestionFolder, export_questions
from benchmarks.schema import Answers, Questions
from evaluator.commands.worker_options import check_role
from evaluator.worker.ending.handed_over import read_record
from evaluator.worker.roles import WorkerRole
from evaluator.worker.worker import Worker
from leaderboard.governance.acts import Acts
from leaderboard.governance.own import Own
from leaderboard.ledger.ledger import Ledger
from leaderboard.ledger.tidying import tidy_all
from leaderboard.pages.queue.table import queue_table
from leaderboard.publication.snapshot import read_snapshot
from leaderboard.records import RunResult, Status
from leaderboard.states import State
from leaderboard.store.interface import Changes
from tests.benchmarks.toy import Toy
from tests.evaluator.rig import ADA, ROOT, FakeBackend, Rig

SCORES = "pair_id,m,n\na,1,4\nb,2,5\nc,3,\n"


def not_for_c(n: int, _: str) -> float:
    """A score of two pairs of three."""
    return np.nan if n == 2 else n + 0.25


class Killed(BaseException):
    """What no handler of ours may catch, like a signal."""


class Sealed(Toy):
    """A benchmark whose answers are on another machine."""

    def answers(self, data: Path | None) -> Answers:
        raise AssertionError("The scorer role asked for answers.")

    def has_answers(self, data: Path | None) -> bool:
        raise AssertionError("The scorer role asked whether there are answers.")


class Blind(Toy):
    """A benchmark whose images are on another machine."""

    def has_questions(self, data: Path | None) -> bool:
        return False

    def questions(self, data: Path | None) -> Questions:
        raise AssertionError("The judge asked for questions.")


class NoBox(FakeBackend):
    """A box that may not be opened."""

    def start(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("The judge opened a box.")


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def scorer(rig: Rig, name: str = "s1", **more: Any) -> Worker:
    rig.toy = Sealed()
    return rig.worker(name, role=WorkerRole.SCORE, **more)


def judge(rig: Rig, name: str = "j1", **more: Any) -> Worker:
    rig.toy, rig.backend = Blind(), NoBox()
    return rig.worker(name, role=WorkerRole.JUDGE, **more)


def send(rig: Rig, **more: Any) -> str:
    return rig.send(**more).submission.submission_id


def status_of(rig: Rig, submission_id: str) -> Status:
    return Ledger(rig.store).status(submission_id)


def states(rig: Rig, submission_id: str) -> list[State]:
    return [event.state for event in Ledger(rig.store).events(submission_id)]


def handed_over(rig: Rig) -> tuple[str, ...]:
    return rig.store.private.list("scored/")


def results(rig: Rig, submission_id: str) -> dict[str, bytes]:
    paths = rig.store.public.list(f"results/{submission_id}/")
    return {path.rpartition("/")[2]: rig.store.public.read(path) for path in paths}


def comparable(record: bytes) -> dict[str, Any]:
    """A result without what no two runs share."""
    found = RunResult.model_validate_json(record).model_dump(mode="json")
    for name in ("submission_id", "judged_at"):
        del found[name]
    for name in ("seconds", "pairs_per_s"):
        del found["cost"][name]
    for check in found["trust"]["checks"]:
        check["example"] = None  # Of pairs that moved alike, one is named, and they are shuffled.
    return found


def as_by_one_worker(folder: Path) -> dict[str, bytes]:
    alone = Rig(folder)
    alone.backend = FakeBackend(not_for_c)
    submission_id = send(alone)
    assert alone.worker().run_next()
    assert State.JUDGING in states(alone, submission_id)
    assert handed_over(alone) == ()
    return results(alone, submission_id)


def assert_same(found: dict[str, bytes], wanted: dict[str, bytes]) -> None:
    assert found.keys() == wanted.keys()
    assert comparable(found["toy.json"]) == comparable(wanted["toy.json"])
    assert {n: c for n, c in found.items() if n != "toy.json"} == {
        n: c for n, c in wanted.items() if n != "toy.json"
    }


@pytest.fixture
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What one worker of both roles publishes."""
    return as_by_one_worker(tmp_path_factory.mktemp("alone"))


def test_two_workers_of_one_role_each_publish_what_one_of_both_does(
    rig: Rig, alone: dict[str, bytes]
) -> None:
    rig.backend = FakeBackend(not_for_c)
    submission_id = send(rig)
    assert scorer(rig).run_next()
    assert not scorer(rig).run_next()
    assert judge(rig).run_next()
    assert states(rig, submission_id)[2:] == [
        State.CLAIMED, State.SCORING, State.SCORED, State.JUDGING, State.PUBLISHED,
    ]  # fmt: skip
    assert_same(results(rig, submission_id), alone)
    assert handed_over(rig) == ()
    assert not judge(rig).run_next()


def test_what_is_handed_over_waits_for_a_judge_and_says_so(rig: Rig) -> None:
    submission_id = send(rig)
    scorer(rig).run_next()
    status = status_of(rig, submission_id)
    assert (status.state, status.code, status.reason) == (
        State.SCORED, "to_judge", "Waiting for a judge.",
    )  # fmt: skip
    assert status.unfinished
    assert status.lease_until is None
    assert (status.attempts, status.held_by("s1")) == (0, False)
    assert rig.store.public.list("results/") == ()
    assert handed_over(rig) == (
        f"scored/{submission_id}/toy.json", f"scored/{submission_id}/toy.scores.parquet",
    )  # fmt: skip
    rig.clock.move(days=3)
    assert not scorer(rig, "s2").run_next(), "nobody scores it again, however long it waits"
    shown = queue_table([status], [], {"toy": "Toy"}, rig.clock())
    assert "Waiting for a judge." in shown
    assert "No sign of its worker" not in shown


def test_the_scorers_output_and_isolation_reach_the_judge(rig: Rig) -> None:
    submission_id = send(rig)
    scorer(rig).run_next()
    record = read_record(rig.store.private, submission_id, "toy")
    assert (record.worker, record.isolation, record.tag) == ("s1", ("fake",), "")
    assert record.output == "hello from the scorer"
    judge(rig).run_next()
    event = Ledger(rig.store).events(submission_id)[4]
    assert (event.state, event.log, event.by) == (State.SCORED, "hello from the scorer", "s1")


def test_scores_files_go_to_the_judge_alone(rig: Rig) -> None:
    submission_id = rig.send_scores(SCORES).submission.submission_id
    assert not scorer(rig).run_next()
    assert judge(rig).run_next()
    assert status_of(rig, submission_id).state is State.PUBLISHED


def test_a_judge_leaves_code_to_others_and_tells_why(rig: Rig) -> None:
    send(rig)
    worker = judge(rig)
    assert not worker.run_next()
    assert not worker.gate.ok
    assert "runs no code" in worker.gate.reason


def test_opaque_ids_are_turned_back_by_the_judge(rig: Rig, alone: dict[str, bytes]) -> None:
    out = rig.folder / "exported"
    out.mkdir()
    export_questions(Toy(), None, out, rng=random.Random(5))
    rig.backend = FakeBackend(not_for_c)
    submission_id = send(rig)
    assert scorer(rig, questions=QuestionFolder(out)).run_next()
    stored = rig.store.private.read(f"scored/{submission_id}/toy.scores.parquet")
    assert set(pd.read_parquet(io.BytesIO(stored))["pair_id"]).isdisjoint({"a", "b", "c"})
    assert not judge(rig).run_next(), "without the key, it is left to a judge who has it"
    assert judge(rig, keys=out).run_next()
    assert_same(results(rig, submission_id), alone)
    result = RunResult.model_validate_json(results(rig, submission_id)["toy.json"])
    assert result.findings is not None
    assert [example.item_id for example in result.findings.examples] == ["c"]
    assert result.trust is not None
    moved = {check.example.pair_id for check in result.trust.checks if check.example}
    assert moved
    assert moved <= {"a", "b", "c"}


def test_scores_under_another_key_are_given_to_no_pair(rig: Rig) -> None:
    for name, seed in (("theirs", 5), ("ours", 6)):
        (rig.folder / name).mkdir()
        export_questions(Toy(), None, rig.folder / name, rng=random.Random(seed))
    submission_id = send(rig)
    scorer(rig, questions=QuestionFolder(rig.folder / "theirs")).run_next()
    assert judge(rig, keys=rig.folder / "ours").run_next()
    status = status_of(rig, submission_id)
    assert (status.state, status.code, status.fault) == (State.FAILED, "key_mismatch", "platform")


def test_without_its_questions_a_scorer_leaves_the_submission_to_others(rig: Rig) -> None:
    send(rig)
    assert not scorer(rig, questions=QuestionFolder(rig.folder / "nowhere")).run_next()


def test_a_private_submission_ends_held_and_nothing_public_tells_of_it(rig: Rig) -> None:
    submission_id = send(rig, private=True)
    scorer(rig).run_next()
    waiting = status_of(rig, submission_id)
    assert (waiting.to_judge, waiting.reason) == (True, "")
    assert "Waiting for a judge." in queue_table([waiting], [], {}, rig.clock())
    judge(rig).run_next()
    assert status_of(rig, submission_id).state is State.HELD
    (result,) = Own(rig.store, ADA).results(submission_id)
    assert result.rows[0]["value"] == 1.0
    public = b"".join(rig.store.public.read(path) for path in rig.store.public.list())
    assert b"grey" not in public
    assert b"hub:ada" not in public
    assert handed_over(rig) == ()


def breaking(rig: Rig, repository: str, word: str, *, after: bool) -> None:
    """Die at the commit whose message begins with a word, before it is made or after."""
    chosen = getattr(rig.store, repository)
    commit = chosen.commit

    def broken(changes: Changes, *, parent: str, message: str) -> str:
        if not message.startswith(word):
            return str(commit(changes, parent=parent, message=message))
        chosen.commit = commit
        if after:
            commit(changes, parent=parent, message=message)
        raise Killed

    chosen.commit = broken


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(("repository", "word"), [("private", "scores of"), ("public", "scored")])
def test_a_scorer_killed_at_a_commit_of_the_hand_over_loses_nothing(
    rig: Rig, alone: dict[str, bytes], repository: str, word: str, *, after: bool
) -> None:
    rig.backend = FakeBackend(not_for_c)
    submission_id = send(rig)
    first = scorer(rig)
    first.heart.beat()
    breaking(rig, repository, word, after=after)
    with pytest.raises(Killed):
        first.run_next()
    handed = (repository, after) == ("public", True)
    assert status_of(rig, submission_id).to_judge is handed
    rig.clock.move(minutes=2)
    assert scorer(rig, "s2").run_next() is not handed
    assert judge(rig).run_next()
    assert_same(results(rig, submission_id), alone)
    assert states(rig, submission_id).count(State.PUBLISHED) == 1


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(
    ("repository", "word"),
    [("public", "judging"), ("public", "published"), ("private", "tidy")],
)
def test_a_judge_that_dies_is_followed_by_another(
    rig: Rig, alone: dict[str, bytes], repository: str, word: str, *, after: bool
) -> None:
    rig.backend = FakeBackend(not_for_c)
    submission_id = send(rig)
    scorer(rig).run_next()
    first = judge(rig)
    first.heart.beat()
    breaking(rig, repository, word, after=after)
    with pytest.raises(Killed):
        first.run_next()
    if status_of(rig, submission_id).state is State.JUDGING:
        assert not judge(rig, "j2").run_next(), "the first one's lease still holds"
    rig.clock.move(minutes=2)
    assert not scorer(rig, "s2").run_next(), "its scores are in"
    published = status_of(rig, submission_id).state is State.PUBLISHED
    assert judge(rig, "j2").run_next() is not published
    assert_same(results(rig, submission_id), alone)
    assert states(rig, submission_id).count(State.PUBLISHED) == 1
    tidy_all(rig.store)
    assert handed_over(rig) == ()


def test_a_judge_without_a_pulse_keeps_its_work_until_its_lease_ends(rig: Rig) -> None:
    submission_id = send(rig)
    scorer(rig).run_next()
    breaking(rig, "public", "published", after=False)
    with pytest.raises(Killed):
        judge(rig).run_next()
    assert status_of(rig, submission_id).lease_until is not None
    rig.clock.move(hours=7)
    assert not judge(rig, "j2").run_next()
    rig.clock.move(hours=2)
    assert judge(rig, "j2").run_next()


def test_what_kills_its_judges_is_given_up(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    submission_id = send(rig)
    scorer(rig).run_next()

    def die(*_: object, **__: object) -> None:
        raise Killed

    monkeypatch.setattr(Blind, "measure", die)
    for number in range(3):
        worker = judge(rig, f"j{number}")
        worker.heart.beat()
        with pytest.raises(Killed):
            worker.run_next()
        rig.clock.move(minutes=2)
    assert not judge(rig, "j9").run_next()
    status = status_of(rig, submission_id)
    assert (status.state, status.code) == (State.FAILED, "worker_lost")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), TransientError("busy", "It is busy.")])
def test_a_judge_that_is_interrupted_leaves_the_scores_to_the_next(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    submission_id = send(rig)
    scorer(rig).run_next()

    def stop(*_: object, **__: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(Blind, "measure", stop)
        try:
            judge(rig).run_next()
        except KeyboardInterrupt:
            assert isinstance(error, KeyboardInterrupt)
    status = status_of(rig, submission_id)
    failed = isinstance(error, TransientError)
    assert (status.to_judge, status.attempts) == (True, int(failed))
    assert judge(rig, "j2").run_next() is not failed, "it rests after a fault of the world"
    rig.clock.move(minutes=2)
    assert judge(rig, "j2").run_next() is failed
    assert states(rig, submission_id).count(State.CLAIMED) == 1, "it was scored once"
    assert status_of(rig, submission_id).state is State.PUBLISHED


def test_faults_of_the_world_end_a_judgement_after_three_attempts(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    submission_id = send(rig)
    scorer(rig).run_next()

    def busy(*_: object, **__: object) -> None:
        raise TransientError("busy", "It is busy.")

    monkeypatch.setattr(Blind, "measure", busy)
    for _ in range(3):
        assert judge(rig).run_next()
        rig.clock.move(minutes=2)
    status = status_of(rig, submission_id)
    assert (status.state, status.fault) == (State.FAILED, "platform")
    assert "after 3 attempts" in status.reason


def test_what_is_withdrawn_between_the_two_is_over_and_leaves_no_scores(rig: Rig) -> None:
    submission_id = send(rig)
    scorer(rig).run_next()
    Acts(rig.store, {"toy": Toy.card}, rig.clock).withdraw(submission_id, ADA)
    assert handed_over(rig) == ()
    assert not judge(rig).run_next()
    assert status_of(rig, submission_id).state is State.WITHDRAWN


def test_what_is_withdrawn_while_it_is_scored_is_not_handed_over(rig: Rig) -> None:
    def withdraw(n: int, _: str) -> float:
        if not rig.backend.asked[1:]:
            Acts(rig.store, {"toy": Toy.card}, rig.clock).withdraw(submission_id, ADA)
        return float(n)

    rig.backend = FakeBackend(withdraw)
    submission_id = send(rig)
    assert scorer(rig).run_next()
    assert handed_over(rig) == ()
    assert status_of(rig, submission_id).state is State.WITHDRAWN


def test_a_rerun_is_scored_anew(rig: Rig) -> None:
    submission_id = send(rig)
    scorer(rig).run_next()
    judge(rig).run_next()
    Acts(rig.store, {"toy": Toy.card}, rig.clock).rerun(submission_id, ROOT, "new data")
    assert not judge(rig).run_next()
    rig.backend = FakeBackend(lambda n, _: n + 1.0)
    assert scorer(rig).run_next()
    shown = read_snapshot(rig.store.public)
    assert shown is not None
    assert [cell.value for cell in shown.boards["toy"].cells] == [1.0], "the boards stay meanwhile"
    assert judge(rig).run_next()
    shown = read_snapshot(rig.store.public)
    assert shown is not None
    assert [cell.value for cell in shown.boards["toy"].cells] == [2.0]


def test_a_worker_of_both_roles_judges_what_was_handed_over(rig: Rig) -> None:
    submission_id = send(rig)
    scorer(rig).run_next()
    rig.toy, rig.backend = Toy(), NoBox()
    assert rig.worker("w2").run_next()
    assert status_of(rig, submission_id).state is State.PUBLISHED


@pytest.mark.parametrize(
    ("path", "change", "code"),
    [
        ("toy.scores.parquet", None, "handover_missing"),
        ("toy.json", None, "handover_missing"),
        ("toy.scores.parquet", lambda content: content[:-4] + b"PAR2", "handover_damaged"),
        ("toy.json", lambda content: content.replace(b'"s1"', b'"s2"'), "handover_damaged"),
        ("toy.json", lambda content: content + b"}", "handover_damaged"),
        (
            "toy.json",
            lambda content: content.replace(b'"revision": "1"', b'"revision": "2"'),
            "handover_damaged",
        ),
    ],
)
def test_scores_that_are_not_as_they_were_handed_over_are_not_judged(
    rig: Rig, path: str, change: Callable[[bytes], bytes] | None, code: str
) -> None:
    submission_id = send(rig)
    scorer(rig).run_next()
    private, full = rig.store.private, f"scored/{submission_id}/{path}"
    content = None if change is None else change(private.read(full))
    assert content != private.read(full)
    private.commit({full: content}, parent=private.head(), message="meddle")
    assert judge(rig).run_next()
    status = status_of(rig, submission_id)
    assert (status.state, status.code, status.fault) == (State.FAILED, code, "platform")
    assert rig.store.public.list("results/") == ()


@pytest.mark.parametrize(
    ("role", "questions", "keys"),
    [("both", Path("q"), None), ("judge", Path("q"), None), ("score", None, Path("k"))],
)
def test_options_of_the_other_role_are_refused(
    role: str, questions: Path | None, keys: Path | None
) -> None:
    with pytest.raises(SubmitterError) as caught:
        check_role(WorkerRole(role), questions, keys)
    assert caught.value.code == "wrong_role"
    assert not isinstance(caught.value, PlatformError)
