"""Revisions of votes: what is published, what the board says, and the benchmark that is made of it."""

from __future__ import annotations

import json
from datetime import date
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from benchmarks.families import load_any_card
from benchmarks.families.preference import PreferenceAnswers, PreferenceBenchmark
from benchmarks.schema import ScoreTable
from benchmarks.statistics.bradley_terry import strengths
from benchmarks.statistics.raters import krippendorff_alpha
from leaderboard.accounts import Account
from leaderboard.ledger.policy import Ban, bans_file
from leaderboard.publication.model_entries import PATH, ModelTrack, read_track, track_bytes
from leaderboard.store.interface import transact
from leaderboard.votes.benchmark import export
from leaderboard.votes.drawing import comparisons
from leaderboard.votes.polls import close_poll, open_poll, read_gold
from leaderboard.votes.records import Ballot, Choice, Purpose, Shares, Vote
from leaderboard.votes.results import alpha_of, check_votes
from leaderboard.votes.revisions import (
    SCHEMA,
    TEXTS,
    cut,
    read_results,
    read_table,
    revisions,
)
from leaderboard.votes.storing import poll_of, read_votes
from tests.kit.refusals import refused
from tests.leaderboard.votes.made_up_polls import (
    OLGA,
    SET,
    Booth,
    gold_pair,
    picture,
    prefer_first_name,
    voter,
)

VOTERS = [voter(f"voter{n}") for n in range(4)]
CLICKER = voter("clicker")


def wrong_on_gold(ballot: Ballot) -> Choice:
    """Somebody who always clicks at what is not asked for."""
    return ballot.gold.mirrored if ballot.gold else Choice.RIGHT


@pytest.fixture(scope="module")
def booth(tmp_path_factory: pytest.TempPathFactory) -> Booth:
    """Votes of four who agree and one who clicks, stored, and one revision."""
    made = Booth(tmp_path_factory.mktemp("votes"), n_prompts=20, disagreements=lambda *_: ["p1"])
    made.open(Shares(gold=0.25, repeat=0.1, failure=0.1), gold=[gold_pair(n) for n in range(19)])
    made.vote_all(VOTERS, 40)
    for _ in range(80):
        made.vote(CLICKER, wrong_on_gold)
    made.service.commit()
    close_poll(made.store, SET, OLGA, made.clock())
    cut(made.store, SET, OLGA)
    return made


def test_the_board_rests_on_votes_that_rank_of_raters_who_are_not_careless(booth: Booth) -> None:
    found = read_results(booth.store.public, SET)
    assert found is not None
    votes = read_votes(booth.store.private, SET)
    own = [
        v for v in votes
        if v.ballot.purpose is Purpose.RANK and v.ballot.account != CLICKER.key
    ]  # fmt: skip
    assert (found.n_given, found.n_votes) == (len(votes), len(own)) == (240, len(own))
    assert (found.n_raters, found.n_careless) == (4, 1)
    ranking = sum(v.ballot.purpose is Purpose.RANK for v in votes)
    assert found.n_left_out == ranking - len(own) > 20
    assert found.n_failure > 0
    assert found.n_gold > 20
    models = ("alpha", "beta", "gamma")
    assert tuple(one.submission_id for one in found.models) == models
    assert [one.title for one in found.models] == ["Alpha", "Beta", "Gamma"]
    first, second, won = comparisons(((v.ballot, v.answer) for v in own), models)
    told = [one.strength for one in found.models]
    assert told == pytest.approx(strengths(first, second, won, 3), abs=0.05)
    assert sum(one.n_votes for one in found.models) == 2 * len(own)
    assert [one.rank for one in found.models] == [1, 2, 3]
    assert (found.equal.value, found.both_bad.value, found.alike_again) == (0.0, 0.0, 1.0)
    assert found.alpha is None  # All votes are for the first name, so nothing could differ.


def test_only_operators_publish_and_only_what_is_new(booth: Booth) -> None:
    with refused("not_operator"):
        cut(booth.store, SET, VOTERS[0])
    with refused("nothing_to_cut"):
        cut(booth.store, SET, OLGA)
    with refused("no_poll"):
        cut(booth.store, "other", OLGA)


