"""Archive of a benchmark's results when its revision changes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from benchmarks.schema import Card
from leaderboard.ledger.editions import Edition
from leaderboard.ledger.held import results_folder
from leaderboard.publication.results import HeldFiles, read_result
from leaderboard.records import RunResult, Submission
from leaderboard.store.interface import Repository, Store

AT = "at/"
_TAG = re.compile(r"[A-Za-z0-9._~-]{1,160}")


class Displaced(NamedTuple):
    """The files that keep old results, by path, in each of the two repositories."""

    public: dict[str, bytes | None]
    private: dict[str, bytes | None]


class Archived(NamedTuple):
    """One old result of a submission."""

    tag: str
    result: RunResult


def kept_as(old: RunResult, new: RunResult) -> str:
    """The tag under which an old result stays; empty where the new one says the very same.

    Within one edition, as after a rerun, the old one is named by when it was judged.
    """
    before, after = Edition.of_result(old), Edition.of_result(new)
    if before.tag != after.tag:
        return before.tag
    return f"{before.tag}~{old.judged_at:%Y%m%dT%H%M%SZ}" if old.rows != new.rows else ""


def displaced(store: Store, submission: Submission, new: Iterable[RunResult]) -> Displaced:
    """What new results of a submission displace, as files of the commits that bring them.

    Args:
        store: where the old results are.
        submission: its whole record.
        new: its new results.
    """
    found = Displaced({}, {})
    name = submission.submission_id
    for result in new:
        old = read_result(store, submission, result.benchmark)
        tag = kept_as(old, result) if old is not None else ""
        if not tag:
            continue
        folder = f"results/{name}/"
        if submission.private:
            folder = results_folder(name)
        else:
            found.public.update(_moved(store.public, folder, tag, result, again=True))
        # The private side is written first. After a crash between the two it has the new files
        # already, and the old ones in their place: those are not written over.
        found.private.update(_moved(store.private, folder, tag, result, again=False))
    return found


def old_tags(store: Store, submission: Submission) -> tuple[str, ...]:
    """The tags under which a submission has old results."""
    repository, folder = _place(store, submission)
    paths = repository.list(f"{folder}{AT}")
    return tuple(dict.fromkeys(path.removeprefix(f"{folder}{AT}").split("/")[0] for path in paths))


def old_places(public: Repository, submission_id: str) -> dict[str, tuple[str, ...]]:
    """Tag to the benchmarks of which a submission has public old results under it."""
    folder, found = f"results/{submission_id}/{AT}", dict[str, list[str]]()
    for path in public.list(folder):
        tag, _, file = path.removeprefix(folder).partition("/")
        if file.endswith(".json"):
            found.setdefault(tag, []).append(file.removesuffix(".json"))
    return {tag: tuple(names) for tag, names in found.items()}


def old_results(store: Store, submission: Submission, revision: str) -> tuple[Archived, ...]:
    """The old results of a submission of a revision, or under exactly this tag.

    Args:
        store: where they are.
        submission: its whole record.
        revision: of a benchmark's data, or a tag.
    """
    repository, folder = _place(store, submission)
    found = []
    for path in repository.list(f"{folder}{AT}"):
        tag, _, file = path.removeprefix(f"{folder}{AT}").partition("/")
        if file.endswith(".json") and _TAG.fullmatch(tag):
            result = RunResult.model_validate_json(repository.read(path))
            if revision in (tag, result.revision):
                found.append(Archived(tag, result))
    return tuple(found)


def held_archive(store: Store, submission: Submission, cards: Mapping[str, Card]) -> HeldFiles:
    """What a private submission's old results become when it is published.

    Args:
        store: where they are held.
        submission: the private submission.
        cards: the benchmarks; where answers are not public, or not known to be, only rows become
            public.
    """
    folder = results_folder(submission.submission_id)
    files = HeldFiles({}, {})
    for path in store.private.list(f"{folder}{AT}"):
        name = path.rpartition("/")[2]
        card = cards.get(name.partition(".")[0])
        public = name.endswith(".json") or (card is not None and card.answers_public)
        part = files.public if public else files.private
        place = path.removeprefix(folder)
        part[f"results/{submission.submission_id}/{place}"] = store.private.read(path)
    return files


def _place(store: Store, submission: Submission) -> tuple[Repository, str]:
    name = submission.submission_id
    if submission.private:
        return store.private, results_folder(name)
    return store.public, f"results/{name}/"


def _moved(
    repository: Repository, folder: str, tag: str, new: RunResult, *, again: bool
) -> dict[str, bytes | None]:
    """Copies of the old files of one benchmark below their tag.

    What was kept under the tag of the new result goes: that edition is the current one again.
    """
    benchmark = f"{new.benchmark}."
    back = Edition.of_result(new).tag
    changes: dict[str, bytes | None] = dict.fromkeys(
        repository.list(f"{folder}{AT}{back}/{benchmark}")
    )
    for path in repository.list(f"{folder}{benchmark}"):
        kept = f"{folder}{AT}{tag}/{path.removeprefix(folder)}"
        if again or not repository.has(kept):
            changes[kept] = repository.read(path)
    return changes
