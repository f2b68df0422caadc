"""What is private stays so: submissions, answers, and files on the worker's machine."""

from __future__ import annotations

import itertools
import json
import math
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.errors import PlatformError, SubmitterError
from benchmarks.schema import Benchmark
from evaluator.isolation.failures import Code, failure, without_its_words
from evaluator.submission.runs import ModuleRun, Scored
from evaluator.worker.liveness import RunProgress
from leaderboard.governance.rights import Own
from leaderboard.records import RunResult, Status, Submission
from leaderboard.states import State
from leaderboard.store.folder import folder_store
from leaderboard.store.live.interface import Heartbeat
from tests.kit.refusals import refused
from tests.kit.toy import Toy
from tests.kit.worker import (
    ADA,
    BOB,
    ROOT,
    FakeBackend,
    FakeSession,
    Rig,
    Secret,
    raising,
)

SECRETS = ("grey", "hub:ada", '"ada"', "very secret")


# Private submissions: scored like any other, and seen by their author alone --------------------


def scored(rig: Rig) -> Status:
    """A private submission that a worker has finished, as its author sees it."""
    name = rig.ran(private=True, submitter="very secret")
    return Own(rig.store, ADA).status(name)


def public_text(rig: Rig) -> str:
    public = rig.store.public
    return b"".join(public.read(path) for path in public.list()).decode(errors="replace")


def test_a_private_submission_ends_held_with_its_results_for_its_author_alone(rig: Rig) -> None:
    """Neither in the store nor by a pulse is anything told of it."""
    seen: list[Heartbeat | RunProgress] = []

    def listen(run: RunProgress) -> None:
        worker.heart.beat()
        seen.extend([run, *rig.store.live.pulses()])

    before, worker = rig.head, rig.worker(listener=listen)
    name = rig.sent(private=True, submitter="very secret")
    assert worker.run_next()
    assert (rig.state(name), rig.head) == (State.HELD, before + 3)
    (result,) = Own(rig.store, ADA).results(name)
    assert result.rows[0]["value"] == 1.0
    assert rig.store.public.list("results/") == ()
    with refused("not_yours"):
        Own(rig.store, BOB).results(name)
    assert len(seen) > 4
    for secret in SECRETS:
        assert secret not in public_text(rig)
        assert not [one for one in seen if secret in str(one)]


def test_why_a_private_run_failed_is_told_to_its_author_alone(rig: Rig) -> None:
    error = SubmitterError("scorer_raised", "very secret at scorer.py:3.", "Mend it.")
    rig.backend = raising(error)
    status = scored(rig)
    name = status.submission.submission_id
    assert (status.state, status.reason) == (State.FAILED, error.message)
    own, public = Own(rig.store, ADA).events(name)[-1], rig.ledger.events(name)[-1]
    assert (own.log, own.code) == (FakeSession.log, "scorer_raised")
    assert (public.state, public.fault) == (State.FAILED, "submitter")
    assert {public.reason, public.hint, public.log, public.code} == {""}
    assert not [secret for secret in SECRETS if secret in public_text(rig)]


@pytest.mark.parametrize("toy", [Toy(), Secret()], ids=["public", "private answers"])
def test_what_its_author_publishes_is_on_the_boards_with_all_its_results(
    rig: Rig, toy: Toy
) -> None:
    """A rerun of it stays public."""
    rig.toy = toy
    name = scored(rig).submission.submission_id
    rig.acts.publish(name, ADA)
    (cell,) = rig.cells()
    assert (cell.entry_id, cell.value) == (f"{name}/grey", 1.0)
    assert [p for p in rig.store.private.list("held/") if "/results/" in p] == []
    where = [one.has(f"results/{name}/toy.scores.parquet") for one in (rig.store.public, rig.store.private)]  # fmt: skip
    assert where == [toy.card.answers_public, not toy.card.answers_public]
    rig.acts.rerun(name, ROOT, "new data")
    assert rig.worker().run_next()
    assert rig.state(name) is State.PUBLISHED


def test_a_rerun_of_what_is_held_is_held_again(rig: Rig) -> None:
    name = scored(rig).submission.submission_id
    rig.acts.rerun(name, ROOT, "new data")
    rig.backend = FakeBackend(lambda brightness, _: brightness + 1.0)
    assert rig.worker().run_next()
    assert rig.state(name) is State.HELD
    (result,) = Own(rig.store, ADA).results(name)
    assert result.rows[0]["value"] == 2.0


# What a scorer says of questions whose answers are kept is not published -----------------------

HIDDEN = "the hidden prompt"


@pytest.mark.parametrize("toy", [Toy(), Secret()], ids=["public", "private answers"])
def test_the_words_of_an_error_are_withheld_where_answers_are(rig: Rig, toy: Toy) -> None:
    rig.toy = toy
    rig.backend = raising(failure(Code.SCORER_RAISED, f"ValueError: {HIDDEN} (while scoring)."))
    name = rig.ran()
    assert rig.ended(name) == (State.FAILED, "scorer_raised", "submitter")
    assert (HIDDEN in str(rig.ledger.events(name))) is toy.card.answers_public
    assert toy.card.answers_public or "check" in rig.status(name).hint


