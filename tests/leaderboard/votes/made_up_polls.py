"""A made-up poll on a few models, and people who vote in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image

from leaderboard.accounts import Account, Origin
from leaderboard.models.pictures import image_table, images_path
from leaderboard.models.reading import ModelReader
from leaderboard.publication.model_entries import PATH, ModelEntry, ModelTrack, track_bytes
from leaderboard.records import ImagesSeen
from leaderboard.store.interface import Store, transact
from leaderboard.votes.polls import open_poll
from leaderboard.votes.records import Ballot, Choice, DrawnImage, GoldPair, Purpose, Shares
from leaderboard.votes.service import VoteLimits, VotingService
from tests.kit.store import memory_store
from tests.leaderboard.models.made_up_models import NOW, prompt_set, prompts_of

SET = "drawn"
OLGA = Account(origin=Origin.LOCAL, name="olga", operator=True)
NONE_ELSE = Shares(gold=0.0, repeat=0.0)


def voter(name: str) -> Account:
    """An account of the Hub."""
    return Account(origin=Origin.HUB, name=name)


@dataclass
class Clock:
    """A time that a test moves."""

    now: datetime = datetime(2026, 4, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def wait(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


def gold_pair(n: int = 0) -> GoldPair:
    """The image of the first model fits its prompt, that of another prompt does not."""
    right = DrawnImage(submission_id="alpha", prompt_id=f"p{n}", seed=1)
    return GoldPair(
        prompt_id=f"p{n}", better=right, worse=right.model_copy(update={"prompt_id": f"p{n + 1}"})
    )


@dataclass
class Booth:
    """A store with models that drew a set, and what a test votes with."""

    folder: Path
    models: Sequence[str] = ("alpha", "beta", "gamma")
    n_prompts: int = 6
    clock: Clock = field(default_factory=Clock)
    store: Store = field(default_factory=memory_store)
    limits: VoteLimits = field(default_factory=lambda: VoteLimits(1000, 5000))
    disagreements: Callable[[str, str, str], Sequence[str]] = lambda *_: ()
    owners: Mapping[str, Account] = field(default_factory=dict)  # model to its account

    def __post_init__(self) -> None:
        self.store = replace(self.store, clock=self.clock)
        entries = {one: self._entry(one) for one in self.models}
        rows = [
            {"prompt_id": f"p{n}", "seed": 1, "sha256": "0" * 64} for n in range(self.n_prompts)
        ]
        files = {images_path(one, SET): image_table(rows) for one in self.models}
        track = {PATH: track_bytes(ModelTrack(entries))}
        transact(self.store.public, lambda: {**files, **track}, "models")
        known = prompt_set(prompts_of(self.n_prompts), SET)
        self.reader = ModelReader(self.store, {SET: known}, None)
        self.service = self.restarted()

    def restarted(self, folder: Path | None = None, store: Store | None = None) -> VotingService:
        """The service as another process makes it."""
        found = store or self.store
        return VotingService(
            found,
            ModelReader(found, self.reader.prompt_sets, None),
            picture,
            folder or self.folder,
            limits=self.limits,
            disagreements=self.disagreements,
        )

    def open(self, shares: Shares = NONE_ELSE, **more: Any) -> None:
        """Open the poll as an operator does."""
        open_poll(self.store, self.reader, SET, OLGA, shares=shares, **more)

    def current(self, account: Account, service: VotingService | None = None) -> Ballot:
        """The ballot that an account is shown."""
        asked = service or self.service
        return asked.ballots(account, asked.poll(SET))[0]

    def vote(
        self, account: Account, choice: Choice | Callable[[Ballot], Choice] = Choice.LEFT
    ) -> Ballot:
        """Answer the current ballot after some seconds."""
        ballot = self.current(account)
        self.clock.wait(5)
        said = choice if isinstance(choice, Choice) else choice(ballot)
        assert self.service.answer(account, SET, ballot.ballot_id, said).counted
        return ballot

    def vote_all(self, accounts: Sequence[Account], n: int) -> None:
        """Every account prefers the model whose name comes first, and knows gold pairs."""
        for account in accounts:
            for _ in range(n):
                self.vote(account, prefer_first_name)

    def _entry(self, name: str) -> ModelEntry:
        n, owner = self.n_prompts, self.owners.get(name)
        images = ImagesSeen(prompt_set=SET, revision="r1", seeds=(1,), wanted=n, present=n)
        return ModelEntry(
            submission_id=name, model=name.title(), submitter="bob", images=images, pictures=1,
            account=owner.key if owner else "",
            received_at=NOW, published_at=NOW, since=NOW,
        )  # fmt: skip


def prefer_first_name(ballot: Ballot) -> Choice:
    """What somebody says who likes models in the order of their names."""
    if ballot.purpose is Purpose.GOLD:
        assert ballot.gold is not None
        return ballot.gold
    left, right = ballot.left.submission_id, ballot.right.submission_id
    return Choice.LEFT if left < right else Choice.RIGHT


def picture(submission_id: str, image: str) -> bytes:
    """A picture whose size tells its model, as models' own do."""
    kept = BytesIO()
    size = (60 + 10 * len(submission_id), 40)
    Image.new("RGB", size, (len(image) * 20 % 255, 90, 200)).save(kept, "PNG")
    return kept.getvalue()
