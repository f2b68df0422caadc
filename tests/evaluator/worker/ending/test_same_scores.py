"""One metric under two names is flagged: by its content, or by its very scores."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluator.worker.ending.sameness import PublishedHashes
from leaderboard.governance.accounts import ASSAY, Account
from leaderboard.ledger.ledger import Ledger
from leaderboard.records import RunResult
from leaderboard.store.interface import Repository
from tests.benchmarks.toy import Toy
from tests.evaluator.rig import ADA, BOB, MODULE, Rig

SCORES = "pair_id,m,n\na,1,4\nb,2,5\nc,3,\n"


class Secret(Toy):
    """Its answers are not public."""

    card = Toy.card.model_copy(update={"answers_public": False})


class Revised(Toy):
    """A later revision of the same benchmark."""

    card = Toy.card.model_copy(update={"revision": "2"})


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def run(rig: Rig, text: str, account: Account, name: str = "s") -> RunResult:
    """Send scores and have them published."""
    submission = rig.send_scores(text, account=account, name=name).submission
    assert rig.worker().run_next()
    return result_of(rig, submission.submission_id)


def result_of(rig: Rig, submission_id: str) -> RunResult:
    return RunResult.model_validate_json(rig.store.public.read(f"results/{submission_id}/toy.json"))


def paths_read(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is read of a repository from now on."""
    found: list[str] = []
    read = repository.read

    def told(path: str) -> bytes:
        found.append(path)
        return read(path)

    monkeypatch.setattr(repository, "read", told)
    return found


def test_equal_scores_of_another_account_are_flagged_by_its_submission(rig: Rig) -> None:
    first = run(rig, SCORES, ADA)
    assert first.same_scores_as == ()
    assert set(first.scores_sha256) == {"m", "n"}
    second = run(rig, "pair_id,mine\nc,3.0000001\nb,2\na,1\n", BOB)
    assert second.same_scores_as == (first.submission_id,)


def test_a_module_that_gives_the_scores_of_a_file_is_flagged(rig: Rig) -> None:
    first = run(rig, "pair_id,m\na,0\nb,1\nc,2\n", ADA)
    module = rig.send(account=BOB).submission
    rig.worker().run_next()
    assert result_of(rig, module.submission_id).same_scores_as == (first.submission_id,)


def test_scores_that_differ_are_not_flagged(rig: Rig) -> None:
    run(rig, SCORES, ADA)
    assert run(rig, "pair_id,mine\na,1\nb,2\nc,3.0001\n", BOB).same_scores_as == ()


def test_ones_own_earlier_scores_are_no_finding(rig: Rig) -> None:
    run(rig, SCORES, ADA)
    assert run(rig, SCORES, ADA, name="again").same_scores_as == ()


def test_scores_on_another_revision_are_other_scores(rig: Rig) -> None:
    run(rig, SCORES, ADA)
    rig.toy = Revised()
    assert run(rig, SCORES, BOB).same_scores_as == ()


def test_whoever_copies_assays_own_first_does_not_mark_them(rig: Rig) -> None:
    rig.send()
    own = rig.send(account=ASSAY).submission
    rig.worker().run_all()
    assert (own.same_content_as, result_of(rig, own.submission_id).same_scores_as) == ((), ())


def test_what_is_held_is_neither_compared_with_nor_named(rig: Rig) -> None:
    held = rig.send_scores(SCORES, private=True).submission
    rig.worker().run_next()
    other = run(rig, SCORES, BOB, name="other")
    assert other.same_scores_as == ()
    assert held.submission_id not in other.model_dump_json()


def test_on_private_answers_no_hash_is_published_and_equal_scores_are_found(rig: Rig) -> None:
    """A published hash of few possible scores could be guessed at."""
    rig.toy = Secret()
    first = run(rig, SCORES, ADA)
    assert first.scores_sha256 == {}
    assert run(rig, SCORES, BOB).same_scores_as == (first.submission_id,)


def test_results_older_than_hashes_are_compared_by_their_scores(rig: Rig) -> None:
    first = run(rig, SCORES, ADA)
    old = first.model_copy(update={"scores_sha256": {}})
    path = f"results/{first.submission_id}/toy.json"
    rig.store.public.commit(
        {path: old.model_dump_json().encode()}, parent=rig.store.public.head(), message="old"
    )
    assert run(rig, SCORES, BOB).same_scores_as == (first.submission_id,)


def test_a_new_version_takes_the_place_of_the_old_in_the_same_commit(rig: Rig) -> None:
    def version(n: int) -> dict[str, bytes]:
        return {**MODULE, "assay.toml": f'name = "grey"\nversion = "{n}"'.encode()}

    first = rig.send(version(1)).submission.submission_id
    rig.worker().run_next()
    rig.clock.move(minutes=1)
    second = rig.send(version(2)).submission.submission_id
    before = int(rig.store.public.head())
    rig.worker().run_next()
    assert int(rig.store.public.head()) == before + 2, "claimed, published"
    states = {s.submission.submission_id: str(s.state) for s in Ledger(rig.store).statuses()}
    assert states == {first: "superseded", second: "published"}
    assert result_of(rig, second).same_scores_as == ()
    assert result_of(rig, first).rows, "the old one stays in the history"


def test_a_publication_reads_no_results_of_others_however_many_there_are(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(4):
        run(rig, f"pair_id,m\na,{n}\nb,2\nc,3\n", Account(origin=BOB.origin, name=f"b{n}"))
    text = "pair_id,m\na,2\nb,2\nc,3\n"
    submission = rig.send_scores(text, account=ADA, name="late").submission
    asked = paths_read(rig.store.public, monkeypatch)
    rig.worker().run_next()
    assert asked
    results = [path for path in asked if path.endswith((".json", ".scores.parquet"))]
    assert [path for path in results if path.startswith("results/")] == []
    assert len(result_of(rig, submission.submission_id).same_scores_as) == 1


def test_scores_behind_private_answers_are_read_once_by_each_worker(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.toy = Secret()
    first = run(rig, SCORES, ADA)
    rig.send_scores(SCORES, account=BOB, name="b")
    rig.send_scores("pair_id,m\na,7\nb,2\nc,3\n", account=BOB, name="c")
    asked = paths_read(rig.store.private, monkeypatch)
    rig.worker().run_all()
    path = f"results/{first.submission_id}/toy.scores.parquet"
    assert asked.count(path) == 1


def test_a_damaged_result_of_another_fails_nobody(rig: Rig) -> None:
    """It is older than the origins that say the hashes, and cannot be read any more."""
    first = run(rig, SCORES, ADA)
    found = PublishedHashes(rig.store).on(first, {})
    (status,) = Ledger(rig.store).statuses()
    assert found(status.submission) == frozenset(first.scores_sha256.values())
    public = rig.store.public
    path = f"results/{first.submission_id}/toy.json"
    public.commit({path: b"{"}, parent=public.head(), message="damage")
    assert found(status.submission) == frozenset()
