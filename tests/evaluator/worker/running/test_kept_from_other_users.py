"""What lies on the worker's machine is not for its other users."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluator.worker.running.scorer_role import ScorerRole
from leaderboard.records import Submission
from leaderboard.store.folder import folder_store
from tests.evaluator.rig import Rig

SOMEBODY = 65533


@pytest.fixture
def open_place() -> Iterator[Path]:
    """A folder that every user can reach, with the usual rights of new files."""
    before = os.umask(0o022)
    with tempfile.TemporaryDirectory(prefix="assay-open-", dir="/var/tmp") as name:
        Path(name).chmod(0o755)
        yield Path(name)
    os.umask(before)


def found_by_somebody(folder: Path) -> str:
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    done = subprocess.run(
        ["find", str(folder), "-type", "f"], capture_output=True, text=True, check=False,
        user=SOMEBODY, group=SOMEBODY, extra_groups=[],
    )  # fmt: skip
    return done.stdout


def test_an_upload_cannot_be_found_while_it_is_worked_on(open_place: Path) -> None:
    rig = Rig(open_place)
    sent = rig.send()
    role: ScorerRole = rig.worker().scorers
    seen: list[str] = []

    def fetch(_: Submission, target: Path) -> None:
        target.write_text("code that is nobody else's")

    with role.fetched(sent.submission, fetch) as upload:
        assert upload.read_text()
        seen.append(found_by_somebody(role.scratch))
    assert seen == [""]


def test_finished_scores_cannot_be_read(open_place: Path) -> None:
    rig = Rig(open_place)
    sent = rig.send()
    rig.worker().run_next()
    role = rig.worker().scorers
    shard = role.shards_of(sent.submission) / "toy" / "a.parquet"
    shard.parent.mkdir(parents=True)
    shard.write_text("scores")
    assert found_by_somebody(role.scratch) == ""


def test_the_private_part_of_a_store_is_for_its_owner_alone(open_place: Path) -> None:
    store = folder_store(open_place / "store")
    for part in (store.private, store.public):
        part.commit({"a": b"text"}, parent=part.head(), message="a")
    found = found_by_somebody(open_place / "store")
    assert "/public/a" in found
    assert "/private/" not in found
