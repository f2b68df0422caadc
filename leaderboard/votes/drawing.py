"""Draw of a ballot: its purpose, its models, its prompt, its images and their places."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.statistics.bradley_terry import posterior, win_matrix
from benchmarks.statistics.vote_sampling import draw_pair
from leaderboard.votes.journal import Journal
from leaderboard.votes.records import Answer, Ballot, Choice, DrawnImage, Poll, Purpose

REPEATED_AFTER = 8
"""Ballots between one and its repetition, at the least."""

ModelImages = Mapping[str, Mapping[str, tuple[int, ...]]]
"""Submission to prompt to the seeds of its images that can be shown."""


@dataclass(frozen=True)
class Candidates:
    """What ballots of a poll are drawn from."""

    images: ModelImages  # of the models that can still be shown, those of gold pairs among them
    # two submissions to the prompts on which qualified metrics disagree about them
    disagreements: Callable[[str, str], Collection[str]]

    def can_show(self, images: Iterable[DrawnImage]) -> bool:
        """Whether all of some images are there."""
        return all(
            one.seed in self.images.get(one.submission_id, {}).get(one.prompt_id, ())
            for one in images
        )

    def meet(self, first: str, second: str) -> bool:
        """Whether any prompt was drawn by both models."""
        return not self.images[first].keys().isdisjoint(self.images[second])

    def prompts(self, pair: tuple[str, str]) -> list[str]:
        """Prompts that both models drew."""
        first, second = (self.images[one] for one in pair)
        return [prompt for prompt in first if prompt in second]


@dataclass(frozen=True)
class _Showing:
    """What goes onto a ballot, before places are drawn."""

    purpose: Purpose
    prompt_id: str
    images: tuple[DrawnImage, DrawnImage]
    chances: tuple[float, float] | None = None  # of the pair, and of the prompt given the pair
    repeats: str = ""


def comparisons(
    answered: Iterable[tuple[Ballot, Answer]], models: Sequence[str]
) -> tuple[IntArray, IntArray, FloatArray]:
    """First model, second model and outcome of each vote that ranks, as Bradley-Terry takes them.

    The outcome is 1 where the first was preferred, 0 where the second was, 0.5 for equal and both bad.
    Votes on models that are not among `models` are left out.
    """
    place = {name: at for at, name in enumerate(models)}
    worth = {Choice.LEFT: 1.0, Choice.RIGHT: 0.0}
    rows = [
        (
            place[ballot.left.submission_id],
            place[ballot.right.submission_id],
            worth.get(answer.choice, 0.5),
        )
        for ballot, answer in answered
        if ballot.purpose is Purpose.RANK
        and ballot.left.submission_id in place
        and ballot.right.submission_id in place
    ]
    table = np.array(rows, np.float64).reshape(-1, 3)
    return table[:, 0].astype(np.intp), table[:, 1].astype(np.intp), table[:, 2]


@dataclass(frozen=True)
class BallotDraw:
    """Draw of the next ballot of an account.

    The same poll, account, votes and candidates give the same ballot.
    """

    poll: Poll
    account: str  # key of the voter's
    journal: Journal
    of: Candidates

    def ballot(self, ballot_id: str, now: datetime) -> Ballot | None:
        """The ballot; None where nothing can be shown."""
        number = len(self._issued)
        drawn = _generator(self.poll.seed, self.account, number)
        showing = self._special(drawn) or self._rank(drawn)
        if showing is None:
            return None
        # A repetition has the sides of the first time the other way round.
        turned = showing.purpose is Purpose.REPEAT or bool(drawn.random() < 0.5)
        left, right = reversed(showing.images) if turned else showing.images
        pair, prompt = showing.chances or (None, None)
        gold = Choice.RIGHT if turned else Choice.LEFT
        return Ballot(
            ballot_id=ballot_id,
            account=self.account,
            number=number,
            prompt_id=showing.prompt_id,
            left=left,
            right=right,
            purpose=showing.purpose,
            pair_probability=pair,
            prompt_probability=prompt,
            repeats=showing.repeats,
            gold=gold if showing.purpose is Purpose.GOLD else None,
            issued_at=now,
        )

    @property
    def _issued(self) -> list[Ballot]:
        return self.journal.of_account.get(self.account, [])

    @property
    def _models(self) -> list[str]:
        return sorted(one for one in self.poll.models if one in self.of.images)

    def _special(self, drawn: np.random.Generator) -> _Showing | None:
        """A ballot for something else than ranking, if one is due and there is any."""
        place, shares = drawn.random(), self.poll.shares
        if place < shares.gold:
            return self._gold(drawn)
        if place < shares.gold + shares.repeat:
            return self._repeat(drawn)
        if place < shares.gold + shares.repeat + shares.failure:
            return self._failure(drawn)
        return None

    def _gold(self, drawn: np.random.Generator) -> _Showing | None:
        seen = {frozenset((b.left, b.right)) for b in self._issued if b.purpose is Purpose.GOLD}
        left = [
            one
            for one in self.poll.gold
            if frozenset(one.images) not in seen and self.of.can_show(one.images)
        ]
        if not left:
            return None
        one = left[_place(left, drawn)]
        return _Showing(Purpose.GOLD, one.prompt_id, one.images)

    def _repeat(self, drawn: np.random.Generator) -> _Showing | None:
        again = {one.repeats for one in self._issued}
        able = [
            one
            for one in self._issued[: max(len(self._issued) - REPEATED_AFTER, 0)]
            if one.purpose is Purpose.RANK
            and one.ballot_id in self.journal.answers
            and one.ballot_id not in again
            and self.of.can_show((one.left, one.right))
        ]
        if not able:
            return None
        one = able[_place(able, drawn)]
        images = one.left, one.right
        return _Showing(Purpose.REPEAT, one.prompt_id, images, repeats=one.ballot_id)

    def _failure(self, drawn: np.random.Generator) -> _Showing | None:
        """A prompt of any two models on which metrics disagree, as long as the share allows one."""
        so_far = sum(one.purpose is Purpose.FAILURE for one in self._issued)
        models, allowed = self._models, self.poll.shares.failure * (len(self._issued) + 1)
        if so_far + 1 > allowed or len(models) < 2:
            return None
        first, second = sorted(drawn.choice(len(models), 2, replace=False).tolist())
        pair = models[first], models[second]
        there = self.of.disagreements(*pair)
        prompts = [one for one in self.of.prompts(pair) if one in there]
        if not prompts:
            return None
        chance = 1.0 / math.comb(len(models), 2)
        return self._with_images(Purpose.FAILURE, pair, prompts, chance, drawn)

    def _rank(self, drawn: np.random.Generator) -> _Showing | None:
        """Models whose order a vote would tell most about, and any of their prompts."""
        models = self._models
        allowed = np.array([[a < b and self.of.meet(a, b) for b in models] for a in models], bool)
        if not allowed.any():
            return None
        first, second, won = comparisons(self.journal.answered(), models)
        found = posterior(win_matrix(first, second, won, len(models)))
        pair = draw_pair(found, drawn, allowed)
        names = models[pair.first], models[pair.second]
        return self._with_images(Purpose.RANK, names, self.of.prompts(names), pair.chance, drawn)

    def _unseen(
        self, purpose: Purpose, pair: tuple[str, str], prompts: Sequence[str]
    ) -> Sequence[str]:
        """Prompts that no ballot of the purpose showed the account of two models; else all."""
        asked = {
            one.prompt_id
            for one in self._issued
            # Those of another purpose are chosen otherwise: without them prompts would not be alike.
            if one.purpose is purpose
            and {one.left.submission_id, one.right.submission_id} == set(pair)
        }
        return [one for one in prompts if one not in asked] or prompts

    def _with_images(
        self,
        purpose: Purpose,
        pair: tuple[str, str],
        prompts: Sequence[str],
        chance: float,
        drawn: np.random.Generator,
    ) -> _Showing:
        """Two models with a prompt and an image of each, all alike; `chance`: of the two models."""
        left = self._unseen(purpose, pair, prompts)
        prompt = left[_place(left, drawn)]

        def image(model: str) -> DrawnImage:
            seeds = self.of.images[model][prompt]
            seed = seeds[_place(seeds, drawn)]
            return DrawnImage(submission_id=model, prompt_id=prompt, seed=seed)

        images = image(pair[0]), image(pair[1])
        # Prompts come in an order that is drawn, so each has the same chance at every place of it.
        return _Showing(purpose, prompt, images, (chance, 1.0 / len(prompts)))


def _place(of: Sequence[object], drawn: np.random.Generator) -> int:
    return int(drawn.integers(len(of)))


def _generator(seed: int, account: str, number: int) -> np.random.Generator:
    digest = hashlib.sha256(f"{seed}/{account}/{number}".encode()).digest()
    return np.random.default_rng(int.from_bytes(digest, "big"))
