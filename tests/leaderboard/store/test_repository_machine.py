"""Whatever is committed, a repository in memory, in groups or in a folder is like a dictionary."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from leaderboard.store.folder import FolderRepository
from leaderboard.store.grouping import Grouping
from leaderboard.store.interface import Changes, ConflictError, Repository, folders_of, transact
from tests.kit.refusals import refused
from tests.kit.store import MemoryRepository, contents, put

PATHS = ("a", "a/b", "a/b/c", "a/d", "b", "c/d")
CHANGES = st.dictionaries(
    st.sampled_from(PATHS), st.none() | st.binary(max_size=2), min_size=1, max_size=4
)


class Repositories(RuleBasedStateMachine):
    """Two writers at each of the media, and one who opens it anew."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        root = Path(self.folder.name)
        self.media: list[tuple[Repository, Repository]] = [
            (memory := MemoryRepository(), memory),
            (grouping := Grouping(MemoryRepository()), grouping),
            (FolderRepository(root), FolderRepository(root)),
        ]
        self.model: dict[str, bytes] = {}

    def teardown(self) -> None:
        self.folder.cleanup()

    def after(self, changes: Changes) -> dict[str, bytes] | None:
        """The files after a commit; None where one path would be a file and a folder."""
        merged = {**self.model, **changes}
        files = {path: c for path, c in merged.items() if isinstance(c, bytes)}
        clash = any(folder in files for path in files for folder in folders_of(path))
        return None if clash else files

    @rule(changes=CHANGES, writer=st.integers(0, 1))
    def commit(self, changes: Changes, writer: int) -> None:
        files = self.after(changes)
        for writers in self.media:
            head = writers[1 - writer].head()
            if files is None:
                with refused("path_clash"):
                    put(writers[writer], changes)
                assert writers[1 - writer].head() == head
            else:
                assert put(writers[writer], changes) == writers[1 - writer].head() != head
        self.model = self.model if files is None else files

    @rule(changes=CHANGES, content=st.binary(max_size=2))
    def commit_late(self, changes: Changes, content: bytes) -> None:
        """One commits what the other has not seen, which then changes nothing."""
        self.model |= {"c/d": content}
        for first, second in self.media:
            old = second.head()
            put(first, {"c/d": content})
            with pytest.raises(ConflictError):
                second.commit(changes, parent=old, message="late")

    @rule(content=st.binary(max_size=2))
    def overtake(self, content: bytes) -> None:
        """A transaction that loses its race sees what the other wrote."""
        before = self.model.get("b", b"")
        for first, second in self.media:
            seen: list[bytes] = []

            def change(first: Repository = first, second: Repository = second) -> Changes:
                seen.append(second.read("b") if second.has("b") else b"")  # noqa: B023
                if len(seen) == 1:  # noqa: B023
                    put(first, {"b": before + content + b"1"})
                return {"b": seen[-1] + b"2"}  # noqa: B023

            transact(second, change, "m", sleep=lambda _: None)
            assert seen == [before, before + content + b"1"]
        self.model["b"] = before + content + b"12"

    @invariant()
    def each_holds_what_the_model_holds(self) -> None:
        for repository in (each for writers in self.media for each in writers):
            assert contents(repository) == self.model
            for prefix in ("", "a", "a/", "a/b", "c/"):
                listed = tuple(sorted(path for path in self.model if path.startswith(prefix)))
                assert repository.list(prefix) == listed
            assert [repository.has(path) for path in PATHS] == [
                path in self.model for path in PATHS
            ]


Repositories.TestCase.settings = settings(max_examples=10, stateful_step_count=12)
TestRepositories = Repositories.TestCase
