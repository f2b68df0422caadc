"""The workflows: few rights, our own scripts, and no release without its checks."""

from __future__ import annotations

import re
import subprocess
from typing import Any

import pytest
import yaml

from tests.deploy.rig import ROOT

WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


def read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / f".github/workflows/{name}.yml").read_text())
    return found


def runs(job: dict[str, Any]) -> str:
    return "\n".join(step.get("run", "") for step in job["steps"])


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_may_read_only_unless_a_job_says_more(path: Any) -> None:
    found = yaml.safe_load(path.read_text())
    assert found["permissions"] == {"contents": "read"}
    for job in found["jobs"].values():
        assert job["timeout-minutes"] <= 120
        for step in job["steps"]:
            if "uses" in step:
                assert re.fullmatch(r"actions/[\w-]+@(v\d+|[0-9a-f]{40})", step["uses"])


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_nothing_that_others_write_is_put_into_a_script(path: Any) -> None:
    for job in yaml.safe_load(path.read_text())["jobs"].values():
        assert "${{" not in runs(job)


def test_every_push_runs_what_ci_runs() -> None:
    assert "bash .ci/run" in runs(read("ci")["jobs"]["test"])


def test_a_tag_is_checked_before_anything_is_built() -> None:
    jobs = read("release")["jobs"]
    checks = runs(jobs["check"])
    for needed in ("make release TAG=", "supply.audit --complete", "bash .ci/run", "sha256sum"):
        assert needed in checks
    assert jobs["images"]["needs"] == "check"
    assert "permissions" not in jobs["check"]


def test_the_name_of_a_tag_is_no_part_of_a_script() -> None:
    """Whoever may push a tag names it, and names may hold `;` and `|`."""
    command = ["make", "--dry-run", "--always-make", "release", "TAG=v1;id"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "supply.release_check" in said
    assert "v1;id" not in said


def test_a_candidate_is_not_released_as_the_latest() -> None:
    assert "*rc*) set -- --prerelease" in runs(read("release")["jobs"]["images"])


def test_boxes_are_asked_for_by_what_fails_without_them() -> None:
    # `doctor` exits with 0 where there are none: a site needs none.
    (step,) = (
        step["run"]
        for step in read("ci")["jobs"]["images"]["steps"]
        if "seccomp-worker.json" in step.get("run", "")
    )
    assert "doctor" not in step
    assert "machine_isolation as m; print(m().require().name)" in step
