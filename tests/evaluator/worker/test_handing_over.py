"""Two workers of one role each: one runs code and sees no answers, one judges and runs no code."""

from __future__ import annotations

import hashlib
import io
import random
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.errors import PlatformError, TransientError
from benchmarks.questions import Key, QuestionFolder, export_questions
from benchmarks.schema import Answers, Questions, ScoreTable
from benchmarks.scores import write_scores
from evaluator.commands.worker import check_role
from evaluator.submission.runs import Scored
from evaluator.worker.handoff import handover_files, read_record, read_table, restored
from evaluator.worker.tasks import MAX_LOST, WorkerRole
from evaluator.worker.worker import Worker
from leaderboard.governance.rights import Own
from leaderboard.records import FindingExample, Findings, Submission
from leaderboard.states import State
from leaderboard.store.interface import Repository
from leaderboard.store.live.interface import MemoryLive
from leaderboard.views.submissions import Moment, row_of
from tests.kit.refusals import refused
from tests.kit.store import memory_store
from tests.kit.toy import Toy
from tests.kit.worker import (
    ADA,
    ROOT,
    SCORES,
    FakeBackend,
    FakeSession,
    Killed,
    Rig,
    named,
    submission,
)


def not_for_c(n: int, _: str) -> float:
    """A score of two pairs of three."""
    return np.nan if n == 2 else n + 0.25


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


def scorer(rig: Rig, name: str = "s1", **more: Any) -> Worker:
    rig.toy = Sealed()
    return rig.worker(name, role=WorkerRole.SCORE, **more)


def judge(rig: Rig, name: str = "j1", **more: Any) -> Worker:
    rig.toy, rig.backend = Blind(), NoBox()
    return rig.worker(name, role=WorkerRole.JUDGE, **more)


def scored(rig: Rig, **more: Any) -> str:
    """A module that a scorer has handed over; its id."""
    name = rig.sent(**more)
    assert scorer(rig).run_next()
    return name


def handed_over(rig: Rig) -> tuple[str, ...]:
    return rig.store.private.list("scored/")


