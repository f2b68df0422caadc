"""What a publication changes for others: same scores are flagged, boards and cases stand once."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.cases import cases_path, read_cases
from evaluator.worker.publishing import PublishedHashes
from leaderboard.accounts import ASSAY, Account
from leaderboard.publication.publisher import cards_of
from leaderboard.publication.rebuilding import differences, rebuilt
from leaderboard.publication.snapshot import read_snapshot
from leaderboard.records import RunResult
from leaderboard.states import State
from tests.evaluator.revised import Revised
from tests.kit.toy import PAIRS, Toy
from tests.kit.worker import ADA, BOB, ROOT, Rig, Secret, named, on_commit, paths_read, raising
from tests.leaderboard.publication.test_case_files import Looked

SCORES = "pair_id,m,n\na,1,4\nb,2,5\nc,3,\n"


def run(rig: Rig, text: str, account: Account, name: str = "s") -> RunResult:
    """Send scores and have them published."""
    submission = rig.send_scores(text, account=account, name=name).submission
    assert rig.worker().run_next()
    return rig.result(submission.submission_id)


# The very same scores -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "account", "toy", "flagged"),
    [
        pytest.param("pair_id,mine\nc,3.0000001\nb,2\na,1\n", BOB, Toy(), True, id="equal"),
        pytest.param("pair_id,mine\na,1\nb,2\nc,3.0001\n", BOB, Toy(), False, id="other"),
        pytest.param(SCORES, ADA, Toy(), False, id="one's own"),
        pytest.param(SCORES, BOB, Revised(1.0), False, id="other-revision"),
    ],
)  # fmt: skip
def test_equal_scores_of_another_account_are_flagged_by_its_submission(
    rig: Rig, text: str, account: Account, toy: Toy, flagged: bool
) -> None:
    first = run(rig, SCORES, ADA)
    assert first.same_scores_as == ()
    assert set(first.scores_sha256) == {"m", "n"}
    rig.toy = toy
    second = run(rig, text, account, name="again")
    assert second.same_scores_as == ((first.submission_id,) if flagged else ())


def test_a_module_that_gives_the_scores_of_a_file_is_flagged_but_for_assays_own(rig: Rig) -> None:
    """Whoever copies those first does not mark them."""
    first = run(rig, "pair_id,m\na,0\nb,1\nc,2\n", ADA)
    module, own = rig.sent(account=BOB), rig.send(account=ASSAY).submission
    rig.worker().run_all()
    assert rig.result(module).same_scores_as == (first.submission_id,)
    assert (own.same_content_as, rig.result(own.submission_id).same_scores_as) == ((), ())


def test_what_is_held_is_neither_compared_with_nor_named(rig: Rig) -> None:
    held = rig.send_scores(SCORES, private=True).submission
    rig.worker().run_next()
    other = run(rig, SCORES, BOB, name="other")
    assert other.same_scores_as == ()
    assert held.submission_id not in other.model_dump_json()


def test_behind_private_answers_no_hash_is_published_and_scores_are_read_once(
    rig: Rig,
) -> None:
    """A published hash of few possible scores could be guessed at."""
    rig.toy = Secret()
    first = run(rig, SCORES, ADA)
    assert first.scores_sha256 == {}
    same = rig.send_scores(SCORES, account=BOB, name="b").submission
    rig.send_scores("pair_id,m\na,7\nb,2\nc,3\n", account=BOB, name="c")
    asked = paths_read(rig.store.private)
    rig.worker().run_all()
    assert rig.result(same.submission_id).same_scores_as == (first.submission_id,)
    assert asked.count(f"results/{first.submission_id}/toy.scores.parquet") == 1


def rewritten(rig: Rig, first: RunResult, content: bytes) -> None:
    path, public = f"results/{first.submission_id}/toy.json", rig.store.public
    public.commit({path: content}, parent=public.head(), message="old")


def test_results_older_than_hashes_are_compared_by_their_scores(rig: Rig) -> None:
    first = run(rig, SCORES, ADA)
    old = first.model_copy(update={"scores_sha256": {}})
    rewritten(rig, first, old.model_dump_json().encode())
    assert run(rig, SCORES, BOB).same_scores_as == (first.submission_id,)


def test_a_damaged_result_of_another_fails_nobody(rig: Rig) -> None:
    """It is older than the origins that say the hashes, and cannot be read any more."""
    first = run(rig, SCORES, ADA)
    found = PublishedHashes(rig.store).on(first, {})
    (status,) = rig.ledger.statuses()
    assert found(status.submission) == frozenset(first.scores_sha256.values())
    rewritten(rig, first, b"{")
    assert found(status.submission) == frozenset()


def test_a_publication_reads_no_results_of_others_however_many_there_are(
    rig: Rig,
) -> None:
    for n in range(4):
        run(rig, f"pair_id,m\na,{n}\nb,2\nc,3\n", Account(origin=BOB.origin, name=f"b{n}"))
    asked = paths_read(rig.store.public)
    late = run(rig, "pair_id,m\na,2\nb,2\nc,3\n", ADA, name="late")
    assert len(late.same_scores_as) == 1
    assert asked
    others = [
        path for path in asked if path.startswith("results/") and late.submission_id not in path
    ]
    assert not [path for path in others if path.endswith((".json", ".scores.parquet"))]


# Newer versions and failures ------------------------------------------------------------------


def standing(rig: Rig) -> set[str]:
    return {entry.submission_id for entry in rig.shown().entries.values()}


def test_a_new_version_takes_the_place_of_the_old_in_the_same_commit(rig: Rig) -> None:
    first = rig.ran()
    rig.clock.move(minutes=1)
    second = rig.sent(named("grey", "2"))
    before = rig.head
    rig.worker().run_next()
    assert rig.head == before + 2, "claimed, published"
    assert (rig.state(first), rig.state(second)) == (State.SUPERSEDED, State.PUBLISHED)
    assert standing(rig) == {second}
    assert rig.result(second).same_scores_as == ()
    assert rig.result(first).rows, "the old one stays in the history"


def test_a_version_that_gives_way_as_its_rerun_fails_leaves_the_boards_in_that_commit(
    rig: Rig,
) -> None:
    old = rig.ran()
    rig.acts.rerun(old, ROOT, "New data.")
    rig.clock.move(minutes=1)
    new = rig.sent(named("grey", "2"))
    assert rig.worker("w2").run(new)
    assert standing(rig) == {old, new}, "what is run again keeps its place until that has ended"
    rig.backend = raising(RuntimeError("a defect"))
    rig.worker("w3").run_all()
    status = rig.status(old)
    assert (status.state, status.on_boards) == (State.SUPERSEDED, False)
    assert standing(rig) == {new}
    right = rebuilt(rig.store, cards_of({"toy": rig.toy}), rig.clock())
    assert differences(read_snapshot(rig.store.public), right) == ()


# What people said of a benchmark --------------------------------------------------------------

CASES = cases_path("toy", "1")


def test_cases_come_in_the_commit_of_the_first_results_that_are_shown_and_stay(
    tmp_path: Path,
) -> None:
    rig = Rig(tmp_path, toy=(toy := Looked()))
    commits: list[list[str]] = []
    on_commit(rig.store.public, lambda changes, _: commits.append(sorted(changes)))
    rig.send_scores(SCORES, private=True)
    rig.worker().run_next()
    assert not rig.store.public.has(CASES)
    for n in range(2):
        run(rig, SCORES.replace("a,1", f"a,{n}"), ADA, name=f"metric-{n}")
    (with_cases,) = (paths for paths in commits if CASES in paths)
    assert any(path.endswith("toy.json") for path in with_cases)
    assert read_cases(rig.store.public.read(CASES))["pair_id"].tolist() == list(PAIRS)
    assert toy.made == 1