def test_a_revision_names_no_account_and_holds_every_vote_with_its_chances(booth: Booth) -> None:
    content = read_table(booth.store.public, SET, 1)
    table = pq.read_table(BytesIO(content))
    assert table.schema.equals(SCHEMA)
    assert set(TEXTS) == set(SCHEMA.names)
    votes = {v.ballot.ballot_id: v for v in read_votes(booth.store.private, SET)}
    whole = b"".join(
        booth.store.public.read(path) for path in booth.store.public.list(f"votes/{SET}/")
    )
    poll = poll_of(booth.store.private, SET)
    secrets = [a.name for a in VOTERS] + [poll.key, str(poll.seed), *votes]
    assert not [one for one in secrets if one.encode() in whole]
    rows = table.to_pylist()
    assert len(rows) == len(votes)
    assert len({row["rater"] for row in rows}) == 5
    assert {row["careless"] for row in rows if row["rater"]} == {True, False}
    assert [row["vote"] for row in rows] == sorted(row["vote"] for row in rows)
    drawn = [row for row in rows if row["purpose"] in {"rank", "failure"}]
    assert all(row["pair_probability"] and row["prompt_probability"] for row in drawn)
    known = {row["vote"] for row in rows}
    assert {row["repeats"] for row in rows if row["purpose"] == "repeat"} <= known
    assert all(row["answered_on"] == date(2026, 4, 1) for row in rows)


def test_later_votes_go_into_a_later_revision_and_the_first_stays(tmp_path: Path) -> None:
    booth = Booth(tmp_path)
    booth.open()
    assert read_results(booth.store.public, SET) is None
    with refused("nothing_to_cut"):
        cut(booth.store, SET, OLGA)
    booth.vote_all(VOTERS[:2], 3)
    booth.service.commit()
    assert not booth.store.public.list("votes/")
    assert cut(booth.store, SET, OLGA).number == 1
    first = read_table(booth.store.public, SET, 1)
    booth.vote_all(VOTERS[:2], 2)
    booth.service.commit()
    assert cut(booth.store, SET, OLGA).n_given == 10
    assert revisions(booth.store.public, SET) == (1, 2)
    assert read_table(booth.store.public, SET, 1) == first
    earlier = read_results(booth.store.public, SET, 1)
    assert earlier is not None
    assert earlier.n_given == 6
    assert read_results(booth.store.public, SET, 3) is None
    with refused("no_revision"):
        read_table(booth.store.public, SET, 3)
    raters = [
        set(pq.read_table(BytesIO(read_table(booth.store.public, SET, n)))["rater"].to_pylist())
        for n in (1, 2)
    ]
    assert raters[0] == raters[1]


def rows_of(booth: Booth, number: int) -> list[dict[str, Any]]:
    """Rows of the table of a revision."""
    table = pq.read_table(BytesIO(read_table(booth.store.public, SET, number)))
    found: list[dict[str, Any]] = table.to_pylist()
    return found


def test_gold_pairs_are_published_only_once_the_vote_is_closed(tmp_path: Path) -> None:
    booth = Booth(tmp_path, n_prompts=20)
    booth.open(Shares(gold=0.4, repeat=0.0), gold=[gold_pair(n) for n in range(19)])
    booth.vote_all(VOTERS[:2], 20)
    booth.service.commit()
    first = cut(booth.store, SET, OLGA)
    rows = rows_of(booth, 1)
    assert {row["purpose"] for row in rows} == {"rank"}
    assert not [row for row in rows if row["gold"]]
    assert first.n_withheld == first.n_gold == 40 - len(rows) > 0
    close_poll(booth.store, SET, OLGA, booth.clock())
    second = cut(booth.store, SET, OLGA)
    assert (second.number, second.n_withheld) == (2, 0)
    assert sum(row["gold"] is not None for row in rows_of(booth, 2)) == first.n_withheld


