"""An upload on its way from the store into a box's folder."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from benchmarks.errors import PlatformError
from evaluator.isolation.limits import Limits
from evaluator.isolation.plain import PlainProcess
from evaluator.submission.archives.archive import content_hash
from evaluator.worker.running.module_box import PackedModule, unpacked
from leaderboard.records import Kind, Submission
from tests.evaluator.rig import Clock
from tests.evaluator.submission.archives import FILES, folder_of, zipped


@pytest.fixture
def upload(tmp_path: Path) -> Path:
    return zipped(tmp_path / "upload.zip", FILES)


@pytest.fixture
def submission(tmp_path: Path) -> Submission:
    return Submission(
        submission_id="grey-0123456789",
        kind=Kind.METRIC,
        name="grey",
        metrics=("grey",),
        benchmarks=("toy",),
        submitter="ada",
        content_sha256=content_hash(folder_of(tmp_path / "folder", FILES)),
        archive="uploads/0",
        received_at=Clock()(),
    )


def test_a_module_is_unpacked_for_others_to_read_and_removed_afterwards(
    upload: Path, submission: Submission, tmp_path: Path
) -> None:
    scratch = tmp_path / "scratch"
    for given in (upload, upload.read_bytes()):
        with unpacked(submission, given, scratch) as folder:
            found = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
            assert found == set(FILES)
            ways = [p for p in (folder, *folder.parents) if scratch in p.parents]
            assert all(p.stat().st_mode & 0o055 == 0o055 for p in ways)
            assert "grey" not in str(folder.relative_to(scratch))
        assert not list(scratch.iterdir())


@pytest.mark.parametrize("change", ["other", "damaged", "refused"])
def test_a_stored_upload_that_changed_is_our_fault(
    submission: Submission, tmp_path: Path, change: str
) -> None:
    upload = zipped(tmp_path / "u.zip", {**FILES, "x.pkl" if change == "refused" else "x": b""})
    if change == "damaged":
        upload.write_bytes(upload.read_bytes()[:-5])
    with (
        pytest.raises(PlatformError) as caught,
        unpacked(submission, upload, tmp_path / "scratch"),
    ):
        raise AssertionError
    assert caught.value.code == "upload_changed"
    assert not list((tmp_path / "scratch").iterdir())


def test_a_module_takes_its_upload_along_to_another_machine(
    upload: Path, submission: Submission
) -> None:
    packed = PackedModule(submission, upload, PlainProcess(), Limits(), ())
    data = upload.read_bytes()
    there = pickle.dumps(packed)
    upload.unlink()
    assert pickle.loads(there).upload == data
    assert packed.fingerprint == pickle.loads(there).fingerprint