def waiting_as_shown(rig: Rig, name: str) -> str:
    row = row_of(rig.status(name), Moment((), rig.clock()))
    shown = f"{row.note} {row.status.reason}"
    assert "No sign" not in shown, "nobody waits for its worker"
    return shown


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What one worker of both roles publishes."""
    rig = Rig(tmp_path_factory.mktemp("alone"), backend=FakeBackend(not_for_c))
    name = rig.ran()
    assert State.JUDGING in rig.states(name)
    assert handed_over(rig) == ()
    return rig.results(name)


# From one to the other ------------------------------------------------------------------------


def test_two_workers_of_one_role_each_publish_what_one_of_both_does(
    rig: Rig, alone: dict[str, Any]
) -> None:
    rig.backend = FakeBackend(not_for_c)
    name = scored(rig)
    status = rig.status(name)
    assert (status.state, status.code, status.to_judge) == (State.SCORED, "to_judge", True)
    assert status.reason in waiting_as_shown(rig, name)
    assert status.unfinished
    assert (status.lease_until, status.attempts, status.held_by("s1")) == (None, 0, False)
    assert rig.store.public.list("results/") == ()
    assert handed_over(rig) == (f"scored/{name}/toy.json", f"scored/{name}/toy.scores.parquet")
    record = read_record(rig.store.private, name, "toy")
    assert (record.worker, record.isolation, record.tag) == ("s1", ("fake",), "")
    rig.clock.move(days=3)
    assert not scorer(rig, "s2").run_next(), "nobody scores it again, however long it waits"
    assert judge(rig).run_next()
    assert rig.states(name)[2:] == [
        State.CLAIMED, State.SCORING, State.SCORED, State.JUDGING, State.PUBLISHED,
    ]  # fmt: skip
    event = rig.ledger.events(name)[4]
    assert (event.log, event.by) == (FakeSession.log, "s1")
    assert rig.results(name) == alone
    assert handed_over(rig) == ()
    assert not judge(rig).run_next()


def test_scores_files_go_to_the_judge_alone_and_code_to_the_scorer(rig: Rig) -> None:
    file = rig.send_scores(SCORES).submission.submission_id
    assert not scorer(rig).run_next()
    assert judge(rig).run_next()
    assert rig.state(file) is State.PUBLISHED
    rig.toy = Toy()
    rig.send()
    worker = judge(rig)
    assert not worker.run_next()
    assert (worker.availability.ok, bool(worker.availability.reason)) == (False, True)


def test_a_worker_of_both_roles_judges_what_was_handed_over(rig: Rig) -> None:
    name = scored(rig)
    rig.toy, rig.backend = Toy(), NoBox()
    assert rig.worker("w2").run_next()
    assert rig.state(name) is State.PUBLISHED


def test_a_private_submission_ends_held_and_nothing_public_tells_of_it(rig: Rig) -> None:
    name = scored(rig, private=True)
    waiting = rig.status(name)
    assert (waiting.to_judge, waiting.reason) == (True, "")
    assert "judge" in waiting_as_shown(rig, name)
    judge(rig).run_next()
    assert rig.state(name) is State.HELD
    (result,) = Own(rig.store, ADA).results(name)
    assert result.rows[0]["value"] == 1.0
    public = b"".join(rig.store.public.read(path) for path in rig.store.public.list())
    assert not [word for word in (b"grey", b"hub:ada") if word in public]
    assert handed_over(rig) == ()


def test_a_rerun_is_scored_anew(rig: Rig) -> None:
    name = scored(rig)
    judge(rig).run_next()
    rig.acts.rerun(name, ROOT, "new data")
    assert not judge(rig).run_next()
    rig.backend = FakeBackend(lambda n, _: n + 1.0)
    assert scorer(rig).run_next()
    assert [cell.value for cell in rig.cells()] == [1.0], "the boards stay meanwhile"
    assert judge(rig).run_next()
    assert [cell.value for cell in rig.cells()] == [2.0]


def test_what_is_withdrawn_leaves_no_scores(rig: Rig) -> None:
    name = rig.sent()
    rig.when_asked(1, lambda: rig.acts.withdraw(name, ADA))
    assert scorer(rig).run_next()
    assert (handed_over(rig), rig.state(name)) == ((), State.WITHDRAWN)
    rig.backend = FakeBackend()
    between = scored(rig, files=named("other"))
    rig.acts.withdraw(between, ADA)
    assert handed_over(rig) == ()
    assert not judge(rig).run_next()
    assert rig.state(between) is State.WITHDRAWN


# Under opaque ids -----------------------------------------------------------------------------


def exported(rig: Rig, folder: str, seed: int) -> Path:
    out = rig.folder / folder
    out.mkdir()
    export_questions(Toy(), None, out, rng=random.Random(seed))
    return out


def test_opaque_ids_are_turned_back_by_the_judge(rig: Rig, alone: dict[str, Any]) -> None:
    out = exported(rig, "exported", 5)
    rig.backend = FakeBackend(not_for_c)
    name = rig.sent()
    nowhere = QuestionFolder(rig.folder / "nowhere")
    assert not scorer(rig, questions=nowhere).run_next(), "without questions, it is left to others"
    assert scorer(rig, questions=QuestionFolder(out)).run_next()
    stored = rig.store.private.read(f"scored/{name}/toy.scores.parquet")
    assert set(pd.read_parquet(io.BytesIO(stored))["pair_id"]).isdisjoint({"a", "b", "c"})
    assert not judge(rig).run_next(), "without the key, it is left to a judge who has it"
    assert judge(rig, keys=out).run_next()
    assert rig.results(name) == alone
    result = rig.result(name)
    assert result.findings is not None
    assert [example.item_id for example in result.findings.examples] == ["c"]
    assert result.trust is not None
    moved = {check.example.pair_id for check in result.trust.checks if check.example}
    assert moved
    assert moved <= {"a", "b", "c"}


def test_scores_under_another_key_are_given_to_no_pair(rig: Rig) -> None:
    theirs, ours = exported(rig, "theirs", 5), exported(rig, "ours", 6)
    name = rig.sent()
    scorer(rig, questions=QuestionFolder(theirs)).run_next()
    assert judge(rig, keys=ours).run_next()
    assert rig.ended(name) == (State.FAILED, "key_mismatch", "platform")


# Deaths and faults ----------------------------------------------------------------------------


def failing_judgement(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def measure(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(Blind, "measure", measure)


def test_a_judge_without_a_pulse_keeps_its_work_until_its_lease_ends(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = scored(rig)
    with monkeypatch.context() as patch, pytest.raises(Killed):
        failing_judgement(patch, Killed())
        judge(rig).run_next()
    assert rig.status(name).lease_until is not None
    rig.store = replace(rig.store, live=MemoryLive())
    rig.clock.move(minutes=60)
    assert not judge(rig, "j2").run_next()
    rig.clock.move(minutes=3)
    assert judge(rig, "j2").run_next()


def test_what_kills_its_judges_is_given_up(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    name = scored(rig)
    failing_judgement(monkeypatch, Killed())
    for number in range(MAX_LOST):
        rig.dies(judge(rig, f"j{number}"))
    assert not judge(rig, "j9").run_next()
    assert rig.ended(name)[:2] == (State.FAILED, "worker_lost")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), TransientError("busy", "It is busy.")])
def test_a_judge_that_is_interrupted_leaves_the_scores_to_the_next(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    name, failed = scored(rig), isinstance(error, TransientError)
    with monkeypatch.context() as patch:
        failing_judgement(patch, error)
        with nullcontext() if failed else pytest.raises(KeyboardInterrupt):
            judge(rig).run_next()
    assert (rig.status(name).to_judge, rig.status(name).attempts) == (True, int(failed))
    rig.clock.move(minutes=2 * failed)
    assert judge(rig, "j2").run_next()
    assert rig.states(name).count(State.CLAIMED) == 1, "it was scored once"
    assert rig.state(name) is State.PUBLISHED


def test_faults_of_the_world_end_a_judgement_after_three_attempts(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = scored(rig)
    failing_judgement(monkeypatch, TransientError("busy", "It is busy."))
    for attempt in (1, 2, 3):
        assert (rig.status(name).to_judge, rig.status(name).attempts) == (True, attempt - 1)
        assert judge(rig).run_next()
        assert not judge(rig).run_next(), "it rests"
        rig.clock.move(minutes=2)
    assert (rig.state(name), rig.status(name).fault) == (State.FAILED, "platform")
    assert "3 attempts" in rig.status(name).reason
    assert rig.states(name).count(State.CLAIMED) == 1, "it was scored once"


@pytest.mark.parametrize(
    ("path", "change", "code"),
    [
        ("toy.scores.parquet", lambda content: content[:-4] + b"PAR2", "handover_damaged"),
        ("toy.json", lambda content: content.replace(b'"s1"', b'"s2"'), "handover_damaged"),
        ("toy.json", lambda content: content + b"}", "handover_damaged"),
        ("toy.json", lambda c: c.replace(b'"revision": "1"', b'"revision": "2"'), "handover_damaged"),
    ],
    ids=["other scores", "other record", "no JSON", "other revision"],
)  # fmt: skip
def test_scores_that_are_not_as_they_were_handed_over_are_not_judged(
    rig: Rig, path: str, change: Callable[[bytes], bytes], code: str
) -> None:
    name = scored(rig)
    private, full = rig.store.private, f"scored/{name}/{path}"
    content = change(private.read(full))
    assert content != private.read(full)
    private.commit({full: content}, parent=private.head(), message="meddle")
    assert judge(rig).run_next()
    assert rig.ended(name) == (State.FAILED, code, "platform")
    assert rig.store.public.list("results/") == ()


@pytest.mark.parametrize("file", ["toy.scores.parquet", "toy.json"])
def test_scores_that_are_not_there_yet_are_judged_when_they_are(rig: Rig, file: str) -> None:
    """A judge may see what the ledger says before it sees what was handed over."""
    name = scored(rig)
    private, path = rig.store.private, f"scored/{name}/{file}"
    content = private.read(path)
    private.commit({path: None}, parent=private.head(), message="not yet")
    late = judge(rig)
    for _ in range(2):
        with suppress(TransientError):
            late.run_next()
    assert rig.status(name).to_judge
    private.commit({path: content}, parent=private.head(), message="now")
    rig.clock.move(minutes=10)
    late.run_all()
    assert rig.state(name) is State.PUBLISHED


# The files between them -----------------------------------------------------------------------

KEY = Key(
    benchmark="toy",
    revision="1",
    tag="0123abcd",
    pairs={"p2": "a", "p1": "b"},
    images={"i1": "the image"},
    texts={"t1": "the text"},
    elements={"e2": ("the text", "x"), "e1": ("the text", "y")},
)


def table(pairs: list[str], parts: list[str] | None = None) -> ScoreTable:
    overall = pd.DataFrame({"grey": [0.1, np.nan]}, index=pd.Index(pairs, name="pair_id"))
    if parts is None:
        return ScoreTable(overall)
    named = {
        "pair_id": [pairs[0], pairs[0], pairs[1]],
        "element_id": [*parts, parts[0]],
        "score": [1 / 3, np.nan, -0.0],
    }
    return ScoreTable(overall, elements={"grey": pd.DataFrame(named)})


def kept(sent: Submission, scores: ScoreTable) -> Repository:
    private = memory_store().private
    files = handover_files(sent, Scored("toy", scores, ("fake",)), "1", "s1", "said")
    private.commit(files, parent=private.head(), message="scores")
    return private


@pytest.mark.parametrize("parts", [None, ["x", "y"]])
def test_scores_and_those_of_elements_arrive_to_the_last_bit(parts: list[str] | None) -> None:
    sent, before = submission(lower_is_better=("grey",)), table(["a", "b"], parts)
    private = kept(sent, before)
    after = read_table(private, sent, read_record(private, "grey-00000000", "toy"))
    assert after.directions == {"grey": -1}
    assert after.elements.keys() == before.elements.keys()
    assert write_scores(after) == write_scores(before)


def test_pairs_elements_and_findings_get_their_own_ids_again() -> None:
    more = {"code": "c", "message": "m", "scored": False}
    items = (("pair", "p1"), ("image", "i1"), ("text", "t1"))
    examples = [FindingExample.model_validate({"item": i, "item_id": n, **more}) for i, n in items]
    found = Findings(pairs=2, scored=1, examples=tuple(examples))
    opaque = Scored("toy", table(["p2", "p1"], ["e2", "e1"]), ("fake",), findings=found, tag="x")
    after = restored(opaque, KEY)
    assert write_scores(after.table) == write_scores(table(["a", "b"], ["x", "y"]))
    assert after.findings is not None
    assert [one.item_id for one in after.findings.examples] == ["b", "the image", "the text"]
    assert after.tag == ""


def test_what_is_of_another_submission_has_other_columns_or_is_no_table_is_refused() -> None:
    private = kept(submission(), table(["a", "b"]))
    record = read_record(private, "grey-00000000", "toy")
    content = private.read("scored/grey-00000000/toy.json")
    private.commit(
        {"scored/grey-00000001/toy.json": content}, parent=private.head(), message="copy"
    )
    with pytest.raises(PlatformError, match="grey-00000000"):
        read_record(private, "grey-00000001", "toy")
    with pytest.raises(PlatformError, match="columns"):
        read_table(private, submission(metrics=("blue",)), record)
    path, content = "scored/grey-00000000/toy.scores.parquet", b"no parquet"
    private.commit({path: content}, parent=private.head(), message="meddle")
    its = record.model_copy(update={"scores_sha256": hashlib.sha256(content).hexdigest()})
    with refused("handover_damaged", kind=PlatformError):
        read_table(private, submission(), its)


# Options of the roles -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("role", "questions", "keys"),
    [("both", Path("q"), None), ("judge", Path("q"), None), ("score", None, Path("k"))],
)
def test_options_of_the_other_role_are_refused(
    role: str, questions: Path | None, keys: Path | None
) -> None:
    with refused("wrong_role"):
        check_role(WorkerRole(role), questions, keys)


def test_a_key_beside_the_questions_of_a_scoring_host_is_refused(tmp_path: Path) -> None:
    """It may not hold what the opaque ids stand for."""
    check_role(WorkerRole.SCORE, tmp_path, None)
    (tmp_path / "ts2.key.parquet").touch()
    with refused("key_beside_questions"):
        check_role(WorkerRole.SCORE, tmp_path, None)
