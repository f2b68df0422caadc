"""Results of a poll: strengths of models, how raters agree, and which of them were careless."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import AwareDatetime

from benchmarks.arrays import IntArray
from benchmarks.schema import Frozen
from benchmarks.statistics.raters import check_raters, krippendorff_alpha, repeated_answers
from benchmarks.statistics.votes import Rate, Votes, both_bad_rates, hajek_rate, vote_board
from leaderboard.votes.records import Choice, Purpose, Vote

GOLD_THRESHOLD, REPEAT_THRESHOLD = 0.75, 0.6
"""Share of gold pairs and of repetitions that a careful voter reaches with ease."""
LEVEL = 0.05
"""Chance that any careful voter of a poll is called careless; half of it for either check."""
_WORTH = {Choice.LEFT: 1.0, Choice.RIGHT: 0.0}


class Share(Frozen):
    """Share of votes with its 95 % interval, clustered by prompt and rater; null without votes."""

    value: float | None
    """0..1."""
    low: float | None
    """Lower end of the interval."""
    high: float | None
    """Upper end."""


class VotedModel(Frozen):
    """Model on a board of votes; null where it has no votes."""

    submission_id: str
    """The model, by its submission."""
    title: str
    """Name and version when the revision was cut."""
    n_votes: int
    """That it is part of."""
    strength: float | None
    """Bradley-Terry log odds against the mean of the models it was compared with, if by others."""
    strength_low: float | None
    """Lower end of the 95 % interval."""
    strength_high: float | None
    """Upper end."""
    win_rate: float | None
    """Mean chance to be preferred to another model."""
    win_rate_low: float | None
    """Lower end of the 95 % interval."""
    win_rate_high: float | None
    """Upper end."""
    rank: int | None
    """By strength, 1 is best."""
    rank_low: int | None
    """Best rank that the tests leave open."""
    rank_high: int | None
    """Worst rank that they leave open."""
    group: int
    """Models of two groups were never compared, nor through others: their ranks say nothing together."""
    both_bad: Share
    """Of the votes that it is part of."""


class VoteResults(Frozen):
    """A revision's board, with what was counted and what was left out."""

    schema_version: int = 1
    prompt_set: str
    revision: str
    """Of the prompt set."""
    number: int
    """Of the revision of votes, from 1."""
    cut_at: AwareDatetime
    """When, by the clock of the store."""
    n_given: int
    """All votes so far, whatever for and whoever gave them, with those that are left out."""
    n_votes: int
    """Votes that rank, of raters who are not careless nor banned, on models of the boards."""
    n_raters: int
    """Raters who are not careless nor banned."""
    n_careless: int
    """Raters left out: they missed more gold pairs, or repeated fewer answers, than chance explains."""
    n_left_out: int
    """Votes of them that would rank."""
    n_banned: int = 0
    """Raters left out because their accounts are banned."""
    n_of_banned: int = 0
    """Votes of them, whatever for; they are not in the table."""
    n_off_boards: int = 0
    """Votes of others on models that are not on the boards; they are not in the table."""
    n_withheld: int = 0
    """Votes on gold pairs that the table lacks, since the vote was open and its answers are in use."""
    n_gold: int
    """Votes of careful raters on pairs with a known answer."""
    n_repeated: int
    """Votes of careful raters on repeated ballots."""
    n_failure: int
    """Votes on prompts where metrics disagree; no strength rests on them."""
    n_hasty: int
    """Votes that rank and came sooner than images can be looked at; they are among `n_votes`."""
    alpha: float | None
    """Krippendorff's nominal alpha over images that several raters compared; null where there are none."""
    alike_again: float | None
    """Share of repeated ballots that were answered as the first time."""
    equal: Share
    """Of the votes that rank."""
    both_bad: Share
    """Likewise."""
    models: tuple[VotedModel, ...]
    """By strength, the highest first."""


@dataclass(frozen=True)
class CheckedVotes:
    """Votes of a poll by what counts of them."""

    kept: tuple[Vote, ...]  # on models of the boards, of accounts that are not banned
    counted: tuple[Vote, ...]  # of these that rank, of raters who are not careless
    banned: frozenset[str]  # accounts that voted
    n_of_banned: int  # votes of them
    raters: frozenset[str]  # accounts of the votes that are kept
    careless: frozenset[str]  # accounts among them
    # share of repetitions answered as the first time, of raters who are not careless
    alike_again: float | None