def test_a_ban_takes_the_votes_of_an_account_out_of_the_next_revision(tmp_path: Path) -> None:
    booth = Booth(tmp_path, n_prompts=20)
    booth.open()
    booth.vote_all(VOTERS[:2], 6)
    for _ in range(10):
        booth.vote(CLICKER, Choice.LEFT)
    booth.service.commit()
    first = cut(booth.store, SET, OLGA)
    assert (first.n_votes, first.n_banned) == (22, 0)
    ban = Ban(account=CLICKER.key, reason="spam", by=OLGA.key, at=booth.clock())
    transact(booth.store.public, lambda: bans_file({CLICKER.key: ban}), "a ban")
    second = cut(booth.store, SET, OLGA)
    assert (second.n_given, second.n_votes, second.n_raters) == (22, 12, 2)
    assert (second.n_banned, second.n_of_banned, second.n_careless) == (1, 10, 0)
    assert len(rows_of(booth, 2)) == 12
    with refused("nothing_to_cut"):
        cut(booth.store, SET, OLGA)


def test_models_that_left_the_boards_have_no_rank_and_no_rows_in_a_new_revision(
    tmp_path: Path,
) -> None:
    booth = Booth(tmp_path / "votes", n_prompts=20)
    booth.open()
    booth.vote_all(VOTERS, 12)
    booth.service.commit()
    track = read_track(booth.store.public)
    left = {one: entry for one, entry in track.entries.items() if one != "gamma"}
    transact(booth.store.public, lambda: {PATH: track_bytes(ModelTrack(left))}, "gamma leaves")
    results = cut(booth.store, SET, OLGA)
    assert [one.submission_id for one in results.models] == ["alpha", "beta"]
    rows = rows_of(booth, 1)
    assert "gamma" not in {row[side] for row in rows for side in ("left", "right")}
    assert results.n_votes == len(rows) == 48 - results.n_off_boards < 48
    known = booth.reader.prompt_sets[SET]
    made = export(
        results, read_table(booth.store.public, SET, 1), known, known.set_prompts(None), picture,
        out=tmp_path / "board", named=("my_votes", "My votes"),
    )  # fmt: skip
    assert (made.votes, made.left_out) == (results.n_votes, 0)


def test_votes_on_models_that_left_still_tell_who_is_careless(booth: Booth) -> None:
    votes = read_votes(booth.store.private, SET)
    on_boards = check_votes(votes, ("beta", "gamma"))  # All gold pairs are of alpha.
    assert not any(vote.ballot.gold for vote in on_boards.kept)
    assert on_boards.careless == {CLICKER.key}


def test_alpha_is_of_images_that_several_compared_whatever_their_sides(tmp_path: Path) -> None:
    booth = Booth(tmp_path, models=("alpha", "beta"), n_prompts=10)
    booth.open()

    def by_prompt(ballot: Ballot) -> Choice:
        good = ("alpha", "beta")[int(ballot.prompt_id[1:]) % 2]
        return Choice.LEFT if ballot.left.submission_id == good else Choice.RIGHT

    for _ in range(10):
        booth.vote(VOTERS[0], by_prompt)
        booth.vote(VOTERS[1], by_prompt)
    votes = [Vote(ballot=b, answer=a) for b, a in booth.service.votes(SET).answered()]
    assert alpha_of(votes) == pytest.approx(1.0)
    for n in range(5):  # A third voter contradicts on half of them.
        booth.vote(VOTERS[2], lambda ballot: by_prompt(ballot).mirrored)
        votes = [Vote(ballot=b, answer=a) for b, a in booth.service.votes(SET).answered()]
        assert len(votes) == 21 + n
    table = np.full((10, 3), np.nan)
    for vote in votes:
        row, rater = int(vote.ballot.prompt_id[1:]), int(vote.ballot.account[-1])
        table[row, rater] = (row % 2) ^ (rater == 2)
    assert alpha_of(votes) == pytest.approx(krippendorff_alpha(table, "nominal"))


