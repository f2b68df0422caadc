"""`votes`: from opening a vote to a benchmark made of it, on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.families import load_any_card
from benchmarks.prompt_sets import prompt_set
from leaderboard.models import pictures
from leaderboard.store.folder import folder_store
from leaderboard.votes.storing import poll_of
from tests.evaluator.commands.submitting import Run
from tests.leaderboard.votes.made_up_polls import SET, Booth, picture, voter


@pytest.fixture
def booth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Booth:
    """Models in a store in a folder, whose prompts the commands know."""
    made = Booth(tmp_path / "store" / "votes", n_prompts=8, store=folder_store(tmp_path / "store"))
    monkeypatch.setattr(prompt_set, "load_prompt_sets", lambda *_: made.reader.prompt_sets)
    monkeypatch.setattr(pictures.ModelPictures, "__call__", lambda _, of, image: picture(of, image))
    return made


def test_a_vote_is_opened_given_closed_published_and_exported(
    booth: Booth, tmp_path: Path, run: Run
) -> None:
    gold = tmp_path / "gold.csv"
    gold.write_text("prompt_id,better,worse\np0,alpha/p0/1,alpha/p1/1\n")
    opened = run("votes", "open", SET, "--gold", gold, "--failure-share", 0.1, "--gold-share", 0)
    assert opened.code == 0, opened
    poll = poll_of(booth.store.private, SET)
    assert (len(poll.gold), poll.shares.failure, poll.is_open) == (1, 0.1, True)
    # What is not given again stays.
    assert run("votes", "open", SET, "--repeat-share", 0).code == 0
    again = poll_of(booth.store.private, SET)
    assert (again.gold, again.shares.failure) == (poll.gold, 0.1)
    assert (again.shares.gold, again.shares.repeat) == (0.0, 0.0)
    booth.vote_all([voter("ada"), voter("bob")], 6)
    assert run("votes", "close", SET).code == 0
    # It takes what the site of this machine has not stored yet.
    assert "Alpha" in run("votes", "cut", SET).out
    (told,) = run("votes", "status", "--json").json
    assert told == {
        "prompt_set": SET, "open": False, "models": 3, "votes": 12, "raters": 2, "revisions": [1],
    }  # fmt: skip
    assert SET in run("votes", "status").out
    out = tmp_path / "board"
    assert run("votes", "export", SET, "--out", out).code == 0
    assert load_any_card(out / "card.toml").card.name == f"{SET}_votes_1"


@pytest.mark.parametrize(
    "words", [("cut", SET), ("close", SET), ("export", SET, "--out", "x"), ("open", "nothing")]
)
def test_what_is_not_there_is_an_error_of_who_asks(
    booth: Booth, run: Run, words: tuple[str, ...]
) -> None:
    assert booth.store.public.head()
    assert run("votes", *words).code == 1
