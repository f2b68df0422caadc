"""Records of human votes: polls, ballots and answers, and their places in the store.

votes/<prompt set>/poll.json              private: how a poll is held
votes/<prompt set>/votes-000000.jsonl     private: ballots with their answers, a line each
votes/<prompt set>/<number>/...           public: revisions that were cut
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, Self

from pydantic import AwareDatetime, Field, model_validator

from benchmarks.schema import Frozen

FOLDER = "votes/"


class Choice(StrEnum):
    """What a voter says of two images."""

    LEFT = "left"
    RIGHT = "right"
    EQUAL = "equal"
    BOTH_BAD = "both_bad"

    @property
    def mirrored(self) -> Choice:
        """The same of the images in the other places."""
        return {Choice.LEFT: Choice.RIGHT, Choice.RIGHT: Choice.LEFT}.get(self, self)


class Purpose(StrEnum):
    """Reason that a ballot was issued for."""

    RANK = "rank"
    """Counts for the strengths of models; the only purpose that does."""
    GOLD = "gold"
    """Has a known answer, which careless voters miss."""
    REPEAT = "repeat"
    """An earlier ballot of the voter with its sides changed."""
    FAILURE = "failure"
    """A prompt on which qualified metrics disagree: it finds failures and estimates no rate."""


class DrawnImage(Frozen):
    """Image that a model drew."""

    submission_id: str
    """The model, by its submission."""
    prompt_id: str
    """Of the prompt set."""
    seed: int = Field(ge=0, lt=1 << 64)
    """That it was drawn with."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """The image that `SUBMISSION/PROMPT/SEED` names, as addresses below /v1/generations do.

        Raises:
            ValueError: the text names none.
        """
        submission_id, _, rest = text.partition("/")
        prompt_id, _, seed = rest.rpartition("/")
        if not (submission_id and prompt_id and seed.isascii() and seed.isdecimal()):
            raise ValueError(f"{text[:120]!r} is no SUBMISSION/PROMPT/SEED")
        return cls(submission_id=submission_id, prompt_id=prompt_id, seed=int(seed))

    def __str__(self) -> str:
        return f"{self.submission_id}/{self.prompt_id}/{self.seed}"


class GoldPair(Frozen):
    """Two images of which one is known to be better for a prompt."""

    prompt_id: str
    """Prompt that is shown with them."""
    better: DrawnImage
    """Image that shows the prompt better."""
    worse: DrawnImage
    """The other image."""

    @property
    def images(self) -> tuple[DrawnImage, DrawnImage]:
        """Both, the better one first."""
        return self.better, self.worse


MOST_FAILURES = 0.2
"""The largest share of ballots that may be drawn to find failures."""


class Shares(Frozen):
    """Chance of a ballot to be drawn for something else than ranking."""

    gold: float = Field(default=0.05, ge=0.0, le=0.5)
    """Of pairs with a known answer."""
    repeat: float = Field(default=0.05, ge=0.0, le=0.5)
    """Of ballots that the voter answered before."""
    failure: float = Field(default=0.0, ge=0.0, le=MOST_FAILURES)
    """Of prompts on which metrics disagree, at the most."""


class Poll(Frozen):
    """Vote on the images of one prompt set."""

    schema_version: Literal[1] = 1
    prompt_set: str
    revision: str
    """Of the prompt set; models that drew another one take no part."""
    models: tuple[str, ...] = Field(min_length=2)
    """Ids of the submissions that are compared."""
    is_open: bool
    """Whether ballots are issued. Answers to those that were issued count in either case."""
    opened_by: str
    """Account of the operator."""
    opened_at: AwareDatetime
    """When it was opened first."""
    closed_at: AwareDatetime | None = None
    """When it was closed; null while it is open."""
    seed: int = Field(ge=0, lt=1 << 63)
    """Of pairs, prompts and positions; secret, since it would tell voters what comes."""
    key: str = Field(pattern=r"[0-9a-f]{64}")
    """Secret by which accounts become pseudonyms in what is published."""
    gold: tuple[GoldPair, ...] = ()
    """Pairs with a known answer."""
    shares: Shares = Shares()
    """What ballots are for."""


class Ballot(Frozen):
    """Two images that were issued to one account to be compared."""

    ballot_id: str
    """Random, so that nobody guesses one."""
    account: str
    """Whom it was issued to."""
    number: int = Field(ge=0)
    """Of the account's ballots in this poll."""
    prompt_id: str
    """The prompt that is shown."""
    left: DrawnImage
    """Image on the left."""
    right: DrawnImage
    """Image on the right."""
    purpose: Purpose
    """What it is for."""
    pair_probability: float | None = Field(default=None, gt=0.0, le=1.0)
    """Chance of its two models among all pairs when it was drawn; null for gold and repetitions."""
    prompt_probability: float | None = Field(default=None, gt=0.0, le=1.0)
    """Chance of its prompt among those that its purpose allows for its two models; null likewise."""
    repeats: str = ""
    """Id of the ballot that it repeats."""
    gold: Choice | None = None
    """The known answer."""
    issued_at: AwareDatetime
    """When, by the clock of the store."""


class Answer(Frozen):
    """What a voter said of a ballot. The first one stands."""

    ballot_id: str
    """Ballot that is answered."""
    choice: Choice
    """`left`, `right`, `equal` or `both_bad`."""
    answered_at: AwareDatetime
    """When, by the clock of the store."""
    hasty: bool = False
    """Whether it came sooner than the images can have been looked at."""


class Vote(Frozen):
    """Ballot with its answer, as a line of the store."""

    ballot: Ballot
    """What was shown."""
    answer: Answer
    """What was said of it."""


class JournalLine(Frozen):
    """Line of a journal: a ballot that was issued, or an answer."""

    ballot: Ballot | None = None
    answer: Answer | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.ballot is None) == (self.answer is None):
            raise ValueError("a line is a ballot or an answer")
        return self


def poll_path(prompt_set: str) -> str:
    """Where a poll is."""
    return f"{FOLDER}{prompt_set}/poll.json"


def votes_path(prompt_set: str, number: int) -> str:
    """Where some of its votes are."""
    return f"{FOLDER}{prompt_set}/votes-{number:06d}.jsonl"
