"""Commits of votes while a site is served: they outlast answers and defects."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from leaderboard.votes.committing import votes_committed
from leaderboard.votes.journal import Journal
from leaderboard.votes.records import Answer, Ballot, Choice
from leaderboard.votes.storing import read_votes
from tests.leaderboard.votes.made_up_polls import SET, Booth, voter

ADA, BOB = voter("ada"), voter("bob")


@pytest.fixture
def booth(tmp_path: Path) -> Booth:
    """An open poll on three models."""
    made = Booth(tmp_path / "votes")
    made.open()
    return made


def test_an_answer_that_comes_while_votes_are_gathered_harms_no_commit(
    booth: Booth, monkeypatch: pytest.MonkeyPatch
) -> None:
    booth.vote(ADA)
    booth.vote(ADA)
    ballot = booth.current(BOB)
    answered = Journal.answered
    begun: list[threading.Thread] = []

    def slowly(journal: Journal) -> Iterator[tuple[Ballot, Answer]]:
        for one in answered(journal):
            yield one
            if not begun:
                given = (BOB, SET, ballot.ballot_id, Choice.LEFT)
                begun.append(threading.Thread(target=booth.service.answer, args=given))
                begun[0].start()
                begun[0].join(0.2)  # Long enough to answer, where nothing keeps it waiting.

    with monkeypatch.context() as patched:
        patched.setattr(Journal, "answered", slowly)
        assert booth.service.commit() == 2
    begun[0].join()
    assert booth.service.commit() == 1


def test_votes_are_committed_after_a_defect(booth: Booth, monkeypatch: pytest.MonkeyPatch) -> None:
    commit, again = booth.service.commit, threading.Event()
    calls: list[int] = []

    def defective() -> int:
        calls.append(1)
        if len(calls) == 1:
            raise RuntimeError("A defect.")
        stored = commit()
        again.set()
        return stored

    monkeypatch.setattr(booth.service, "commit", defective)
    booth.vote(ADA)
    with votes_committed(booth.service, 0.01):
        assert again.wait(20)
        booth.vote(BOB)
    assert len(read_votes(booth.store.private, SET)) == 2


def test_an_end_waits_only_so_long_for_a_store_and_the_next_start_has_the_votes(
    booth: Booth, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, answers = threading.Event(), threading.Event()
    commit = booth.store.private.commit

    def when_it_answers(*given: Any, **more: Any) -> str:
        asked.set()
        assert answers.wait(60)
        return commit(*given, **more)

    booth.vote(ADA)
    with monkeypatch.context() as patched:
        patched.setattr(booth.store.private, "commit", when_it_answers)
        with votes_committed(booth.service, 300.0, end_within_s=0.1):
            pass
        assert asked.wait(60)
    # The next start stores the vote that the end still waits to store.
    assert booth.restarted().commit() == 1
    answers.set()
    next(one for one in threading.enumerate() if one.name == "votes").join(60)
    assert len(read_votes(booth.store.private, SET)) == 1
    assert booth.restarted().commit() == 0
