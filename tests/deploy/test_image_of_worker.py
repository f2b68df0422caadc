"""The worker's image: it runs strangers' code in boxes, within a container without privileges.

Its libraries are those of the tests: the same lock, and no second six gigabytes of it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deploy.conftest import for_user
from tests.deploy.rig import ROOT, Container, Rig, service, walls

pytestmark = pytest.mark.slow

LIBRARIES = Path(sys.prefix)
WORKER = service("worker-cpu")
GATE = """
from evaluator.isolation.gate import IsolationChoice, isolation_gate
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


@pytest.mark.isolation
@pytest.mark.parametrize("left_out", NEEDED)
def test_each_opened_wall_is_needed(engine: Rig, home: Path, left_out: str) -> None:
    options = [each for each in WORKER["security_opt"] if not each.startswith(left_out)]
    assert len(options) == len(WORKER["security_opt"]) - 1
    said = gate(engine, home, {**WORKER, "security_opt": options})
    assert said.startswith("False")
    assert NEEDED[left_out] in said


@pytest.mark.isolation
def test_a_box_within_the_container_has_every_wall(engine: Rig, home: Path) -> None:
    assert gate(engine, home, WORKER).startswith("True")


def gate(engine: Rig, home: Path, of: dict[str, object]) -> str:
    """Whether boxes can be made in a container of such a service, and why not."""
    command = ("python", "-c", GATE)
    with engine.running("worker", LIBRARIES, home, options=walls(of), command=command) as container:
        container.docker("wait", container.name)
        return container.log()
