"""A new edition of a benchmark: what it concerns is run again, once, and nothing is lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.rows import Measured
from benchmarks.schema import ScoreTable
from benchmarks.statistics.resampling import ResamplingPlan
from evaluator.bundled import bundled_hashes
from evaluator.scoring.asking import PLAN_VERSION
from evaluator.submission.service import SubmissionService
from evaluator.worker.tasks import WorkerRole
from evaluator.worker.worker import Worker
from leaderboard.accounts import ASSAY
from leaderboard.governance.operator_actions import OperatorActions
from leaderboard.ledger.audit_log import read_lines, verify
from leaderboard.ledger.editions import CONTRACT, OTHER_REVISION
from leaderboard.ledger.policy import Policy
from leaderboard.publication.changes import compared
from leaderboard.publication.earlier_boards import EarlierBoard, progress, read_board
from leaderboard.publication.publisher import Publisher, cards_of
from leaderboard.publication.requeue import RequeueAction, RequeueRequest, plan, requeue
from leaderboard.publication.results import old_results, old_tags
from leaderboard.records import Status
from leaderboard.states import State
from tests.evaluator.revised import Revised, publish, start
from tests.kit.toy import Toy
from tests.kit.worker import (
    ADA,
    BOB,
    ROOT,
    SCORES,
    Killed,
    Rig,
    named,
    on_commit,
    paths_read,
    raising,
)


def values(rig: Rig) -> dict[str, float | None]:
    """Metric to headline on the board of now."""
    return {cell.entry_id.partition("/")[2]: cell.value for cell in rig.cells()}


def earlier_board(rig: Rig) -> EarlierBoard:
    found = read_board(rig.store.public, "toy", "1")
    assert found is not None
    return found


def test_the_contract_of_editions_is_the_one_of_the_scoring_plan() -> None:
    assert CONTRACT == PLAN_VERSION


def test_a_new_revision_runs_again_what_it_concerns_and_old_results_stay(rig: Rig) -> None:
    """The chronicle says what changed before what is queued; boards of two editions never mix."""
    ids = publish(rig, ["grey", "white", "black"])
    name, public, head = ids["grey"], rig.store.public, rig.head
    before = {path: public.read(path) for path in public.list(f"results/{name}/")}
    lines = len(read_lines(public))
    rig.toy = Revised()
    assert {one.submission_id for one in start(rig).found} == set(ids.values())
    edition, *queued = read_lines(public)[lines:]
    assert (edition.action, edition.subject) == ("new_edition", "toy")
    assert "revision 2 (was revision 1)" in edition.reason
    assert [line.action for line in queued] == ["queued"] * 3
    assert rig.head == head + 3, "one commit for the batch, one for the mark, one for the cards"
    status = rig.status(name)
    assert (status.state, status.code, status.by) == (State.QUEUED, "new_revision", ASSAY.key)
    assert status.on_boards
    assert rig.cells() == (), "the board of the new revision is empty yet"

    worker = rig.worker("second")
    worker.run_next()
    assert [cell.value for cell in rig.cells()] == [2.0]
    earlier = earlier_board(rig)
    assert [cell.value for cell in earlier.board.cells] == [1.0] * 3
    found = progress(earlier, [cell.entry_id for cell in rig.cells()], rig.ledger.statuses())
    assert (found.done, found.of, found.waiting) == (1, 3, 2)

    worker.run_all()
    assert values(rig) == {"grey": 2.0, "white": 2.0, "black": 2.0}
    assert (rig.result(name).revision, rig.result(name, "at/1/").revision) == ("2", "1")
    kept = {path.replace("/at/1/", "/"): public.read(path) for path in public.list(f"results/{name}/at/1/")}  # fmt: skip
    assert kept == before, "byte by byte"
    submission = rig.status(name).submission
    assert old_tags(rig.store, submission) == ("1",)
    (old,) = old_results(rig.store, submission, "1")
    assert old.result.rows[0]["value"] == 1.0
    assert verify(public) == ()


def test_however_many_there_are_no_result_is_read_to_find_them(rig: Rig) -> None:
    publish(rig, ["grey", "white", "black"])
    rig.toy = Revised()
    paths = paths_read(rig.store.public)
    assert len(plan(rig.store, {"toy": rig.toy.card}).found) == 3
    assert not [path for path in paths if path.startswith(("results/", "submissions/"))]
    assert 0 < len(paths) <= 6


def test_two_workers_that_start_at_once_queue_nothing_twice(rig: Rig) -> None:
    ids = publish(rig, ["grey", "white"])
    rig.toy = Revised()
    other: list[int] = []

    def another_starts(*_: object) -> None:
        if not other:
            other.append(1)
            other.append(len(requeue(rig.store, {"toy": rig.toy.card}).found))

    on_commit(rig.store.public, another_starts)
    requeue(rig.store, {"toy": rig.toy.card})
    assert other == [1, 2]
    assert {rig.states(name).count(State.QUEUED) for name in ids.values()} == {2}
    assert [x.action for x in read_lines(rig.store.public)].count("new_edition") == 1
    assert verify(rig.store.public) == ()


def killed_after(rig: Rig, commits: int, act: Callable[[], object]) -> bool:
    """Do something in a process that dies after so many commits; whether it lived."""
    left, mortal = [None] * commits, [True]

    def count(*_: object) -> None:
        if mortal and not left:
            raise Killed
        del left[:1]

    on_commit(rig.store.public, count)
    try:
        act()
    except Killed:
        return False
    finally:
        mortal.clear()
    return True


@pytest.mark.first_quick
@pytest.mark.parametrize("commits", range(5))
def test_killed_between_any_two_commits_every_submission_is_queued_once(
    rig: Rig, commits: int
) -> None:
    ids = publish(rig, ["grey", "white", "black"])
    rig.toy = Revised()
    cards = {"toy": rig.toy.card}
    lived = killed_after(rig, commits, lambda: requeue(rig.store, cards, batch=1))
    assert lived is (commits > 3)
    assert len(requeue(rig.store, {"toy": rig.toy.card}).found) == 3 - min(commits, 3)
    assert {rig.states(name).count(State.QUEUED) for name in ids.values()} == {2}
    assert verify(rig.store.public) == ()
    rig.worker("last").run_all()
    assert values(rig) == {"grey": 2.0, "white": 2.0, "black": 2.0}


@pytest.mark.first_quick
@pytest.mark.parametrize("commits", range(9))
def test_killed_while_it_runs_again_the_boards_never_mix_revisions(rig: Rig, commits: int) -> None:
    ids = publish(rig, ["grey", "white"])
    rig.toy = Revised()

    def whole() -> None:
        start(rig)
        rig.worker("dying").run_all()

    killed_after(rig, commits, whole)
    assert len({cell.value for cell in rig.cells()}) <= 1, "1.0 is of one revision, 2.0 of another"
    rig.clock.move(days=1)
    start(rig)
    rig.worker("heir").run_all()
    assert values(rig) == {"grey": 2.0, "white": 2.0}
    for name in ids.values():
        assert rig.result(name, "at/1/").rows[0]["value"] == 1.0
        assert rig.result(name).rows[0]["value"] == 2.0
        assert rig.states(name).count(State.PUBLISHED) == 2
    kept = earlier_board(rig)
    assert {cell.value for cell in kept.board.cells} == {1.0}
    assert len(kept.entries) == 2


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
    assert [one.act for one in start(rig).found] == [RequeueAction.REJUDGE]
    assert rig.status(name).to_judge
    assert not rig.worker("scorer", role=WorkerRole.SCORE).run_next(), "there is nothing to score"
    assert rig.worker("judge", role=WorkerRole.JUDGE).run_next()
    assert len(rig.backend.asked) == asked, "no code was run"
    assert values(rig) == {"grey": 5.0}
    now = rig.result(name)
    assert (now.revision, now.protocol, now.contract) == ("1", 2, PLAN_VERSION)
    assert now.isolation == ("fake",)
    assert rig.result(name, "at/1/").protocol == 1
    assert start(rig).found == ()


def test_scores_stand_for_a_revision_that_says_it_asks_the_same_questions(rig: Rig) -> None:
    """Those of modules are judged again, files are read again."""
    publish(rig, ["grey"])
    rig.send_scores(SCORES)
    rig.worker().run_all()
    asked = len(rig.backend.asked)
    rig.toy = Revised(4.0, same_questions_as=("1",))
    assert {one.act for one in start(rig).found} == {RequeueAction.REJUDGE, RequeueAction.RERUN}
    rig.worker("any").run_all()
    assert len(rig.backend.asked) == asked
    assert values(rig) == {"grey": 4.0, "m": 8.0}


def test_authors_of_scores_for_other_questions_are_told_once_what_to_send(rig: Rig) -> None:
    name = rig.send_scores(SCORES).submission.submission_id
    rig.worker().run_all()
    rig.toy = Revised()
    assert [one.act for one in start(rig).found] == [RequeueAction.TELL]
    told = rig.status(name)
    assert (told.state, told.code, told.on_boards) == (State.PUBLISHED, OTHER_REVISION, True)
    assert "--benchmark toy" in told.hint
    assert rig.cells() == ()
    rig.clock.move(days=1)
    assert start(rig).found == ()
    assert requeue(rig.store, {"toy": rig.toy.card}, RequeueRequest(reason="again")).found == ()
    assert not rig.worker("second").run_next()
    found = progress(earlier_board(rig), (), rig.ledger.statuses())
    assert (found.done, found.of, found.others_must) == (0, 1, 1)


def test_what_fails_in_the_new_revision_is_not_tried_at_every_start(rig: Rig) -> None:
    (name,) = publish(rig, ["grey"]).values()
    rig.toy, rig.backend = Revised(), raising(ValueError("broken"))
    start(rig)
    for n in range(8):  # Whoever is blamed, and however often it is tried.
        rig.clock.move(hours=2)
        rig.worker(f"later-{n}").run_all()
    assert rig.state(name) is State.FAILED
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
    publish(rig, ["white"])
    assert values(rig) == {"grey": 2.0}, "what it still runs is on no board of now"
    found = requeue(rig.store, {"toy": old.card})
    assert (found.found, len(found.passed_over)) == ((), 1)
    assert rig.state(name) is State.PUBLISHED
    rig.toy = newer
    assert [one.status.submission.name for one in start(rig).found] == ["white"]
    rig.worker("new").run_all()
    assert values(rig) == {"grey": 2.0, "white": 2.0}


def test_the_policy_says_whether_it_happens_by_itself(rig: Rig) -> None:
    (name,) = publish(rig, ["grey"]).values()
    rig.acts.set_policy(Policy(reevaluate=False), ROOT, "the GPU is busy")
    rig.toy = Revised()
    assert start(rig).found == ()
    assert rig.state(name) is State.PUBLISHED
    wanted = RequeueRequest(benchmark="toy", by=ROOT.key, reason="now")
    assert len(requeue(rig.store, {"toy": rig.toy.card}, wanted).found) == 1
    queued = rig.status(name)
    assert (queued.by, queued.reason.endswith("now")) == (ROOT.key, True)


MENDED = RequeueRequest(scorer="grey", by=ROOT.key, reason="its checkpoint was mended")


def test_a_changed_scorer_is_run_again_by_name_and_its_old_result_stays(rig: Rig) -> None:
    """Nothing public tells of a private submission of that name."""
    private = rig.ran(account=BOB, private=True)
    before = rig.head
    done = requeue(rig.store, {"toy": rig.toy.card}, MENDED)
    assert (rig.head, rig.state(private)) == (before, State.HELD)
    assert [private in said for said in done.passed_over] == [True], "the operator is told"
    ids = publish(rig, ["grey", "white"])
    rig.backend.score = lambda brightness, _: brightness + 1.0
    requeue(rig.store, {"toy": rig.toy.card}, MENDED)
    assert rig.status(ids["grey"]).code == "new_scorer"
    assert rig.state(ids["white"]) is State.PUBLISHED
    rig.clock.move(hours=1)
    rig.worker("second").run_all()
    assert values(rig) == {"grey": 2.0, "white": 1.0}
    (tag,) = old_tags(rig.store, rig.status(ids["grey"]).submission)
    assert tag.startswith("1~2026")
    assert verify(rig.store.public) == ()


def test_private_submissions_are_run_again_and_their_old_results_stay_private(rig: Rig) -> None:
    name = rig.ran(private=True)
    rig.toy = Revised()
    start(rig)
    assert rig.state(name) is State.QUEUED
    rig.worker("second").run_all()
    whole = rig.ledger.whole_status(name)
    assert (whole.state, whole.submission.account) == (State.HELD, ADA.key)
    (old,) = old_results(rig.store, whole.submission, "1")
    assert old.result.rows[0]["value"] == 1.0
    assert rig.store.public.list(f"results/{name}") == ()
    assert rig.store.private.has(f"held/{name}/results/at/1/toy.json")
    rig.acts.publish(name, ADA)
    (shown_now,) = old_results(rig.store, rig.status(name).submission, "1")
    assert shown_now.result == old.result
    assert values(rig) == {"grey": 2.0}


def floors(rig: Rig) -> list[Status]:
    """What Assay itself sent of its random floor."""
    ours = [s for s in rig.ledger.statuses() if s.submission.account == ASSAY.key]
    return [s for s in ours if s.submission.name == "random-floor"]


def test_a_bundled_scorer_with_new_content_takes_the_place_of_the_old_once(rig: Rig) -> None:
    start(rig)
    assert floors(rig) == [], "a store without them gets none"
    rig.ran(named("random-floor"), account=ASSAY)
    rig.clock.move(hours=1)
    start(rig)
    old, new = floors(rig)
    assert (old.state, new.state) == (State.PUBLISHED, State.QUEUED)
    assert new.submission.content_sha256 in bundled_hashes()
    assert len(rig.cells()) == 1, "the old one stands until the new one does"
    start(rig)
    rig.worker("second").run_all()
    assert [one.state for one in floors(rig)] == [State.SUPERSEDED, State.PUBLISHED]
    (cell,) = rig.cells()
    assert cell.entry_id.startswith(new.submission.submission_id)
    start(rig)
    assert len(floors(rig)) == 2


# Where one of two benchmarks has a new revision -----------------------------------------------


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
    def desk(self) -> SubmissionService:
        return replace(super().desk, registry=self.registry)

    def worker(self, name: str = "w1", **more: Any) -> Worker:
        return super().worker(name, registry=self.registry, **more)

    @property
    def boards(self) -> list[list[float | None]]:
        return [[cell.value for cell in self.cells(name)] for name in ("toy", "other")]


@pytest.fixture
def two(tmp_path: Path) -> Two:
    return Two(tmp_path)


def revised(two: Two) -> str:
    """A published submission whose `toy` result is outdated; its id."""
    name = two.ran()
    assert two.boards == [[1.0], [1.0]]
    two.toy = Revised()
    assert len(requeue(two.store, cards_of(two.registry)).found) == 1
    Publisher(two.store, cards_of(two.registry)).publish_cards(two.clock())
    return name


def test_only_the_benchmark_concerned_is_run_and_other_results_stay(two: Two) -> None:
    name = revised(two)
    status = two.status(name)
    assert (status.again_on, status.job.benchmarks) == (("toy",), ("toy",))
    assert set(status.submission.benchmarks) == {"toy", "other"}
    assert two.boards == [[], [1.0]], "it stays on the other board meanwhile"
    other, asked = two.store.public.read(f"results/{name}/other.json"), len(two.backend.asked)
    two.worker("second").run_all()
    assert two.boards == [[2.0], [1.0]]
    assert two.store.public.read(f"results/{name}/other.json") == other
    assert not [p for p in two.store.public.list(f"results/{name}/at/") if "other" in p]
    assert len(two.backend.asked) > asked
    assert two.status(name).again_on == ()
    OperatorActions(two.store, cards_of(two.registry), two.clock).rerun(name, ROOT, "all of it")
    assert set(two.status(name).job.benchmarks) == {"toy", "other"}


def test_a_try_that_was_stopped_is_repeated_on_the_same_part(two: Two) -> None:
    name = revised(two)
    score, two.backend.score = two.backend.score, raising(KeyboardInterrupt()).score
    with pytest.raises(KeyboardInterrupt):
        two.worker("stopped").run_all()
    two.backend.score = score
    assert (two.state(name), two.status(name).again_on) == (State.QUEUED, ("toy",))
    two.clock.move(hours=1)
    two.worker("second").run_all()
    assert two.boards == [[2.0], [1.0]]
