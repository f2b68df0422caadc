"""Boxes by Podman, Docker and gVisor: one case a wall, and what is told where a daemon says no.

They are in one file, so that one process has one daemon for all of them.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from benchmarks.errors import PlatformError
from evaluator.isolation import containers as container_sweep
from evaluator.isolation.backend import Backend
from evaluator.isolation.container_engine import Engine, EngineError, ready_image
from evaluator.isolation.containers import Containers, docker
from evaluator.isolation.job import Job
from evaluator.isolation.session import ScorerSession
from tests.evaluator.isolation.asking import boxes_known_to
from tests.evaluator.isolation.boxes import Submit
from tests.evaluator.isolation.engines import client_environment
from tests.evaluator.isolation.suite import Walls
from tests.kit.processes import open_files

pytestmark = [pytest.mark.isolation, pytest.mark.slow]


class TestPodman(Walls):
    """Boxes by Podman."""

    @pytest.fixture(scope="class")
    @classmethod
    def backend(cls, podman_backend: Containers) -> Backend:
        """See `Walls`."""
        return podman_backend


class TestDocker(Walls):
    """Boxes by Docker."""

    @pytest.fixture(scope="class")
    @classmethod
    def backend(cls, docker_backend: Containers) -> Backend:
        """See `Walls`."""
        return docker_backend


class TestGVisor(Walls):
    """Boxes by Docker with gVisor below."""

    @pytest.fixture(scope="class")
    @classmethod
    def backend(cls, gvisor_backend: Containers) -> Backend:
        """See `Walls`."""
        return gvisor_backend


def test_a_daemon_that_does_not_run_is_told_with_what_to_start(
    docker_host: str, tmp_path: Path
) -> None:
    probe = docker(client_environment(), f"unix://{tmp_path}/none.sock").probe()
    assert not probe.ok
    assert "does not run" in probe.reason
    assert "systemctl start docker" in probe.remedy


def test_a_runtime_that_docker_lacks_is_told_with_how_to_add_it(docker_host: str) -> None:
    engine = Engine.docker(client_environment(), docker_host, runtime="no-such-runtime")
    probe = Containers(engine, "gvisor", gvisor=True).probe()
    assert not probe.ok
    assert "daemon.json" in probe.remedy


def test_what_is_not_gvisor_does_not_pass_for_it(docker_host: str) -> None:
    engine = Engine.docker(client_environment(), docker_host)
    probe = Containers(engine, "gvisor", gvisor=True).probe()
    assert not probe.ok
    assert "not gVisor" in probe.reason


def test_a_submission_that_the_boxs_user_cannot_read_blames_nobody_but_us(
    docker_backend: Containers, tmp_path: Path
) -> None:
    folder = tmp_path / "submission"
    folder.mkdir()
    (folder / "scorer.py").touch(mode=0o600)
    with pytest.raises(PlatformError, match="cannot read") as caught:
        docker_backend.start(Job(folder))
    assert "chmod" in caught.value.hint


def test_only_boxes_of_workers_that_are_gone_are_swept(docker_backend: Containers) -> None:
    engine = docker_backend.engine
    docker_backend.probe()  # which has the image made
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        pass
    namespace = container_sweep.this_supervisor().rpartition("-")[2]
    supervisors = {
        "of-this-worker": container_sweep.this_supervisor(),
        "of-one-that-is-gone": f"{gone.pid}-1-{namespace}",
        "of-another-machine": f"{gone.pid}-1-17",
    }
    image = ready_image(engine)
    for name, supervisor in supervisors.items():
        labelled = ("--label", "assay.box=1", "--label", f"assay.supervisor={supervisor}")
        engine.call("create", "--name", name, *labelled, image, "/none")
    try:
        assert container_sweep.sweep(engine) == 1
        left = [name for name in supervisors if engine.container(name) is not None]
        assert left == ["of-this-worker", "of-another-machine"]
    finally:
        for name in supervisors:
            engine.remove(name)


def test_nothing_stays_of_a_box_that_could_not_be_attached_to(
    docker_backend: Containers, submit: Submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = docker_backend.engine

    def fail(self: Engine, name: str) -> None:
        assert self.container(name) is not None, "it was created"
        raise EngineError("no room for another process")

    own = f"assay-start-{container_sweep.this_supervisor()}-*"
    before = set(Path(tempfile.gettempdir()).glob(own))
    descriptors = open_files()
    with monkeypatch.context() as patch:
        patch.setattr(Engine, "attached", fail)
        with pytest.raises(PlatformError, match="no room for another process"):
            docker_backend.start(Job(submit("class Scorer: pass")))
    assert boxes_known_to(engine) == []
    assert set(Path(tempfile.gettempdir()).glob(own)) <= before
    assert not open_files() - descriptors


def test_nothing_stays_of_a_box_whose_start_is_interrupted(
    docker_backend: Containers, submit: Submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(self: ScorerSession) -> None:
        assert self._box.pids(), "it runs"
        raise KeyboardInterrupt

    monkeypatch.setattr(ScorerSession, "await_box", interrupt)
    with pytest.raises(KeyboardInterrupt):
        docker_backend.start(Job(submit("class Scorer: pass")))
    assert boxes_known_to(docker_backend.engine) == []
