"""What authors and operators do with submissions, versions, accounts and the policy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from benchmarks.errors import PlatformError, SubmitterError, TransientError
from leaderboard.accounts import ASSAY
from leaderboard.governance.operator_actions import OperatorActions
from leaderboard.ledger.audit_log import read_lines, verify
from leaderboard.ledger.cleanup import tidy_all
from leaderboard.ledger.policy import MOST_ALLOWED, Policy, Quota, read_bans, read_policy
from leaderboard.ledger.versions import superseded_by
from leaderboard.publication.publisher import Publisher
from leaderboard.publication.results import read_results, with_draws
from leaderboard.records import Kind
from leaderboard.states import State
from leaderboard.trust import Check, TrustReport
from tests.kit.governed import ADA, BOB, CARDS, OLGA, OPEN, House
from tests.kit.records import an_event
from tests.kit.refusals import refused
from tests.kit.store import Meddled


def die() -> None:
    raise PlatformError("store_damaged", "The process died here.")


def commits_of(house: House, act: Callable[[], object]) -> int:
    before = int(house.store.public.head())
    act()
    return int(house.store.public.head()) - before


def held_results(house: House) -> set[str]:
    """Submissions whose results are held."""
    return {p.split("/")[1] for p in house.store.private.list("held/") if "/results/" in p}


# Taken off and shown again


@pytest.mark.parametrize(("act", "state"), [("withdraw", State.WITHDRAWN), ("hide", State.HIDDEN)])
def test_what_is_taken_off_leaves_in_one_commit(house: House, act: str, state: State) -> None:
    kept, gone = house.done(BOB, "blue"), house.done()
    odd = "It reads\x1b[31m\nfile\u202enames."
    assert commits_of(house, lambda: getattr(house.acts, act)(gone, OLGA, odd)) == 1
    status = house.ledger.status(gone)
    assert (status.state, status.reason) == (state, "It reads[31m filenames.")
    assert house.shown() == {kept}
    line = read_lines(house.store.public, gone)[-1]
    assert (line.action, line.by, line.reason) == (str(state), OLGA.key, status.reason)


def test_an_author_takes_back_their_own_and_nobody_elses(house: House) -> None:
    own, other = house.done(), house.done(BOB, "blue")
    assert house.acts.withdraw(own, ADA).reason
    with refused("not_yours"):
        house.acts.withdraw(other, ADA)
    assert house.shown() == {other}


def test_a_withdrawal_ends_what_waits_and_what_is_being_worked_on(house: House) -> None:
    waiting, working = house.send(), house.send(name="blue")
    house.claim(working)
    for name in (waiting, working):
        house.acts.withdraw(name, ADA)
    with pytest.raises(PlatformError, match="withdrawn"):
        house.finish(working)
    with pytest.raises(TransientError, match="withdrawn"):
        house.claim(waiting)
    assert house.shown() == set()


@pytest.mark.parametrize("private", [False, True])
def test_what_is_shown_again_is_what_it_was(house: House, *, private: bool) -> None:
    name = house.done(private=private)
    before = house.ledger.whole_status(name).state
    house.acts.hide(name, OLGA, "To be looked at.")
    assert house.shown() == set()
    assert house.acts.show(name, OLGA).state is before
    assert house.shown() == (set() if private else {name})


def test_a_rerun_leaves_the_results_where_they_are_until_there_are_others(house: House) -> None:
    name = house.done()
    assert house.acts.rerun(name, OLGA, "A new driver.").state is State.QUEUED
    assert house.shown() == {name}
    house.claim(name)
    house.fail(name)
    assert house.shown() == {name}
    house.acts.hide(name, OLGA, "Its rerun failed.")
    assert house.shown() == set()
    assert house.acts.show(name, OLGA).state is State.PUBLISHED
    assert house.shown() == {name}


# Suspected lookups


def turning(*, turns: bool = True) -> TrustReport:
    """A report in which one grey level turns the scores, or does not."""
    step = Check(name="one_pixel", n_pairs=36, mean=1.1, largest=2.0, passed=not turns)
    return TrustReport(
        benchmark="open", n_pairs=36, n_images=12, spread=1.0, limit=0.01, checks=(step,)
    )


def judged(house: House, name: str, trust: TrustReport) -> str:
    house.claim(name)
    house.finish(name, trust=trust)
    return name


def ranked(house: House, name: str) -> set[tuple[bool, bool]]:
    """Of its cells on all boards, whether they have a value and a rank."""
    assert house.problems() == []
    cells = (cell for board in house.snapshot().boards.values() for cell in board.cells)
    return {(c.value is not None, c.rank is not None) for c in cells if name in c.entry_id}


def test_a_suspected_lookup_has_values_and_no_rank_until_an_operator_clears_it(
    house: House,
) -> None:
    other = judged(house, house.send(BOB, "blue"), turning(turns=False))
    name = judged(house, house.send(), turning())
    assert (ranked(house, other), ranked(house, name)) == ({(True, True)}, {(True, False)})
    assert commits_of(house, lambda: house.acts.clear(name, OLGA, "A floor.")) == 1
    assert (ranked(house, other), ranked(house, name)) == ({(True, True)}, {(True, True)})
    status = house.ledger.status(name)
    assert (status.state, status.cleared, status.on_boards) == (State.PUBLISHED, "A floor.", True)
    line = read_lines(house.store.public, name)[-1]
    assert (line.by, line.reason) == (OLGA.key, "A floor.")


def test_what_is_cleared_stays_so_when_it_is_scored_again(house: House) -> None:
    name = judged(house, house.send(), turning())
    house.acts.clear(name, OLGA, "A floor.")
    house.acts.rerun(name, OLGA, "A new driver.")
    judged(house, name, turning())
    assert ranked(house, name) == {(True, True)}
    house.acts.hide(name, OLGA, "To be looked at.")
    house.acts.show(name, OLGA)
    assert ranked(house, name) == {(True, True)}


def test_only_operators_clear_and_only_what_is_published_and_suspected(house: House) -> None:
    name, sound = judged(house, house.send(), turning()), house.done(BOB, "blue")
    for who, reason, code in ((ADA, "Mine.", "not_operator"), (OLGA, " ", "reason_missing")):
        with refused(code):
            house.acts.clear(name, who, reason)
    house.acts.clear(name, OLGA, "A floor.")
    waiting = house.send(name="grey2")
    for one in (name, sound, waiting):
        with refused("nothing_to_clear"):
            house.acts.clear(one, OLGA, "Again.")


@pytest.mark.parametrize("act", ["hide", "rerun"])
def test_operators_must_say_why(house: House, act: str) -> None:
    name = house.done()
    for reason, code in ((" \x00\u200b ", "reason_missing"), ("x" * 501, "reason_too_long")):
        with refused(code):
            getattr(house.acts, act)(name, OLGA, reason)
    assert house.state(name) is State.PUBLISHED


def test_an_act_that_loses_its_race_is_checked_against_what_the_other_left(house: House) -> None:
    name = house.done()
    public: Any = Meddled(house.store.public, lambda: house.acts.withdraw(name, ADA))
    with refused("not_now"):
        OperatorActions(replace(house.store, public=public), CARDS, house.clock).hide(
            name, OLGA, "Wrong."
        )
    assert house.state(name) is State.WITHDRAWN
    assert verify(house.store.public) == ()


# Publishing what is private


def test_an_author_publishes_results_record_and_boards_in_one_commit(house: House) -> None:
    name = house.done(private=True, description="How it works.")
    assert commits_of(house, lambda: house.acts.publish(name, ADA)) == 1
    own = house.ledger.status(name).submission
    assert (own.submission_id, own.private, own.description) == (name, False, "How it works.")
    snapshot = house.snapshot()
    entry = snapshot.entries[f"{name}/grey"]
    assert (entry.submitter, entry.description) == ("ada", "How it works.")
    assert {cell.value for board in snapshot.boards.values() for cell in board.cells} == {0.5}


def test_published_boards_are_those_of_a_submission_that_was_never_private() -> None:
    told = []
    for private in (False, True):
        house = House()
        name = house.done(private=private)
        if private:
            house.acts.publish(name, ADA)
        cells = house.snapshot().boards["open"].cells
        told.append([cell.model_dump_json().replace(name, "ID") for cell in cells])
    assert told[0] == told[1]


def test_private_answers_stay_private_when_results_are_published(house: House) -> None:
    name = house.done(private=True)
    house.acts.publish(name, ADA)
    public = set(house.store.public.list(f"results/{name}/"))
    assert {p for p in public if "/closed." in p} == {f"results/{name}/closed.json"}
    assert len({p for p in public if "/open." in p}) == 3
    own = house.ledger.whole(name)
    runs = [with_draws(house.store, own, r, CARDS) for r in read_results(house.store, own)]
    assert [run.draws is not None and run.draws.resamples[0][0] for run in runs] == [0.5, 0.5]
    assert held_results(house) == set()


def test_nobody_but_the_author_publishes_and_nothing_by_halves(house: House) -> None:
    name = house.done(private=True)
    for account in (BOB, OLGA):
        with refused("not_yours"):
            house.acts.publish(name, account)
    with pytest.raises(PlatformError, match="not known"):
        OperatorActions(house.store, {"open": OPEN}, house.clock).publish(name, ADA)
    assert house.state(name) is State.HELD
    assert house.store.public.list("results/") == ()


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("step", ["draws of private", "publish", "tidy"])
def test_a_crash_while_publishing_is_repaired_later(
    house: House, step: str, *, after: bool
) -> None:
    name, store = house.done(private=True), house.store
    private: Any = Meddled(store.private, die, step, after=after)
    public: Any = Meddled(store.public, die, step, after=after)
    with refused("store_damaged"):
        dying = replace(store, public=public, private=private)
        OperatorActions(dying, CARDS, house.clock).publish(name, ADA)
    assert public.act is None or private.act is None, "it met the step"
    assert verify(store.public) == ()
    published = house.state(name) is State.PUBLISHED
    assert house.shown() == ({name} if published else set())
    try:
        assert (
            OperatorActions(store, CARDS, house.clock).publish(name, ADA).state is State.PUBLISHED
        )
    except SubmitterError as error:
        assert published and error.code == "not_now"
    assert (house.shown(), held_results(house)) == ({name}, set())
    assert verify(store.public) == ()


def test_what_is_held_for_nobody_is_removed_and_nothing_else(house: House) -> None:
    held, gone, other = (house.done(private=True, name=name) for name in ("a", "b", "c"))
    house.acts.withdraw(other, ADA)
    assert held_results(house) == {held, gone}
    private: Any = Meddled(house.store.private, die, "tidy")
    with refused("store_damaged"):
        dying = replace(house.store, private=private)
        OperatorActions(dying, CARDS, house.clock).withdraw(gone, ADA)
    tidy_all(house.store)
    assert held_results(house) == {held}


def test_the_snapshot_is_built_anew_only_when_the_boards_change(house: House) -> None:
    house.publisher.publish_cards(house.clock())
    assert commits_of(house, lambda: house.publisher.publish_cards(house.clock())) == 0
    assert set(house.snapshot().boards) == set(CARDS)
    house.done()
    publisher = Publisher(house.store, CARDS)
    first = publisher.snapshot_files(house.clock(), house.ledger.statuses())
    house.send(name="blue")
    assert publisher.snapshot_files(house.clock(), house.ledger.statuses()) is first
    house.done(name="green")
    assert publisher.snapshot_files(house.clock(), house.ledger.statuses()) is not first


# Versions of one thing: which of them stands on the boards


def states(house: House, *names: str) -> tuple[State, ...]:
    return tuple(house.state(name) for name in names)


REPLACED = (State.SUPERSEDED, State.PUBLISHED)


def test_a_new_version_takes_the_place_of_the_old_in_one_commit(house: House) -> None:
    old, new = house.done(), house.send()
    house.claim(new)
    assert commits_of(house, lambda: house.finish(new)) == 1
    assert (states(house, old, new), house.shown()) == (REPLACED, {new})
    assert new in house.ledger.events(old)[-1].reason


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"account": BOB}, {}),
        ({"name": "blue"}, {}),
        ({"kind": Kind.SCORES}, {}),
        ({"benchmarks": ("open", "closed")}, {"benchmarks": ("open",)}),
    ],
    ids=["another author", "another name", "another kind", "fewer benchmarks"],
)
def test_what_is_no_version_of_it_stays(house: House, old: Any, new: Any) -> None:
    first, second = house.done(**old), house.done(**new)
    assert house.state(first) is house.state(second) is State.PUBLISHED
    assert house.shown() == {first, second}


def test_records_older_than_accounts_are_nobodys_versions(house: House) -> None:
    first = house.done()
    (status,) = house.ledger.statuses()
    nobodys = status.submission.model_copy(update={"account": ""})
    later = nobodys.model_copy(update={"submission_id": "zzzzzzzz", "received_at": house.clock()})
    assert first != later.submission_id
    assert superseded_by(later, [status.model_copy(update={"submission": nobodys})]) == ()


@pytest.mark.parametrize(
    ("acts", "after"),
    [
        ("done, done, done, withdraw 2", "superseded published withdrawn"),
        ("done, done, done, hide 2", "superseded published hidden"),
        # Shown again, it takes its place back, unless a newer version came.
        ("done, done, hide 1, show 1", "superseded published"),
        ("done, hide 0, done, show 0", "superseded published"),
        # While it is scored anew it cannot be moved, and then it does not push out the new one.
        ("done, rerun 0, done", "queued published"),
        ("done, rerun 0, done, claim 0, finish 0", "superseded published"),
        ("done, rerun 0, claim 0, fail 0, done", "superseded published"),
        ("done, rerun 0, claim 0, fail 0, done, withdraw 1", "published withdrawn"),
        # A private version takes no place before it is published.
        ("done, done private", "published held"),
        ("done, done private, publish 1", "superseded published"),
        # What never stood brings nothing back.
        ("done, done, send, withdraw 2", "superseded published withdrawn"),
        ("done, done, send, withdraw 2, withdraw 0", "withdrawn published withdrawn"),
    ],
)
def test_one_version_stands_however_they_come_and_go(house: House, acts: str, after: str) -> None:
    names: list[str] = []
    for act, *words in (each.split() for each in acts.split(", ")):
        if act in {"done", "send"}:
            names.append(getattr(house, act)(private="private" in words))
        elif act in {"claim", "finish", "fail"}:
            getattr(house, act)(names[int(words[0])])
        elif act in {"withdraw", "publish"}:
            getattr(house.acts, act)(names[int(words[0])], ADA)
        else:
            getattr(house.acts, act)(names[int(words[0])], OLGA, "To be looked at.")
    assert [str(house.state(name)) for name in names] == after.split()
    # What is scored anew, or failed to be, stands as it was.
    stand = {"published", "queued", "failed"}
    assert house.shown() == {n for n in names if str(house.state(n)) in stand}


@pytest.mark.parametrize("end", ["withdraw", "hide"])
def test_taking_a_version_off_brings_the_one_before_back_in_one_commit(
    house: House, end: str
) -> None:
    _, second, third = house.done(), house.done(), house.done()
    assert commits_of(house, lambda: getattr(house.acts, end)(third, OLGA, "It was wrong.")) == 1
    assert third in house.ledger.events(second)[-1].reason


def test_every_version_that_nothing_covers_any_more_comes_back(house: House) -> None:
    single = {house.done(benchmarks=(name,)) for name in ("open", "closed")}
    both = house.done()
    assert house.shown() == {both}
    house.acts.withdraw(both, ADA)
    assert house.shown() == single


# Banning accounts, and changing the policy


def test_a_ban_and_what_it_rejects_are_one_commit_with_the_reason(house: House) -> None:
    waiting, working, other = house.send(), house.send(name="blue"), house.send(BOB, "green")
    published = house.done(name="red")
    house.claim(working)
    before = int(house.store.public.head())
    ban = house.acts.ban(ADA.key, OLGA, "Sent miners.")
    assert int(house.store.public.head()) == before + 1
    assert read_bans(house.store.public) == {ADA.key: ban}
    assert (ban.by, ban.reason) == (OLGA.key, "Sent miners.")
    status = house.ledger.status(waiting)
    assert (status.state, status.code) == (State.REJECTED, "banned")
    assert "Sent miners." in status.reason
    assert states(house, working, other) == (State.SCORING, State.QUEUED)
    assert house.shown() == {published}
    line = read_lines(house.store.public, ADA.key)[-1]
    assert (line.action, line.by, line.reason) == ("ban", OLGA.key, "Sent miners.")


def test_a_ban_and_its_lifting_leave_private_submissions_as_they_are(house: House) -> None:
    """What moved in the same commit would be known to be the account's."""
    _, working, held = (house.send(name=n, private=True) for n in ("red", "green", "blue"))
    house.claim(working)
    house.claim(held)
    house.finish(held)
    before = house.ledger.whole_statuses()
    house.acts.ban(ADA.key, OLGA, "Sent miners.")
    assert house.ledger.whole_statuses() == before
    house.acts.unban(ADA.key, OLGA, "It was a simulation.")
    assert house.ledger.whole_statuses() == before


