"""Voting: who is asked what next, which answers count, and when they reach the store."""

from __future__ import annotations

import logging
import re
import secrets
import threading
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

from benchmarks.errors import AssayError, SubmitterError
from leaderboard.accounts import Account
from leaderboard.ledger.policy import BANS_PATH, Ban, parse_bans
from leaderboard.models.pictures import drawn_images, images_path
from leaderboard.models.reading import KeptFile, ModelReader
from leaderboard.publication.model_entries import ModelEntry
from leaderboard.store.interface import NotFoundError, Store
from leaderboard.thumbnails import square
from leaderboard.votes.drawing import BallotDraw, Candidates
from leaderboard.votes.journal import Journal
from leaderboard.votes.records import Answer, Ballot, Choice, DrawnImage, Poll, poll_path
from leaderboard.votes.storing import parse_poll, poll_names, read_votes, store_votes

log = logging.getLogger(__name__)

VOTES = "votes"
"""Folder of the journals, in what this machine keeps of the store."""
AHEAD = 2
"""Ballots that an account has at once: the one that is shown, and the next one."""
MOST_DRAWS = 8
"""Ballots that are drawn at once to find those whose pictures are there."""
SIDE = 512
"""Of the pictures, in pixels."""
_NAME = re.compile(r"[a-z0-9_]{1,80}")
Side = Literal["left", "right"]


@dataclass(frozen=True)
class VoteLimits:
    """How much one account may vote."""

    per_minute: int = 30
    per_day: int = 500
    hasty_s: float = 1.0  # sooner answers are kept and marked

    def check(self, answers: Collection[Answer], now: datetime) -> None:
        """Refuse one answer more.

        Raises:
            SubmitterError: `too_many_votes`.
        """
        # Answers of the future, by a clock that was put back, count for today as well.
        for most, span, per in (
            (self.per_minute, timedelta(minutes=1), "minute"),
            (self.per_day, timedelta(days=1), "day"),
        ):
            if sum(one.answered_at > now - span for one in answers) >= most:
                raise SubmitterError(
                    "too_many_votes",
                    f"One account may vote {most} times in a {per}, and yours has.",
                    "These images stay yours: answer later.",
                )


@dataclass(frozen=True)
class Receipt:
    """What became of an answer."""

    choice: Choice  # the one that stands
    counted: bool  # False where the ballot had an answer already


