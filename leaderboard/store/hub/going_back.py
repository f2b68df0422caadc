"""Revert: changes that give a branch the files of an earlier commit again."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from leaderboard.store.hub.client import HubClient
from leaderboard.store.hub.entries import Entry
from leaderboard.store.hub.hub_paths import is_ours

_COMMITS = 200
"""Beyond so many commits, trees are compared."""


def undone(client: HubClient, repo: str, base: str, head: str) -> dict[str, Entry | None]:
    """Path to what was there and is put back; None where it is to be deleted.

    Args:
        client: of the Hub.
        repo: the repository.
        base: the commit whose files are wanted.
        head: where the branch is.
    """
    told = _told_paths(client, repo, base, head)
    if told is None:
        before = {each.path: each for each in client.tree(repo, "", base)}
        after = {each.path: each for each in client.tree(repo, "", head)}
    else:
        before = _files_among(client, repo, told, base)
        after = _files_among(client, repo, told, head)
    return {
        path: before.get(path)
        for path in sorted(before.keys() | after.keys())
        if is_ours(path) and before.get(path) != after.get(path)
    }


def _told_paths(client: HubClient, repo: str, base: str, head: str) -> list[str] | None:
    """All paths that were touched since, if every commit since says which."""
    touched: set[str] = set()
    reached = False
    for commit in islice(client.history(repo), _COMMITS):
        reached = reached or commit.sha == head
        if commit.sha == base:
            return sorted(path for path in touched if is_ours(path))
        if reached:
            if commit.paths is None:
                return None
            touched.update(commit.paths)
    return None


def _files_among(client: HubClient, repo: str, paths: Iterable[str], sha: str) -> dict[str, Entry]:
    found = client.entries(repo, list(paths), sha)
    return {path: entry for path, entry in found.items() if entry.is_file}