@pytest.mark.parametrize(
    "code",
    ["scorer_raised", "wrong_count", "wrong_type", "not_finite", "out_of_memory", "protocol"],
)
def test_an_error_in_which_a_scorer_could_speak_loses_its_words(code: str) -> None:
    withheld = without_its_words(failure(Code(code), HIDDEN))
    assert withheld.code == code and HIDDEN not in str(withheld)


def figures(record: object) -> Iterator[float]:
    """Every number with a fraction in a record."""
    if isinstance(record, float):
        yield record
    elif isinstance(record, dict):
        for inner in record.values():
            yield from figures(inner)
    elif isinstance(record, list):
        for inner in record:
            yield from figures(inner)


MESSAGE = 0.1234567890123
"""Digits that a scorer puts into its scores to be read on the board."""


@pytest.mark.parametrize("toy", [Toy(), Secret()], ids=["public", "private answers"])
def test_figures_of_withheld_answers_are_rounded_and_checks_only_passed_or_failed(
    rig: Rig, toy: Toy
) -> None:
    rig.toy = toy
    calls = itertools.count()
    rig.backend = FakeBackend(lambda brightness, _: brightness + MESSAGE + next(calls) / 7)
    result = rig.result(rig.ran())
    whole = toy.card.answers_public
    trust, cost, (row,) = result.trust, result.cost, result.rows
    assert trust is not None and cost is not None
    assert {check.name for check in trust.failed} >= {"repeat", "order"}
    assert [math.isfinite(check.largest) for check in trust.checks] == [whole] * len(trust.checks)
    assert math.isfinite(trust.spread) is whole
    assert (row["value"] == round(row["value"], 3)) is not whole
    record = json.loads(result.model_dump_json(exclude={"trust": {"limit"}, "judged_at": True}))
    long = [one for one in figures(record) if len(f"{one:.12g}".replace(".", "").strip("0")) > 4]
    assert bool(long) is whole
    assert RunResult.model_validate(record | {"judged_at": result.judged_at, "trust": None})


def test_a_withheld_benchmark_is_scored_last_since_one_box_serves_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has read its questions has no scores left that are published whole."""
    rig = Rig(tmp_path)
    first, last = Secret(), Toy()
    first.card = first.card.model_copy(update={"name": "another"})
    registry = {"another": first, "toy": last}
    asked: list[str] = []
    scores_of = ModuleRun.scores_of

    def noting(run: ModuleRun, benchmark: Benchmark, *rest: Any) -> Scored:
        asked.append(benchmark.name)
        return scores_of(run, benchmark, *rest)

    monkeypatch.setattr(ModuleRun, "scores_of", noting)
    (name,) = rig.stock(["hub:ada"], benchmarks=("another", "toy"))
    rig.worker(registry=registry).run_all()
    assert asked == ["toy", "another"]
    assert rig.state(name) is State.PUBLISHED


@pytest.mark.parametrize(
    "error",
    [
        failure(Code.IMPORT_FAILED, "No module named x (while importing)."),
        failure(Code.TIMEOUT, "Scoring batch 1 took longer than 3 s."),
        SubmitterError("model_missing", "There is no model a/b."),
        PlatformError("box_not_ended", "Processes are still running."),
    ],
    ids=lambda error: error.code,
)
def test_what_holds_no_words_of_a_scorer_that_saw_questions_stays(error: SubmitterError) -> None:
    assert without_its_words(error) is error


# What lies on the worker's machine is not for its other users ----------------------------------

SOMEBODY = 65533


@pytest.fixture
def open_place() -> Iterator[Path]:
    """A folder that every user can reach, with the usual rights of new files."""
    before = os.umask(0o022)
    with tempfile.TemporaryDirectory(prefix="assay-open-", dir="/var/tmp") as name:
        Path(name).chmod(0o755)
        yield Path(name)
    os.umask(before)


def found_by_somebody(folder: Path) -> str:
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    done = subprocess.run(
        ["find", str(folder), "-type", "f"], capture_output=True, text=True, check=False,
        user=SOMEBODY, group=SOMEBODY, extra_groups=[],
    )  # fmt: skip
    return done.stdout


def test_neither_uploads_in_work_nor_finished_scores_can_be_found(open_place: Path) -> None:
    rig = Rig(open_place)
    sent, role = rig.send().submission, rig.worker().scorers

    def fetch(_: Submission, target: Path) -> None:
        target.write_text("code that is nobody else's")

    with role.fetched(sent, fetch) as upload:
        assert upload.read_text()
        assert found_by_somebody(role.scratch) == ""
    rig.worker().run_next()
    shard = role.shards_of(sent) / "toy" / "a.parquet"
    shard.parent.mkdir(parents=True)
    shard.write_text("scores")
    assert found_by_somebody(role.scratch) == ""


def test_the_private_part_of_a_store_is_for_its_owner_alone(open_place: Path) -> None:
    store = folder_store(open_place / "store")
    for part in (store.private, store.public):
        part.commit({"a": b"text"}, parent=part.head(), message="a")
    found = found_by_somebody(open_place / "store")
    assert "/public/a" in found
    assert "/private/" not in found