def check_votes(
    votes: Sequence[Vote], models: Container[str], banned: Container[str] = ()
) -> CheckedVotes:
    """Find the careless raters, and what counts without them and without banned accounts.

    `models`: submissions on the boards. Votes on others still tell who is careless.
    """
    allowed = [vote for vote in votes if vote.ballot.account not in banned]
    careless, alike_again = _careless(allowed)
    kept = tuple(
        vote
        for vote in allowed
        if vote.ballot.left.submission_id in models and vote.ballot.right.submission_id in models
    )
    raters = frozenset(vote.ballot.account for vote in kept)
    return CheckedVotes(
        kept,
        tuple(
            vote
            for vote in kept
            if vote.ballot.purpose is Purpose.RANK and vote.ballot.account not in careless
        ),
        frozenset(vote.ballot.account for vote in votes if vote.ballot.account in banned),
        len(votes) - len(allowed),
        raters,
        careless & raters,
        alike_again,
    )


def _careless(votes: Sequence[Vote]) -> tuple[frozenset[str], float | None]:
    """The careless raters, and how often the others answered a repeated ballot alike."""
    raters = tuple(sorted({vote.ballot.account for vote in votes}))
    place = {account: at for at, account in enumerate(raters)}
    n = len(raters)
    right, asked = np.zeros(n, np.intp), np.zeros(n, np.intp)
    for vote in votes:
        if vote.ballot.purpose is Purpose.GOLD:
            at = place[vote.ballot.account]
            asked[at] += 1
            right[at] += vote.answer.choice is vote.ballot.gold
    alike, again = _repetitions(votes, place)
    careless: set[str] = set()
    for good, of, threshold in (
        (right, asked, GOLD_THRESHOLD),
        (alike, again, REPEAT_THRESHOLD),
    ):
        found = check_raters(good, of, threshold, level=LEVEL / 2.0, every_look=True)
        careless |= {raters[at] for at in np.flatnonzero(found.careless)}
    kept = [at for at, account in enumerate(raters) if account not in careless]
    alike_again = float(alike[kept].sum() / again[kept].sum()) if again[kept].any() else None
    return frozenset(careless), alike_again


def _repetitions(votes: Sequence[Vote], place: dict[str, int]) -> tuple[IntArray, IntArray]:
    """How often each rater answered a repeated ballot alike, and how often one was repeated."""
    first = {vote.ballot.ballot_id: vote for vote in votes}
    rows = [
        (place[one.ballot.account], number, code)
        for number, vote in enumerate(votes)
        if vote.ballot.purpose is Purpose.REPEAT and vote.ballot.repeats in first
        for one, code in (
            (first[vote.ballot.repeats], _code(first[vote.ballot.repeats].answer.choice)),
            (vote, _code(vote.answer.choice.mirrored)),  # its sides were changed
        )
    ]
    table = np.array(rows, np.intp).reshape(-1, 3)
    return repeated_answers(table[:, 0], table[:, 1], table[:, 2], len(place))


def _code(choice: Choice) -> int:
    return tuple(Choice).index(choice)


def alpha_of(votes: Sequence[Vote]) -> float | None:
    """Krippendorff's nominal alpha of the choices; a unit is two images, whatever their sides."""
    units: defaultdict[tuple[str, str, str], dict[str, int]] = defaultdict(dict)
    raters = {vote.ballot.account: 0 for vote in votes}
    for vote in votes:
        left, right = str(vote.ballot.left), str(vote.ballot.right)
        choice = vote.answer.choice if left < right else vote.answer.choice.mirrored
        key = vote.ballot.prompt_id, min(left, right), max(left, right)
        units[key].setdefault(vote.ballot.account, _code(choice))
    several = [said for said in units.values() if len(said) > 1]
    columns = {account: at for at, account in enumerate(raters)}
    table = np.full((len(several), len(columns)), np.nan)
    for row, said in enumerate(several):
        for account, code in said.items():
            table[row, columns[account]] = code
    found = krippendorff_alpha(table, "nominal") if several else np.nan
    return _number(found)


