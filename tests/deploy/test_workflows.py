"""The workflows: few rights, our own scripts, and no release without its checks."""

from __future__ import annotations

import re
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
