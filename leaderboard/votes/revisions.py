"""Revisions of votes: what was private until then, frozen, without names, and published.

Votes of banned accounts and on models that left the boards are not in them; votes on gold pairs are
once the vote is closed, since an open one still checks raters by their answers.

votes/<prompt set>/001/votes.parquet   a row for each vote, of careless raters too
votes/<prompt set>/001/board.json      the board of these votes (`VoteResults`)
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.errors import SubmitterError
from leaderboard.accounts import Account
from leaderboard.governance.rights import require_operator
from leaderboard.ledger.policy import read_bans
from leaderboard.ledger.private_records import readable
from leaderboard.publication.model_entries import read_track
from leaderboard.store.interface import Changes, NotFoundError, Repository, Store, transact
from leaderboard.votes.records import FOLDER, Poll, Purpose, Vote
from leaderboard.votes.results import VoteResults, check_votes, results_of
from leaderboard.votes.storing import poll_of, read_votes

SCHEMA = pa.schema(
    [
        pa.field("vote", pa.string(), nullable=False),
        pa.field("rater", pa.string(), nullable=False),
        pa.field("careless", pa.bool_(), nullable=False),
        pa.field("purpose", pa.string(), nullable=False),
        pa.field("prompt_id", pa.string(), nullable=False),
        pa.field("left", pa.string(), nullable=False),
        pa.field("right", pa.string(), nullable=False),
        pa.field("left_image", pa.string(), nullable=False),
        pa.field("right_image", pa.string(), nullable=False),
        pa.field("choice", pa.string(), nullable=False),
        pa.field("pair_probability", pa.float64()),
        pa.field("prompt_probability", pa.float64()),
        pa.field("gold", pa.string()),
        pa.field("repeats", pa.string()),
        pa.field("hasty", pa.bool_(), nullable=False),
        pa.field("answered_on", pa.date32(), nullable=False),
    ]
)
"""`left` and `right` are submissions; images are SUBMISSION/PROMPT/SEED."""
TEXTS = {
    "vote": "Name of the vote in this revision, which says nothing else.",
    "rater": "Pseudonym of the voter: the same in all revisions of one poll, and in no other poll.",
    "careless": "Whether the board leaves the rater out.",
    "purpose": "`rank`, `gold`, `repeat` or `failure`; the board rests on `rank` alone.",
    "prompt_id": "The prompt that was shown.",
    "left": "Submission whose image stood on the left.",
    "right": "Submission whose image stood on the right.",
    "left_image": "SUBMISSION/PROMPT/SEED of the image on the left.",
    "right_image": "The same of that on the right.",
    "choice": "`left`, `right`, `equal` or `both_bad`.",
    "pair_probability": "Chance of the two models among all pairs in the draw; null for gold and repeat.",
    "prompt_probability": "Chance of the prompt among those its purpose allows; null likewise.",
    "gold": "The known answer; null where there is none.",
    "repeats": "The vote whose ballot was shown again; null where none was.",
    "hasty": "Whether the answer came sooner than images can be looked at.",
    "answered_on": "Day of the answer.",
}
"""Column to what it says."""


def cut(store: Store, prompt_set: str, by: Account) -> VoteResults:
    """Publish the votes that the store has as the next revision; later votes go into later ones.

    Raises:
        SubmitterError: `not_operator`, `no_poll`; `nothing_to_cut`: no vote ranks, or the last
            revision says the same.
    """
    require_operator(by, "publish votes")
    poll, votes = poll_of(store.private, prompt_set), read_votes(store.private, prompt_set)
    made: list[VoteResults] = []

    def change() -> Changes:
        number = len(revisions(store.public, prompt_set)) + 1
        titles = _titles(store.public, poll, votes)
        checked = check_votes(votes, titles, read_bans(store.public))
        rows = [one for one in checked.kept if not (poll.is_open and _is_gold(one))]
        results = results_of(
            checked,
            titles,
            prompt_set=prompt_set,
            revision=poll.revision,
            number=number,
            cut_at=store.clock(),
            n_given=len(votes),
            n_withheld=len(checked.kept) - len(rows),
        )
        before = read_results(store.public, prompt_set)
        same = {"number": number, "cut_at": results.cut_at}
        if not checked.counted or (before and before.model_copy(update=same) == results):
            raise SubmitterError(
                "nothing_to_cut",
                f"There is no new vote on {prompt_set} to publish.",
                "Votes of a site reach the store some minutes after they are given.",
            )
        made[:] = [results]
        return {
            f"{revision_folder(prompt_set, number)}votes.parquet": votes_table(
                rows, checked.careless, poll
            ),
            f"{revision_folder(prompt_set, number)}board.json": results.model_dump_json(
                indent=1
            ).encode(),
        }

    transact(store.public, change, f"votes on {prompt_set}, a revision")
    return made[0]


def revisions(public: Repository, prompt_set: str) -> tuple[int, ...]:
    """Numbers of the revisions of a prompt set's votes."""
    paths = public.list(f"{FOLDER}{prompt_set}/")
    return tuple(int(path.split("/")[2]) for path in paths if path.endswith("/board.json"))


