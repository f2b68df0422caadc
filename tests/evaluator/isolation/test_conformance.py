"""Every backend, and no isolation at all, by the one set of tests that all of them pass."""

from __future__ import annotations

import pytest

from evaluator.isolation.availability import PlainProcess
from evaluator.isolation.backend import Backend
from evaluator.isolation.bubblewrap import Bubblewrap
from evaluator.isolation.containers import Containers
from tests.evaluator.isolation.suite import Answers, Walls

pytestmark = pytest.mark.isolation


class TestBubblewrap(Walls):
    """Boxes by bubblewrap."""

    @pytest.fixture(scope="class")
    @classmethod
    def backend(cls, bubblewrap: Bubblewrap) -> Backend:
        """See `Walls`."""
        return bubblewrap


@pytest.mark.slow
class TestPodman(Walls):
    """Boxes by Podman."""

    @pytest.fixture(scope="class")
    @classmethod
    def backend(cls, podman_backend: Containers) -> Backend:
        """See `Walls`."""
        return podman_backend


class TestPlain(Answers):
    """The backend without walls, for our own scorers."""

    @pytest.fixture(scope="class")
    @classmethod
    def backend(cls) -> Backend:
        """See `Answers`."""
        return PlainProcess()


@pytest.mark.slow
class TestDocker(Walls):
    """Boxes by Docker."""

    @pytest.fixture(scope="class")
    @classmethod
    def backend(cls, docker_backend: Containers) -> Backend:
        """See `Walls`."""
        return docker_backend


@pytest.mark.slow
class TestGVisor(Walls):
    """Boxes by Docker with gVisor below."""

    @pytest.fixture(scope="class")
    @classmethod
    def backend(cls, gvisor_backend: Containers) -> Backend:
        """See `Walls`."""
        return gvisor_backend
