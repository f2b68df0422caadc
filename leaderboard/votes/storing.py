"""Polls and votes in the private repository: many votes a commit, none twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchmarks.errors import SubmitterError
from leaderboard.ledger.private_records import readable
from leaderboard.store.interface import Changes, NotFoundError, Repository, transact
from leaderboard.votes.records import FOLDER, Poll, Vote, poll_path, votes_path

PER_FILE = 1000
"""Votes after which another file is begun: the last one is written anew with every commit."""


def read_poll(private: Repository, prompt_set: str) -> Poll | None:
    """The poll of a prompt set; None where there was none yet."""
    try:
        return parse_poll(prompt_set)(private.read(poll_path(prompt_set)))
    except NotFoundError:
        return None


def poll_of(private: Repository, prompt_set: str) -> Poll:
    """The poll of a prompt set.

    Raises:
        SubmitterError: `no_poll`.
    """
    found = read_poll(private, prompt_set)
    if found is None:
        raise SubmitterError(
            "no_poll",
            f"There is no vote on {prompt_set[:80]!r}.",
            "Open one: python -m evaluator votes open SET.",
        )
    return found


def parse_poll(prompt_set: str) -> Callable[[bytes], Poll | None]:
    """What reads the file of a poll."""

    def parse(content: bytes) -> Poll:
        with readable(poll_path(prompt_set)):
            return Poll.model_validate_json(content)

    return parse


def write_poll(private: Repository, poll: Poll, message: str) -> None:
    """Keep a poll as it is now."""
    content = poll.model_dump_json(indent=1).encode()
    transact(private, lambda: {poll_path(poll.prompt_set): content}, message)


def poll_names(private: Repository) -> tuple[str, ...]:
    """The prompt sets that have a poll, open or not."""
    paths = private.list(FOLDER)
    return tuple(path.split("/")[1] for path in paths if path.endswith("/poll.json"))


def read_votes(private: Repository, prompt_set: str) -> list[Vote]:
    """The votes of a poll in the order of the files, each once."""
    found: dict[str, Vote] = {}
    for votes in _read_files(private, prompt_set):
        for vote in votes:
            found.setdefault(vote.ballot.ballot_id, vote)
    return list(found.values())


def store_votes(private: Repository, prompt_set: str, votes: Sequence[Vote]) -> None:
    """Add votes to the last file, or to a new one where that is full.

    What is there already is not added again, so this may be repeated when nobody knows whether an
    earlier commit was made.
    """

    def change() -> Changes:
        files = _read_files(private, prompt_set)
        known = {vote.ballot.ballot_id for file in files for vote in file}
        fresh = [vote for vote in votes if vote.ballot.ballot_id not in known]
        if not fresh:
            return {}
        last = files.pop() if files and len(files[-1]) < PER_FILE else []
        lines = [*last, *fresh]
        return {
            votes_path(prompt_set, len(files) + place): vote_lines(lines[at : at + PER_FILE])
            for place, at in enumerate(range(0, len(lines), PER_FILE))
        }

    transact(private, change, f"votes on {prompt_set}")


def _read_files(private: Repository, prompt_set: str) -> list[list[Vote]]:
    paths = private.list(f"{FOLDER}{prompt_set}/votes-")
    return [_parse(private.read(path), path) for path in paths]


def vote_lines(votes: Sequence[Vote]) -> bytes:
    """The file of votes."""
    return b"".join(vote.model_dump_json().encode() + b"\n" for vote in votes)


def _parse(content: bytes, path: str) -> list[Vote]:
    with readable(path):
        return [Vote.model_validate_json(line) for line in content.splitlines()]
