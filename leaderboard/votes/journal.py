"""Journal of a poll: every ballot and answer, on disk before anybody is told that it counts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from benchmarks.errors import PlatformError
from benchmarks.sources.line_log import LineLog
from leaderboard.votes.records import Answer, Ballot, JournalLine, Vote


class Journal(LineLog[JournalLine]):
    """Ballots and answers of one poll on this machine, with the votes that the store has."""

    def __init__(self, path: Path) -> None:
        self.ballots: dict[str, Ballot] = {}
        self.answers: dict[str, Answer] = {}
        self.of_account: defaultdict[str, list[Ballot]] = defaultdict(list)
        self._stored: dict[str, Vote] = {}
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise PlatformError(
                "cannot_write", f"{path.parent} cannot be made: {error.strerror or error}."
            ) from error
        super().__init__(path, JournalLine)

    def take(self, line: JournalLine) -> None:
        """Let a line count: the first of a ballot does, and its first answer."""
        if line.ballot is not None and line.ballot.ballot_id not in self.ballots:
            self.ballots[line.ballot.ballot_id] = line.ballot
            self.of_account[line.ballot.account].append(line.ballot)
        if line.answer is not None:
            self.answers.setdefault(line.answer.ballot_id, line.answer)

    def clear(self) -> None:
        """Forget all but what the store has."""
        self.ballots.clear()
        self.answers.clear()
        self.of_account.clear()
        self._take_stored(self._stored.values())

    def issue(self, ballot: Ballot) -> None:
        """Write a ballot."""
        self.add(JournalLine(ballot=ballot))

    def answer(self, answer: Answer) -> None:
        """Write an answer."""
        self.add(JournalLine(answer=answer))

    def add_stored(self, votes: Iterable[Vote]) -> None:
        """Let votes of the store count, such as those of another machine."""
        new = {one.ballot.ballot_id: one for one in votes}
        self._stored |= new
        self._take_stored(new.values())

    def answered(self) -> Iterator[tuple[Ballot, Answer]]:
        """Ballots with their answers, in the order of these."""
        for ballot_id, answer in self.answers.items():
            if ballot_id in self.ballots:
                yield self.ballots[ballot_id], answer

    def unstored(self) -> list[Vote]:
        """Votes that the store is not known to have, in the order of their answers."""
        return [
            Vote(ballot=ballot, answer=answer)
            for ballot, answer in self.answered()
            if ballot.ballot_id not in self._stored
        ]

    def open_ballots(self, account: str) -> list[Ballot]:
        """Ballots of an account without an answer, oldest first."""
        return [one for one in self.of_account[account] if one.ballot_id not in self.answers]

    def answers_of(self, account: str) -> list[Answer]:
        """Answers of an account."""
        found = (self.answers.get(one.ballot_id) for one in self.of_account[account])
        return [one for one in found if one is not None]

    def _take_stored(self, votes: Iterable[Vote]) -> None:
        for vote in votes:
            self.take(JournalLine(ballot=vote.ballot))
            self.take(JournalLine(answer=vote.answer))
