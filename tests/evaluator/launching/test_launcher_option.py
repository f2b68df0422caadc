"""What an operator says about jobs, and what a job gets of this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.errors import SubmitterError
from benchmarks.settings.sources import load
from evaluator.commands.launcher_option import JobOptions
from leaderboard.store.opening import StoreName

STORE = StoreName("hub:lab/board")
MACHINE = {
    "ASSAY_JOB_TOKEN": "hf_job",
    "HF_TOKEN": "hf_operator",
    "ASSAY_LIVE": "https://lab-board.hf.space",
    "ASSAY_LIVE_SECRET": "s3",
    "ASSAY_DATA": "/data",
    "ASSAY_KEYS": "/keys",
}


def refused(code: str) -> pytest.RaisesExc[SubmitterError]:
    return pytest.raises(SubmitterError, check=lambda error: error.code == code)


def test_a_job_gets_its_own_token_and_where_to_beat_and_no_data() -> None:
    made = JobOptions(image="lab/assay:1", hours=0.5).settings(STORE, MACHINE)
    assert dict(made.secrets) == {"HF_TOKEN": "hf_job", "ASSAY_LIVE_SECRET": "s3"}
    assert dict(made.variables) == {"ASSAY_LIVE": "https://lab-board.hf.space"}
    assert (made.namespace, made.timeout_s) == ("lab", 1800)
    assert "hf_job" not in repr(made)


def test_a_job_that_starts_later_gets_the_token_that_is_good_then(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("hf_first")
    machine = {"ASSAY_JOB_TOKEN_FILE": str(tmp_path / "token")}
    load(machine, tmp_path)
    made = JobOptions(image="lab/assay:1").settings(STORE, machine)
    assert dict(made.secrets) == {"HF_TOKEN": "hf_first"}
    (tmp_path / "token").write_text("hf_second")
    assert dict(made.secrets) == {"HF_TOKEN": "hf_second"}


def test_the_operators_own_token_is_never_passed_on() -> None:
    machine = {name: value for name, value in MACHINE.items() if name != "ASSAY_JOB_TOKEN"}
    with refused("no_job_token"):
        JobOptions(image="lab/assay:1").settings(STORE, machine)


def test_what_no_job_could_do_is_refused_before_any_starts() -> None:
    with refused("no_job_image"):
        JobOptions().settings(STORE, MACHINE)
    with refused("store_out_of_reach"):
        JobOptions(image="lab/assay:1").settings(StoreName(".assay/store"), MACHINE)
    with refused("bad_job_questions"):
        JobOptions(image="lab/assay:1", questions="questions").settings(STORE, MACHINE)