def results_of(
    checked: CheckedVotes,
    titles: dict[str, str],
    *,
    prompt_set: str,
    revision: str,
    number: int,
    cut_at: AwareDatetime,
    n_given: int,
    n_withheld: int,
) -> VoteResults:
    """The board of votes; `titles`: submission of the boards to how the model is called."""
    counted = checked.counted
    models = tuple(titles)
    table = table_of(counted, models)
    board = vote_board(table, len(models))
    bad = both_bad_rates(table, len(models))
    order = np.argsort(-np.nan_to_num(board.strengths, nan=-np.inf), kind="stable")
    rest = [vote for vote in checked.kept if vote.ballot.account not in checked.careless]
    equal = np.array([vote.answer.choice is Choice.EQUAL for vote in counted], np.float64)
    ones = np.ones(len(counted))
    ranking = [vote for vote in checked.kept if vote.ballot.purpose is Purpose.RANK]
    return VoteResults(
        prompt_set=prompt_set,
        revision=revision,
        number=number,
        cut_at=cut_at,
        n_given=n_given,
        n_votes=len(counted),
        n_raters=len(checked.raters) - len(checked.careless),
        n_careless=len(checked.careless),
        n_left_out=len(ranking) - len(counted),
        n_banned=len(checked.banned),
        n_of_banned=checked.n_of_banned,
        n_off_boards=n_given - checked.n_of_banned - len(checked.kept),
        n_withheld=n_withheld,
        n_gold=sum(vote.ballot.purpose is Purpose.GOLD for vote in rest),
        n_repeated=sum(vote.ballot.purpose is Purpose.REPEAT for vote in rest),
        n_failure=sum(vote.ballot.purpose is Purpose.FAILURE for vote in rest),
        n_hasty=sum(vote.answer.hasty for vote in counted),
        alpha=alpha_of(counted),
        alike_again=checked.alike_again,
        equal=_share(hajek_rate(equal, ones, table.prompts, table.raters)),
        both_bad=_share(
            hajek_rate(table.both_bad.astype(np.float64), ones, table.prompts, table.raters)
        ),
        models=tuple(
            VotedModel(
                submission_id=models[at],
                title=titles[models[at]],
                n_votes=int(board.n_votes[at]),
                strength=_number(board.strengths[at]),
                strength_low=_number(board.strengths_low[at]),
                strength_high=_number(board.strengths_high[at]),
                win_rate=_number(board.win_rates[at]),
                win_rate_low=_number(board.win_rates_low[at]),
                win_rate_high=_number(board.win_rates_high[at]),
                rank=_whole(board.ranks[at]),
                rank_low=_whole(board.ranks_low[at]),
                rank_high=_whole(board.ranks_high[at]),
                group=int(board.groups[at]),
                both_bad=_share(bad[at]),
            )
            for at in order
        ),
    )


def table_of(votes: Sequence[Vote], models: Sequence[str]) -> Votes:
    """Votes as the statistics take them; prompts have one chance each, since any was drawn alike."""
    place = {name: at for at, name in enumerate(models)}
    choices = [vote.answer.choice for vote in votes]
    return Votes(
        first=np.array([place[vote.ballot.left.submission_id] for vote in votes], np.intp),
        second=np.array([place[vote.ballot.right.submission_id] for vote in votes], np.intp),
        won=np.array([_WORTH.get(choice, 0.5) for choice in choices], np.float64),
        both_bad=np.array([choice is Choice.BOTH_BAD for choice in choices], bool),
        prompts=_numbers([vote.ballot.prompt_id for vote in votes]),
        raters=_numbers([vote.ballot.account for vote in votes]),
        chances=np.ones(len(votes)),
    )


def _numbers(names: Sequence[str]) -> IntArray:
    place = {name: at for at, name in enumerate(sorted(set(names)))}
    return np.array([place[name] for name in names], np.intp)


def _share(rate: Rate) -> Share:
    return Share(value=_number(rate.value), low=_number(rate.low), high=_number(rate.high))


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _whole(value: float) -> int | None:
    return int(value) if np.isfinite(value) else None
