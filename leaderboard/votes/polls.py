"""Opening and closing of polls by operators, and the file of gold pairs."""

from __future__ import annotations

import csv
import secrets
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path

from benchmarks.errors import SubmitterError
from benchmarks.prompt_sets.prompt_set import find_prompt_set
from leaderboard.accounts import Account
from leaderboard.governance.rights import require_operator
from leaderboard.models.reading import ModelReader
from leaderboard.publication.model_entries import ModelEntry
from leaderboard.store.interface import Store
from leaderboard.votes.records import DrawnImage, GoldPair, Poll, Shares
from leaderboard.votes.service import shown_seeds
from leaderboard.votes.storing import poll_of, read_poll, write_poll

GOLD_COLUMNS = ("prompt_id", "better", "worse")
_LISTED = 5


def open_poll(
    store: Store,
    models: ModelReader,
    prompt_set: str,
    by: Account,
    *,
    chosen: Sequence[str] = (),
    gold: Sequence[GoldPair] | None = None,
    shares: Shares | None = None,
) -> Poll:
    """Begin to issue ballots on a prompt set, or go on with other models, gold pairs or shares.

    `chosen`: submissions to compare; none: all whose pictures are on the boards. Votes, seed and key
    of a poll that there was stay, and so do its gold pairs and shares where None are given.

    Raises:
        SubmitterError: `not_operator`; `unknown_benchmark`, `prompts_missing`; `bad_poll`: with all
            that is wrong.
    """
    require_operator(by, "open a vote")
    known = find_prompt_set(models.prompt_sets, prompt_set)
    prompts = models.prompts(prompt_set)
    if prompts is None:
        raise SubmitterError(
            "prompts_missing",
            f"The prompts of {prompt_set} are not on this machine.",
            f"python -m benchmarks fetch {prompt_set} --data DATA brings them.",
        )
    revisions = {known.card.revision, *known.card.same_questions_as}
    able = {
        one.submission_id: one
        for one in models.track().of(prompt_set)
        if one.pictures and one.images.revision in revisions
    }
    taking = [one for one in chosen or able if one in able]
    problems = [f"{one} has no pictures on the boards" for one in chosen if one not in able]
    if len(taking) < 2:
        problems.append(f"{len(taking)} models of {prompt_set} can be compared, and two are needed")
    before = read_poll(store.private, prompt_set)
    if gold is None:
        gold = before.gold if before else ()
    problems += _gold_problems(store, able, {one.prompt_id for one in prompts}, gold)
    if problems:
        more = f"; and {len(problems) - _LISTED} more" if len(problems) > _LISTED else ""
        raise SubmitterError(
            "bad_poll",
            f"The vote cannot be opened: {'; '.join(problems[:_LISTED])}{more}.",
            "Those on the boards are listed by: python -m evaluator grid SET.",
        )
    poll = Poll(
        prompt_set=prompt_set,
        revision=known.card.revision,
        models=tuple(dict.fromkeys(taking)),
        is_open=True,
        opened_by=by.key,
        opened_at=before.opened_at if before else store.clock(),
        seed=before.seed if before else secrets.randbits(63),
        key=before.key if before else secrets.token_hex(32),
        gold=tuple(gold),
        shares=shares or (before.shares if before else Shares()),
    )
    write_poll(store.private, poll, f"vote on {prompt_set} opened")
    return poll


def close_poll(store: Store, prompt_set: str, by: Account, now: datetime) -> Poll:
    """Issue no more ballots; what was issued can still be answered.

    Raises:
        SubmitterError: `not_operator`, `no_poll`.
    """
    require_operator(by, "close a vote")
    poll = poll_of(store.private, prompt_set)
    closed = poll.model_copy(update={"is_open": False, "closed_at": now})
    write_poll(store.private, closed, f"vote on {prompt_set} closed")
    return closed


def read_gold(path: Path) -> tuple[GoldPair, ...]:
    """The pairs of a CSV file with the columns `prompt_id`, `better` and `worse`.

    Images are named SUBMISSION/PROMPT/SEED.

    Raises:
        SubmitterError: `bad_gold`, with every line that is wrong.
    """
    try:
        rows = list(csv.DictReader(path.read_text("utf-8-sig").splitlines()))
    except (OSError, UnicodeDecodeError) as error:
        raise SubmitterError("bad_gold", f"{path} cannot be read: {error}.") from error
    pairs, problems = [], []
    for number, row in enumerate(rows, 2):
        missing = [name for name in GOLD_COLUMNS if not row.get(name)]
        if missing:
            problems.append(f"line {number} has no {', '.join(missing)}")
            continue
        try:
            better, worse = (DrawnImage.parse(row[name]) for name in ("better", "worse"))
        except ValueError as error:
            problems.append(f"line {number}: {error}")
        else:
            pairs.append(GoldPair(prompt_id=row["prompt_id"], better=better, worse=worse))
    if problems or not rows:
        raise SubmitterError(
            "bad_gold",
            f"{path}: {'; '.join(problems[:_LISTED]) or 'there is no pair'}"
            f"{f'; and {len(problems) - _LISTED} more' if len(problems) > _LISTED else ''}.",
            f"It needs the columns {', '.join(GOLD_COLUMNS)}; images are SUBMISSION/PROMPT/SEED.",
        )
    return tuple(pairs)


def _gold_problems(
    store: Store, able: dict[str, ModelEntry], prompts: set[str], gold: Iterable[GoldPair]
) -> list[str]:
    seeds: dict[str, dict[str, tuple[int, ...]]] = {}
    problems = []
    for pair in gold:
        if pair.prompt_id not in prompts:
            problems.append(f"{pair.prompt_id!r} is no prompt")
        if pair.better == pair.worse:
            problems.append(f"{pair.better} is compared with itself")
        for image in (pair.better, pair.worse):
            name = image.submission_id
            if name in able and name not in seeds:
                seeds[name] = shown_seeds(store, able[name])
            if image.seed not in seeds.get(name, {}).get(image.prompt_id, ()):
                problems.append(f"there is no image {image}")
    return problems