@pytest.mark.slow
def test_repetitions_that_are_answered_otherwise_show_who_does_not_look(tmp_path: Path) -> None:
    booth = Booth(tmp_path, n_prompts=60)
    booth.open(Shares(gold=0.0, repeat=0.3))
    for _ in range(120):
        booth.vote(CLICKER, Choice.LEFT)  # The sides of a repetition are changed.
        booth.vote(VOTERS[0], prefer_first_name)
    booth.service.commit()
    checked = check_votes(read_votes(booth.store.private, SET), booth.models)
    assert checked.careless == {CLICKER.key}
    assert checked.alike_again == 1.0


def test_a_revision_becomes_a_benchmark_that_metrics_are_ranked_on(
    booth: Booth, tmp_path: Path
) -> None:
    results = read_results(booth.store.public, SET)
    assert results is not None
    known = booth.reader.prompt_sets[SET]
    content = read_table(booth.store.public, SET, 1)
    out = tmp_path / "board"
    made = export(
        results, content, known, known.set_prompts(None), picture,
        out=out, named=("my_votes", "My votes"),
    )  # fmt: skip
    assert (made.votes, made.left_out) == (results.n_votes, 0)
    assert len(list((out / "images").iterdir())) == made.images
    text = (out / "votes.jsonl").read_text()
    assert "images" not in text
    found = load_any_card(out / "card.toml")
    assert isinstance(found, PreferenceBenchmark)
    answers = found.answers(None)
    assert isinstance(answers, PreferenceAnswers)
    lines = [json.loads(line) for line in text.splitlines()]
    assert len(answers.compared.a) == len(lines) == results.n_votes
    worth = {one[side]: one[f"{side}_model"] for one in lines for side in ("left", "right")}
    scores = pd.Series({one: -float(ord(worth[one][0])) for one in worth})
    frame = pd.DataFrame({"m": [scores[p] for p in answers.pair_ids]}, index=list(answers.pair_ids))
    rows = found.measure(ScoreTable(frame), answers, found.plan(answers, 20)).rows
    accuracy = [
        r.value for r in rows if r.measure == "accuracy" and r.skill is None and not r.split
    ]
    assert accuracy == [1.0]
    assert found.questions(None).images
    nothing = tmp_path / "none"
    with refused("nothing_to_export"):
        export(
            results, content, known, known.set_prompts(None), lambda *_: None,
            out=nothing, named=("my_votes", "My votes"),
        )  # fmt: skip
    assert not nothing.exists()


@pytest.mark.parametrize(
    ("chosen", "gold", "word"),
    [
        (["alpha"], [], "two are needed"),
        (["alpha", "nobody", "beta"], [], "nobody has no pictures"),
        ([], [gold_pair(5)], "no image alpha/p6/1"),
        ([], [gold_pair().model_copy(update={"prompt_id": "q"})], "'q' is no prompt"),
        ([], [gold_pair().model_copy(update={"worse": gold_pair().better})], "with itself"),
    ],
)
def test_a_vote_that_could_not_be_held_is_not_opened(
    tmp_path: Path, chosen: list[str], gold: list[object], word: str
) -> None:
    booth = Booth(tmp_path)
    with refused("bad_poll", word):
        booth.open(chosen=chosen, gold=gold)
    with refused("not_operator"):
        open_poll(booth.store, booth.reader, SET, Account(origin="hub", name="ada"))  # type: ignore[arg-type]
    assert not booth.store.private.list("votes/")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("prompt_id,better,worse\np0,a/p0/1,b/p0/2\n", ()),
        ("prompt_id,better,worse\n", ("no pair",)),
        ("prompt_id,better\np0,a/p0/1\n", ("line 2", "worse")),
        ("prompt_id,better,worse\np0,a/p0/x,b/p0/2\np1,,\n", ("line 2", "line 3")),
    ],
)
def test_gold_pairs_are_read_and_every_wrong_line_is_named(
    tmp_path: Path, content: str, words: tuple[str, ...]
) -> None:
    path = tmp_path / "gold.csv"
    path.write_text(content)
    if words:
        with refused("bad_gold", *words):
            read_gold(path)
        return
    (pair,) = read_gold(path)
    assert (str(pair.better), str(pair.worse)) == ("a/p0/1", "b/p0/2")