def sets_with_revisions(public: Repository) -> tuple[str, ...]:
    """The prompt sets with published votes, by name."""
    paths = public.list(FOLDER)
    return tuple(sorted({path.split("/")[1] for path in paths if path.endswith("/board.json")}))


def read_results(public: Repository, prompt_set: str, number: int = 0) -> VoteResults | None:
    """The board of a revision, 0: the latest; None where there is none."""
    known = revisions(public, prompt_set)
    if not known or (number and number not in known):
        return None
    path = f"{revision_folder(prompt_set, number or known[-1])}board.json"
    with readable(path):
        return VoteResults.model_validate_json(public.read(path))


def read_table(public: Repository, prompt_set: str, number: int) -> bytes:
    """The Parquet file of a revision.

    Raises:
        SubmitterError: `no_revision`.
    """
    try:
        return public.read(f"{revision_folder(prompt_set, number)}votes.parquet")
    except NotFoundError as error:
        raise SubmitterError(
            "no_revision",
            f"There is no revision {number} of the votes on {prompt_set[:80]}.",
            "python -m evaluator votes status lists them.",
        ) from error


def pseudonym(poll: Poll, text: str) -> str:
    """What stands for an account or a ballot in what is published."""
    return hmac.new(bytes.fromhex(poll.key), text.encode(), hashlib.sha256).hexdigest()[:16]


def votes_table(votes: Sequence[Vote], careless: frozenset[str], poll: Poll) -> bytes:
    """The Parquet file of votes, in an order that tells nothing of when they came."""
    rows = sorted((_row(vote, poll, careless) for vote in votes), key=lambda row: str(row["vote"]))
    buffer = BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, SCHEMA), buffer, compression="zstd")
    return buffer.getvalue()


def _row(vote: Vote, poll: Poll, careless: frozenset[str]) -> dict[str, object]:
    ballot, answer = vote.ballot, vote.answer
    return {
        "vote": pseudonym(poll, f"ballot {ballot.ballot_id}"),
        "rater": pseudonym(poll, f"account {ballot.account}"),
        "careless": ballot.account in careless,
        "purpose": ballot.purpose.value,
        "prompt_id": ballot.prompt_id,
        "left": ballot.left.submission_id,
        "right": ballot.right.submission_id,
        "left_image": str(ballot.left),
        "right_image": str(ballot.right),
        "choice": answer.choice.value,
        "pair_probability": ballot.pair_probability,
        "prompt_probability": ballot.prompt_probability,
        "gold": ballot.gold.value if ballot.gold else None,
        "repeats": pseudonym(poll, f"ballot {ballot.repeats}") if ballot.repeats else None,
        "hasty": answer.hasty,
        "answered_on": answer.answered_at.date(),
    }


def _is_gold(vote: Vote) -> bool:
    return vote.ballot.purpose is Purpose.GOLD


def _titles(public: Repository, poll: Poll, votes: Sequence[Vote]) -> dict[str, str]:
    """Every model of the boards that was voted on or takes part, to how it is called."""
    entries = read_track(public).entries
    voted = (one for v in votes for one in (v.ballot.left, v.ballot.right))
    names = {*poll.models, *(one.submission_id for one in voted)}
    return {one: entries[one].title for one in sorted(names & entries.keys())}


def revision_folder(prompt_set: str, number: int) -> str:
    """Where a revision is."""
    return f"{FOLDER}{prompt_set}/{number:03d}/"
