"""Voting: what is issued to whom, which answers count, and what outlasts which accident."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from benchmarks.errors import PlatformError, SubmitterError, TransientError
from leaderboard.ledger.policy import Ban, bans_file
from leaderboard.models.board_types import BoardQuery
from leaderboard.models.selection import selection
from leaderboard.store.interface import transact
from leaderboard.votes import storing
from leaderboard.votes.disagreement import disagreements
from leaderboard.votes.drawing import BallotDraw, Candidates
from leaderboard.votes.polls import close_poll
from leaderboard.votes.records import Ballot, Choice, JournalLine, Purpose, Shares, votes_path
from leaderboard.votes.service import AHEAD, SIDE, Side, VoteLimits, VotingService
from leaderboard.votes.storing import read_votes, store_votes, write_poll
from tests.kit.refusals import refused
from tests.leaderboard.models.made_up_models import CLIP, VQA, world
from tests.leaderboard.votes.made_up_polls import OLGA, SET, Booth, Clock, gold_pair, picture, voter
from tests.leaderboard.web.failing_store import Switch, failing

ADA, BOB = voter("ada"), voter("bob")


@pytest.fixture
def booth(tmp_path: Path) -> Booth:
    """An open poll on three models."""
    made = Booth(tmp_path / "votes")
    made.open()
    return made


def test_a_ballot_is_kept_while_it_is_not_answered_and_the_next_one_is_known(booth: Booth) -> None:
    first = booth.service.ballots(ADA, booth.service.poll(SET))
    assert len(first) == AHEAD
    assert first == booth.service.ballots(ADA, booth.service.poll(SET))
    assert booth.vote(ADA) == first[0]
    assert booth.current(ADA) == first[1]
    assert {one.account for one in first} == {ADA.key}
    assert booth.current(BOB).ballot_id not in {one.ballot_id for one in first}


@pytest.mark.slow
def test_pairs_prompts_and_places_are_drawn_by_the_seed_and_their_chances_are_kept(
    tmp_path: Path,
) -> None:
    booth = Booth(tmp_path / "one", n_prompts=150)
    booth.open()
    for _ in range(120):
        booth.vote(ADA, Choice.EQUAL)
    ballots = list(booth.service.votes(SET).ballots.values())[:120]
    again = Booth(tmp_path / "two", n_prompts=150, store=booth.store, clock=booth.clock)
    for one in ballots[:20]:
        same = again.vote(ADA, Choice.EQUAL)
        named = {"ballot_id", "issued_at"}
        assert same.model_dump(exclude=named) == one.model_dump(exclude=named)
    assert all(one.purpose is Purpose.RANK and one.prompt_probability for one in ballots)
    assert sum((one.pair_probability or 0) >= 0.2 / 3 - 1e-12 for one in ballots) == 120
    assert ballots[0].pair_probability == pytest.approx(1 / 3)
    # No account sees the same prompt of two models twice before it saw all of them.
    shown = Counter(
        (one.prompt_id, *sorted((one.left.submission_id, one.right.submission_id)))
        for one in ballots
    )
    assert set(shown.values()) == {1}
    on_the_left = sum(one.left.submission_id < one.right.submission_id for one in ballots)
    assert 35 < on_the_left < 85


@pytest.mark.parametrize(
    ("account", "ballot_id", "code"),
    [
        (ADA, lambda own: "0" * 32, "unknown_ballot"),
        (ADA, lambda own: "", "unknown_ballot"),
        (ADA, lambda own: f"../{own.ballot_id}", "unknown_ballot"),
        (BOB, lambda own: own.ballot_id, "unknown_ballot"),
    ],
    ids=["forged", "empty", "a path", "of another account"],
)
def test_only_a_ballot_that_was_issued_to_the_account_is_answered_or_seen(
    booth: Booth, account: object, ballot_id: Callable[[Ballot], str], code: str
) -> None:
    own = booth.current(ADA)
    assert account in (ADA, BOB)
    who = ADA if account == ADA else BOB
    with refused(code, kind=SubmitterError):
        booth.service.answer(who, SET, ballot_id(own), Choice.LEFT)
    with refused(code, kind=SubmitterError):
        booth.service.picture(who, SET, ballot_id(own), "left")
    assert not booth.service.votes(SET).answers


@pytest.mark.parametrize("prompt_set", ["other", "", "../drawn", "drawn/..", "x" * 300])
def test_a_vote_that_was_never_opened_is_none(booth: Booth, prompt_set: str) -> None:
    with refused("no_poll"):
        booth.service.poll(prompt_set)


def test_an_answer_counts_once_however_often_and_wherever_it_is_sent(booth: Booth) -> None:
    ballot = booth.current(ADA)
    other_tab = booth.restarted()
    assert booth.service.answer(ADA, SET, ballot.ballot_id, Choice.LEFT).counted
    for service in (booth.service, other_tab, booth.restarted()):
        again = service.answer(ADA, SET, ballot.ballot_id, Choice.RIGHT)
        assert (again.counted, again.choice) == (False, Choice.LEFT)
    booth.service.commit()
    assert [vote.answer.choice for vote in read_votes(booth.store.private, SET)] == [Choice.LEFT]


def test_many_tabs_that_answer_at_once_count_one_answer(booth: Booth) -> None:
    services = [booth.restarted() for _ in range(4)]
    ballot = booth.current(ADA)
    start = threading.Barrier(8)

    def answer(n: int) -> bool:
        start.wait()
        choice = (Choice.LEFT, Choice.RIGHT)[n % 2]
        return services[n % 4].answer(ADA, SET, ballot.ballot_id, choice).counted

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(answer, range(8))) == 1
    assert len(booth.service.votes(SET).answers) == 1


def test_many_tabs_that_ask_at_once_are_shown_the_same_ballots(booth: Booth) -> None:
    services = [booth.restarted() for _ in range(4)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda n: booth.current(ADA, services[n % 4]), range(16)))
    assert len({one.ballot_id for one in found}) == 1


def test_an_accepted_answer_outlasts_the_process_and_its_machine_once_it_is_stored(
    booth: Booth, tmp_path: Path
) -> None:
    kept = [booth.vote(ADA).ballot_id for _ in range(3)]
    waiting = booth.current(ADA)
    # Killed before any commit: the next process has every answer, and the same open ballot.
    after = booth.restarted()
    assert set(after.votes(SET).answers) == set(kept)
    assert booth.current(ADA, after) == waiting
    assert after.commit() == 3
    assert after.commit() == 0
    # A new machine with an empty disk.
    elsewhere = booth.restarted(tmp_path / "empty")
    assert set(elsewhere.votes(SET).answers) == set(kept)
    assert not elsewhere.answer(ADA, SET, kept[0], Choice.RIGHT).counted
    assert elsewhere.commit() == 0
    assert len(read_votes(booth.store.private, SET)) == 3


def test_a_line_that_a_crash_cut_short_is_no_vote_and_harms_no_other(booth: Booth) -> None:
    booth.vote(ADA)
    path = booth.folder / f"{SET}.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"answer":{"ballot_id":"')
    after = booth.restarted()
    ballot = booth.current(ADA, after)
    assert after.answer(ADA, SET, ballot.ballot_id, Choice.EQUAL).counted
    assert len(booth.restarted().votes(SET).answers) == 2


def test_a_commit_of_which_nobody_knows_whether_it_was_made_stores_nothing_twice(
    booth: Booth, monkeypatch: pytest.MonkeyPatch
) -> None:
    booth.vote(ADA)
    commit = booth.store.private.commit

    def made_and_lost(*words: object, **more: object) -> str:
        commit(*words, **more)  # type: ignore[arg-type]
        raise TransientError("commit_stopped", "Nobody knows.")

    monkeypatch.setattr(booth.store.private, "commit", made_and_lost)
    assert booth.service.commit() == 0
    monkeypatch.undo()
    booth.vote(ADA)
    booth.service.commit()
    assert len(read_votes(booth.store.private, SET)) == 2


def test_votes_of_two_machines_fill_files_in_turn(
    booth: Booth, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storing, "PER_FILE", 4)
    for n in range(11):
        booth.vote((ADA, BOB)[n % 2])
    votes = booth.service.votes(SET).unstored()
    for some in (votes[:3], votes[2:9], votes[5:], votes):
        store_votes(booth.store.private, SET, some)
    assert read_votes(booth.store.private, SET) == votes
    assert len(booth.store.private.list(f"votes/{SET}/votes-")) == 3


def test_votes_are_added_after_one_reading_of_each_file(
    booth: Booth, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storing, "PER_FILE", 2)
    for _ in range(4):
        booth.vote(ADA)
    votes = booth.service.votes(SET).unstored()
    store_votes(booth.store.private, SET, votes[:3])
    read, paths = booth.store.private.read, Counter[str]()

    def counted(path: str) -> bytes:
        paths[path] += 1
        return read(path)

    monkeypatch.setattr(booth.store.private, "read", counted)
    store_votes(booth.store.private, SET, votes)
    assert paths == {votes_path(SET, 0): 1, votes_path(SET, 1): 1}


def test_sites_without_a_common_folder_know_what_each_has_committed(tmp_path: Path) -> None:
    limits = VoteLimits(per_minute=99, per_day=7)
    booth = Booth(tmp_path / "one", models=("alpha", "beta"), n_prompts=8, limits=limits)
    booth.open()
    here, there = booth.service, booth.restarted(tmp_path / "two")
    booth.current(BOB, there)  # It has read the votes before anybody voted.
    shown = [booth.vote(ADA) for _ in range(4)]
    assert (here.commit(), there.commit()) == (4, 0)
    booth.service = there
    shown += [booth.vote(ADA) for _ in range(3)]
    assert len({one.prompt_id for one in shown}) == 7, "none is asked about twice"
    assert (there.commit(), here.commit()) == (3, 0)
    for site in (here, there):
        assert site.counted(ADA, SET) == 7
        with refused("too_many_votes"):
            site.answer(ADA, SET, booth.current(ADA, site).ballot_id, Choice.LEFT)


def test_a_store_that_refuses_stops_nobody_and_gets_all_later(booth: Booth) -> None:
    switch = Switch()
    service = booth.restarted(store=failing(booth.store, switch))
    booth.service = service
    booth.vote(ADA)
    switch.out = True
    ballot = service.ballots(ADA, service.poll(SET))[0]
    assert service.answer(ADA, SET, ballot.ballot_id, Choice.BOTH_BAD).counted
    assert service.commit() == 0
    switch.out = False
    assert service.commit() == 2


def test_an_answer_that_this_machine_cannot_keep_is_refused_and_can_be_sent_again(
    booth: Booth, monkeypatch: pytest.MonkeyPatch
) -> None:
    ballot = booth.current(ADA)

    def full(*_: object) -> None:
        raise PlatformError("cannot_write", "No space is left.")

    with monkeypatch.context() as patched:
        patched.setattr("benchmarks.sources.line_log.append_lines", full)
        with refused("cannot_write"):
            booth.service.answer(ADA, SET, ballot.ballot_id, Choice.LEFT)
    assert booth.service.answer(ADA, SET, ballot.ballot_id, Choice.RIGHT).counted


@pytest.mark.parametrize(
    ("limits", "n", "later"),
    [
        (VoteLimits(per_minute=3), 3, 61),
        (VoteLimits(per_minute=99, per_day=4), 4, 86_401),
    ],
    ids=["a minute", "a day"],
)
def test_rates_are_limited_and_the_ballot_waits(
    tmp_path: Path, limits: VoteLimits, n: int, later: float
) -> None:
    booth = Booth(tmp_path, limits=limits)
    booth.open()
    for _ in range(n):
        ballot = booth.current(ADA)
        booth.service.answer(ADA, SET, ballot.ballot_id, Choice.LEFT)
    waiting = booth.current(ADA)
    with refused("too_many_votes"):
        booth.service.answer(ADA, SET, waiting.ballot_id, Choice.LEFT)
    booth.vote(BOB)
    booth.clock.wait(later)
    assert booth.service.answer(ADA, SET, waiting.ballot_id, Choice.LEFT).counted


def test_the_answers_of_an_account_in_all_polls_count_for_its_rate(tmp_path: Path) -> None:
    booth = Booth(tmp_path, limits=VoteLimits(per_minute=3))
    booth.open()
    service = booth.service
    other = service.poll(SET).model_copy(update={"prompt_set": "other"})
    write_poll(booth.store.private, other, "another vote")
    first, second = service.ballots(ADA, other)
    assert service.answer(ADA, "other", first.ballot_id, Choice.LEFT).counted
    for _ in range(2):
        ballot = booth.current(ADA)
        assert service.answer(ADA, SET, ballot.ballot_id, Choice.LEFT).counted
    for one in (service, booth.restarted()):
        with refused("too_many_votes"):
            one.answer(ADA, "other", second.ballot_id, Choice.LEFT)
        with refused("too_many_votes"):
            one.answer(ADA, SET, booth.current(ADA).ballot_id, Choice.LEFT)
    elsewhere = booth.restarted(tmp_path / "elsewhere")
    assert (service.commit(), elsewhere.commit()) == (3, 0)
    with refused("too_many_votes"):
        elsewhere.answer(ADA, SET, booth.current(ADA, elsewhere).ballot_id, Choice.LEFT)
    booth.clock.wait(61)
    assert service.answer(ADA, "other", second.ballot_id, Choice.LEFT).counted


def test_a_clock_that_is_put_back_frees_no_rate(tmp_path: Path) -> None:
    booth = Booth(tmp_path, limits=VoteLimits(per_minute=1))
    booth.open()
    booth.service.answer(ADA, SET, booth.current(ADA).ballot_id, Choice.LEFT)
    booth.clock.now -= timedelta(days=3)
    with refused("too_many_votes"):
        booth.service.answer(ADA, SET, booth.current(ADA).ballot_id, Choice.LEFT)


@pytest.mark.parametrize(("seconds", "hasty"), [(0.0, True), (0.9, True), (1.0, False)])
def test_answers_that_come_too_soon_are_kept_and_marked(
    booth: Booth, seconds: float, hasty: bool
) -> None:
    booth.vote(ADA)
    ballot = booth.current(ADA)  # It was issued with the one before.
    booth.clock.wait(seconds)
    booth.service.answer(ADA, SET, ballot.ballot_id, Choice.LEFT)
    assert booth.service.votes(SET).answers[ballot.ballot_id].hasty is hasty


def test_a_closed_vote_issues_nothing_and_takes_what_it_issued(booth: Booth) -> None:
    ballot = booth.current(ADA)
    close_poll(booth.store, SET, OLGA, booth.clock())
    assert booth.service.polls() == []
    assert booth.service.ballots(BOB, booth.service.poll(SET)) == []
    assert booth.service.answer(ADA, SET, ballot.ballot_id, Choice.LEFT).counted
    booth.open()
    assert [one.prompt_set for one in booth.service.polls()] == [SET]


def test_a_banned_account_neither_sees_nor_votes(booth: Booth) -> None:
    ballot = booth.current(ADA)
    ban = Ban(account=ADA.key, reason="Spam.", by=OLGA.key, at=booth.clock())
    transact(booth.store.public, lambda: bans_file({ADA.key: ban}), "ban")
    with refused("banned_voter", "Spam."):
        booth.current(ADA)
    with refused("banned_voter"):
        booth.service.answer(ADA, SET, ballot.ballot_id, Choice.LEFT)


def test_a_model_that_left_the_boards_is_shown_no_more(booth: Booth) -> None:
    for _ in range(4):
        booth.vote(ADA)
    smaller = Booth(booth.folder, models=("alpha", "beta"), store=booth.store, clock=booth.clock)
    for _ in range(6):
        ballot = smaller.vote(ADA)
        assert {ballot.left.submission_id, ballot.right.submission_id} == {"alpha", "beta"}
    Booth(booth.folder, models=("beta",), store=booth.store, clock=booth.clock)
    assert booth.restarted().ballots(ADA, booth.service.poll(SET)) == []


@pytest.mark.parametrize(
    ("shares", "gone"),
    [
        (Shares(gold=0.5, repeat=0.0), {"models": ("beta", "gamma")}),
        (Shares(gold=0.5, repeat=0.0), {"n_prompts": 4}),
        (Shares(gold=0.0, repeat=0.5), {"models": ("beta", "gamma")}),
        (Shares(gold=0.0, repeat=0.5), {"n_prompts": 4}),
    ],
    ids=["gold, a model", "gold, images", "repeat, a model", "repeat, images"],
)
def test_gold_pairs_and_repetitions_of_what_left_the_boards_give_way_to_others(
    tmp_path: Path, shares: Shares, gone: dict[str, Any]
) -> None:
    booth = Booth(tmp_path)
    booth.open(shares, gold=[gold_pair(4)])
    for _ in range(12):
        booth.vote(BOB)
    before = booth.service.votes(SET).ballots.keys() | set()
    smaller = Booth(booth.folder, store=booth.store, clock=booth.clock, **gone)
    while {one.ballot_id for one in smaller.service.ballots(BOB, booth.service.poll(SET))} & before:
        smaller.vote(BOB)
    for voter_, n in ((ADA, 12), (BOB, 8)):
        for _ in range(n):
            smaller.vote(voter_)
    later = [one for name, one in smaller.service.votes(SET).ballots.items() if name not in before]
    assert len(later) >= 20
    for one in later:
        for image in (one.left, one.right):
            assert image.submission_id in smaller.models
            assert int(image.prompt_id[1:]) < smaller.n_prompts


def test_nobody_is_asked_about_a_model_of_their_own(tmp_path: Path) -> None:
    booth = Booth(tmp_path, owners={"alpha": ADA}, n_prompts=20)
    booth.open(Shares(gold=0.3, repeat=0.0), gold=[gold_pair(n) for n in range(8)])
    own = [booth.vote(ADA) for _ in range(15)]
    assert {one.purpose for one in own} == {Purpose.RANK}
    for one in own:
        assert {one.left.submission_id, one.right.submission_id} == {"beta", "gamma"}
        assert one.pair_probability == 1.0
    others = [booth.vote(BOB) for _ in range(40)]  # Fewer miss a model once in a hundred seeds.
    asked = {image.submission_id for one in others for image in (one.left, one.right)}
    assert asked == set(booth.models)
    assert Purpose.GOLD in {one.purpose for one in others}


def test_every_picture_has_the_same_size_and_format_and_says_nothing_else(booth: Booth) -> None:
    ballot = booth.current(ADA)
    sides: tuple[Side, ...] = ("left", "right")
    for side in sides:
        content = booth.service.picture(ADA, SET, ballot.ballot_id, side)
        assert content is not None
        with Image.open(BytesIO(content)) as image:
            assert (image.format, image.size, len(image.getexif())) == ("WEBP", (SIDE, SIDE), 0)


@pytest.mark.slow
def test_gold_repetitions_and_failures_come_by_their_shares_and_carry_no_chance(
    tmp_path: Path,
) -> None:
    booth = Booth(tmp_path, n_prompts=80, disagreements=lambda *_: [f"p{n}" for n in range(40)])
    gold = [gold_pair(n) for n in range(0, 70, 2)]
    booth.open(Shares(gold=0.15, repeat=0.15, failure=0.1), gold=gold)
    ballots = [booth.vote(ADA, Choice.BOTH_BAD) for _ in range(200)]
    counts = Counter(one.purpose for one in ballots)
    assert 15 <= counts[Purpose.GOLD] <= 45
    assert 15 <= counts[Purpose.REPEAT] <= 45
    # At most the share at any time, not about it.
    for n in range(1, 201):
        assert sum(one.purpose is Purpose.FAILURE for one in ballots[:n]) <= 0.1 * n
    assert counts[Purpose.FAILURE] >= 8
    by_id = {one.ballot_id: one for one in ballots}
    for n, one in enumerate(ballots):
        if one.purpose is Purpose.REPEAT:
            first = by_id[one.repeats]
            assert (one.left, one.right) == (first.right, first.left)
            assert n - first.number >= 8
        if one.purpose is Purpose.GOLD:
            better = {pair.better for pair in gold}
            assert (one.left if one.gold is Choice.LEFT else one.right) in better
        if one.purpose is Purpose.FAILURE:
            assert int(one.prompt_id[1:]) < 40
        drawn = one.purpose in {Purpose.RANK, Purpose.FAILURE}
        assert (one.pair_probability is not None) is drawn
        assert (one.prompt_probability is not None) is drawn


def test_prompts_on_which_metrics_disagree_rank_as_often_as_others(tmp_path: Path) -> None:
    booth = Booth(tmp_path, models=("alpha", "beta"), n_prompts=10)
    booth.open(Shares(gold=0.0, repeat=0.0, failure=0.2))
    journal = booth.service.votes(SET)
    images = {one: {f"p{n}": (1,) for n in range(10)} for one in booth.models}
    able = Candidates(images, lambda *_: ["p0"])
    for rater in range(100):
        draw = BallotDraw(booth.service.poll(SET), f"hub:rater{rater}", journal, able)
        for number in range(10):
            ballot = draw.ballot(f"{rater}/{number}", booth.clock())
            assert ballot is not None
            journal.take(JournalLine(ballot=ballot))
    of = {purpose: Counter[str]() for purpose in Purpose}
    for one in journal.ballots.values():
        of[one.purpose][one.prompt_id] += 1
        assert one.prompt_probability == (0.1 if one.purpose is Purpose.RANK else 1.0)
    assert of[Purpose.FAILURE].keys() == {"p0"} and of[Purpose.FAILURE].total() > 60
    shares = np.array([of[Purpose.RANK][f"p{n}"] for n in range(10)]) / of[Purpose.RANK].total()
    # Of a rater's 10 ballots 9 rank, without replacement: a count has a variance of 0.08 or so.
    assert np.abs(shares - 0.1).max() < 4 * np.sqrt(100 * 0.08) / of[Purpose.RANK].total()


def test_the_prompts_of_failures_are_those_on_which_qualified_metrics_disagree() -> None:
    made = world(60)
    first = made.add("first", {VQA: made.drawn(0.5), CLIP: made.drawn(0.5)})
    second = made.add("second", {VQA: made.drawn(0.5), CLIP: made.drawn(0.5)})
    chosen = selection(made.reader, made.view, BoardQuery("drawn"))
    vqa, clip = (chosen.columns(one).values for one in (VQA, CLIP))
    told = np.sign(vqa[:, 0] - vqa[:, 1]) * np.sign(clip[:, 0] - clip[:, 1]) < 0
    found = disagreements(made.reader, made.view, "drawn", first, second)
    assert set(found) == {chosen.slices.ids[n] for n in np.flatnonzero(told)}
    assert 10 < len(found) < 50
    assert not disagreements(made.reader, made.view, "drawn", first, "gone")
    assert not disagreements(made.reader, made.view, "other", first, second)


def test_a_clock_of_the_store_is_the_one_that_counts(tmp_path: Path) -> None:
    clock = Clock()
    booth = Booth(tmp_path, clock=clock)
    booth.open()
    ballot = booth.current(ADA)
    assert ballot.issued_at == clock.now
    booth.service = booth.restarted(store=replace(booth.store))
    assert booth.vote(ADA) == ballot


def test_a_pair_without_both_pictures_is_not_asked_about(tmp_path: Path) -> None:
    booth = Booth(tmp_path, n_prompts=20)
    booth.open()

    def some(of: str, image: str) -> bytes | None:
        if of == "gamma":
            raise FileNotFoundError(of)
        return None if "p1" in image else picture(of, image)

    service = VotingService(booth.store, booth.reader, some, tmp_path)
    account = voter("ada")
    seen: list[Ballot] = []
    for _ in range(12):
        for one in service.ballots(account, service.poll(SET)):
            seen.append(one)
            service.answer(account, SET, one.ballot_id, Choice.LEFT)
    assert seen
    for one in seen:
        assert "gamma" not in {one.left.submission_id, one.right.submission_id}
        assert "p1" not in one.prompt_id
    hidden = [one for one in service.votes(SET).ballots.values() if one not in seen]
    sides: tuple[Side, ...] = ("left", "right")
    assert None in [service.picture(account, SET, hidden[0].ballot_id, one) for one in sides]