class VotingService:
    """Polls of a store. Several threads may share one, and several processes a folder.

    `folder`: of this machine, for the journals; `pictures`: finds an image by submission and by
    `PROMPT/SEED`; `disagreements`: prompts of a set on which metrics disagree about two models.
    """

    def __init__(
        self,
        store: Store,
        models: ModelReader,
        pictures: Callable[[str, str], bytes | None],
        folder: Path,
        *,
        limits: VoteLimits | None = None,
        disagreements: Callable[[str, str, str], Collection[str]] = lambda *_: (),
        token: Callable[[int], str] = secrets.token_hex,
    ) -> None:
        self.limits = limits or VoteLimits()
        self._store, self._models, self._pictures = store, models, pictures
        self._folder = folder
        self._disagreements = disagreements
        self._token = token
        self._lock = threading.RLock()
        self._journals: dict[str, Journal] = {}
        self._polls: dict[str, KeptFile[Poll | None]] = {}
        self._bans = KeptFile(store.public, BANS_PATH, parse_bans, dict[str, Ban]())
        self._heads: dict[str, str] = {}  # of the private repository, when a poll was read last
        self._images: dict[tuple[str, datetime], dict[str, tuple[int, ...]]] = {}

    def polls(self) -> list[Poll]:
        """The open polls, by prompt set."""
        if not self._store.private_readable():
            return []
        found = (self._poll(one) for one in poll_names(self._store.private))
        return [one for one in found if one is not None and one.is_open]

    def poll(self, prompt_set: str) -> Poll:
        """A poll, open or not. While the store does not answer, it is as it was read last.

        Raises:
            SubmitterError: `no_poll`.
        """
        known = _NAME.fullmatch(prompt_set) and self._store.private_readable()
        found = self._poll(prompt_set) if known else None
        if found is None:
            raise SubmitterError(
                "no_poll", f"There is no vote on {prompt_set[:80]!r}.", "Choose one of the list."
            )
        return found

    def _poll(self, prompt_set: str) -> Poll | None:
        with self._lock:
            if prompt_set not in self._polls:
                self._polls[prompt_set] = KeptFile(
                    self._store.private, poll_path(prompt_set), parse_poll(prompt_set), None
                )
        return self._polls[prompt_set].now()

    def prompt(self, ballot: Ballot, poll: Poll) -> str:
        """The text of the prompt of a ballot."""
        prompts = self._models.prompts(poll.prompt_set) or ()
        return next((one.text for one in prompts if one.prompt_id == ballot.prompt_id), "")

    def ballots(self, account: Account, poll: Poll) -> list[Ballot]:
        """The ballots that an account has not answered, issued as they are asked for: two at most.

        Raises:
            SubmitterError: `banned_voter`; `cannot_write`: this machine can keep nothing now.
        """
        self._check_ban(account)
        journal = self._journal(poll.prompt_set)
        able = {
            name: one
            for name, one in self._models.track().entries.items()
            if one.pictures and one.account != account.key
        }
        with journal.alone():
            waiting = [
                one
                for one in journal.open_ballots(account.key)
                if one.left.submission_id in able
                and one.right.submission_id in able
                and self._has_pictures(one)
            ]
            if not poll.is_open or len(waiting) >= AHEAD:
                return waiting[:AHEAD]
            draw = BallotDraw(poll, account.key, journal, self._candidates(poll, able))
            for _ in range(MOST_DRAWS):
                drawn = draw.ballot(self._token(16), self._store.clock())
                if drawn is None:
                    break
                journal.issue(drawn)
                if self._has_pictures(drawn):
                    waiting.append(drawn)
                if len(waiting) == AHEAD:
                    break
        return waiting

    def answer(self, account: Account, prompt_set: str, ballot_id: str, choice: Choice) -> Receipt:
        """Count an answer, once; it is on disk when this returns.

        Raises:
            SubmitterError: `unknown_ballot`: none of that id was issued to this account;
                `too_many_votes`, `banned_voter`, `no_poll`; `cannot_write`: the answer is not kept.
        """
        self._check_ban(account)
        journal = self._journal(self.poll(prompt_set).prompt_set)
        # Gathered first: two polls that are answered at once would wait for each other.
        elsewhere = self._answers_elsewhere(account, prompt_set)
        with journal.alone():
            ballot = self._own(journal, account, ballot_id)
            stands = journal.answers.get(ballot_id)
            if stands is not None:
                return Receipt(stands.choice, counted=False)
            now = self._store.clock()
            given = [*elsewhere, *journal.answers_of(account.key)]
            self.limits.check(given, now)
            took = (now - ballot.issued_at).total_seconds()
            last = max((one.answered_at for one in given), default=None)
            if last is not None:  # The next ballot is issued while the last one is looked at.
                took = min(took, (now - last).total_seconds())
            hasty = took < self.limits.hasty_s
            journal.answer(Answer(ballot_id=ballot_id, choice=choice, answered_at=now, hasty=hasty))
        return Receipt(choice, counted=True)

    def picture(
        self, account: Account, prompt_set: str, ballot_id: str, side: Side
    ) -> bytes | None:
        """A picture of a ballot of the account; None where it cannot be shown.

        Raises:
            SubmitterError: `unknown_ballot`, `no_poll`.
        """
        journal = self._journal(self.poll(prompt_set).prompt_set)
        journal.refresh()
        ballot = self._own(journal, account, ballot_id)
        image = ballot.left if side == "left" else ballot.right
        found = self._picture_of(image)
        return None if found is None else square(found, SIDE)

    def counted(self, account: Account, prompt_set: str) -> int:
        """Answers of an account in a poll."""
        journal = self._journal(prompt_set)
        journal.refresh()
        return len(journal.answers_of(account.key))

    def commit(self) -> int:
        """Bring the votes that the store has not to it; returns how many they were.

        Those of a poll that cannot be stored now stay in its journal, and the others are stored.
        Votes that other sites stored count here from then on.
        """
        stored = 0
        for name in self._polls_to_commit():
            try:
                stored += _commit(self._store, name, self._journal(name))
            except (AssayError, OSError) as error:
                log.warning("Votes on %s wait in their journal: %s", name, error)
                continue
            try:
                self._take_in(name)
            except (AssayError, OSError) as error:
                log.warning("Votes of other sites on %s are not counted yet: %s", name, error)
        return stored

    def _polls_to_commit(self) -> list[str]:
        """Polls with a journal on this machine, and the open ones while the store answers."""
        names = set(journal_names(self._folder))
        with suppress(AssayError):
            names.update(one.prompt_set for one in self.polls())
        return sorted(names)

    def _take_in(self, prompt_set: str) -> None:
        """Let the votes of the store count, where it changed since they were read."""
        head = self._store.private.head()
        if self._heads.get(prompt_set) != head:
            self.votes(prompt_set)
            self._heads[prompt_set] = head

    def votes(self, prompt_set: str) -> Journal:
        """The journal of a poll with all votes of this machine and of the store."""
        journal = self._journal(prompt_set)
        stored = read_votes(self._store.private, prompt_set)
        with journal.alone():
            journal.add_stored(stored)
        return journal

    def _journal(self, prompt_set: str) -> Journal:
        with self._lock:
            if prompt_set not in self._journals:
                stored = read_votes(self._store.private, prompt_set)
                journal = Journal(self._folder / f"{prompt_set}.jsonl")
                journal.add_stored(stored)
                self._journals[prompt_set] = journal
            return self._journals[prompt_set]

    def _answers_elsewhere(self, account: Account, prompt_set: str) -> list[Answer]:
        """Answers of an account in the other polls that have a journal on this machine."""
        with self._lock:
            names = {*journal_names(self._folder), *self._journals} - {prompt_set}
        found = []
        for name in names:
            journal = self._journal(name)
            journal.refresh()
            found += journal.answers_of(account.key)
        return found

    def _own(self, journal: Journal, account: Account, ballot_id: str) -> Ballot:
        ballot = journal.ballots.get(ballot_id)
        if ballot is None or ballot.account != account.key:
            raise SubmitterError(
                "unknown_ballot",
                "This pair of images was not given to you.",
                "Answer the pair that is shown to you now.",
            )
        return ballot

    def _check_ban(self, account: Account) -> None:
        ban = self._bans.now().get(account.key)
        if ban is not None:
            raise SubmitterError(
                "banned_voter",
                f"{account.key} may not vote: {ban.reason}",
                "Ask an operator of this installation.",
            )

    def _has_pictures(self, ballot: Ballot) -> bool:
        return all(self._picture_of(one) is not None for one in (ballot.left, ballot.right))

    def _picture_of(self, image: DrawnImage) -> bytes | None:
        try:
            return self._pictures(image.submission_id, f"{image.prompt_id}/{image.seed}")
        except FileNotFoundError:  # A file of the store that is missing, which the log says.
            return None

    def _candidates(self, poll: Poll, able: Mapping[str, ModelEntry]) -> Candidates:
        of_gold = (image.submission_id for one in poll.gold for image in one.images)
        return Candidates(
            {one: self._seeds(able[one]) for one in {*poll.models, *of_gold} if one in able},
            lambda first, second: self._disagreements(poll.prompt_set, first, second),
        )

    def _seeds(self, entry: ModelEntry) -> dict[str, tuple[int, ...]]:
        key = entry.submission_id, entry.since
        if key not in self._images:
            self._images[key] = shown_seeds(self._store, entry)
        return self._images[key]


