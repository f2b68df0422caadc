"""Histories of thousands of commits stay quick and small on the test Hub."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

from tests.hub.contents import StoredFile
from tests.hub.repositories import Repository
from tests.hub.tally import peak


def grown(commits: int) -> tuple[Repository, list[str]]:
    repository = Repository("lab/long")
    shas = [
        repository.change({f"results/{n}.json": StoredFile(b"%d" % n, lfs=False)}).sha
        for n in range(commits)
    ]
    return repository, shas


def test_ten_thousand_commits_are_read_at_any_of_them() -> None:
    started = time.monotonic()
    repository, shas = grown(10_000)
    assert len(repository.files(shas[-1])) == 10_000
    assert len(repository.files(shas[4_999])) == 5_000
    assert sum(1 for _ in repository.history(shas[-1])) == 10_000
    assert time.monotonic() - started < 30


def test_one_commit_forgotten_leaves_those_after_it_whole() -> None:
    repository, shas = grown(20)
    repository.files(shas[3])
    repository.forget(shas[3])
    assert repository.at(shas[3]) is None
    fresh, _ = grown(20)
    assert repository.files(shas[-1]) == fresh.files(fresh.branches["main"])


def test_a_squash_keeps_what_other_branches_need() -> None:
    repository, shas = grown(20)
    repository.branches["side"] = shas[9]
    made = repository.squash("main")
    assert len(repository.files(made.sha)) == 20
    assert set(repository.commits) == {made.sha, *shas[:10]}
    assert repository.at(shas[10]) is None


def test_the_peak_is_the_fullest_window() -> None:
    start = datetime(2031, 1, 1, tzinfo=UTC)
    times = [start + timedelta(minutes=m) for m in (0, 10, 50, 59, 61, 62, 200)]
    assert (peak(times, 3600), peak(times[:1], 3600), peak([], 3600)) == (5, 1, 0)
