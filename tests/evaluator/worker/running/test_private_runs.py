"""Private submissions: scored like any other, and seen by their author alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.errors import SubmitterError
from evaluator.worker.claims.heartbeat import RunProgress
from leaderboard.governance.acts import Acts
from leaderboard.governance.own import Own
from leaderboard.ledger.ledger import Ledger
from leaderboard.publication.snapshot import read_snapshot
from leaderboard.records import Status
from leaderboard.states import State
from leaderboard.store.live.interface import Pulse
from tests.benchmarks.toy import Toy
from tests.evaluator.rig import ADA, BOB, ROOT, FakeBackend, Rig

SECRETS = (b"grey", b"hub:ada", b'"ada"', b"very secret")


class Secret(Toy):
    """Its answers are not public."""

    card = Toy.card.model_copy(update={"answers_public": False})


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def acts(rig: Rig) -> Acts:
    return Acts(rig.store, {"toy": Toy.card}, rig.clock)


def scored(rig: Rig) -> Status:
    """A private submission that a worker has finished."""
    sent = rig.send(private=True)
    assert rig.worker().run_next()
    return Own(rig.store, ADA).status(sent.submission.submission_id)


def public_bytes(rig: Rig) -> bytes:
    return b"".join(rig.store.public.read(path) for path in rig.store.public.list())


def test_a_private_submission_ends_held_with_its_results_for_its_author_alone(rig: Rig) -> None:
    status = scored(rig)
    submission_id = status.submission.submission_id
    assert status.state is State.HELD
    (result,) = Own(rig.store, ADA).results(submission_id)
    assert result.rows[0]["value"] == 1.0
    assert [path for path in rig.store.public.list() if path.startswith("results/")] == []
    with pytest.raises(SubmitterError) as caught:
        Own(rig.store, BOB).results(submission_id)
    assert caught.value.code == "not_yours"


def test_nothing_public_tells_of_a_private_run(rig: Rig) -> None:
    seen: list[Pulse | RunProgress] = []

    def listen(run: RunProgress) -> None:
        worker.heart.beat()
        seen.extend([run, *rig.store.live.pulses()])

    worker = rig.worker(listener=listen)
    rig.send(private=True, submitter="very secret")
    assert worker.run_next()
    for secret in SECRETS:
        assert secret not in public_bytes(rig)
    assert len(seen) > 4
    assert all(secret.decode() not in str(one) for one in seen for secret in SECRETS)


def test_why_a_private_run_failed_is_told_to_its_author_alone(rig: Rig) -> None:
    def score(*_: object) -> float:
        raise SubmitterError("scorer_raised", "very secret at scorer.py:3.", "Mend it.")

    rig.backend = FakeBackend(score)
    status = scored(rig)
    assert (status.state, status.reason) == (State.FAILED, "very secret at scorer.py:3.")
    submission_id = status.submission.submission_id
    own = Own(rig.store, ADA).events(submission_id)[-1]
    assert (own.log, own.code) == ("hello from the scorer", "scorer_raised")
    public = Ledger(rig.store).events(submission_id)[-1]
    assert (public.state, public.fault, public.code) == (State.FAILED, "submitter", "")
    assert (public.reason, public.hint, public.log) == ("", "", "")
    for secret in SECRETS:
        assert secret not in public_bytes(rig)


@pytest.mark.parametrize("toy", [Toy(), Secret()])
def test_what_its_author_publishes_is_on_the_boards_with_all_its_results(
    rig: Rig, toy: Toy
) -> None:
    rig.toy = toy
    held = scored(rig).submission.submission_id
    Acts(rig.store, {"toy": toy.card}, rig.clock).publish(held, ADA)
    shown = read_snapshot(rig.store.public)
    assert shown is not None
    (cell,) = shown.boards["toy"].cells
    assert (cell.entry_id, cell.value) == (f"{held}/grey", 1.0)
    assert [p for p in rig.store.private.list("held/") if "/results/" in p] == []
    scores = f"results/{held}/toy.scores.parquet"
    assert (scores in rig.store.public.list()) is toy.card.answers_public
    assert (scores in rig.store.private.list()) is not toy.card.answers_public


def test_a_rerun_of_what_was_published_stays_public(rig: Rig) -> None:
    held = scored(rig).submission.submission_id
    acts(rig).publish(held, ADA)
    acts(rig).rerun(held, ROOT, "new data")
    assert rig.worker().run_next()
    assert Ledger(rig.store).status(held).state is State.PUBLISHED


def test_a_rerun_of_what_is_held_is_held_again(rig: Rig) -> None:
    held = scored(rig).submission.submission_id
    acts(rig).rerun(held, ROOT, "new data")
    rig.backend = FakeBackend(lambda brightness, _: brightness + 1.0)
    assert rig.worker().run_next()
    assert Ledger(rig.store).status(held).state is State.HELD
    (result,) = Own(rig.store, ADA).results(held)
    assert result.rows[0]["value"] == 2.0


def test_a_private_run_needs_no_more_public_commits_than_another(rig: Rig) -> None:
    before = int(rig.store.public.head())
    scored(rig)
    assert int(rig.store.public.head()) == before + 3
