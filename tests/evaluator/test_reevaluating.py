"""A new edition of a benchmark: what it concerns is run again, once, and nothing is lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from evaluator.bundled import bundled_hashes
from evaluator.scoring.plan import PLAN_VERSION
from evaluator.worker.roles import WorkerRole
from leaderboard.governance.accounts import ASSAY
from leaderboard.governance.acts import Acts
from leaderboard.governance.policy import Policy
from leaderboard.ledger.chronicle import read_lines, verify
from leaderboard.ledger.ledger import Ledger
from leaderboard.records import Status
from leaderboard.reevaluation.archive import old_results, old_tags
from leaderboard.reevaluation.comparing import compared
from leaderboard.reevaluation.earlier_boards import progress, read_board
from leaderboard.reevaluation.editions import CONTRACT
from leaderboard.reevaluation.outdated import OTHER_REVISION, Act
from leaderboard.reevaluation.requeue import Wanted, plan, requeue
from leaderboard.states import State
from leaderboard.store.interface import Changes
from tests.evaluator.revised import Revised, module, publish, result, shown, start, values
from tests.evaluator.rig import ADA, ROOT, Rig
from tests.tiers import all_slow_but_one

SCORES = "pair_id,m\na,1\nb,2\nc,3\n"


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def status(rig: Rig, submission_id: str) -> Status:
    return Ledger(rig.store).whole_status(submission_id)


def states(rig: Rig, submission_id: str) -> list[State]:
    return [event.state for event in Ledger(rig.store).events(submission_id)]


def test_the_contract_of_editions_is_the_one_of_the_scoring_plan() -> None:
    assert CONTRACT == PLAN_VERSION


def test_a_new_revision_runs_again_what_it_concerns_and_old_results_stay(rig: Rig) -> None:
    ids = publish(rig, ["grey", "white"])
    assert values(rig) == {"grey": 1.0, "white": 1.0}
    rig.toy = Revised()
    done = start(rig)
    assert {one.submission_id for one in done.found} == set(ids.values())
    queued = status(rig, ids["grey"])
    assert (queued.state, queued.code, queued.by) == (State.QUEUED, "new_revision", ASSAY.key)
    assert "toy is now at revision 2 (was revision 1)" in queued.reason
    assert queued.on_boards
    assert shown(rig).boards["toy"].cells == (), "the board of the new revision is empty yet"
    rig.worker("second").run_all()
    assert values(rig) == {"grey": 2.0, "white": 2.0}
    assert result(rig, ids["grey"]).revision == "2"
    assert result(rig, ids["grey"], "at/1/").revision == "1"
    assert verify(rig.store.public) == ()


def test_every_file_of_an_old_result_is_found_byte_by_byte_under_its_revision(rig: Rig) -> None:
    (name,) = publish(rig, ["grey"]).values()
    public = rig.store.public
    before = {path: public.read(path) for path in public.list(f"results/{name}/")}
    rig.toy = Revised()
    start(rig)
    rig.worker("second").run_all()
    after = {path: public.read(path) for path in public.list(f"results/{name}/at/1/")}
    assert after == {
        path.replace(f"results/{name}/", f"results/{name}/at/1/"): content
        for path, content in before.items()
    }
    submission = status(rig, name).submission
    assert old_tags(rig.store, submission) == ("1",)
    (old,) = old_results(rig.store, submission, "1")
    assert old.result.rows[0]["value"] == 1.0


def test_the_chronicle_says_what_changed_before_it_says_what_is_queued(rig: Rig) -> None:
    publish(rig, ["grey", "white"])
    rig.toy = Revised()
    before = len(read_lines(rig.store.public))
    head = int(rig.store.public.head())
    reevaluated = requeue(rig.store, {"toy": rig.toy.card})
    assert len(reevaluated.found) == 2
    lines = read_lines(rig.store.public)[before:]
    assert [line.action for line in lines] == ["new_edition", "queued", "queued"]
    assert lines[0].subject == "toy"
    assert "revision 2 (was revision 1)" in lines[0].reason
    assert int(rig.store.public.head()) == head + 2, "one commit for the batch, one for the mark"


def test_however_many_there_are_no_result_is_read_to_find_them(rig: Rig) -> None:
    ids = publish(rig, ["grey", "white", "black"])
    rig.toy = Revised()
    read: list[str] = []
    public = rig.store.public

    class Counting:
        def __getattr__(self, name: str) -> object:
            return getattr(public, name)

        def read(self, path: str) -> bytes:
            read.append(path)
            return public.read(path)

    counting = replace(rig.store, public=Counting())  # type: ignore[arg-type]
    assert len(plan(counting, {"toy": rig.toy.card}).found) == len(ids)
    assert not [path for path in read if path.startswith(("results/", "submissions/"))]
    assert len(read) <= 6


def test_two_workers_that_start_at_once_queue_nothing_twice(rig: Rig) -> None:
    ids = publish(rig, ["grey", "white"])
    rig.toy = Revised()
    other: list[int] = []
    public = rig.store.public

    class Racing:
        """Lets another worker start just before a commit of this one."""

        def __getattr__(self, name: str) -> object:
            return getattr(public, name)

        def commit(self, changes: Changes, *, parent: str, message: str) -> str:
            if not other:
                other.append(1)
                other.append(len(requeue(rig.store, {"toy": rig.toy.card}).found))
            return public.commit(changes, parent=parent, message=message)

    racing = replace(rig.store, public=Racing())  # type: ignore[arg-type]
    requeue(racing, {"toy": rig.toy.card})
    assert other == [1, 2]
    for name in ids.values():
        assert states(rig, name).count(State.QUEUED) == 2
    announced = [x for x in read_lines(public) if x.action == "new_edition"]
    assert len(announced) == 1
    assert verify(public) == ()


class KilledError(BaseException):
    """Stands for a process that is killed."""


def killed_after(rig: Rig, commits: int, act: Callable[[Rig], object]) -> bool:
    """Do something in a process that dies after so many commits; whether it lived."""
    public, made = rig.store.public, [0]

    class Mortal:
        def __getattr__(self, name: str) -> object:
            return getattr(public, name)

        def commit(self, changes: Changes, *, parent: str, message: str) -> str:
            if made[0] == commits:
                raise KilledError
            made[0] += 1
            return public.commit(changes, parent=parent, message=message)

    mortal = replace(rig, store=replace(rig.store, public=Mortal()))  # type: ignore[arg-type]
    try:
        act(mortal)
    except KilledError:
        return False
    return True


def in_batches_of_one(rig: Rig) -> None:
    requeue(rig.store, {"toy": rig.toy.card}, batch=1)


@pytest.mark.parametrize("commits", all_slow_but_one(range(5)))
def test_killed_between_any_two_commits_every_submission_is_queued_once(
    rig: Rig, commits: int
) -> None:
    ids = publish(rig, ["grey", "white", "black"])
    rig.toy = Revised()
    lived = killed_after(rig, commits, in_batches_of_one)
    assert lived is (commits > 3)
    again = requeue(rig.store, {"toy": rig.toy.card})
    assert len(again.found) == 3 - min(commits, 3)
    for name in ids.values():
        assert states(rig, name).count(State.QUEUED) == 2
    assert verify(rig.store.public) == ()
    rig.worker("last").run_all()
    assert values(rig) == {"grey": 2.0, "white": 2.0, "black": 2.0}


@pytest.mark.parametrize("commits", all_slow_but_one(range(9)))
def test_killed_while_it_runs_again_the_boards_never_mix_revisions(rig: Rig, commits: int) -> None:
    ids = publish(rig, ["grey", "white"])
    rig.toy = Revised()

    def whole(mortal: Rig) -> None:
        start(mortal)
        mortal.worker("dying").run_all()

    killed_after(rig, commits, whole)
    board = shown(rig).boards["toy"]
    assert len({cell.value for cell in board.cells}) <= 1, (
        "1.0 is of one revision, 2.0 of the other"
    )
    rig.clock.move(days=1)
    start(rig)
    rig.worker("heir").run_all()
    assert values(rig) == {"grey": 2.0, "white": 2.0}
    for name in ids.values():
        assert result(rig, name, "at/1/").rows[0]["value"] == 1.0
        assert result(rig, name).rows[0]["value"] == 2.0
        assert states(rig, name).count(State.PUBLISHED) == 2
    kept = read_board(rig.store.public, "toy", "1")
    assert kept is not None
    assert {cell.value for cell in kept.board.cells} == {1.0}
    assert len(kept.entries) == 2


def test_while_half_is_done_the_earlier_board_is_whole_and_the_new_one_unmixed(rig: Rig) -> None:
    publish(rig, ["grey", "white", "black"])
    rig.toy = Revised()
    start(rig)
    rig.worker("second").run_next()
    now = shown(rig).boards["toy"]
    assert [cell.value for cell in now.cells] == [2.0]
    earlier = read_board(rig.store.public, "toy", "1")
    assert earlier is not None
    assert [cell.value for cell in earlier.board.cells] == [1.0] * 3
    found = progress(earlier, [cell.entry_id for cell in now.cells], Ledger(rig.store).statuses())
    assert (found.done, found.of, found.waiting) == (1, 3, 2)


def test_what_moved_compares_the_board_of_before_with_the_one_of_now(rig: Rig) -> None:
    publish(rig, ["grey"])
    rig.toy = Revised(3.0)
    start(rig)
    publish(rig, ["white"])
    found = compared(rig.store, rig.toy.card)
    assert (found.earlier.tag, found.later.tag) == ("1", "2")
    (moved,) = found.movement.moved
    assert (moved.then.value, moved.now.value, moved.difference) == (1.0, 3.0, 2.0)
    assert [entry.metric for entry in found.movement.came] == ["white"]
    assert found.movement.left == ()


def test_kept_scores_are_judged_again_where_only_the_protocol_changed(rig: Rig) -> None:
    (name,) = publish(rig, ["grey"]).values()
    asked = len(rig.backend.asked)
    rig.toy = Revised(5.0, revision="1", protocol=2)
    (one,) = start(rig).found
    assert one.act is Act.REJUDGE
    assert status(rig, name).to_judge
    assert not rig.worker("scorer", role=WorkerRole.SCORE).run_next(), "there is nothing to score"
    assert rig.worker("judge", role=WorkerRole.JUDGE).run_next()
    assert len(rig.backend.asked) == asked, "no code was run"
    assert values(rig) == {"grey": 5.0}
    now = result(rig, name)
    assert (now.revision, now.protocol, now.contract) == ("1", 2, PLAN_VERSION)
    assert now.isolation == ("fake",)
    assert result(rig, name, "at/1/").protocol == 1
    assert start(rig).found == ()


def test_scores_stand_for_a_revision_that_says_it_asks_the_same_questions(rig: Rig) -> None:
    publish(rig, ["grey"])
    asked = len(rig.backend.asked)
    rig.toy = Revised(4.0, same_questions_as=("1",))
    (one,) = start(rig).found
    assert one.act is Act.REJUDGE
    rig.worker("any").run_all()
    assert len(rig.backend.asked) == asked
    assert values(rig) == {"grey": 4.0}


def test_authors_of_scores_for_other_questions_are_told_once_what_to_send(rig: Rig) -> None:
    sent = rig.send_scores(SCORES)
    name = sent.submission.submission_id
    rig.worker().run_all()
    rig.toy = Revised()
    (one,) = start(rig).found
    assert one.act is Act.TELL
    told = status(rig, name)
    assert (told.state, told.code, told.on_boards) == (State.PUBLISHED, OTHER_REVISION, True)
    assert "stay with it" in told.reason
    assert "--benchmark toy" in told.hint
    assert shown(rig).boards["toy"].cells == ()
    rig.clock.move(days=1)
    assert start(rig).found == ()
    assert requeue(rig.store, {"toy": rig.toy.card}, Wanted(reason="again")).found == ()
    assert not rig.worker("second").run_next()
    kept = read_board(rig.store.public, "toy", "1")
    assert kept is not None
    found = progress(kept, (), Ledger(rig.store).statuses())
    assert (found.done, found.of, found.others_must) == (0, 1, 1)


def test_scores_files_are_read_again_where_their_questions_are_the_same(rig: Rig) -> None:
    rig.send_scores(SCORES)
    rig.worker().run_all()
    rig.toy = Revised(2.0, same_questions_as=("1",))
    (one,) = start(rig).found
    assert one.act is Act.RERUN
    rig.worker("second").run_all()
    assert values(rig) == {"m": 4.0}


def test_what_fails_in_the_new_revision_is_not_tried_at_every_start(rig: Rig) -> None:
    (name,) = publish(rig, ["grey"]).values()

    def broken(*_: object) -> float:
        raise ValueError("broken")

    rig.toy = Revised()
    rig.backend.score = broken
    start(rig)
    for n in range(8):  # Whoever is blamed, and however often it is tried.
        rig.clock.move(hours=2)
        rig.worker(f"later-{n}").run_all()
    assert status(rig, name).state is State.FAILED
    rig.clock.move(days=1)
    assert start(rig).found == ()
    rig.toy = Revised(revision="3")
    assert len(start(rig).found) == 1, "a further revision is another chance"


def test_an_older_installation_does_not_turn_the_boards_back(rig: Rig) -> None:
    (name,) = publish(rig, ["grey"]).values()
    old, rig.toy = rig.toy, Revised()
    start(rig)
    rig.worker("second").run_all()
    newer, rig.toy = rig.toy, old
    assert start(rig).found == ()
    assert values(rig) == {"grey": 2.0}
    rig.send(module("white"))
    rig.worker("old").run_all()
    assert values(rig) == {"grey": 2.0}, "what it still runs is on no board of now"
    found = requeue(rig.store, {"toy": old.card})
    assert found.found == ()
    assert "Update this installation" in found.passed_over[0]
    assert status(rig, name).state is State.PUBLISHED
    rig.toy = newer
    (again,) = start(rig).found
    assert again.status.submission.name == "white"
    rig.worker("new").run_all()
    assert values(rig) == {"grey": 2.0, "white": 2.0}


def test_the_policy_says_whether_it_happens_by_itself(rig: Rig) -> None:
    (name,) = publish(rig, ["grey"]).values()
    acts = Acts(rig.store, {"toy": rig.toy.card}, rig.clock)
    acts.set_policy(Policy(reevaluate=False), ROOT, "the GPU is busy")
    rig.toy = Revised()
    assert start(rig).found == ()
    assert status(rig, name).state is State.PUBLISHED
    done = requeue(
        rig.store, {"toy": rig.toy.card}, Wanted(benchmark="toy", by=ROOT.key, reason="now")
    )
    assert len(done.found) == 1
    queued = status(rig, name)
    assert (queued.by, queued.reason.endswith("now")) == (ROOT.key, True)


def test_a_changed_scorer_is_run_again_by_name_and_its_old_result_stays(rig: Rig) -> None:
    ids = publish(rig, ["grey", "white"])
    rig.backend.score = lambda brightness, _: brightness + 1.0
    wanted = Wanted(scorer="grey", by=ROOT.key, reason="its checkpoint was mended")
    requeue(rig.store, {"toy": rig.toy.card}, wanted)
    assert status(rig, ids["grey"]).code == "new_scorer"
    assert status(rig, ids["white"]).state is State.PUBLISHED
    rig.clock.move(hours=1)
    rig.worker("second").run_all()
    assert values(rig) == {"grey": 2.0, "white": 1.0}
    (tag,) = old_tags(rig.store, status(rig, ids["grey"]).submission)
    assert tag.startswith("1~2026")
    assert verify(rig.store.public) == ()


def test_asking_for_a_scorer_by_name_tells_of_no_private_submission_of_that_name(rig: Rig) -> None:
    private = rig.send(module("grey"), private=True).submission.submission_id
    rig.worker().run_all()
    wanted = Wanted(scorer="grey", by=ROOT.key, reason="its checkpoint was mended")
    before = rig.store.public.head()
    done = requeue(rig.store, {"toy": rig.toy.card}, wanted)
    assert rig.store.public.head() == before
    assert status(rig, private).state is State.HELD
    assert [private in said for said in done.passed_over] == [True], "the operator is told"


def test_private_submissions_are_run_again_and_their_old_results_stay_private(rig: Rig) -> None:
    sent = rig.send(module("grey"), private=True)
    name = sent.submission.submission_id
    rig.worker().run_all()
    assert status(rig, name).state is State.HELD
    rig.toy = Revised()
    start(rig)
    rig.worker("second").run_all()
    assert status(rig, name).state is State.HELD
    whole = status(rig, name).submission
    (old,) = old_results(rig.store, whole, "1")
    assert old.result.rows[0]["value"] == 1.0
    assert not [path for path in rig.store.public.list() if path.startswith(f"results/{name}")]
    assert whole.account == ADA.key
    assert rig.store.private.has(f"held/{name}/results/at/1/toy.json")
    Acts(rig.store, {"toy": rig.toy.card}, rig.clock).publish(name, ADA)
    published = status(rig, name).submission
    (shown_now,) = old_results(rig.store, published, "1")
    assert shown_now.result == old.result
    assert values(rig) == {"grey": 2.0}


def sent_by_assay(rig: Rig) -> list[Status]:
    ours = [s for s in Ledger(rig.store).statuses() if s.submission.account == ASSAY.key]
    return [s for s in ours if s.submission.name == "random-floor"]


def test_a_bundled_scorer_with_new_content_takes_the_place_of_the_old_once(rig: Rig) -> None:
    rig.send(module("random-floor"), account=ASSAY)
    rig.worker().run_all()
    rig.clock.move(hours=1)
    start(rig)
    old, new = sent_by_assay(rig)
    assert (old.state, new.state) == (State.PUBLISHED, State.QUEUED)
    assert new.submission.content_sha256 in bundled_hashes()
    assert len(shown(rig).boards["toy"].cells) == 1, "the old one stands until the new one does"
    start(rig)
    assert len(sent_by_assay(rig)) == 2
    rig.worker("second").run_all()
    old, new = sent_by_assay(rig)
    assert (old.state, new.state) == (State.SUPERSEDED, State.PUBLISHED)
    (cell,) = shown(rig).boards["toy"].cells
    assert cell.entry_id.startswith(new.submission.submission_id)
    start(rig)
    assert len(sent_by_assay(rig)) == 2


def test_a_store_without_bundled_scorers_gets_none(rig: Rig) -> None:
    publish(rig, ["random-floor"])
    start(rig)
    assert sent_by_assay(rig) == []
