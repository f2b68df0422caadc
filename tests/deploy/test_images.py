"""The images: pinned, small, closed, without secrets; the site serves, the worker runs boxes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deploy.rig import (
    ROOT,
    Container,
    Rig,
    admitted,
    for_user,
    image,
    service,
    stages,
    walls,
)

EACH = pytest.mark.parametrize("target", ["app", "worker"])
SECRET = re.compile(r"TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)


# The recipe.


def test_the_linter_has_nothing_to_say() -> None:
    command = [Path(sys.executable).with_name("hadolint"), ROOT / "Dockerfile"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@EACH
def test_an_image_is_pinned_without_rights_or_secrets_and_says_what_it_is(target: str) -> None:
    found = image(target)
    assert found.base == "python:3.11-slim-bookworm${BASE_DIGEST}"
    assert found.user == "1000:1000"
    assert found.folder == found.env["HOME"] == "/var/lib/assay"
    told = [*found.env, *found.args, *found.labels, *found.runs]
    assert [each for each in told if SECRET.search(each)] == []
    named = {name.removeprefix("org.opencontainers.image.") for name in found.labels}
    assert {"title", "description", "licenses", "version", "revision"} <= named
    assert found.health[-2:] == ["/opt/assay/deploy/probe.py", str(found.ports[0])]
    assert not found.entry  # Hub Jobs put their command in the place of ours


def test_what_is_copied_is_there_and_all_else_is_kept_out_of_a_build() -> None:
    copied = {
        source for stage in stages().values() for sources, _ in stage.copies for source in sources
    }
    assert all((ROOT / source).exists() and admitted(source) for source in copied)
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    assert {line[1:] for line in rules if line.startswith("!")} == copied


def test_libraries_are_installed_by_hash_built_nowhere_and_the_site_has_its_own_alone() -> None:
    installs = [run for stage in stages().values() for run in stage.runs if "pip install" in run]
    assert len(installs) == 3
    for run in installs:
        assert "--require-hashes" in run
        assert "--no-build" in run or "--only-binary :all:" in run
    assert image("app").taken == [("builder", "/opt/venv", "/opt/venv")]
    assert all("requirements.txt" not in run for run in stages()["builder"].runs)


def test_a_jobs_command_is_found_from_any_folder_and_no_box_fills_a_volume() -> None:
    found = image("worker")
    assert found.command[:4] == ["python", "-m", "evaluator", "worker"]
    assert found.env["PYTHONPATH"] == "/opt/assay"
    assert not re.search(r"^VOLUME", (ROOT / "Dockerfile").read_text(), re.MULTILINE)


# The worker: it runs strangers' code in boxes, within a container without privileges. Its libraries
# are those of the tests: the same lock, and no second six gigabytes of it.

LIBRARIES = Path(sys.prefix)
WORKER = service("worker-cpu")
GATE = """
from evaluator.isolation.availability import IsolationChoice, isolation_gate
found = isolation_gate(IsolationChoice.BUBBLEWRAP)
print(found.ok, found.reason, found.remedy)
"""
NEEDED = {"seccomp": "namespaces", "systempaths": "/proc"}
"""Line of compose.yaml to a word of what is said without it."""


def evaluator(*words: str) -> str:
    command = [sys.executable, "-m", "evaluator", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def published(container: Container) -> bool:
    said = container.says("python", "-m", "evaluator", "status", "--json")
    return bool(said.startswith("[")) and json.loads(said)[0]["state"] == "published"


@pytest.mark.slow
@pytest.mark.isolation
def test_it_scores_a_strangers_module_and_ends_when_it_is_told_to(engine: Rig, home: Path) -> None:
    scorer = str(ROOT / "evaluator/demo/scorers/random_floor")
    evaluator("submit", scorer, "--store", str(home / "store"))
    for_user(home)
    with engine.running("worker", LIBRARIES, home, options=walls(WORKER)) as worker:
        worker.wait_until_healthy()
        worker.wait(lambda: published(worker), "published")
        ended = worker.stop(60)
        log = worker.log()
    assert ended["ExitCode"] == 0, log
    report = json.loads(evaluator("status", "--store", str(home / "store"), "--json"))
    assert report[0]["state"] == "published"


@pytest.mark.slow
@pytest.mark.isolation
@pytest.mark.parametrize("left_out", [*NEEDED, ""])
def test_a_box_within_the_container_has_every_wall_and_each_opened_one_is_needed(
    engine: Rig, home: Path, left_out: str
) -> None:
    opened = WORKER["security_opt"]
    options = [each for each in opened if not left_out or not each.startswith(left_out)]
    assert len(options) == len(opened) - bool(left_out)
    words = walls({**WORKER, "security_opt": options})
    command = ("python", "-c", GATE)
    with engine.running("worker", LIBRARIES, home, options=words, command=command) as container:
        container.docker("wait", container.name)
        said = container.log()
    assert said.startswith("False" if left_out else "True"), said
    assert NEEDED.get(left_out, "") in said