def shown_seeds(store: Store, entry: ModelEntry) -> dict[str, tuple[int, ...]]:
    """Prompt to the seeds of a model's images that are there."""
    try:
        table = store.public.read(images_path(entry.submission_id, entry.prompt_set))
    except NotFoundError:
        return {}
    found: dict[str, tuple[int, ...]] = {}
    for prompt_id, seed in drawn_images(table):
        found[prompt_id] = (*found.get(prompt_id, ()), seed)
    return found


def journal_names(folder: Path) -> list[str]:
    """The polls that have a journal on this machine."""
    return sorted(path.stem for path in folder.glob("*.jsonl"))


def commit_journals(store: Store, folder: Path) -> int:
    """Bring the votes of this machine to the store, as the site does; returns how many they were.

    Raises:
        AssayError: the store takes none now.
    """
    stored = 0
    for name in journal_names(folder):
        journal = Journal(folder / f"{name}.jsonl")
        journal.add_stored(read_votes(store.private, name))
        stored += _commit(store, name, journal)
    return stored


def _commit(store: Store, name: str, journal: Journal) -> int:
    with journal.alone():
        waiting = journal.unstored()
    if waiting:
        store_votes(store.private, name, waiting)  # Nobody who answers waits for the store.
        with journal.alone():
            journal.add_stored(waiting)
    return len(waiting)