def test_a_rerun_of_what_is_published_is_not_rejected(house: House) -> None:
    name = house.done()
    house.acts.rerun(name, OLGA, "A new driver.")
    house.acts.ban(ADA.key, OLGA, "Rude.")
    assert (house.state(name), house.shown()) == (State.QUEUED, {name})


def test_a_lifted_ban_is_in_the_chronicle_and_what_it_rejected_can_be_queued(house: House) -> None:
    name = house.send()
    house.acts.ban(ADA.key, OLGA, "A mistake.")
    with refused("already_banned", "A mistake."):
        house.acts.ban(ADA.key, OLGA, "Once more.")
    house.acts.unban(ADA.key, OLGA, "It was one.")
    assert read_bans(house.store.public) == {}
    assert [x.action for x in read_lines(house.store.public, ADA.key)] == ["ban", "unban"]
    again = an_event(State.QUEUED, "ada", house.clock())
    assert house.ledger.append(name, [again]).state is State.QUEUED
    assert verify(house.store.public) == ()


def _policy(scored: int) -> Policy:
    return Policy(allowances=dict.fromkeys(Kind, Quota(scored=scored, unfinished=1)))


@pytest.mark.parametrize(
    ("act", "arguments", "code"),
    [
        ("ban", (BOB.key, ADA, "Because."), "not_operator"),
        ("ban", (BOB.key, None, "Because."), "not_signed_in"),
        ("ban", (BOB.key, OLGA, " "), "reason_missing"),
        ("ban", ("bob", OLGA, "Because."), "bad_account"),
        ("ban", (OLGA.key, OLGA, "Because."), "bad_account"),
        ("ban", (ASSAY.key, OLGA, "Because."), "bad_account"),
        ("unban", (BOB.key, OLGA, "Because."), "not_banned"),
        ("unban", (BOB.key, ADA, "Because."), "not_operator"),
        ("set_policy", (Policy(), ADA, "Because."), "not_operator"),
        ("set_policy", (Policy(), OLGA, ""), "reason_missing"),
        ("set_policy", (_policy(MOST_ALLOWED + 1), OLGA, "Because."), "bad_policy"),
        ("set_policy", (_policy(10**400), OLGA, "Because."), "bad_policy"),
    ],
)
def test_a_refusal_writes_nothing(
    house: House, act: str, arguments: tuple[Any, ...], code: str
) -> None:
    with refused(code):
        getattr(house.acts, act)(*arguments)
    assert house.store.public.list() == ()


def test_a_policy_holds_from_the_commit_that_says_why_and_names_every_kind(house: House) -> None:
    assert read_policy(house.store.public) == Policy()
    one, two = (Quota(scored=n, unfinished=n) for n in (1, 2))
    policy = Policy(period_days=30, allowances={Kind.METRIC: one, Kind.SCORES: two})
    house.acts.set_policy(policy, OLGA, "A small machine.")
    assert read_policy(house.store.public) == policy
    line = read_lines(house.store.public, "policy")[-1]
    assert (line.action, line.reason) == ("policy", "A small machine.")
    with pytest.raises(ValidationError, match="scores"):
        Policy(allowances={Kind.METRIC: one})
